#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "package/manifest.h"
#include "package/plist.h"

namespace {

using namespace nnbt;

Plist text(std::string value) { return {std::move(value)}; }
Plist list(PlistArray items) { return {std::move(items)}; }
Plist dict(PlistDict entries) { return {std::move(entries)}; }

Plist module_of(PlistDict entry_functions) {
  return list({dict({{"Entry Function Attributes", dict(std::move(entry_functions))}})});
}

Plist manifest_of(PlistDict version) {
  return dict({{"Package Version", dict({{"7.0.63", dict(std::move(version))}})}});
}

// Original modules and those for no device have attributes of their own, which must not count.
Plist manifest_with(PlistDict entry_functions) {
  return manifest_of({{"GPU adapter present", text("NO")},
                      {"Original Modules", module_of({{"main", list({})}})},
                      {"Optimized No Device Modules", module_of({{"main", list({})}})},
                      {"Optimized Modules", module_of(std::move(entry_functions))}});
}

Plist placed() {
  return list({text("mps.fullyPlacedOnANE"), text("mps.noGPUActivity"),
               dict({{"mps.ane.calleeName", text("main_ANE_region_0_0")}})});
}

}  // namespace

TEST_CASE("the manifest of a graph on the ANE") {
  const PackageManifest manifest = read_package_manifest(manifest_with({{"main", placed()}}));
  CHECK(manifest.fully_placed_on_ane == true);
  CHECK(manifest.no_gpu_activity == true);
  CHECK(manifest.ane_regions == std::vector<std::string>{"main_ANE_region_0_0"});
}

TEST_CASE("flags as keys of a dictionary, regions by their hash") {
  const Plist flags =
      list({dict({{"mps.fullyPlacedOnANE", Plist{}}, {"mps.noGPUActivity", Plist{}}})});
  Plist root = manifest_of({{"Optimized Modules", module_of({{"main", flags}})},
                            {"ANERegionsHash", dict({{"h16g", text("ab12")}, {"h17g", Plist{}}})}});
  const PackageManifest manifest = read_package_manifest(root);
  CHECK(manifest.fully_placed_on_ane == true);
  CHECK(manifest.no_gpu_activity == true);
  CHECK(manifest.ane_regions == std::vector<std::string>{"h16g:ab12"});
}

TEST_CASE("a GPU graph has attributes without flags, an old release has no attributes") {
  const PackageManifest gpu =
      read_package_manifest(manifest_with({{"main", list({text("x"), Plist{}})}}));
  CHECK(gpu.fully_placed_on_ane == false);
  CHECK(gpu.no_gpu_activity == false);
  CHECK(gpu.ane_regions.empty());
  const PackageManifest old = read_package_manifest(manifest_of({{"Original", Plist{}}}));
  CHECK_FALSE(old.fully_placed_on_ane.has_value());
  CHECK_FALSE(old.no_gpu_activity.has_value());
}

TEST_CASE("a flag that one of two entry functions lacks does not count") {
  const PackageManifest manifest = read_package_manifest(
      manifest_with({{"main", placed()}, {"other", list({text("mps.noGPUActivity")})}}));
  CHECK(manifest.fully_placed_on_ane == false);
  CHECK(manifest.no_gpu_activity == true);
}

TEST_CASE("entries of unexpected types are ignored") {
  const PackageManifest manifest = read_package_manifest(
      manifest_of({{"Entry Function Attributes", text("x")},
                   {"ANERegionsHash", list({})},
                   {"Optimized Modules", module_of({{"main", text("mps.fullyPlacedOnANE")}})}}));
  CHECK_FALSE(manifest.fully_placed_on_ane.has_value());
  CHECK(manifest.ane_regions.empty());
}

TEST_CASE("a list without versions is not a manifest") {
  for (const Plist& root :
       {Plist{}, text("Package Version"), dict({}), dict({{"Package Version", text("7.0.63")}})}) {
    CHECK_THROWS_WITH_AS(read_package_manifest(root), doctest::Contains("Package Version"),
                         std::invalid_argument);
  }
}

TEST_CASE("files that cannot be read as property lists") {
  CHECK_THROWS_WITH_AS(read_plist("/nonexistent/manifest.plist"), doctest::Contains("cannot read"),
                       std::runtime_error);
  CHECK_THROWS_AS(read_plist("/"), std::runtime_error);
  CHECK_THROWS_AS(parse_plist({}), std::runtime_error);
}
