// A request to the helper process: one JSON object on standard input.
#pragma once

#include <cstdint>
#include <string>

#include "ane/replay.h"
#include "conv/conv.h"
#include "measure/measure.h"

namespace nnbt {

enum class HelperOp : std::uint8_t { kMeasure, kSelftest, kInfo };

struct HelperRequest {
  HelperOp op = HelperOp::kMeasure;
  ConvSpec spec;
  MeasureOptions measure;
  std::string package;       // load this instead of compiling
  std::string save_package;  // save to this
  bool placement = true;
  bool power = false;  // measure energy and clocks over the timed runs
  bool pmu = false;    // replay on the ANE with counters
  std::int64_t pmu_windows = ane::kDefaultWindows;
};

// Throws std::invalid_argument for an invalid or contradictory request. Unknown keys are errors: a
// misspelt one would silently measure something else.
HelperRequest parse_request(const std::string& json);

}  // namespace nnbt
