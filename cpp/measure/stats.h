// Statistics of run times, in the one place that computes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace nnbt {

// An interval of the median from two order statistics: no assumption about the distribution.
struct Interval {
  double low_ns;
  double high_ns;
  double coverage;  // probability that the interval holds the median, for independent samples
};

// Fewer samples than this say nothing about spread, so no interval is given.
inline constexpr std::size_t kMinSamplesForInterval = 5;

// Median of the samples (mean of the two middle ones for an even count). NaN for none.
double median(std::span<const std::int64_t> samples_ns);

// The narrowest symmetric pair of order statistics (x[k], x[n-1-k]) whose binomial coverage
// 1 - 2 P(B(n, 1/2) <= k) reaches `confidence`; for 5 samples the full range, which covers 93.75 %
// only. nullopt below kMinSamplesForInterval. Source: David and Nagaraja, Order Statistics, 7.1.
std::optional<Interval> median_interval(std::span<const std::int64_t> samples_ns,
                                        double confidence = 0.95);

// Half the width of that interval over the median. Infinity where the samples are too few for the
// confidence: below 6 for 0.95. Reorders its argument: the timing loop calls it between runs, and
// sorting a copy took 53 ns a sample where this takes 8 (100 000 samples).
double relative_half_width(std::span<std::int64_t> scratch_ns, double confidence = 0.95);

// Linear-interpolation quantile (type 7, NumPy's default). NaN for no samples; throws
// std::invalid_argument for q outside [0, 1].
double quantile(std::span<const std::int64_t> samples_ns, double q);

// Median absolute deviation from the median, unscaled. NaN for no samples.
double median_absolute_deviation(std::span<const std::int64_t> samples_ns);

}  // namespace nnbt
