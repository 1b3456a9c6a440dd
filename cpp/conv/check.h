// Says whether the result of a convolution chain is right: a float64 reference where it's
// affordable, "finite and not zero" everywhere.
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
  std::int64_t compared = 0;  // values compared with the reference; 0: only looked at
  double relative_error = 0;  // |result - reference| / |reference|, Euclidean, over those values
  double zero_fraction = 0;   // of the whole output
  std::int64_t non_finite = 0;
  std::string detail;  // one sentence
};

// Float16 chains round once per layer (2^-11 each) and Winograd transforms lose another 1e-2; int8
// steps round to 1/32 of the signal. Wrong channels, taps or signs give an error near 1.4.
inline constexpr double kConvTolerance = 0.05;

// Multiply-accumulates that the reference may cost: about a second.
inline constexpr double kReferenceMacs = 4e8;

ConvCheck check_conv(const ConvSpec& spec, std::span<const std::byte> output,
                     double max_reference_macs = kReferenceMacs);

// The chain in float64, one output pixel at a time: only the pixels that reach it are computed.
class ConvReference {
 public:
  explicit ConvReference(const ConvSpec& spec);

  // All channels of one output pixel, as real values (int8 steps times their scale).
  std::vector<double> pixel(std::int64_t image, std::int64_t row, std::int64_t column);

  // Multiply-accumulates that pixel() takes there.
  double macs(std::int64_t row, std::int64_t column) const;

 private:
  const std::vector<double>& weights(std::int64_t layer);

  ConvSpec spec_;
  std::vector<std::byte> input_;
  std::int64_t weights_layer_ = -1;
  std::vector<double> weights_;
};

}  // namespace nnbt
