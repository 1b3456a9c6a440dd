#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fake_clock.h"
#include "measure/measure.h"

namespace {

using nnbt::MeasureOptions;
using nnbt::Samples;
using nnbt::StopReason;
using nnbt::testing::fake_clock;
using nnbt::testing::fake_now_ns;
using nnbt::testing::FakeStep;

constexpr std::int64_t kMillisecond = 1'000'000;

std::int64_t one_millisecond(std::int64_t /*run*/) { return kMillisecond; }
std::int64_t never_settles_down(std::int64_t run) { return (run % 2 + 1) * kMillisecond; }

Samples timed(nnbt::Step& step, const MeasureOptions& options,
              const std::function<void(std::int64_t, std::int64_t)>& poll = {}) {
  return nnbt::measure(step, options, {}, poll, fake_clock);
}

}  // namespace

TEST_CASE("an exact number of runs") {
  for (const std::int64_t runs : {1, 2, 7, 5000}) {
    FakeStep step([](std::int64_t run) { return 1000 + run; });
    const Samples samples = timed(step, {.warmup = 0, .runs = runs});
    CHECK(step.runs() == runs);
    REQUIRE(samples.samples_ns.size() == static_cast<std::size_t>(runs));
    CHECK(samples.samples_ns.front() == 1000);
    CHECK(samples.samples_ns.back() == 999 + runs);
    CHECK(samples.stop == StopReason::kRuns);
    CHECK(samples.first_run_ns == 1000);
    CHECK(samples.warmup_runs == 0);
  }
}

TEST_CASE("an exact number of runs ignores the budget and the maximum") {
  FakeStep step([](std::int64_t) { return 1000 * kMillisecond; });
  const Samples samples = timed(step, {.warmup = 0, .runs = 20, .max_runs = 3, .budget_s = 1.0});
  CHECK(samples.samples_ns.size() == 20);
}

TEST_CASE("adaptive: equal times are precise once an interval covers 95 %") {
  FakeStep step(one_millisecond);
  const Samples samples = timed(step, {.warmup = 0});
  CHECK(samples.samples_ns.size() == 6);
  CHECK(samples.stop == StopReason::kPrecise);
  CHECK(samples.window_ns == 6 * kMillisecond);
}

TEST_CASE("adaptive: noisy times continue until the interval is narrow") {
  // Times of 1 to 1.1 ms in a fixed pattern: the interval narrows as the square root of the count.
  FakeStep step([](std::int64_t run) { return kMillisecond + (run * 7919 % 101 * 1000); });
  const Samples samples = timed(step, {.warmup = 0});
  CHECK(samples.stop == StopReason::kPrecise);
  CHECK(samples.samples_ns.size() > 20);
  FakeStep again([](std::int64_t run) { return kMillisecond + (run * 7919 % 101 * 1000); });
  const Samples finer = timed(again, {.warmup = 0, .relative_interval = 0.002});
  CHECK(finer.samples_ns.size() > samples.samples_ns.size());
}

TEST_CASE("adaptive: the budget ends timing, but not before the minimum number of runs") {
  FakeStep step(never_settles_down);
  const Samples samples = timed(step, {.warmup = 0, .budget_s = 0.1, .relative_interval = 0});
  CHECK(samples.stop == StopReason::kBudget);
  CHECK(samples.window_ns >= 100 * kMillisecond);
  CHECK(samples.window_ns <= 102 * kMillisecond);

  FakeStep slow([](std::int64_t) { return 1000 * kMillisecond; });
  const Samples few = timed(slow, {.warmup = 0, .budget_s = 0.1});
  CHECK(few.stop == StopReason::kBudget);
  CHECK(few.samples_ns.size() == 5);
}

TEST_CASE("adaptive: the maximum number of runs") {
  FakeStep step(never_settles_down);
  const Samples samples = timed(step, {.warmup = 0, .max_runs = 12, .relative_interval = 0});
  CHECK(samples.stop == StopReason::kMaxRuns);
  CHECK(samples.samples_ns.size() == 12);
}

TEST_CASE("adaptive: timing lasts the minimum window even if precise, within the budget") {
  FakeStep step(one_millisecond);
  const Samples samples = timed(step, {.warmup = 0, .min_window_s = 0.03});
  CHECK(samples.stop == StopReason::kPrecise);
  CHECK(samples.window_ns == 30 * kMillisecond);

  FakeStep again(one_millisecond);
  const Samples ended = timed(again, {.warmup = 0, .budget_s = 0.02, .min_window_s = 0.03});
  CHECK(ended.stop == StopReason::kBudget);
  CHECK(ended.window_ns == 20 * kMillisecond);
}

TEST_CASE("adaptive: an infinite budget is valid") {
  FakeStep step(one_millisecond);
  const double endless = std::numeric_limits<double>::infinity();
  const Samples samples = timed(step, {.warmup = 2, .budget_s = endless});
  CHECK(samples.stop == StopReason::kPrecise);
}

TEST_CASE("warm-up by count if settling has no budget") {
  FakeStep step([](std::int64_t run) { return run == 0 ? 900 * kMillisecond : kMillisecond; });
  const Samples samples = timed(step, {.warmup = 3, .runs = 2, .budget_s = 0});
  CHECK(samples.warmup_runs == 3);
  CHECK(step.runs() == 5);
  CHECK(samples.first_run_ns == 900 * kMillisecond);
  CHECK(samples.samples_ns == std::vector<std::int64_t>{kMillisecond, kMillisecond});
  CHECK_FALSE(samples.settled);
}

TEST_CASE("warm-up continues until times stop falling") {
  // Halves with each run, down to 1 us at run 20.
  FakeStep step([](std::int64_t run) { return 1000LL << (run < 20 ? 20 - run : 0); });
  const Samples samples = timed(step, {.warmup = 2, .runs = 1, .budget_s = 100.0});
  CHECK(samples.settled);
  CHECK(samples.warmup_runs > 20);
  CHECK(samples.warmup_runs < 40);
  CHECK(samples.samples_ns.front() == 1000);
}

TEST_CASE("warm-up of a step that keeps falling ends with its share of the budget") {
  FakeStep step([](std::int64_t run) {
    return static_cast<std::int64_t>(50.0 * kMillisecond * std::pow(0.9, run));
  });
  const Samples samples = timed(step, {.warmup = 1, .runs = 1, .budget_s = 1.0});
  CHECK_FALSE(samples.settled);
  // The sum first passes a tenth of the second in the third run (50 + 45 + 40.5).
  CHECK(samples.warmup_runs == 3);
}

TEST_CASE("without warm-up nothing runs before the first sample") {
  FakeStep step(one_millisecond);
  const Samples samples = timed(step, {.warmup = 0, .runs = 1, .budget_s = 100.0});
  CHECK(step.runs() == 1);
  CHECK_FALSE(samples.settled);
}

TEST_CASE("exceptions of a step propagate, from warm-up and from timing") {
  for (const std::int64_t failing : {0, 4}) {
    FakeStep step([failing](std::int64_t run) {
      if (run == failing) throw std::runtime_error("step failed");
      return kMillisecond;
    });
    CHECK_THROWS_WITH_AS(timed(step, {.warmup = 2, .runs = 9, .budget_s = 0}), "step failed",
                         std::runtime_error);
    CHECK(step.runs() == failing + 1);
  }
}

TEST_CASE("poll is called between runs, at most every 50 ms, outside every sample") {
  FakeStep step([](std::int64_t) { return 20 * kMillisecond; });
  std::vector<std::pair<std::int64_t, std::int64_t>> calls;
  const Samples samples = timed(step, {.warmup = 0, .runs = 10}, [&](auto runs, auto elapsed) {
    calls.emplace_back(runs, elapsed / kMillisecond);
    fake_now_ns += 7 * kMillisecond;
  });
  // 60 ms after the start; then three runs and 7 ms of poll itself make 67.
  CHECK(calls == std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 60}, {6, 127}, {9, 194}});
  CHECK(samples.samples_ns == std::vector<std::int64_t>(10, 20 * kMillisecond));
}

TEST_CASE("poll reports no timed run during warm-up") {
  FakeStep step([](std::int64_t) { return 60 * kMillisecond; });
  std::vector<std::int64_t> runs;
  timed(step, {.warmup = 2, .runs = 2, .budget_s = 0},
        [&](auto count, auto /*elapsed*/) { runs.push_back(count); });
  CHECK(runs == std::vector<std::int64_t>{0, 0, 1});
}

TEST_CASE("poll stops the measurement by throwing") {
  FakeStep step([](std::int64_t) { return 60 * kMillisecond; });
  CHECK_THROWS_AS(timed(step, {.warmup = 0, .runs = 100},
                        [](auto runs, auto /*elapsed*/) {
                          if (runs == 4) throw std::runtime_error("stop");
                        }),
                  std::runtime_error);
  CHECK(step.runs() == 4);
}

TEST_CASE("invalid options are refused before anything runs") {
  const double nan = std::nan("");
  for (const MeasureOptions& options :
       {MeasureOptions{.warmup = -1}, MeasureOptions{.runs = -1}, MeasureOptions{.min_runs = 0},
        MeasureOptions{.max_runs = 0}, MeasureOptions{.budget_s = -1},
        MeasureOptions{.budget_s = nan}, MeasureOptions{.min_window_s = -1},
        MeasureOptions{.relative_interval = nan}}) {
    FakeStep step(one_millisecond);
    CHECK_THROWS_AS(timed(step, options), std::invalid_argument);
    CHECK(step.runs() == 0);
  }
}
