// Names of the options of a convolution, as used on the command line, in JSON and in Python.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "conv/conv.h"

namespace nnbt {

template <typename Enum, std::size_t Count>
struct ConvNames {
  const char* what;
  std::array<std::pair<std::string_view, Enum>, Count> rows;

  std::string_view name(Enum wanted) const {
    for (const auto& [name, value] : rows) {
      if (value == wanted) return name;
    }
    return {};
  }

  // Throws std::invalid_argument, listing the known names, for any other.
  Enum value(std::string_view wanted) const {
    std::string known;
    for (const auto& [name, value] : rows) {
      if (name == wanted) return value;
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    throw std::invalid_argument(std::string(what) + " is one of " + known);
  }
};

inline constexpr ConvNames<ConvVariant, 4> kVariantNames{"variant",
                                                         {{{"fp16", ConvVariant::kFp16},
                                                           {"int8", ConvVariant::kInt8},
                                                           {"qdq", ConvVariant::kQdq},
                                                           {"w8a8", ConvVariant::kW8a8}}}};
inline constexpr ConvNames<ConvDevice, 2> kDeviceNames{
    "device", {{{"gpu", ConvDevice::kGpu}, {"ane", ConvDevice::kAne}}}};
inline constexpr ConvNames<ConvFill, 2> kFillNames{
    "fill", {{{"normal", ConvFill::kNormal}, {"zeros", ConvFill::kZeros}}}};
inline constexpr ConvNames<ConvPadding, 2> kPaddingNames{
    "padding", {{{"same", ConvPadding::kSame}, {"valid", ConvPadding::kValid}}}};
inline constexpr ConvNames<ConvLayout, 2> kLayoutNames{
    "layout", {{{"nchw", ConvLayout::kNchw}, {"nhwc", ConvLayout::kNhwc}}}};

}  // namespace nnbt
