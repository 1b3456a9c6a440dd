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

nnbt::Interval interval_of(const std::vector<std::int64_t>& samples, double confidence = 0.95) {
  const auto interval = nnbt::median_interval(samples, confidence);
  if (!interval) throw std::logic_error("no interval");
  return *interval;
}

}  // namespace

TEST_CASE("median of odd, even, one and no samples") {
  CHECK(nnbt::median(std::vector<std::int64_t>{3, 1, 2}) == 2.0);
  CHECK(nnbt::median(std::vector<std::int64_t>{4, 1, 2, 3}) == 2.5);
  CHECK(nnbt::median(std::vector<std::int64_t>{7}) == 7.0);
  CHECK(std::isnan(nnbt::median({})));
}

TEST_CASE("quantile interpolates between neighbours") {
  const std::vector<std::int64_t> samples{40, 10, 30, 20};
  CHECK(nnbt::quantile(samples, 0.0) == 10.0);
  CHECK(nnbt::quantile(samples, 1.0) == 40.0);
  CHECK(nnbt::quantile(samples, 0.25) == doctest::Approx(17.5));
  CHECK(nnbt::quantile(samples, 0.9) == doctest::Approx(37.0));
}

TEST_CASE("quantile refuses q outside 0 to 1") {
  const std::vector<std::int64_t> samples{1, 2};
  for (const double q : {-0.1, 1.1, std::nan("")}) {
    CHECK_THROWS_AS(nnbt::quantile(samples, q), std::invalid_argument);
  }
}

TEST_CASE("median absolute deviation keeps the half nanosecond") {
  CHECK(nnbt::median_absolute_deviation(std::vector<std::int64_t>{1, 2, 3, 4, 100}) == 1.0);
  CHECK(nnbt::median_absolute_deviation(std::vector<std::int64_t>{1, 2, 3, 4}) == 1.0);
  CHECK(nnbt::median_absolute_deviation(std::vector<std::int64_t>{1, 2}) == 0.5);
  CHECK(std::isnan(nnbt::median_absolute_deviation({})));
}

TEST_CASE("no interval below five samples") {
  CHECK_FALSE(nnbt::median_interval(ranks(4)).has_value());
  CHECK(nnbt::median_interval(ranks(5)).has_value());
}

// Ranks and coverages of the exact binomial: 1 - 2 P(B(n, 1/2) < low).
TEST_CASE("interval ranks for 95 % follow the binomial distribution") {
  struct Row {
    std::size_t n;
    double low;
    double coverage;
  };
  for (const Row& row : {Row{5, 1, 0.9375}, Row{6, 1, 0.96875}, Row{8, 1, 0.9921875},
                         Row{9, 2, 0.9609375}, Row{10, 2, 0.978515625}, Row{20, 6, 0.958610534668},
                         Row{50, 18, 0.967160862435}, Row{100, 40, 0.964799799782}}) {
    CAPTURE(row.n);
    const nnbt::Interval interval = interval_of(ranks(row.n));
    CHECK(interval.low_ns == row.low);
    CHECK(interval.high_ns == static_cast<double>(row.n) + 1 - row.low);
    CHECK(interval.coverage == doctest::Approx(row.coverage).epsilon(1e-9));
  }
}

TEST_CASE("another confidence uses other ranks") {
  CHECK(interval_of(ranks(100), 0.5).low_ns == 47.0);
  CHECK(interval_of(ranks(100), 0.99).low_ns == 37.0);
}

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
