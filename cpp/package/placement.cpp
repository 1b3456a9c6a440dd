#include "package/placement.h"

#include <cmath>
#include <sstream>
#include <utility>

namespace nnbt {
namespace {

void describe_manifest(const PlacementEvidence& evidence, std::vector<std::string>& lines) {
  if (!evidence.manifest) {
    lines.push_back("no manifest: " + evidence.manifest_problem);
    return;
  }
  const PackageManifest& manifest = *evidence.manifest;
  if (!manifest.fully_placed_on_ane) {
    lines.emplace_back("the manifest has no placement attributes (older OS)");
    return;
  }
  const auto flag = [](const char* name, std::optional<bool> set) {
    return std::string("manifest flag ") + name + (set.value_or(false) ? " set" : " missing");
  };
  lines.push_back(flag("mps.fullyPlacedOnANE", manifest.fully_placed_on_ane));
  lines.push_back(flag("mps.noGPUActivity", manifest.no_gpu_activity));
}

std::string describe_latency(double ane_ns, double gpu_ns) {
  std::ostringstream line;
  line.precision(3);
  line << "a run takes " << ane_ns / 1e6 << " ms, compared with " << gpu_ns / 1e6
       << " ms on the GPU";
  return line.str();
}

}  // namespace

const char* placement_name(Placement placement) {
  switch (placement) {
    case Placement::kProven:
      return "proven";
    case Placement::kLikely:
      return "likely";
    case Placement::kUnproven:
      return "unproven";
    case Placement::kNotOnAne:
      return "not on ANE";
  }
  return "";
}

PlacementVerdict judge_placement(const PlacementEvidence& evidence, std::optional<double> ane_ns,
                                 std::optional<double> gpu_ns) {
  PlacementVerdict verdict;
  describe_manifest(evidence, verdict.evidence);
  const int named = evidence.manifest ? static_cast<int>(evidence.manifest->ane_regions.size()) : 0;
  const int regions = std::max(named, evidence.ane_region_files.value_or(0));
  verdict.evidence.push_back(std::to_string(regions) +
                             (regions == 1 ? " ANE region" : " ANE regions"));
  if (regions > 1)
    verdict.evidence.emplace_back("the graph was split, so parts of it ran outside the regions");
  verdict.evidence.emplace_back(evidence.fallback_disabled
                                    ? "fallback to the GPU was disabled and the run succeeded"
                                    : "this OS cannot disable fallback to the GPU");
  const bool has_flags = evidence.manifest && evidence.manifest->fully_placed_on_ane.has_value();
  const bool proven = has_flags && evidence.manifest->fully_placed_on_ane.value_or(false) &&
                      evidence.manifest->no_gpu_activity.value_or(false);
  if (proven) {
    verdict.placement = Placement::kProven;
  } else if (has_flags && regions == 0) {
    verdict.placement = Placement::kNotOnAne;
  } else if (!has_flags && (regions == 1 || evidence.fallback_disabled)) {
    verdict.placement = Placement::kLikely;
  }
  return ane_ns && gpu_ns ? weigh_latency(std::move(verdict), *ane_ns, *gpu_ns) : verdict;
}

PlacementVerdict weigh_latency(PlacementVerdict verdict, double ane_ns, double gpu_ns) {
  if (!(gpu_ns > 0)) return verdict;
  const bool like_gpu = std::abs(ane_ns / gpu_ns - 1.0) <= kSuspiciousRatio;
  verdict.evidence.push_back(describe_latency(ane_ns, gpu_ns) +
                             (like_gpu ? ": suspiciously similar" : ""));
  if (like_gpu && verdict.placement == Placement::kLikely) {
    verdict.placement = Placement::kUnproven;
  }
  return verdict;
}

}  // namespace nnbt
