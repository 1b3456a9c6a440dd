// What Python cannot reach; tests/test_stats.py compares the rest with NumPy and SciPy.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "measure/stats.h"

namespace {

// 1, 2, ..., n: each order statistic equals its rank, counted from 1.
std::vector<std::int64_t> ranks(std::size_t n) {
  std::vector<std::int64_t> values(n);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

nnbt::Interval interval_of(const std::vector<std::int64_t>& samples) {
  const auto interval = nnbt::median_interval(samples, 0.95);
  if (!interval) throw std::logic_error("no interval");
  return *interval;
}

}  // namespace

TEST_CASE("a million samples: the skipped tail makes no difference") {
  const nnbt::Interval interval = interval_of(ranks(1'000'000));
  CHECK(interval.low_ns == 499'020.0);
  CHECK(interval.coverage == doctest::Approx(0.95).epsilon(1e-4));
}

TEST_CASE("relative half-width is that of the interval over the median") {
  const auto of = [](std::vector<std::int64_t> samples) {
    return nnbt::relative_half_width(samples);
  };
  // Ranks 2 and 8 of 9 with a median of 104; ranks 2 and 9 of 10 with a median of 104.5.
  CHECK(of({999, 102, 106, 103, 104, 105, 103, 105, 1}) == doctest::Approx(2.0 / 104));
  CHECK(of({999, 102, 106, 103, 104, 105, 103, 107, 105, 1}) == doctest::Approx(2.5 / 104.5));
  CHECK(std::isinf(of({1, 1, 1, 1, 1})));
  CHECK(of({0, 0, 0, 0, 0, 0}) == 0.0);
  CHECK(std::isinf(of({0, 0, 9, 0, 0, 0})));
}

TEST_CASE("relative half-width agrees with the interval and the median for any count") {
  for (std::size_t n = 6; n < 300; ++n) {
    std::vector<std::int64_t> samples(n);
    for (std::size_t i = 0; i < n; ++i) {
      samples[i] = static_cast<std::int64_t>(1000 + (i * 7919 % 997));
    }
    const nnbt::Interval interval = interval_of(samples);
    const double expected = (interval.high_ns - interval.low_ns) / 2 / nnbt::median(samples);
    CAPTURE(n);
    CHECK(nnbt::relative_half_width(samples) == doctest::Approx(expected));
  }
}
