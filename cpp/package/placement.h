// Where a graph ran: a verdict from evidence, since MPSGraph runs on the GPU without a word when
// the Neural Engine (ANE) refuses a graph. Pure arithmetic.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "package/manifest.h"

namespace nnbt {

enum class ConvDevice { kGpu, kAne };

struct PlacementEvidence {
  ConvDevice device = ConvDevice::kGpu;
  std::optional<PackageManifest> manifest;  // of the serialised package
  std::string manifest_problem;             // why there is none
  std::optional<int> ane_region_files;      // compiled ANE regions in the package's own directory
  // This OS has the switch that turns a silent fallback into an error, and it was on.
  bool fallback_disabled = false;
};

enum class Placement { kProven, kLikely, kUnproven, kNotOnAne };

struct PlacementVerdict {
  Placement placement = Placement::kUnproven;
  std::vector<std::string> evidence;  // sentences, the strongest first
};

// "proven", "likely", "unproven", "not on ANE"
const char* placement_name(Placement placement);

// Judges an ANE row; the latencies (median of a run) may be absent. Two latencies within
// kSuspiciousRatio of one another speak against the ANE; different ones prove nothing alone.
PlacementVerdict judge_placement(const PlacementEvidence& evidence, std::optional<double> ane_ns,
                                 std::optional<double> gpu_ns);

// The same judgement once both latencies are known: for a verdict from another process.
PlacementVerdict weigh_latency(PlacementVerdict verdict, double ane_ns, double gpu_ns);

inline constexpr double kSuspiciousRatio = 0.03;

}  // namespace nnbt
