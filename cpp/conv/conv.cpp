#include "conv/conv.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "base/json_writer.h"
#include "base/unsupported.h"
#include "conv/data.h"
#include "conv/names.h"

namespace nnbt {
namespace {

// Combinations that must not reach MPSGraph; every other variant and device is allowed.
struct Refusal {
  ConvVariant variant;
  ConvDevice device;
  const char* sentence;
};
constexpr Refusal kRefusals[] = {
    {ConvVariant::kInt8, ConvDevice::kGpu,
     "MPSGraph has no int8 convolution on the GPU and would abort the process; use --device ane "
     "or --dtype w8a8"},
};

constexpr std::int64_t kMaxDimension = 1 << 20;
constexpr double kMaxTensorBytes = 16.0 * (1U << 30U);

void require(bool good, const char* sentence) {
  if (!good) throw std::invalid_argument(sentence);
}

double power(double base, int exponent) {
  double result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

// Taps along one axis that fall on the image, summed over the outputs of a SAME convolution. For an
// even kernel, which side gets more padding does not change the sum.
double taps_inside(std::int64_t size, std::int64_t kernel) {
  double taps = 0;
  for (std::int64_t tap = 0; tap < kernel; ++tap) {
    const std::int64_t shift = std::abs(tap - conv_padding_before(kernel));
    taps += static_cast<double>(std::max<std::int64_t>(0, size - shift));
  }
  return taps;
}

}  // namespace

std::size_t conv_element_bytes(ConvVariant variant) {
  return variant == ConvVariant::kFp16 ? 2 : 1;
}

std::int64_t conv_padding_before(std::int64_t kernel) { return (kernel - 1) / 2; }

std::int64_t conv_output_size(const ConvSpec& spec, std::int64_t layers) {
  return spec.padding == ConvPadding::kSame ? spec.size : spec.size - (layers * (spec.kernel - 1));
}

ConvWork conv_work(const ConvSpec& spec) {
  const auto batch = static_cast<double>(spec.batch);
  const auto channels = static_cast<double>(spec.channels);
  const auto kernel = static_cast<double>(spec.kernel);
  const double per_tap = 2 * batch * channels * channels;
  ConvWork work{};
  for (std::int64_t layer = 1; layer <= spec.layers; ++layer) {
    const std::int64_t size = conv_output_size(spec, layer);
    const double usual = static_cast<double>(size) * kernel;
    const double exact =
        spec.padding == ConvPadding::kSame ? taps_inside(size, spec.kernel) : usual;
    work.ops += per_tap * power(usual, 2);
    work.exact_ops += per_tap * power(exact, 2);
  }
  const auto elements = [&](std::int64_t size) {
    return static_cast<std::size_t>(spec.batch * spec.channels * size * size);
  };
  const std::size_t element_bytes = conv_element_bytes(spec.variant);
  work.input_bytes = elements(spec.size) * element_bytes;
  work.output_bytes = elements(conv_output_size(spec, spec.layers)) * element_bytes;
  const std::int64_t constants = spec.shared_weights ? 1 : spec.layers;
  work.weight_bytes = static_cast<std::size_t>(constants) * conv_weight_count(spec) *
                      conv_weight_element_bytes(spec.variant);
  return work;
}

void validate(const ConvSpec& spec) {
  for (const std::int64_t value :
       {spec.batch, spec.size, spec.channels, spec.layers, spec.kernel, spec.enqueue}) {
    require(value >= 1 && value <= kMaxDimension,
            "batch, size, channels, layers, kernel and enqueue must be between 1 and 1048576");
  }
  require(conv_output_size(spec, spec.layers) >= 1,
          "the image is too small for so many layers: without padding each one removes kernel - 1 "
          "pixels");
  const double pixels = power(static_cast<double>(spec.size), 2);
  const auto channels = static_cast<double>(spec.channels);
  require(
      static_cast<double>(spec.batch) * channels * pixels * 2 <= kMaxTensorBytes &&
          channels * channels * power(static_cast<double>(spec.kernel), 2) * 2 <= kMaxTensorBytes,
      "a tensor would exceed 16 GiB");
  require(
      !spec.optimization_level || *spec.optimization_level == 0 || *spec.optimization_level == 1,
      "the optimisation level must be 0 or 1");
  for (const Refusal& row : kRefusals) {
    if (row.variant == spec.variant && row.device == spec.device) throw Unsupported(row.sentence);
  }
  if (spec.device == ConvDevice::kAne && optimization_level(spec) == 0) {
    throw Unsupported(
        "optimisation level 0 keeps a graph on the GPU; omit it for the Neural Engine");
  }
}

int optimization_level(const ConvSpec& spec) {
  return spec.optimization_level.value_or(spec.device == ConvDevice::kAne ? 1 : 0);
}

std::string to_json(const ConvSpec& spec) {
  return json::Object()
      .add("variant", json::text(kVariantNames.name(spec.variant)))
      .add("device", json::text(kDeviceNames.name(spec.device)))
      .add("batch", json::number(spec.batch))
      .add("size", json::number(spec.size))
      .add("channels", json::number(spec.channels))
      .add("layers", json::number(spec.layers))
      .add("kernel", json::number(spec.kernel))
      .add("fill", json::text(kFillNames.name(spec.fill)))
      .add("padding", json::text(kPaddingNames.name(spec.padding)))
      .add("layout", json::text(kLayoutNames.name(spec.layout)))
      .add("shared_weights", json::boolean(spec.shared_weights))
      .add("optimization_level", json::number(optimization_level(spec)))
      .add("enqueue", json::number(spec.enqueue))
      .add("seed", json::number(spec.seed))
      .str();
}

}  // namespace nnbt
