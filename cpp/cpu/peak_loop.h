// The loop of all multiply-accumulate chains, included by files that are compiled with the flags of
// one instruction set.
//
// Those files must use internal linkage only, and no headers that have inline functions with
// external linkage: the linker keeps one copy of such a function for the whole program, and if that
// is the one compiled for AVX-512, harmless-looking code crashes on every other CPU with SIGILL.
#pragma once

#include <utility>

#include "cpu/isa_code.h"

namespace nnbt {
namespace {

constexpr int kMaxElements = 64;  // in one operand register

// Operand values: small positive integers that differ between lanes. All products are exact, a
// missing instruction cannot cancel out, and the multipliers see no constant.
struct SmallIntegers {
  static constexpr int a(int which, int element) { return 1 + (element * 7 + which * 3) % 4; }
  static constexpr int b(int which, int element) { return 1 + (element * 5 + which) % 4; }

  // Sum over all lanes of what one instruction adds, for a plain dot product.
  template <class Isa>
  static constexpr double added(int a_register, int b_register) {
    double sum = 0;
    for (int j = 0; j < Isa::kElements; ++j) sum += Isa::a(a_register, j) * Isa::b(b_register, j);
    return sum;
  }
};

// For float16 accumulators, which are exact only up to 2048: every product is 1.
struct UnitProducts {
  static constexpr std::int64_t kMaxIterations = 2048;
  static constexpr double a(int /*which*/, int element) { return element % 2 == 0 ? 2 : 4; }
  static constexpr double b(int /*which*/, int element) { return 1 / a(0, element); }

  template <class Isa>
  static constexpr double added(int /*a_register*/, int /*b_register*/) {
    return Isa::kElements;
  }
};

// Two a and two b registers alternate, as in the inner loop of a matrix product.
constexpr int a_of(int accumulator) { return accumulator % 2; }
constexpr int b_of(int accumulator) { return accumulator / 2 % 2; }

// An Isa has: Element, Vector, Accumulator; kElements of an operand register, kAccumulators,
// kOperations per instruction; encode(int), load(const Element*), multiply_add(acc, a, b),
// sum(acc), and a(), b(), added() (see SmallIntegers).
template <class Isa>
constexpr ChainWork chain_work() noexcept {
  double sum = 0;
  for (int i = 0; i < Isa::kAccumulators; ++i) sum += Isa::template added<Isa>(a_of(i), b_of(i));
  return {Isa::kAccumulators, std::int64_t{Isa::kAccumulators} * Isa::kOperations, sum};
}

template <class Isa, int... i>
[[gnu::always_inline]] inline double run_accumulators(std::int64_t iterations,
                                                      std::integer_sequence<int, i...> /*all*/) {
  using Element = typename Isa::Element;
  using Vector = typename Isa::Vector;
  alignas(64) Element a_values[2][kMaxElements] = {};
  alignas(64) Element b_values[2][kMaxElements] = {};
  for (int which = 0; which < 2; ++which) {
    for (int j = 0; j < Isa::kElements; ++j) {
      a_values[which][j] = Isa::encode(Isa::a(which, j));
      b_values[which][j] = Isa::encode(Isa::b(which, j));
    }
  }
  // Compilers merge accumulators that they know to start equal: of twelve AVX2 chains four were
  // left, with correct sums, at "150 %" of the peak. This hides the values.
  typename Isa::Accumulator zero[sizeof...(i)] = {};
  asm volatile("" : : "r"(a_values), "r"(b_values), "r"(zero) : "memory");
  const Vector a[2] = {Isa::load(a_values[0]), Isa::load(a_values[1])};
  const Vector b[2] = {Isa::load(b_values[0]), Isa::load(b_values[1])};
  typename Isa::Accumulator acc[sizeof...(i)] = {zero[i]...};
#pragma GCC unroll 1
  for (std::int64_t n = 0; n < iterations; ++n) {
    ((acc[i] = Isa::multiply_add(acc[i], a[a_of(i)], b[b_of(i)])), ...);
  }
  return (Isa::sum(acc[i]) + ...);
}

template <class Isa>
double run_chain(std::int64_t iterations) {
  return run_accumulators<Isa>(iterations, std::make_integer_sequence<int, Isa::kAccumulators>{});
}

// Horizontal sum through memory; once per call of the chain.
template <class Scalar, class Vector>
double sum_lanes(const Vector& vector) {
  constexpr int kLanes = sizeof(Vector) / sizeof(Scalar);
  Scalar lanes[kLanes];
  __builtin_memcpy(lanes, &vector, sizeof lanes);
  double sum = 0;
  for (const Scalar lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

// Upper half of the float32 of this value; exact for integers up to 256.
inline std::uint16_t bfloat16_bits(int value) {
  const auto wide = static_cast<float>(value);
  std::uint32_t bits = 0;
  __builtin_memcpy(&bits, &wide, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16U);
}

}  // namespace
}  // namespace nnbt
