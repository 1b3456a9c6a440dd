// IEEE binary16 conversions on the bits, without compiler support.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace nnbt {

// Rounds to nearest, ties to even; 65520 and above become infinity.
inline std::uint16_t float_to_half(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) return sign | 0x7E00;
  if (magnitude >= 65520.0) return sign | 0x7C00;
  if (magnitude < 0x1p-25) return sign;
  // Below 2^-14, numbers are subnormal and have the spacing of that exponent.
  const int exponent = std::max(std::ilogb(magnitude), -14);
  const auto steps =
      static_cast<std::uint32_t>(std::nearbyint(std::scalbn(magnitude, 10 - exponent)));
  // The hidden bit (1024 steps) adds one to the exponent field, and so does a carry from rounding.
  return static_cast<std::uint16_t>(sign + steps +
                                    (static_cast<std::uint32_t>(exponent + 14) << 10U));
}

inline double half_to_float(std::uint16_t bits) {
  const int exponent = (bits >> 10U) & 0x1F;
  const int fraction = bits & 0x3FF;
  double magnitude = 0;
  if (exponent == 31) {
    magnitude = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    magnitude = std::scalbn(fraction, -24);
  } else {
    magnitude = std::scalbn(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

}  // namespace nnbt
