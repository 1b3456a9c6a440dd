#include "base/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace nnbt::json {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Lead byte of each sequence length, and the smallest code point that needs it.
struct Form {
  unsigned char mask;
  unsigned char bits;
  std::size_t bytes;
  std::uint32_t least;
};
constexpr std::array kForms = {Form{0xE0, 0xC0, 2, 0x80}, Form{0xF0, 0xE0, 3, 0x800},
                               Form{0xF8, 0xF0, 4, 0x10000}};

// Length of the multi-byte code point at the start of `rest`; 0 if it is not valid UTF-8.
std::size_t code_point_bytes(std::string_view rest) {
  constexpr std::uint32_t kLast = 0x10FFFF;
  constexpr std::uint32_t kFirstSurrogate = 0xD800;
  constexpr std::uint32_t kLastSurrogate = 0xDFFF;
  const auto first = static_cast<unsigned char>(rest.front());
  for (const Form& form : kForms) {
    if ((first & form.mask) != form.bits || rest.size() < form.bytes) continue;
    std::uint32_t point = first & static_cast<unsigned char>(~form.mask);
    for (const char c : rest.substr(1, form.bytes - 1)) {
      const auto byte = static_cast<unsigned char>(c);
      if ((byte & 0xC0U) != 0x80U) return 0;
      point = (point << 6U) | (byte & 0x3FU);
    }
    const bool surrogate = point >= kFirstSurrogate && point <= kLastSurrogate;
    return point >= form.least && point <= kLast && !surrogate ? form.bytes : 0;
  }
  return 0;
}

void append_ascii(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (byte < 0x20 || byte == 0x7F) {
    out += "\\u00";
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 0xFU];
  } else {
    out += c;
  }
}

}  // namespace

std::string text(std::string_view bytes) {
  std::string out = "\"";
  for (std::size_t at = 0; at < bytes.size();) {
    if (static_cast<unsigned char>(bytes[at]) < 0x80) {
      append_ascii(out, bytes[at++]);
      continue;
    }
    const std::size_t length = code_point_bytes(bytes.substr(at));
    out += length > 0 ? bytes.substr(at, length) : kReplacement;
    at += length > 0 ? length : 1;
  }
  return out + '"';
}

std::string number(double value) {
  if (!std::isfinite(value)) return std::string(kNull);
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), end.ptr};
}

std::string boolean(bool value) { return value ? "true" : "false"; }

}  // namespace nnbt::json
