// Checks the result of a convolution chain: against a float64 reference if that is affordable, and
// always for zeros and values that are not finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "conv/conv.h"

namespace nnbt {

struct ConvCheck {
  bool ok = false;
  std::int64_t compared = 0;  // values compared with the reference; 0: none
  double relative_error = 0;  // |result - reference| / |reference| of those values, Euclidean
  double zero_fraction = 0;   // of the whole output
  std::int64_t non_finite = 0;
  std::string detail;  // one sentence
};

// Float16 chains round once per layer (2^-11), Winograd transforms lose another 1e-2, and int8
// steps are 1/32 of the signal. Wrong channels, taps or signs give an error near 1.4.
inline constexpr double kConvTolerance = 0.05;

// Limit on the multiply-accumulates of the reference: about a second.
inline constexpr double kReferenceMacs = 4e8;

ConvCheck check_conv(const ConvSpec& spec, std::span<const std::byte> output,
                     double max_reference_macs = kReferenceMacs);

// The chain in float64, computed for one output pixel at a time from only the pixels it depends on.
class ConvReference {
 public:
  explicit ConvReference(const ConvSpec& spec);

  // All channels of one output pixel, as real values (int8 steps times their scale).
  std::vector<double> pixel(std::int64_t image, std::int64_t row, std::int64_t column);

  // Multiply-accumulates of pixel() for that position.
  double macs(std::int64_t row, std::int64_t column) const;

 private:
  const std::vector<double>& weights(std::int64_t layer);

  ConvSpec spec_;
  std::vector<std::byte> input_;
  std::int64_t weights_layer_ = -1;
  std::vector<double> weights_;
};

}  // namespace nnbt
