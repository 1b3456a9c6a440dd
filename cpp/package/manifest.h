// Reads what manifest.plist of an .mpsgraphpackage says about placement.
//
// The format is Apple's and undocumented, and any release may lack any key: a missing key means
// "unknown", never "no". Keys seen in packages of macOS 15 and 26: "Package Version", "Optimized
// Modules", "Entry Function Attributes", "ANERegionsHash".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "package/plist.h"

namespace nnbt {

struct PackageManifest {
  // Whether every optimised entry function has mps.fullyPlacedOnANE, and mps.noGPUActivity; none if
  // the manifest has no entry function attributes.
  std::optional<bool> fully_placed_on_ane;
  std::optional<bool> no_gpu_activity;
  std::vector<std::string> ane_regions;  // mps.ane.calleeName, or the names in ANERegionsHash
};

// Throws std::invalid_argument if the list has no "Package Version" dictionary.
PackageManifest read_package_manifest(const Plist& root);

}  // namespace nnbt
