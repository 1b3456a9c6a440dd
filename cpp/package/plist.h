// Property lists, XML and binary, read into one value type. Bounded: hostile input costs at most
// kMaxPlistValues values and an exception, never a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nnbt {

struct Plist;
using PlistArray = std::vector<Plist>;
using PlistDict = std::map<std::string, Plist, std::less<>>;

struct Plist {
  // Dates are seconds since 2001-01-01 in binary lists and their text in XML ones; data keep their
  // bytes (binary) or base64 text (XML). Neither is needed here.
  std::variant<std::monostate, bool, std::int64_t, double, std::string, PlistArray, PlistDict>
      value;

  const PlistDict* dict() const { return std::get_if<PlistDict>(&value); }
  const PlistArray* array() const { return std::get_if<PlistArray>(&value); }
  const std::string* string() const { return std::get_if<std::string>(&value); }
  // The value under `key`, null where this is no dictionary or lacks it.
  const Plist* find(std::string_view key) const;
};

inline constexpr std::size_t kMaxPlistValues = 200'000;  // a shared binary object counts each time
inline constexpr std::size_t kMaxPlistDepth = 64;
inline constexpr std::size_t kMaxPlistText = 64U << 20U;  // bytes of all strings together

// Throws std::invalid_argument for anything that isn't a well-formed property list.
Plist parse_plist(std::span<const std::byte> bytes);

}  // namespace nnbt
