#include "package/manifest.h"

#include <algorithm>
#include <fstream>
#include <ios>
#include <stdexcept>
#include <utility>

#include "package/plist.h"

namespace nnbt {
namespace {

constexpr std::size_t kMaxFileBytes = 16U << 20U;

void add_unique(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

// One entry function's attributes: a list of plain strings and of dictionaries.
struct Attributes {
  bool fully_on_ane = false;
  bool no_gpu = false;
};

Attributes read_attributes(const PlistArray& list, PackageManifest& manifest) {
  Attributes result;
  for (const Plist& item : list) {
    const auto has = [&item](std::string_view name) {
      return (item.string() != nullptr && *item.string() == name) || item.find(name) != nullptr;
    };
    result.fully_on_ane |= has("mps.fullyPlacedOnANE");
    result.no_gpu |= has("mps.noGPUActivity");
    const Plist* callee = item.find("mps.ane.calleeName");
    if (callee != nullptr && callee->string() != nullptr) {
      add_unique(manifest.ane_regions, *callee->string());
    }
  }
  return result;
}

// A flag counts only where every optimised entry function carries it.
void add_entry(const Plist& attributes, PackageManifest& manifest) {
  if (attributes.array() == nullptr) return;
  const Attributes found = read_attributes(*attributes.array(), manifest);
  ++manifest.entry_points;
  manifest.fully_placed_on_ane = manifest.fully_placed_on_ane.value_or(true) && found.fully_on_ane;
  manifest.no_gpu_activity = manifest.no_gpu_activity.value_or(true) && found.no_gpu;
}

// "YES", "NO" or a boolean.
std::optional<bool> as_bool(const Plist& value) {
  if (const bool* flag = std::get_if<bool>(&value.value)) return *flag;
  if (value.string() == nullptr) return std::nullopt;
  if (*value.string() == "YES") return true;
  if (*value.string() == "NO") return false;
  return std::nullopt;
}

void walk(const Plist& node, PackageManifest& manifest);

void visit(const std::string& key, const Plist& value, PackageManifest& manifest) {
  // Modules as written by the user or specialised for no device say nothing about placement.
  if (key.starts_with("Original") || key.find("No Device") != std::string::npos) return;
  if (key == "Entry Function Attributes") {
    if (value.dict() == nullptr) return;
    for (const auto& [function, attributes] : *value.dict()) add_entry(attributes, manifest);
  } else if (key == "ANERegionsHash") {
    if (value.dict() == nullptr) return;
    for (const auto& [architecture, hash] : *value.dict()) {
      if (hash.string() != nullptr)
        add_unique(manifest.ane_regions, architecture + ":" + *hash.string());
    }
  } else if (key == "GPU adapter present") {
    manifest.gpu_adapter_present = as_bool(value);
  } else {
    walk(value, manifest);
  }
}

void walk(const Plist& node, PackageManifest& manifest) {
  if (node.dict() != nullptr) {
    for (const auto& [key, value] : *node.dict()) visit(key, value, manifest);
  } else if (node.array() != nullptr) {
    for (const Plist& item : *node.array()) walk(item, manifest);
  }
}

}  // namespace

PackageManifest read_package_manifest(std::span<const std::byte> bytes) {
  const Plist root = parse_plist(bytes);
  const Plist* versions = root.find("Package Version");
  if (versions == nullptr || versions->dict() == nullptr) {
    throw std::invalid_argument("the manifest has no \"Package Version\" dictionary");
  }
  PackageManifest manifest;
  for (const auto& [version, content] : *versions->dict()) {
    manifest.versions.push_back(version);
    walk(content, manifest);
  }
  return manifest;
}

PackageManifest read_package_manifest_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) throw std::runtime_error("can't read " + path);
  if (std::cmp_greater(size, kMaxFileBytes)) throw std::runtime_error(path + " is too large");
  std::vector<char> bytes(static_cast<std::size_t>(size));
  file.seekg(0);
  file.read(bytes.data(), size);
  if (!file) throw std::runtime_error("can't read " + path);
  return read_package_manifest(std::as_bytes(std::span(bytes)));
}

}  // namespace nnbt
