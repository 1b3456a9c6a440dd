// Saves compiled graphs as .mpsgraphpackage directories: written beside the target, verified,
// renamed, so that nobody ever sees half a package. Portable; the caller serialises.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "package/manifest.h"
#include "package/placement.h"

namespace nnbt {

struct PackageSource {
  std::function<void(const std::string& path)> serialise;  // may write nothing without a word
  std::string ane_directory;  // the framework's temporary directory of compiled regions, or empty
  bool wants_ane = false;     // the graph was compiled for the ANE
  std::string description;    // JSON for nnbt_conv.json
};

// Files with compiled ANE regions in a directory; 0 where it doesn't exist.
int count_region_files(const std::string& directory);

// Serialises into a temporary package, reads its manifest and removes it. Throws std::runtime_error
// with the reason where MPSGraph wrote no whole package.
PackageManifest inspect_package(const PackageSource& source);

// Everything known about the placement of a graph; a package that can't be inspected is a reason in
// the evidence, never an exception.
PlacementEvidence package_evidence(const PackageSource& source, bool fallback_disabled);

// Throws Unsupported unless `directory` holds a package that MPSGraph wrote whole.
void require_package(const std::string& directory);

// Writes the package to `directory` and adds ane_bundle/ and nnbt_conv.json. Returns what is
// missing (a sentence) or an empty string. Throws Unsupported where the target exists, can't be
// written or came out incomplete; then nothing is left behind.
std::string save_package(const PackageSource& source, const std::string& directory);

}  // namespace nnbt
