// Saves compiled graphs as .mpsgraphpackage directories: written next to the target, verified, then
// renamed, so that a partial package is never visible. Portable; the caller serialises.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "package/manifest.h"
#include "package/placement.h"

namespace nnbt {

struct PackageSource {
  std::function<void(const std::string& path)> serialise;  // may silently write nothing
  std::string ane_directory;  // the framework's temporary directory of compiled regions, or empty
  bool wants_ane = false;     // the graph was compiled for the ANE
  std::string description;    // JSON for nnbt_conv.json
};

// Number of compiled ANE regions in a directory; 0 if it doesn't exist.
int count_region_files(const std::string& directory);

// Serialises to a temporary package, reads its manifest and deletes it. Throws std::runtime_error
// with the reason if MPSGraph did not write a complete package.
PackageManifest inspect_package(const PackageSource& source);

// Everything known about where a graph was placed. A package that cannot be inspected becomes part
// of the evidence, not an exception.
PlacementEvidence package_evidence(const PackageSource& source, bool fallback_disabled);

// Throws Unsupported unless `directory` contains a complete package.
void require_package(const std::string& directory);

// Writes the package to `directory` and adds ane_bundle/ and nnbt_conv.json. Returns a sentence
// that says what is missing, or an empty string. Throws Unsupported, and leaves nothing behind, if
// the target exists, is not writable or came out incomplete.
std::string save_package(const PackageSource& source, const std::string& directory);

}  // namespace nnbt
