// Where a graph ran, judged from evidence: MPSGraph silently falls back to the GPU when the Neural
// Engine (ANE) cannot run a graph. Pure arithmetic.
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
  std::string manifest_problem;             // why there is no manifest
  std::optional<int> ane_region_files;      // compiled ANE regions in the framework's directory
  // This OS can turn a silent fallback into an error, and that was enabled.
  bool fallback_disabled = false;
};

enum class Placement { kProven, kLikely, kUnproven, kNotOnAne };

struct PlacementVerdict {
  Placement placement = Placement::kUnproven;
  std::vector<std::string> evidence;  // sentences, strongest first
};

// "proven", "likely", "unproven", "not on ANE"
const char* placement_name(Placement placement);

// Judges an ANE row; the latencies (median run times) are optional. Latencies within
// kSuspiciousRatio of each other speak against the ANE; different ones alone prove nothing.
PlacementVerdict judge_placement(const PlacementEvidence& evidence, std::optional<double> ane_ns,
                                 std::optional<double> gpu_ns);

// Adds both latencies to a verdict that was reached without them, such as the helper's.
PlacementVerdict weigh_latency(PlacementVerdict verdict, double ane_ns, double gpu_ns);

inline constexpr double kSuspiciousRatio = 0.03;

}  // namespace nnbt
