#include "conv/data.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "conv/half.h"

namespace nnbt {
namespace {

constexpr double kInt8Sigma = 32;  // of int8 activations and weights: 4 sigma reach 127
constexpr std::uint64_t kWeightStream = 0x5EED;
constexpr double kHalfMax = 65504;
// Powers of one random operator grow with its largest eigenvalue, which exceeds the average gain
// for few channels: without this correction, 50 layers of a shared 3x3 kernel grew 3e6-fold at 8
// channels, 4300 at 32, 28 at 128 and 3 at 256.
constexpr double kSharedGrowth = 0.5;

// splitmix64 (Steele, Lea, Flood 2014): one addition and a mix per number; any seed works.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) : state_((seed << 32U) ^ stream) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31U);
  }

  // Uniform in (0, 1].
  double uniform() { return (static_cast<double>(next() >> 11U) + 1) * 0x1p-53; }

  // Box-Muller; both numbers of a pair are used.
  double normal() {
    if (has_second_) {
      has_second_ = false;
      return second_;
    }
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    second_ = radius * std::sin(angle);
    has_second_ = true;
    return radius * std::cos(angle);
  }

  // 1 to `limit`, with a random sign.
  double signed_step(double limit) {
    const std::uint64_t bits = next();
    const double step = 1 + static_cast<double>((bits >> 1U) % static_cast<std::uint64_t>(limit));
    return (bits & 1U) != 0 ? step : -step;
  }

 private:
  std::uint64_t state_;
  double second_ = 0;
  bool has_second_ = false;
};

void push_half(std::vector<std::byte>& out, double value) {
  std::uint16_t bits = float_to_half(value);
  if ((bits & 0x7FFFU) == 0) bits |= 1U;  // never zero
  out.push_back(static_cast<std::byte>(bits & 0xFFU));
  out.push_back(static_cast<std::byte>(bits >> 8U));
}

void push_int8(std::vector<std::byte>& out, double value) {
  double step = std::clamp(std::nearbyint(value), -127.0, 127.0);
  if (step == 0) step = std::signbit(value) ? -1 : 1;
  out.push_back(static_cast<std::byte>(static_cast<std::int8_t>(step)));
}

double taps_per_output(const ConvSpec& spec) {
  return static_cast<double>(spec.channels * spec.kernel * spec.kernel);
}

// int8 weights of +-1 to +-limit, such that 8 sigma of a sum with saturated inputs stay below the
// largest float16, through which the result is cast.
double int8_weight_limit(const ConvSpec& spec) {
  if (int8_is_exact(spec)) return 1;
  const double largest_sum = 8 * 127 * std::sqrt(taps_per_output(spec));
  return std::clamp(std::floor(kHalfMax / largest_sum), 1.0, 4.0);
}

// Largest |input| for which a chain with weights of +-1 stays within int8; below 1 if there is
// none.
double int8_exact_input(const ConvSpec& spec) {
  return std::floor(127 / std::pow(taps_per_output(spec), static_cast<double>(spec.layers)));
}

// One SAME layer along an axis: each output adds up the inputs under its taps.
std::vector<double> add_taps(const std::vector<double>& axis, std::int64_t kernel) {
  const auto size = static_cast<std::int64_t>(axis.size());
  std::vector<double> result(axis.size(), 0.0);
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t tap = 0; tap < kernel; ++tap) {
      const std::int64_t from = i + tap - conv_padding_before(kernel);
      if (from >= 0 && from < size) {
        result[static_cast<std::size_t>(i)] += axis[static_cast<std::size_t>(from)];
      }
    }
  }
  return result;
}

// Geometric mean, over the layers, of the taps along one axis that carry signal.
double mean_taps(const ConvSpec& spec) {
  if (spec.padding == ConvPadding::kValid) return static_cast<double>(spec.kernel);
  std::vector<double> axis(static_cast<std::size_t>(spec.size), 1.0);
  double log_growth = 0;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    axis = add_taps(axis, spec.kernel);
    double mean = 0;
    for (const double value : axis) mean += value / static_cast<double>(axis.size());
    for (double& value : axis) value /= mean;
    log_growth += std::log(mean);
  }
  return std::exp(log_growth / static_cast<double>(spec.layers));
}

}  // namespace

std::size_t conv_weight_count(const ConvSpec& spec) {
  return static_cast<std::size_t>(spec.channels * spec.channels * spec.kernel * spec.kernel);
}

std::size_t conv_weight_element_bytes(ConvVariant variant) {
  return variant == ConvVariant::kFp16 || variant == ConvVariant::kQdq ? 2 : 1;
}

double conv_weight_sigma(const ConvSpec& spec) {
  const double root = std::sqrt(static_cast<double>(spec.channels));
  const double sigma = 1 / (root * mean_taps(spec));
  const bool grows = spec.shared_weights && spec.layers > 1 && spec.kernel > 1;
  return grows ? sigma / (1 + (kSharedGrowth / root)) : sigma;
}

ConvScales conv_scales(const ConvSpec& spec) {
  if (spec.variant != ConvVariant::kW8a8) return {};
  return {1 / kInt8Sigma, conv_weight_sigma(spec) / kInt8Sigma};
}

bool int8_is_exact(const ConvSpec& spec) { return int8_exact_input(spec) >= 1; }

std::vector<std::byte> conv_input(const ConvSpec& spec) {
  const auto count = static_cast<std::size_t>(spec.batch * spec.channels * spec.size * spec.size);
  const std::size_t element_bytes = conv_element_bytes(spec.variant);
  if (spec.fill == ConvFill::kZeros) return std::vector<std::byte>(count * element_bytes);
  Random random(spec.seed, 0);
  std::vector<std::byte> bytes;
  bytes.reserve(count * element_bytes);
  const bool exact = spec.variant == ConvVariant::kInt8 && int8_is_exact(spec);
  for (std::size_t i = 0; i < count; ++i) {
    if (spec.variant == ConvVariant::kFp16) {
      push_half(bytes, random.normal());
    } else if (exact) {
      push_int8(bytes, random.signed_step(int8_exact_input(spec)));
    } else {
      push_int8(bytes, kInt8Sigma * random.normal());
    }
  }
  return bytes;
}

std::vector<std::byte> conv_weights(const ConvSpec& spec, std::int64_t layer) {
  const std::size_t count = conv_weight_count(spec);
  const std::size_t element_bytes = conv_weight_element_bytes(spec.variant);
  if (spec.fill == ConvFill::kZeros) return std::vector<std::byte>(count * element_bytes);
  const std::uint64_t stream = spec.shared_weights ? 0 : static_cast<std::uint64_t>(layer);
  Random random(spec.seed, kWeightStream + stream);
  const double sigma = conv_weight_sigma(spec);
  const double limit = int8_weight_limit(spec);
  std::vector<std::byte> bytes;
  bytes.reserve(count * element_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    if (element_bytes == 2) {
      push_half(bytes, sigma * random.normal());
    } else if (spec.variant == ConvVariant::kW8a8) {
      push_int8(bytes, kInt8Sigma * random.normal());
    } else {
      push_int8(bytes, random.signed_step(limit));
    }
  }
  return bytes;
}

}  // namespace nnbt
