// XML property lists: the subset of XML that Apple's writer produces (elements without attributes
// inside <plist>, five named entities, numeric ones, comments, CDATA).
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "package/plist_formats.h"

namespace nnbt {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::invalid_argument("XML property list: " + what);
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

void append_code_point(std::string& out, std::string_view digits) {
  const bool hex = digits.starts_with('x');
  if (hex) digits.remove_prefix(1);
  std::uint32_t code = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
  if (error != std::errc() || end != digits.data() + digits.size() || code > 0x10FFFF) {
    fail("a numeric entity");
  }
  append_utf8(out, code);
}

void append_entity(std::string& out, std::string_view name) {
  constexpr std::pair<std::string_view, char> kNamed[] = {
      {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [entity, character] : kNamed) {
    if (name == entity) {
      out.push_back(character);
      return;
    }
  }
  if (!name.starts_with('#')) fail("an unknown entity");
  append_code_point(out, name.substr(1));
}

struct Tag {
  std::string_view name;
  bool closing = false;  // </name>
  bool empty = false;    // <name/>
};

class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : rest_(text) {}

  Plist read() {
    Tag tag = next_tag();
    if (tag.name == "plist" && !tag.closing && !tag.empty) tag = next_tag();
    return element(tag, 0);
  }

 private:
  std::string_view take_until(std::string_view mark, const char* what) {
    const std::size_t end = rest_.find(mark);
    if (end == std::string_view::npos) fail(std::string(what) + " without an end");
    const std::string_view taken = rest_.substr(0, end);
    rest_.remove_prefix(end + mark.size());
    return taken;
  }

  // The next tag; only white space, comments and declarations may stand before it.
  Tag next_tag() {
    for (;;) {
      while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
      if (rest_.starts_with("<!--")) {
        take_until("-->", "a comment");
      } else if (rest_.starts_with("<?")) {
        take_until("?>", "a declaration");
      } else if (rest_.starts_with("<!")) {
        take_until(">", "a document type");
      } else {
        break;
      }
    }
    if (!rest_.starts_with('<')) fail("a tag was expected");
    rest_.remove_prefix(1);
    std::string_view inside = take_until(">", "a tag");
    Tag tag;
    tag.closing = inside.starts_with('/');
    if (tag.closing) inside.remove_prefix(1);
    tag.empty = inside.ends_with('/');
    if (tag.empty) inside.remove_suffix(1);
    std::size_t end = 0;
    while (end < inside.size() && !is_space(inside[end])) ++end;
    tag.name = inside.substr(0, end);
    return tag;
  }

  // Text up to the closing tag of `name`, entities replaced.
  std::string text(std::string_view name) {
    std::string out;
    while (!rest_.empty()) {
      if (rest_.starts_with("<![CDATA[")) {
        rest_.remove_prefix(9);
        out += take_until("]]>", "CDATA");
      } else if (rest_.starts_with("<!--")) {
        take_until("-->", "a comment");
      } else if (rest_.front() == '<') {
        const Tag tag = next_tag();
        if (!tag.closing || tag.name != name) fail("a tag inside text");
        budget_.text(out.size());
        return out;
      } else if (rest_.front() == '&') {
        rest_.remove_prefix(1);
        append_entity(out, take_until(";", "an entity"));
      } else {
        const std::size_t end = std::min(rest_.find_first_of("<&"), rest_.size());
        out += rest_.substr(0, end);
        rest_.remove_prefix(end);
      }
    }
    fail("text without a closing tag");
  }

  Plist element(const Tag& tag, std::size_t depth) {
    budget_.value(depth);
    if (tag.closing) fail("a closing tag without its opening one");
    if (tag.name == "dict") return tag.empty ? Plist{PlistDict{}} : dict(depth);
    if (tag.name == "array") return tag.empty ? Plist{PlistArray{}} : array(depth);
    const std::string content = tag.empty ? std::string() : text(tag.name);
    if (tag.name == "true" || tag.name == "false") return {tag.name == "true"};
    if (tag.name == "integer") return {integer(content)};
    if (tag.name == "real") return {real(std::string(trimmed(content)))};
    if (tag.name == "string" || tag.name == "date" || tag.name == "data") return {content};
    fail("an unknown element");
  }

  static std::int64_t integer(std::string_view content) {
    content = trimmed(content);
    if (content.starts_with('+')) content.remove_prefix(1);
    std::int64_t value = 0;
    const char* last = content.data() + content.size();
    const auto [end, error] = std::from_chars(content.data(), last, value);
    if (error != std::errc() || end != last) fail("an integer");
    return value;
  }

  // strtod, since libc++ gives std::from_chars for floating point to macOS 26 only.
  static double real(const std::string& content) {
    char* end = nullptr;
    const double value = std::strtod(content.c_str(), &end);
    if (content.empty() || end != content.c_str() + content.size()) fail("a real number");
    return value;
  }

  Plist array(std::size_t depth) {
    PlistArray items;
    for (;;) {
      const Tag tag = next_tag();
      if (tag.closing && tag.name == "array") return {std::move(items)};
      items.push_back(element(tag, depth + 1));
    }
  }

  Plist dict(std::size_t depth) {
    PlistDict entries;
    for (;;) {
      const Tag key = next_tag();
      if (key.closing && key.name == "dict") return {std::move(entries)};
      if (key.name != "key" || key.closing) fail("a dictionary entry without a key");
      std::string name = key.empty ? std::string() : text("key");
      entries.insert_or_assign(std::move(name), element(next_tag(), depth + 1));
    }
  }

  std::string_view rest_;
  PlistBudget budget_;
};

}  // namespace

Plist parse_xml_plist(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return XmlReader(text).read();
}

}  // namespace nnbt
