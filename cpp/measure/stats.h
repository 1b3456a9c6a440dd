// Statistics of run times: the one place that computes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace nnbt {

// A confidence interval of the median from two order statistics; assumes no distribution.
struct Interval {
  double low_ns;
  double high_ns;
  double coverage;  // probability that it contains the median, for independent samples
};

// With fewer samples there is no interval: they say nothing about the spread.
inline constexpr std::size_t kMinSamplesForInterval = 5;

// Median of the samples (mean of the two middle ones for an even count). NaN if there are none.
double median(std::span<const std::int64_t> samples_ns);

// The narrowest symmetric pair of order statistics (x[k], x[n-1-k]) whose binomial coverage 1 - 2
// P(B(n, 1/2) <= k) reaches `confidence`. For 5 samples it is the full range, which covers only
// 93.75 %. nullopt below kMinSamplesForInterval. Source: David and Nagaraja, Order Statistics, 7.1.
std::optional<Interval> median_interval(std::span<const std::int64_t> samples_ns,
                                        double confidence = 0.95);

// Half the width of that interval divided by the median. Infinity if there are too few samples for
// the confidence (below 6 for 0.95). Reorders its argument: the timing loop calls it between runs,
// and sorting a copy took 53 ns a sample instead of 8 (100 000 samples).
double relative_half_width(std::span<std::int64_t> scratch_ns, double confidence = 0.95);

// Linear-interpolation quantile (type 7, NumPy's default). NaN if there are no samples. Throws
// std::invalid_argument for q outside [0, 1].
double quantile(std::span<const std::int64_t> samples_ns, double q);

// Median absolute deviation from the median, unscaled. NaN if there are no samples.
double median_absolute_deviation(std::span<const std::int64_t> samples_ns);

}  // namespace nnbt
