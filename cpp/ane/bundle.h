// What a saved package holds for a replay on the Neural Engine: the regions that MPSGraph compiled
// (ane_bundle/) and what its manifest says about placement. Portable.
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
  std::string network_file;                 // names without the directory
  std::string options_file;                 // empty: there is none
  std::optional<std::string> architecture;  // the compiler's target, "h16g"
};

struct Bundle {
  std::vector<Region> regions;       // ANECIR only, by key: other formats can't be replayed
  std::optional<bool> fully_placed;  // both placement flags of the manifest; none: it has no flags
};

// The target that a region's compiler options name: the key of their first entry, or its
// TargetArchitecture.
std::optional<std::string> target_architecture(const Plist& options);

// Reads a package directory. What is missing or unreadable is an absent value, never an error.
Bundle read_bundle(const std::string& package);

}  // namespace nnbt::ane
