#include "package/manifest.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace nnbt {
namespace {

void add_unique(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

// One entry function's attributes: a list of strings and dictionaries.
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

// A flag counts only if every optimised entry function has it.
void add_entry(const Plist& attributes, PackageManifest& manifest) {
  if (attributes.array() == nullptr) return;
  const Attributes found = read_attributes(*attributes.array(), manifest);
  manifest.fully_placed_on_ane = manifest.fully_placed_on_ane.value_or(true) && found.fully_on_ane;
  manifest.no_gpu_activity = manifest.no_gpu_activity.value_or(true) && found.no_gpu;
}

void walk(const Plist& node, PackageManifest& manifest);

void visit(const std::string& key, const Plist& value, PackageManifest& manifest) {
  // Modules as the user wrote them, or specialised for no device, say nothing about placement.
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

PackageManifest read_package_manifest(const Plist& root) {
  const Plist* versions = root.find("Package Version");
  if (versions == nullptr || versions->dict() == nullptr) {
    throw std::invalid_argument("the manifest has no \"Package Version\" dictionary");
  }
  PackageManifest manifest;
  for (const auto& [version, content] : *versions->dict()) walk(content, manifest);
  return manifest;
}

}  // namespace nnbt
