#include "package/plist.h"

#include <stdexcept>

#include "package/plist_formats.h"

namespace nnbt {

const Plist* Plist::find(std::string_view key) const {
  const PlistDict* entries = dict();
  if (entries == nullptr) return nullptr;
  const auto found = entries->find(key);
  return found == entries->end() ? nullptr : &found->second;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | (code >> 6U));
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | (code >> 12U));
    put(0x80U | ((code >> 6U) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | (code >> 18U));
    put(0x80U | ((code >> 12U) & 0x3FU));
    put(0x80U | ((code >> 6U) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

void PlistBudget::value(std::size_t depth) {
  if (depth > kMaxPlistDepth) throw std::invalid_argument("property list: nested too deeply");
  if (++values_ > kMaxPlistValues) throw std::invalid_argument("property list: too many values");
}

void PlistBudget::text(std::size_t bytes) {
  text_ += bytes;
  if (text_ > kMaxPlistText) throw std::invalid_argument("property list: too much text");
}

Plist parse_plist(std::span<const std::byte> bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes as characters
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("bplist00")) return parse_binary_plist(bytes);
  return parse_xml_plist(text);
}

}  // namespace nnbt
