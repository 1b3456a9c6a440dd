// What a replay on the Neural Engine needs from a saved package: the regions that MPSGraph compiled
// (ane_bundle/) and the placement in its manifest. Portable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "package/plist.h"

namespace nnbt::ane {

// One compiled region: files <key>.bc.mlir, <key>.bc.weights and compiler_options_<key>.plist.
struct Region {
  std::string directory;
  std::string key;                          // "main_ANE_region_0_0"
  std::string network_file;                 // file names, without the directory
  std::string options_file;                 // empty if there is none
  std::optional<std::string> architecture;  // the compiler's target, "h16g"
};

struct Bundle {
  std::vector<Region> regions;       // ANECIR only, sorted by key; other formats cannot be replayed
  std::optional<bool> fully_placed;  // both placement flags of the manifest; none without flags
};

// The target in a region's compiler options: TargetArchitecture of the first entry, or its key.
std::optional<std::string> target_architecture(const Plist& options);

// Reads a package directory. Missing or unreadable parts become absent values, never errors.
Bundle read_bundle(const std::string& package);

}  // namespace nnbt::ane
