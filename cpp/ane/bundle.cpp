#include "ane/bundle.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "package/manifest.h"

namespace nnbt::ane {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNetworkSuffix = ".bc.mlir";

std::optional<std::string> read_architecture(const fs::path& options) {
  try {
    return target_architecture(read_plist(options.string()));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<Region> region_of(const fs::path& network) {
  const std::string name = network.filename().string();
  if (!name.ends_with(kNetworkSuffix) || name.size() == kNetworkSuffix.size()) return std::nullopt;
  Region region;
  region.directory = network.parent_path().string();
  region.network_file = name;
  region.key = name.substr(0, name.size() - kNetworkSuffix.size());
  const std::string options = "compiler_options_" + region.key + ".plist";
  std::error_code error;
  if (fs::is_regular_file(network.parent_path() / options, error)) {
    region.options_file = options;
    region.architecture = read_architecture(network.parent_path() / options);
  }
  return region;
}

std::optional<bool> fully_placed(const fs::path& manifest) {
  try {
    const PackageManifest read = read_package_manifest(read_plist(manifest.string()));
    if (!read.fully_placed_on_ane) return std::nullopt;
    return *read.fully_placed_on_ane && read.no_gpu_activity.value_or(false);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> target_architecture(const Plist& options) {
  if (options.dict() == nullptr || options.dict()->empty()) return std::nullopt;
  const auto& [name, value] = *options.dict()->begin();
  if (value.dict() == nullptr) return std::nullopt;
  const Plist* inner = value.find("TargetArchitecture");
  if (inner != nullptr && inner->string() != nullptr) return *inner->string();
  return name;
}

Bundle read_bundle(const std::string& package) {
  Bundle bundle;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(package) / "ane_bundle", error)) {
    if (auto region = region_of(entry.path())) bundle.regions.push_back(*std::move(region));
  }
  std::ranges::sort(bundle.regions, {}, &Region::key);
  bundle.fully_placed = fully_placed(fs::path(package) / "manifest.plist");
  return bundle;
}

}  // namespace nnbt::ane
