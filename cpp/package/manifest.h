// Reads what manifest.plist of an .mpsgraphpackage says about placement.
//
// The format is Apple's and undocumented; every key may be missing on some release, so a missing
// key is "unknown" and never "no". Keys seen in packages of macOS 15 and 26: "Package Version",
// "Optimized Modules", "Entry Function Attributes", "ANERegionsHash", "GPU adapter present".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nnbt {

struct PackageManifest {
  std::vector<std::string> versions;  // keys below "Package Version", such as "7.0.56"
  int entry_points = 0;               // optimised entry functions that carry attributes
  std::optional<bool>
      fully_placed_on_ane;               // mps.fullyPlacedOnANE in all of them; none: no attributes
  std::optional<bool> no_gpu_activity;   // mps.noGPUActivity in all of them
  std::vector<std::string> ane_regions;  // mps.ane.calleeName, or the names in ANERegionsHash
  std::optional<bool> gpu_adapter_present;  // "GPU adapter present"
};

// Throws std::invalid_argument with the reason for bytes that aren't a property list or don't hold
// a "Package Version" dictionary.
PackageManifest read_package_manifest(std::span<const std::byte> bytes);

// The same from a file. Throws std::runtime_error where it can't be read or is over 16 MiB.
PackageManifest read_package_manifest_file(const std::string& path);

}  // namespace nnbt
