// Inputs, weights and scales of convolution chains. Random and nonzero: zeros run faster on engines
// that skip them (Neural Engines from A18/M5 on) and allow higher clocks everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conv/conv.h"

namespace nnbt {

// Padding before the first row and column of a SAME convolution; the rest of kernel - 1 comes after
// the last.
std::int64_t conv_padding_before(std::int64_t kernel);

std::size_t conv_weight_count(const ConvSpec& spec);  // of one layer
std::size_t conv_weight_element_bytes(ConvVariant variant);

// Standard deviation of the real weights that preserves the expected mean square of the activations
// over all layers: channels * sigma^2 * (taps on the image, averaged over the layers) = 1; slightly
// less for shared weights. A fixed 1/32 has a gain of 1.06 per layer at 128 channels, 18-fold over
// 50 layers.
double conv_weight_sigma(const ConvSpec& spec);

struct ConvScales {
  double activation = 1;  // real value of one int8 step between layers
  double weight = 1;      // real value of one int8 step of a weight (w8a8)
};
ConvScales conv_scales(const ConvSpec& spec);

// Whether no int8 sum can leave [-127, 127]. Only then is the result of an int8 chain defined,
// because MPSGraph documents neither saturation nor wrapping.
bool int8_is_exact(const ConvSpec& spec);

// Bytes of the input in the spec's layout, and of one layer's weights (output, input, height,
// width). Determined by spec.seed; `layer` counts from 0 and is ignored for shared weights.
std::vector<std::byte> conv_input(const ConvSpec& spec);
std::vector<std::byte> conv_weights(const ConvSpec& spec, std::int64_t layer);

}  // namespace nnbt
