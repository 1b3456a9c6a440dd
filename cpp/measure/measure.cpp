#include "measure/measure.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "measure/stats.h"

namespace nnbt {
namespace {

using Poll = std::function<void(std::int64_t, std::int64_t)>;

constexpr std::int64_t kPollInterval = 50'000'000;
// Warm-up continues while a run is still this much faster than the median of the runs before it...
constexpr double kSettledWithin = 0.05;
// ...but for at most this share of the budget and this many runs.
constexpr double kSettleShare = 0.1;
constexpr std::int64_t kMaxSettleRuns = 1000;
constexpr std::size_t kSettleWindow = 5;
constexpr std::int64_t kAdaptiveRoom = 16'384;
constexpr std::int64_t kMostRoom = 1'048'576;

void check(const MeasureOptions& options) {
  if (options.warmup < 0 || options.runs < 0) {
    throw std::invalid_argument("measure: warmup and runs must be 0 or more");
  }
  if (options.min_runs < 1 || options.max_runs < 1) {
    throw std::invalid_argument("measure: min_runs and max_runs must be 1 or more");
  }
  if (!(options.budget_s >= 0) || !(options.relative_interval >= 0) ||
      !(options.min_window_s >= 0)) {
    throw std::invalid_argument(
        "measure: budget_s, min_window_s and relative_interval must be 0 or more");
  }
}

class Poller {
 public:
  Poller(const Poll& poll, std::int64_t start) : poll_(poll), start_(start), last_(start) {}

  // `time` is the end of the previous run: another clock reading would cost each run 20 ns.
  void operator()(std::int64_t timed_runs, std::int64_t time) {
    if (!poll_ || time - last_ < kPollInterval) return;
    last_ = time;
    poll_(timed_runs, time - start_);
  }

 private:
  const Poll& poll_;
  std::int64_t start_;
  std::int64_t last_;
};

// Settled: the medians of the last two windows of runs differ by less than kSettledWithin.
bool settled(const std::vector<std::int64_t>& times) {
  if (times.size() < 2 * kSettleWindow) return false;
  const std::span all(times);
  const double recent = median(all.last(kSettleWindow));
  const double before = median(all.last(2 * kSettleWindow).first(kSettleWindow));
  return recent > before * (1.0 - kSettledWithin);
}

void warm_up(Step& step, const MeasureOptions& options, Clock now, Poller& poll, Samples& result) {
  if (options.warmup == 0) return;
  const double settle_ns = options.budget_s * kSettleShare * 1e9;
  std::vector<std::int64_t> times;
  const std::int64_t start = now();
  for (std::int64_t run = 0;; ++run) {
    const std::int64_t before = now();
    step.run();
    const std::int64_t after = now();
    if (run == 0) {
      result.first_run_ns = after - before;
    } else {
      times.push_back(after - before);
    }
    poll(0, after);
    result.warmup_runs = run + 1;
    result.settled = settled(times);
    if (result.warmup_runs < options.warmup) continue;
    const bool spent =
        static_cast<double>(after - start) > settle_ns || result.warmup_runs >= kMaxSettleRuns;
    if (result.settled || spent) return;
  }
}

// The interval is computed only after the sample count has grown by an eighth, because computing it
// is not free.
class Stopping {
 public:
  explicit Stopping(const MeasureOptions& options) : options_(options) {}

  std::optional<StopReason> operator()(const std::vector<std::int64_t>& times,
                                       std::int64_t elapsed_ns) {
    const auto count = static_cast<std::int64_t>(times.size());
    if (options_.runs > 0) {
      return count >= options_.runs ? std::optional(StopReason::kRuns) : std::nullopt;
    }
    if (count < options_.min_runs) return std::nullopt;
    if (count >= next_look_ && static_cast<double>(elapsed_ns) >= options_.min_window_s * 1e9) {
      next_look_ = count + std::max<std::int64_t>(1, count / 8);
      scratch_.assign(times.begin(), times.end());
      if (relative_half_width(scratch_) <= options_.relative_interval) return StopReason::kPrecise;
    }
    if (count >= options_.max_runs) return StopReason::kMaxRuns;
    if (static_cast<double>(elapsed_ns) >= options_.budget_s * 1e9) return StopReason::kBudget;
    return std::nullopt;
  }

 private:
  const MeasureOptions& options_;
  std::int64_t next_look_ = 0;
  std::vector<std::int64_t> scratch_;
};

}  // namespace

const char* stop_name(StopReason reason) {
  switch (reason) {
    case StopReason::kRuns:
      return "runs";
    case StopReason::kPrecise:
      return "precise";
    case StopReason::kBudget:
      return "budget";
    case StopReason::kMaxRuns:
      return "max_runs";
  }
  return "";
}

Samples measure(Step& step, const MeasureOptions& options,
                const std::vector<std::unique_ptr<Probe>>& probes, const Poll& poll, Clock now) {
  check(options);
  Samples result;
  // Touched in advance: page faults of fresh memory cost 5 to 10 ns a run on a virtual machine, and
  // the process probe would attribute them to the step.
  result.samples_ns.resize(static_cast<std::size_t>(
      options.runs > 0 ? std::min(options.runs, kMostRoom) : kAdaptiveRoom));
  result.samples_ns.clear();
  Poller between(poll, now());
  warm_up(step, options, now, between, result);

  Stopping stopping(options);
  for (const auto& probe : probes) probe->begin();
  const std::int64_t start = now();
  for (;;) {
    const std::int64_t before = now();
    step.run();
    const std::int64_t after = now();
    result.samples_ns.push_back(after - before);
    if (const auto reason = stopping(result.samples_ns, after - start)) {
      result.stop = *reason;
      result.window_ns = after - start;
      break;
    }
    between(static_cast<std::int64_t>(result.samples_ns.size()), after);
  }
  for (const auto& probe : probes) probe->end(result.readings);
  if (options.warmup == 0) result.first_run_ns = result.samples_ns.front();
  return result;
}

}  // namespace nnbt
