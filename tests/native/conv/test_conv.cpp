#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/unsupported.h"
#include "conv/check.h"
#include "conv/conv.h"
#include "conv/data.h"
#include "conv/half.h"
#include "conv/names.h"

namespace {

using namespace nnbt;

ConvSpec small(ConvVariant variant) {
  ConvSpec spec;
  spec.size = 6;
  spec.channels = 4;
  spec.layers = 3;
  spec.variant = variant;
  spec.device = ConvDevice::kAne;
  return spec;
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

// The output bytes of a perfect device, from the reference.
std::vector<std::byte> perfect_output(const ConvSpec& spec) {
  const std::int64_t size = conv_output_size(spec, spec.layers);
  const double step = conv_scales(spec).activation;
  const std::size_t element_bytes = conv_element_bytes(spec.variant);
  std::vector<std::byte> bytes(conv_work(spec).output_bytes);
  ConvReference reference(spec);
  for (std::int64_t image = 0; image < spec.batch; ++image) {
    for (std::int64_t pixel = 0; pixel < size * size; ++pixel) {
      const std::vector<double> values = reference.pixel(image, pixel / size, pixel % size);
      for (std::int64_t channel = 0; channel < spec.channels; ++channel) {
        const auto at =
            static_cast<std::size_t>((((image * spec.channels) + channel) * size * size) + pixel);
        const double value = values[static_cast<std::size_t>(channel)] / step;
        if (element_bytes == 1) {
          bytes[at] = static_cast<std::byte>(static_cast<std::int8_t>(value));
        } else {
          const std::uint16_t half = float_to_half(value);
          std::memcpy(&bytes[2 * at], &half, sizeof half);
        }
      }
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("a 1x1 kernel has no border, and VALID layers shrink the image") {
  ConvSpec spec = small(ConvVariant::kFp16);
  spec.kernel = 1;
  CHECK(conv_work(spec).exact_ops == conv_work(spec).ops);
  spec.kernel = 3;
  spec.padding = ConvPadding::kValid;
  spec.layers = 2;
  CHECK(conv_output_size(spec, 2) == 2);
  // 2 * 4 * 4 * 9 * (4 * 4 + 2 * 2)
  CHECK(conv_work(spec).ops == 2.0 * 16 * 9 * 20);
  CHECK(conv_work(spec).exact_ops == conv_work(spec).ops);
  spec.layers = 3;
  CHECK_THROWS_AS(validate(spec), std::invalid_argument);
}

TEST_CASE("bytes follow the variant and the sharing of weights") {
  ConvSpec spec = small(ConvVariant::kQdq);
  CHECK(conv_work(spec).input_bytes == 4 * 36);
  CHECK(conv_work(spec).weight_bytes == 2 * 4 * 4 * 9);
  spec.shared_weights = false;
  CHECK(conv_work(spec).weight_bytes == 3 * 2 * 4 * 4 * 9);
  spec.variant = ConvVariant::kW8a8;
  CHECK(conv_work(spec).weight_bytes == 3 * 4 * 4 * 9);
}

TEST_CASE("validation refuses invalid specs, and int8 on the GPU before any call") {
  for (std::int64_t ConvSpec::* field :
       {&ConvSpec::batch, &ConvSpec::size, &ConvSpec::channels, &ConvSpec::layers,
        &ConvSpec::kernel, &ConvSpec::enqueue}) {
    ConvSpec spec;
    spec.*field = 0;
    CHECK_THROWS_AS(validate(spec), std::invalid_argument);
    spec.*field = (1 << 20) + 1;
    CHECK_THROWS_AS(validate(spec), std::invalid_argument);
  }
  ConvSpec huge;
  huge.channels = 1 << 17;
  CHECK_THROWS_AS(validate(huge), std::invalid_argument);
  ConvSpec int8 = small(ConvVariant::kInt8);
  validate(int8);
  int8.device = ConvDevice::kGpu;
  CHECK_THROWS_WITH_AS(validate(int8), doctest::Contains("--device ane"), Unsupported);
  ConvSpec level = small(ConvVariant::kFp16);
  CHECK(optimization_level(level) == 1);
  level.optimization_level = 0;
  CHECK_THROWS_AS(validate(level), Unsupported);
  level.device = ConvDevice::kGpu;
  level.optimization_level.reset();
  CHECK(optimization_level(level) == 0);
}

TEST_CASE("half floats convert in both directions, for every bit pattern") {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const double value = half_to_float(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    CHECK(float_to_half(value) == bits);
  }
  CHECK(float_to_half(1.0 + 0x1p-11) == 0x3C00);  // a tie goes to even
  CHECK(float_to_half(1.0 + 0x1p-11 + 0x1p-20) == 0x3C01);
  CHECK(float_to_half(65519.9) == 0x7BFF);
  CHECK(float_to_half(65520.0) == 0x7C00);
  CHECK(float_to_half(0x1.ffcp-15 + 0x1p-26) == 0x0400);  // carries out of the subnormals
}

TEST_CASE("data contain no zero, repeat for a seed and differ between layers only on request") {
  for (const auto& [name, variant] : kVariantNames.rows) {
    ConvSpec spec = small(variant);
    const std::vector<std::byte> input = conv_input(spec);
    CHECK(input.size() == conv_work(spec).input_bytes);
    CHECK(input == conv_input(spec));
    const std::vector<std::byte> weights = conv_weights(spec, 0);
    CHECK(weights == conv_weights(spec, 1));
    for (const std::vector<std::byte>& bytes : {input, weights}) {
      const std::size_t element =
          bytes == input ? conv_element_bytes(variant) : conv_weight_element_bytes(variant);
      for (std::size_t i = 0; i < bytes.size(); i += element) {
        const bool zero = std::all_of(&bytes[i], &bytes[i] + element, [](std::byte b) {
          return (b & std::byte{0x7F}) == std::byte{0};
        });
        CHECK_FALSE(zero);
      }
    }
    spec.shared_weights = false;
    CHECK(conv_weights(spec, 0) != conv_weights(spec, 1));
    spec.seed = 2;
    CHECK(input != conv_input(spec));
    spec.fill = ConvFill::kZeros;
    CHECK(std::ranges::count(conv_input(spec), std::byte{0}) == std::ssize(input));
  }
}

TEST_CASE("20 and 50 layers neither vanish nor overflow float16") {
  for (const std::int64_t channels : {8, 32}) {
    for (const std::int64_t layers : {20, 50}) {
      for (const std::int64_t kernel : {1, 3}) {
        for (const bool shared : {true, false}) {
          ConvSpec spec;
          spec.size = 8;
          spec.channels = channels;
          spec.layers = layers;
          spec.kernel = kernel;
          spec.shared_weights = shared;
          CAPTURE(to_json(spec));
          for (spec.seed = 1; spec.seed <= 3; ++spec.seed) {
            const double rms = root_mean_square(ConvReference(spec).pixel(0, 4, 4));
            CHECK(rms > 1e-3);
            CHECK(rms < 1e3);
          }
        }
      }
    }
  }
}

TEST_CASE("int8 chains are compared only if they cannot saturate") {
  ConvSpec spec = small(ConvVariant::kInt8);
  CHECK_FALSE(int8_is_exact(spec));  // 36 taps, three layers
  spec.layers = 1;
  CHECK(int8_is_exact(spec));
  CHECK(check_conv(spec, perfect_output(spec)).compared > 0);
  spec.layers = 2;
  CHECK_FALSE(int8_is_exact(spec));
  spec.kernel = 1;
  CHECK(int8_is_exact(spec));
}

TEST_CASE("the check accepts a correct result and rejects a wrong one") {
  for (const auto& [name, variant] : kVariantNames.rows) {
    ConvSpec spec = small(variant);
    spec.layers = variant == ConvVariant::kInt8 ? 1 : 2;
    spec.batch = 2;
    CAPTURE(to_json(spec));
    const std::vector<std::byte> right = perfect_output(spec);
    const ConvCheck good = check_conv(spec, right);
    CHECK(good.ok);
    CHECK(good.compared == 4 * spec.channels);
    CHECK(good.relative_error < 1e-3);

    std::vector<std::byte> shifted = right;
    std::ranges::rotate(
        shifted,
        shifted.begin() + static_cast<std::ptrdiff_t>(
                              36 * conv_element_bytes(variant)));  // channels shifted by one
    CHECK_FALSE(check_conv(spec, shifted).ok);
    CHECK(check_conv(spec, shifted).relative_error > 0.5);

    const std::vector<std::byte> zeros(right.size());
    CHECK_FALSE(check_conv(spec, zeros).ok);
    CHECK(check_conv(spec, zeros).zero_fraction == 1);

    const ConvCheck unaffordable = check_conv(spec, right, 1);
    CHECK(unaffordable.ok);
    CHECK(unaffordable.compared == 0);
    CHECK_FALSE(check_conv(spec, zeros, 1).ok);
    CHECK_THROWS_AS(check_conv(spec, std::span(right).first(1)), std::invalid_argument);
  }
  ConvSpec spec = small(ConvVariant::kFp16);
  std::vector<std::byte> infinite = perfect_output(spec);
  infinite[0] = std::byte{0x00};
  infinite[1] = std::byte{0x7C};
  CHECK(check_conv(spec, infinite).non_finite == 1);
  CHECK_FALSE(check_conv(spec, infinite).ok);
}

TEST_CASE("the spec as JSON") {
  CHECK(to_json(small(ConvVariant::kInt8)) ==
        "{\"variant\": \"int8\", \"device\": \"ane\", \"batch\": 1, \"size\": 6, \"channels\": 4, "
        "\"layers\": 3, \"kernel\": 3, \"fill\": \"normal\", \"padding\": \"same\", \"layout\": "
        "\"nchw\", \"shared_weights\": true, \"optimization_level\": 1, \"enqueue\": 1, \"seed\": "
        "1}");
}
