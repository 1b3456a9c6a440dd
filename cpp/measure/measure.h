// The timing loop: the only one in this project, in any language.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "measure/clock.h"
#include "measure/probe.h"
#include "measure/step.h"

namespace nnbt {

struct MeasureOptions {
  std::int64_t warmup = 2;  // minimum runs before timing; 0 also disables settling
  std::int64_t runs = 0;    // exact number of timed runs; 0: adaptive
  std::int64_t min_runs = 5;
  std::int64_t max_runs = 1'000'000;
  double budget_s = 3.0;      // adaptive: upper limit on the time of the timed runs
  double min_window_s = 0.0;  // adaptive: lower limit, if the budget allows
  double relative_interval =
      0.01;  // adaptive: target for the half-width of the 95 % interval / median
};

enum class StopReason {
  kRuns,     // the requested number of runs
  kPrecise,  // the interval of the median is narrow enough
  kBudget,   // the time budget is used up
  kMaxRuns,
};

// "runs", "precise", "budget", "max_runs"
const char* stop_name(StopReason reason);

struct Samples {
  std::vector<std::int64_t> samples_ns;  // one per timed run, in order
  std::int64_t first_run_ns =
      0;  // the very first run, with compilation, allocation and cold caches
  std::int64_t warmup_runs = 0;
  std::int64_t window_ns = 0;  // from the start of the first timed run to the end of the last
  bool settled = false;        // warm-up ended because run times stopped falling
  StopReason stop = StopReason::kRuns;
  std::vector<Reading> readings;
};

// Runs and times `step`. `poll(timed_runs, elapsed_ns)` is called between runs, outside every
// sample and at most every 50 ms; it may throw to stop (Ctrl-C). Throws std::invalid_argument for
// negative counts or budgets. Exceptions of the step propagate.
Samples measure(Step& step, const MeasureOptions& options,
                const std::vector<std::unique_ptr<Probe>>& probes = {},
                const std::function<void(std::int64_t, std::int64_t)>& poll = {},
                Clock now = steady_now_ns);

}  // namespace nnbt
