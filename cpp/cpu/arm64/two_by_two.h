// Products of two rows by two columns per instruction, for NEON and SVE.
#pragma once

#include "cpu/peak_loop.h"

namespace nnbt {
namespace {

// 128 bits of a register hold two rows; every row of a is multiplied by every row of b.
template <class Base>
struct TwoByTwo : Base {
  static constexpr int kOperations = 4 * Base::kElements;

  template <class Isa>
  static constexpr double added(int a_register, int b_register) {
    constexpr int kDepth = Base::kElements / 2;
    double sum = 0;
    for (int k = 0; k < kDepth; ++k) {
      sum += (Base::a(a_register, k) + Base::a(a_register, k + kDepth)) *
             (Base::b(b_register, k) + Base::b(b_register, k + kDepth));
    }
    return sum;
  }
};

}  // namespace
}  // namespace nnbt
