#include "conv/check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "conv/data.h"
#include "conv/half.h"

namespace nnbt {
namespace {

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

double element(std::span<const std::byte> bytes, std::size_t i, std::size_t element_bytes) {
  if (element_bytes == 1) return static_cast<double>(static_cast<std::int8_t>(bytes[i]));
  std::uint16_t half = 0;
  std::memcpy(&half, &bytes[2 * i], sizeof half);
  return half_to_float(half);
}

struct Pixel {
  std::int64_t image = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
};

std::size_t offset(const ConvSpec& spec, std::int64_t size, const Pixel& at, std::int64_t channel) {
  const std::int64_t pixel = (at.row * size) + at.column;
  if (spec.layout == ConvLayout::kNhwc) {
    return index((((at.image * size * size) + pixel) * spec.channels) + channel);
  }
  return index((((at.image * spec.channels) + channel) * size * size) + pixel);
}

// Half-open range of rows or columns.
struct Range {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t size() const { return end - begin; }
};

// Part of an image, all channels: values[row][column][channel].
struct Window {
  Range rows{};
  Range columns{};
  std::vector<double> values;

  double* at(const ConvSpec& spec, std::int64_t row, std::int64_t column) {
    return &values[index((((row - rows.begin) * columns.size()) + column - columns.begin) *
                         spec.channels)];
  }
};

// The inputs of a layer that the outputs in `range` depend on.
Range reach(const ConvSpec& spec, Range range, std::int64_t input_size) {
  const bool same = spec.padding == ConvPadding::kSame;
  const std::int64_t before = same ? conv_padding_before(spec.kernel) : 0;
  return {std::max<std::int64_t>(0, range.begin - before),
          std::min(input_size, range.end - before + spec.kernel - 1)};
}

struct Needed {
  std::vector<std::pair<Range, Range>>
      windows;  // rows and columns before each layer, and of the output
  double macs = 0;
};

Needed needed(const ConvSpec& spec, std::int64_t row, std::int64_t column) {
  Needed result;
  Range rows{row, row + 1};
  Range columns{column, column + 1};
  result.windows.emplace_back(rows, columns);
  for (std::int64_t layer = spec.layers; layer > 0; --layer) {
    result.macs += static_cast<double>(rows.size() * columns.size()) *
                   static_cast<double>(conv_weight_count(spec));
    const std::int64_t size = conv_output_size(spec, layer - 1);
    rows = reach(spec, rows, size);
    columns = reach(spec, columns, size);
    result.windows.emplace_back(rows, columns);
  }
  std::ranges::reverse(result.windows);
  return result;
}

// Weights as real values, reordered to [output][tap][input] so that the inner sum reads contiguous
// memory.
std::vector<double> real_weights(const ConvSpec& spec, std::int64_t layer) {
  const std::vector<std::byte> bytes = conv_weights(spec, layer);
  const std::size_t element_bytes = conv_weight_element_bytes(spec.variant);
  const double scale = conv_scales(spec).weight;
  const std::size_t channels = index(spec.channels);
  const std::size_t taps = index(spec.kernel * spec.kernel);
  std::vector<double> weights(conv_weight_count(spec));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t to = i / (channels * taps);
    const std::size_t from = i / taps % channels;
    weights[(((to * taps) + (i % taps)) * channels) + from] =
        scale * element(bytes, i, element_bytes);
  }
  return weights;
}

// Adds one tap's contribution to all channels of an output pixel.
void add_tap(const ConvSpec& spec, const double* input, const std::vector<double>& weights,
             std::int64_t tap, double* output) {
  const std::int64_t taps = spec.kernel * spec.kernel;
  for (std::int64_t to = 0; to < spec.channels; ++to) {
    const double* row = &weights[index(((to * taps) + tap) * spec.channels)];
    output[to] = std::inner_product(row, row + spec.channels, input, output[to]);
  }
}

Window convolve(const ConvSpec& spec, Window& input, const std::vector<double>& weights, Range rows,
                Range columns) {
  Window output{rows, columns, {}};
  output.values.assign(index(spec.channels * rows.size() * columns.size()), 0.0);
  const bool same = spec.padding == ConvPadding::kSame;
  const std::int64_t before = same ? conv_padding_before(spec.kernel) : 0;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      for (std::int64_t tap = 0; tap < spec.kernel * spec.kernel; ++tap) {
        const std::int64_t y = row + (tap / spec.kernel) - before;
        const std::int64_t x = column + (tap % spec.kernel) - before;
        // The input window was clipped to the image, so everything outside it is padding.
        const bool inside = y >= input.rows.begin && y < input.rows.end &&
                            x >= input.columns.begin && x < input.columns.end;
        if (inside) {
          add_tap(spec, input.at(spec, y, x), weights, tap, output.at(spec, row, column));
        }
      }
    }
  }
  return output;
}

// Converts the output of a layer to what the next one reads: int8 variants round and saturate.
void requantise(const ConvSpec& spec, Window& window) {
  if (conv_element_bytes(spec.variant) != 1) return;
  const double step = conv_scales(spec).activation;
  for (double& value : window.values) {
    value = step * std::clamp(std::nearbyint(value / step), -128.0, 127.0);
  }
}

void scan(const ConvSpec& spec, std::span<const std::byte> output, ConvCheck& check) {
  const std::size_t element_bytes = conv_element_bytes(spec.variant);
  const std::size_t count = output.size() / element_bytes;
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = element(output, i, element_bytes);
    zeros += value == 0 ? 1 : 0;
    check.non_finite += std::isfinite(value) ? 0 : 1;
  }
  check.zero_fraction = static_cast<double>(zeros) / static_cast<double>(count);
}

void compare(const ConvSpec& spec, std::span<const std::byte> output, double budget,
             ConvCheck& check) {
  const std::int64_t size = conv_output_size(spec, spec.layers);
  const std::array<Pixel, 4> pixels{{{spec.batch - 1, size / 2, size / 2},
                                     {0, 0, 0},
                                     {spec.batch - 1, size - 1, size / 3},
                                     {0, size / 5, size - 1}}};
  const double step = conv_scales(spec).activation;
  const std::size_t element_bytes = conv_element_bytes(spec.variant);
  double error = 0;
  double norm = 0;
  ConvReference chain(spec);
  for (const Pixel& at : pixels) {
    budget -= chain.macs(at.row, at.column);
    if (budget < 0) break;
    const std::vector<double> reference = chain.pixel(at.image, at.row, at.column);
    for (std::int64_t channel = 0; channel < spec.channels; ++channel) {
      const double value = step * element(output, offset(spec, size, at, channel), element_bytes);
      error += std::pow(value - reference[index(channel)], 2);
      norm += std::pow(reference[index(channel)], 2);
    }
    check.compared += spec.channels;
  }
  if (check.compared > 0)
    check.relative_error = norm > 0 ? std::sqrt(error / norm) : std::sqrt(error);
}

std::string describe(const ConvSpec& spec, const ConvCheck& check, double limit) {
  std::ostringstream text;
  text.precision(3);
  if (check.non_finite > 0) {
    text << check.non_finite << " values of the result are infinite or NaN";
  } else if (spec.fill == ConvFill::kZeros) {
    text << (check.ok ? "all zero, as expected for zero-filled data"
                      : "the result for zero-filled data is not zero");
  } else if (check.zero_fraction > 0.5) {
    text << check.zero_fraction * 100 << " % of the result is zero: the work was not done";
  } else if (check.compared == 0) {
    text << "finite and not zero, but not compared: "
         << (limit == 0 && !int8_is_exact(spec)
                 ? "int8 sums exceed int8 here, which MPSGraph does not define"
                 : "a float64 reference would take too long");
  } else {
    text << check.compared << " values differ from a float64 reference by " << check.relative_error
         << " of its norm (limit " << limit << ")";
  }
  return text.str();
}

}  // namespace

ConvReference::ConvReference(const ConvSpec& spec) : spec_(spec), input_(conv_input(spec)) {}

double ConvReference::macs(std::int64_t row, std::int64_t column) const {
  return needed(spec_, row, column).macs;
}

const std::vector<double>& ConvReference::weights(std::int64_t layer) {
  if (spec_.shared_weights) layer = 0;
  if (layer != weights_layer_) weights_ = real_weights(spec_, layer);
  weights_layer_ = layer;
  return weights_;
}

std::vector<double> ConvReference::pixel(std::int64_t image, std::int64_t row,
                                         std::int64_t column) {
  const std::vector<std::pair<Range, Range>> windows = needed(spec_, row, column).windows;
  const std::size_t element_bytes = conv_element_bytes(spec_.variant);
  const double step = conv_scales(spec_).activation;
  Window window{windows[0].first, windows[0].second, {}};
  for (std::int64_t y = window.rows.begin; y < window.rows.end; ++y) {
    for (std::int64_t x = window.columns.begin; x < window.columns.end; ++x) {
      for (std::int64_t channel = 0; channel < spec_.channels; ++channel) {
        const std::size_t at = offset(spec_, spec_.size, {image, y, x}, channel);
        window.values.push_back(step * element(input_, at, element_bytes));
      }
    }
  }
  for (std::int64_t layer = 0; layer < spec_.layers; ++layer) {
    const auto& [rows, columns] = windows[index(layer) + 1];
    window = convolve(spec_, window, weights(layer), rows, columns);
    requantise(spec_, window);
  }
  return window.values;
}

ConvCheck check_conv(const ConvSpec& spec, std::span<const std::byte> output,
                     double max_reference_macs) {
  if (output.size() != conv_work(spec).output_bytes) {
    throw std::invalid_argument("the output does not have the size of the spec");
  }
  ConvCheck check;
  scan(spec, output, check);
  const bool defined = spec.variant != ConvVariant::kInt8 || int8_is_exact(spec);
  const double limit = spec.variant == ConvVariant::kInt8 ? 0 : kConvTolerance;
  if (spec.fill == ConvFill::kZeros) {
    check.ok = check.non_finite == 0 && check.zero_fraction == 1;
  } else {
    if (defined) compare(spec, output, max_reference_macs, check);
    // An exact int8 chain adds up a few small numbers, so many results are legitimately zero.
    const bool zeros_fit = check.zero_fraction <= 0.5 || (limit == 0 && check.compared > 0);
    check.ok = check.non_finite == 0 && zeros_fit && check.relative_error <= limit;
    if (check.compared == 0) check.ok = check.non_finite == 0 && zeros_fit;
  }
  check.detail = describe(spec, check, limit);
  return check;
}

}  // namespace nnbt
