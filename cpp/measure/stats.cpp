#include "measure/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <vector>

namespace nnbt {
namespace {

std::vector<std::int64_t> sorted(std::span<const std::int64_t> samples) {
  std::vector<std::int64_t> copy(samples.begin(), samples.end());
  std::ranges::sort(copy);
  return copy;
}

double quantile_of_sorted(const std::vector<std::int64_t>& sorted_ns, double q) {
  if (sorted_ns.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double position = q * static_cast<double>(sorted_ns.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted_ns.size() - 1);
  const double weight = position - static_cast<double>(below);
  const auto low = static_cast<double>(sorted_ns[below]);
  return low + (weight * (static_cast<double>(sorted_ns[above]) - low));
}

// Largest k with 2 P(B(n, 1/2) <= k) <= 1 - confidence, and its coverage; k = 0 if there is none.
struct Rank {
  std::size_t k;
  double coverage;
};

Rank interval_rank(std::size_t n, double confidence) {
  const auto count = static_cast<double>(n);
  const double log_half_power = -count * std::numbers::ln2;
  // More than ten standard deviations out, the terms are under 1e-22 and can be skipped.
  const double first = std::max(0.0, std::floor((count / 2) - (5 * std::sqrt(count))));
  double term = std::exp(std::lgamma(count + 1) - std::lgamma(first + 1) -
                         std::lgamma(count - first + 1) + log_half_power);
  double cumulative = 0.0;
  Rank best{0, 1.0 - (2.0 * std::exp(log_half_power))};
  for (auto k = static_cast<std::size_t>(first); 2 * k + 1 < n; ++k) {
    cumulative += term;
    const double coverage = 1.0 - (2.0 * cumulative);
    if (coverage < confidence) break;
    best = {k, coverage};
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  return best;
}

}  // namespace

double quantile(std::span<const std::int64_t> samples_ns, double q) {
  if (!(q >= 0.0 && q <= 1.0)) throw std::invalid_argument("quantile: q must be between 0 and 1");
  return quantile_of_sorted(sorted(samples_ns), q);
}

double median(std::span<const std::int64_t> samples_ns) { return quantile(samples_ns, 0.5); }

std::optional<Interval> median_interval(std::span<const std::int64_t> samples_ns,
                                        double confidence) {
  const std::size_t n = samples_ns.size();
  if (n < kMinSamplesForInterval) return std::nullopt;
  const std::vector<std::int64_t> ordered = sorted(samples_ns);
  const Rank rank = interval_rank(n, confidence);
  return Interval{static_cast<double>(ordered[rank.k]),
                  static_cast<double>(ordered[n - 1 - rank.k]), rank.coverage};
}

double relative_half_width(std::span<std::int64_t> scratch_ns, double confidence) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  const std::size_t n = scratch_ns.size();
  if (n < kMinSamplesForInterval) return kUnknown;
  const Rank rank = interval_rank(n, confidence);
  if (rank.coverage < confidence) return kUnknown;

  const auto at = [&](std::size_t i) {
    return scratch_ns.begin() + static_cast<std::ptrdiff_t>(i);
  };
  const auto low = at(rank.k);
  const auto high = at(n - 1 - rank.k);
  const auto middle = at(n / 2);
  std::nth_element(scratch_ns.begin(), low, scratch_ns.end());
  std::nth_element(low + 1, high, scratch_ns.end());
  const std::int64_t width = *high - *low;
  if (width == 0) return 0.0;
  std::nth_element(low, middle, high + 1);
  const std::int64_t below = n % 2 == 0 ? *std::max_element(low, middle) : *middle;
  return static_cast<double>(width) / (static_cast<double>(below) + static_cast<double>(*middle));
}

double median_absolute_deviation(std::span<const std::int64_t> samples_ns) {
  const double center = median(samples_ns);
  std::vector<std::int64_t> deviations;
  deviations.reserve(samples_ns.size());
  // Twice the deviation, so that the half nanosecond of a median between two samples is not lost.
  for (const std::int64_t sample : samples_ns) {
    deviations.push_back(std::llround(std::abs(2.0 * (static_cast<double>(sample) - center))));
  }
  return median(deviations) / 2.0;
}

}  // namespace nnbt
