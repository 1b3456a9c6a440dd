#include "package/plist.h"

#include <fstream>
#include <ios>
#include <stdexcept>
#include <utility>

namespace nnbt {
namespace {

constexpr std::size_t kMaxFileBytes = 16U << 20U;

}  // namespace

const Plist* Plist::find(std::string_view key) const {
  const PlistDict* entries = dict();
  if (entries == nullptr) return nullptr;
  const auto found = entries->find(key);
  return found == entries->end() ? nullptr : &found->second;
}

Plist read_plist(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) throw std::runtime_error("cannot read " + path);
  if (std::cmp_greater(size, kMaxFileBytes)) throw std::runtime_error(path + " is too large");
  std::vector<char> bytes(static_cast<std::size_t>(size));
  file.seekg(0);
  file.read(bytes.data(), size);
  if (!file) throw std::runtime_error("cannot read " + path);
  return parse_plist(std::as_bytes(std::span(bytes)));
}

}  // namespace nnbt
