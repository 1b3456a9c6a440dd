// Property lists, such as the manifest.plist of a package, as a tree for portable code.
#pragma once

#include <cstddef>
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
  // Numbers, booleans, dates and data are monostate: nothing here reads them.
  std::variant<std::monostate, std::string, PlistArray, PlistDict> value;

  const PlistDict* dict() const { return std::get_if<PlistDict>(&value); }
  const PlistArray* array() const { return std::get_if<PlistArray>(&value); }
  const std::string* string() const { return std::get_if<std::string>(&value); }
  // The value under `key`; null if this is not a dictionary or has no such key.
  const Plist* find(std::string_view key) const;
};

// Reads an XML or binary property list with Foundation (objc/plist.mm). Throws std::runtime_error
// for anything else, and Unsupported on systems without Foundation (cpp/linux/plist.cpp).
Plist parse_plist(std::span<const std::byte> bytes);

// Throws std::runtime_error if the file cannot be read or is over 16 MiB, and as parse_plist does.
Plist read_plist(const std::string& path);

}  // namespace nnbt
