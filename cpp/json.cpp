#include "json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace nnbt {

std::string json_quoted(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20U) {
      quoted += "\\u00";
      quoted += kDigits[code >> 4U];
      quoted += kDigits[code & 0xFU];
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 32> text{};  // the longest double has 24 characters
  const auto [end, error] = std::to_chars(text.begin(), text.end(), value);
  return {text.begin(), end};
}

}  // namespace nnbt
