// Writes JSON. Each function returns the text of one value, so values nest by composition. The
// output is always valid JSON.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace nnbt::json {

inline constexpr std::string_view kNull = "null";

// A string. Invalid UTF-8 becomes U+FFFD: frameworks may return anything.
std::string text(std::string_view bytes);

// null if the number is not finite. The text reads back to the same double.
std::string number(double value);

std::string boolean(bool value);

template <std::integral Integer>
  requires(!std::same_as<Integer, bool>)
std::string number(Integer value) {
  return std::to_string(value);
}

// A list with `write` applied to each item.
template <typename Range, typename Write>
std::string list(const Range& items, const Write& write) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) out += ", ";
    out += write(item);
  }
  return out + "]";
}

inline std::string texts(const auto& items) {
  return list(items, [](const auto& item) { return text(item); });
}
inline std::string numbers(const auto& items) {
  return list(items, [](const auto& item) { return number(item); });
}

// `write` applied to the value, or null if there is none.
template <typename Value, typename Write>
std::string maybe(const std::optional<Value>& value, const Write& write) {
  return value ? write(*value) : std::string(kNull);
}

// An object, built member by member.
class Object {
 public:
  Object& add(std::string_view key, std::string_view json) {
    members_ += (members_.empty() ? "" : ", ") + text(key) + ": " + std::string(json);
    return *this;
  }
  std::string str() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace nnbt::json
