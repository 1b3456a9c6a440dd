#include <doctest/doctest.h>

#include "measure/clock.h"

namespace {

std::int64_t readings = 0;

// Every third reading is 21 ns later: a coarse clock with a cost of 7 ns.
std::int64_t coarse_clock() { return ++readings / 3 * 21; }

}  // namespace

TEST_CASE("the resolution of a coarse clock is its step, its cost the mean") {
  readings = 0;
  const nnbt::ClockInfo info = nnbt::calibrate_clock(coarse_clock);
  CHECK(info.resolution_ns == 21);
  CHECK(info.cost_ns == doctest::Approx(7.0).epsilon(0.01));
}

TEST_CASE("the steady clock moves forward and is finer than a microsecond") {
  const std::int64_t before = nnbt::steady_now_ns();
  const nnbt::ClockInfo info = nnbt::calibrate_clock();
  CHECK(nnbt::steady_now_ns() > before);
  CHECK(info.resolution_ns >= 1);
  CHECK(info.resolution_ns < 1000);
  CHECK(info.cost_ns > 0);
}
