#include <arm_neon.h>

#include "cpu/arm64/isa.h"
#include "cpu/peak_loop.h"
#include "cpu/stream_loop.h"

namespace nnbt {
namespace {

struct Fma : SmallIntegers {
  // Four ports with a latency of four cycles need 16; with four operands this uses 28 of 32
  // registers.
  static constexpr int kAccumulators = 24;
};

struct Float32 : Fma {
  using Element = float;
  using Vector = float32x4_t;
  using Accumulator = float32x4_t;
  static constexpr int kElements = 4;
  static constexpr int kOperations = 2 * kElements;
  static float encode(int value) { return static_cast<float>(value); }
  static Vector load(const float* p) { return vld1q_f32(p); }
  static Vector multiply_add(Vector acc, Vector a, Vector b) { return vfmaq_f32(acc, a, b); }
  static double sum(Vector acc) { return sum_lanes<float>(acc); }
};

struct Float64 : Fma {
  using Element = double;
  using Vector = float64x2_t;
  using Accumulator = float64x2_t;
  static constexpr int kElements = 2;
  static constexpr int kOperations = 2 * kElements;
  static double encode(int value) { return value; }
  static Vector load(const double* p) { return vld1q_f64(p); }
  static Vector multiply_add(Vector acc, Vector a, Vector b) { return vfmaq_f64(acc, a, b); }
  static double sum(Vector acc) { return sum_lanes<double>(acc); }
};

struct Stores {
  static constexpr int kBytes = 16;
  static void nontemporal(double* p, VectorOf<kBytes> value) {
    asm volatile("stnp %d0, %d1, [%2]" : : "w"(value[0]), "w"(value[1]), "r"(p) : "memory");
  }
  static void fence() { asm volatile("dmb ishst" : : : "memory"); }
};

// Sixteen per iteration make the loop counter cheap.
double run_dependent_add(std::int64_t iterations) {
  std::int64_t sum = 0;
  const std::int64_t one = iterations > 0 ? 1 : 0;
#pragma GCC unroll 1
  for (std::int64_t n = 0; n < iterations; ++n) {
    asm volatile(".rept 16\n\tadd %0, %0, %1\n\t.endr" : "+r"(sum) : "r"(one));
  }
  return static_cast<double>(sum);
}

constexpr ChainWork dependent_add_work() noexcept { return {16, 16, 16}; }

}  // namespace

namespace arm64 {

constinit const ChainCode kNeonFloat32{chain_work<Float32>(), run_chain<Float32>, 65536};
constinit const ChainCode kNeonFloat64{chain_work<Float64>(), run_chain<Float64>, 65536};
constinit const ChainCode kDependentAdd{dependent_add_work(), run_dependent_add, 1048576};
constinit const StreamCode kStreamNeon = stream_code<Stores>;

}  // namespace arm64
}  // namespace nnbt
