// Reads property lists for check_plist.py: for each path on standard input, prints a line of JSON
// with the whole list, or with the contents of a manifest or a package directory.
//
// usage: nnbt_plist_driver list|manifest|bundle <paths
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "ane/bundle.h"
#include "base/json_writer.h"
#include "package/manifest.h"
#include "package/plist.h"

namespace {

using namespace nnbt;
using json::boolean;
using json::maybe;
using json::Object;
using json::text;

std::string tree(const Plist& plist) {
  if (plist.string() != nullptr) return text(*plist.string());
  if (plist.array() != nullptr) return json::list(*plist.array(), tree);
  if (plist.dict() == nullptr) return std::string(json::kNull);
  Object out;
  for (const auto& [key, value] : *plist.dict()) out.add(key, tree(value));
  return out.str();
}

std::string manifest(const PackageManifest& read) {
  return Object()
      .add("fully_placed_on_ane", maybe(read.fully_placed_on_ane, boolean))
      .add("no_gpu_activity", maybe(read.no_gpu_activity, boolean))
      .add("ane_regions", json::texts(read.ane_regions))
      .str();
}

std::string bundle(const ane::Bundle& read) {
  const auto region = [](const ane::Region& found) {
    return Object()
        .add("key", text(found.key))
        .add("architecture", maybe(found.architecture, text))
        .str();
  };
  return Object()
      .add("fully_placed", maybe(read.fully_placed, boolean))
      .add("regions", json::list(read.regions, region))
      .str();
}

std::string answer(std::string_view what, const std::string& path) {
  if (what == "bundle") return bundle(ane::read_bundle(path));
  const Plist root = read_plist(path);
  return what == "manifest" ? manifest(read_package_manifest(root)) : tree(root);
}

}  // namespace

int main(int argc, char* argv[]) {
  if (argc != 2) return 2;
  for (std::string path; std::getline(std::cin, path);) {
    try {
      std::cout << Object().add("read", answer(argv[1], path)).str() << '\n';
    } catch (const std::exception& problem) {
      std::cout << Object().add("error", text(problem.what())).str() << '\n';
    }
  }
  return 0;
}
