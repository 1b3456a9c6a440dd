#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "package/placement.h"

using namespace nnbt;

TEST_CASE("placement needs evidence") {
  PlacementEvidence evidence;
  evidence.device = ConvDevice::kAne;
  const auto verdict = [&evidence](std::optional<double> ane = {}, std::optional<double> gpu = {}) {
    return judge_placement(evidence, ane, gpu).placement;
  };
  evidence.manifest_problem = "not serialised";
  CHECK(verdict() == Placement::kUnproven);
  CHECK(verdict(1e6, 2e6) == Placement::kUnproven);  // a different latency alone proves nothing
  evidence.fallback_disabled = true;
  CHECK(verdict() == Placement::kLikely);
  CHECK(verdict(1.00e6, 1.02e6) == Placement::kUnproven);

  evidence.manifest = PackageManifest{};
  evidence.fallback_disabled = false;
  CHECK(verdict() == Placement::kUnproven);  // an older OS: no attributes at all
  evidence.ane_region_files = 1;
  CHECK(verdict() == Placement::kLikely);
  evidence.ane_region_files = 2;
  CHECK(verdict() == Placement::kUnproven);

  evidence.ane_region_files.reset();
  evidence.manifest->fully_placed_on_ane = false;
  evidence.manifest->no_gpu_activity = false;
  CHECK(verdict() == Placement::kNotOnAne);
  evidence.manifest->ane_regions = {"main_ANE_region_0_0"};
  CHECK(verdict() == Placement::kUnproven);
  evidence.manifest->fully_placed_on_ane = true;
  CHECK(verdict() == Placement::kUnproven);
  evidence.manifest->no_gpu_activity = true;
  CHECK(verdict() == Placement::kProven);
  CHECK(std::string(placement_name(Placement::kNotOnAne)) == "not on ANE");
}

TEST_CASE("both flags prove placement even if no region is named") {
  PlacementEvidence evidence;
  evidence.manifest = PackageManifest{};
  evidence.manifest->fully_placed_on_ane = true;
  evidence.manifest->no_gpu_activity = true;
  const PlacementVerdict verdict = judge_placement(evidence, {}, {});
  CHECK(verdict.placement == Placement::kProven);  // callee names are absent on some releases
  CHECK_FALSE(verdict.evidence.empty());
}
