// peak_loop.h for SVE, whose register length, 128 to 2048 bits, is known only at run time.
//
// An Isa's kElements and kOperations are for 128 bits, which repeat along a register, so work and
// sums grow with the length (PeakChain::scale).
#pragma once

#include <arm_sve.h>

#include "cpu/peak_loop.h"

namespace nnbt {
namespace {

constexpr int kLargestVectorBytes = 256;

template <int which, class Vector>
[[gnu::always_inline]] inline Vector pick(Vector first, Vector second) {
  if constexpr (which == 0) {
    return first;
  } else {
    return second;
  }
}

// Hides the value from the compiler, which would merge equal accumulators (see run_accumulators).
template <class Vector>
[[gnu::always_inline]] inline Vector unknown(Vector value) {
  asm volatile("" : "+w"(value));
  return value;
}

template <class Scalar, class Vector>
[[gnu::noinline]] double sum_sve_lanes(Vector vector) {
  constexpr int kLargest = kLargestVectorBytes / static_cast<int>(sizeof(Scalar));
  Scalar lanes[kLargest] = {};
  svst1(svptrue_b8(), lanes, vector);
  double sum = 0;
  for (const Scalar lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

// The accumulators are parameters, because registers of variable length cannot be array elements.
template <class Isa, int... i, class... Accumulators>
[[gnu::always_inline]] inline double run_registers(
    std::int64_t iterations, std::integer_sequence<int, i...> /*all*/,
    const typename Isa::Element (*a_values)[kMaxElements],
    const typename Isa::Element (*b_values)[kMaxElements], Accumulators... acc) {
  const auto a0 = Isa::load(a_values[0]);
  const auto a1 = Isa::load(a_values[1]);
  const auto b0 = Isa::load(b_values[0]);
  const auto b1 = Isa::load(b_values[1]);
#pragma GCC unroll 1
  for (std::int64_t n = 0; n < iterations; ++n) {
    ((acc = Isa::multiply_add(acc, pick<a_of(i)>(a0, a1), pick<b_of(i)>(b0, b1))), ...);
  }
  return (Isa::sum(acc) + ...);
}

template <class Isa, int... i>
[[gnu::always_inline]] inline double run_sve(std::int64_t iterations,
                                             std::integer_sequence<int, i...> all) {
  using Element = typename Isa::Element;
  alignas(64) Element a_values[2][kMaxElements] = {};
  alignas(64) Element b_values[2][kMaxElements] = {};
  for (int which = 0; which < 2; ++which) {
    for (int j = 0; j < Isa::kElements; ++j) {
      a_values[which][j] = Isa::encode(Isa::a(which, j));
      b_values[which][j] = Isa::encode(Isa::b(which, j));
    }
  }
  asm volatile("" : : "r"(a_values), "r"(b_values) : "memory");
  return run_registers<Isa>(iterations, all, a_values, b_values,
                            (static_cast<void>(i), unknown(Isa::zero()))...);
}

template <class Isa>
double run_sve_chain(std::int64_t iterations) {
  return run_sve<Isa>(iterations, std::make_integer_sequence<int, Isa::kAccumulators>{});
}

}  // namespace
}  // namespace nnbt
