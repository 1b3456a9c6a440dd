// arm64 extensions for neural networks: bfloat16 dot products, and products of two rows by two
// columns per instruction for bfloat16 and int8.
#include <arm_neon.h>

#include "cpu/arm64/isa.h"
#include "cpu/arm64/two_by_two.h"
#include "cpu/peak_loop.h"

namespace nnbt {
namespace {

constexpr int kAccumulators24 = 24;

struct Bfloat16 : SmallIntegers {
  using Element = std::uint16_t;
  using Vector = bfloat16x8_t;
  using Accumulator = float32x4_t;
  static constexpr int kElements = 8;
  static constexpr int kAccumulators = kAccumulators24;
  static std::uint16_t encode(int value) { return bfloat16_bits(value); }
  static Vector load(const std::uint16_t* p) { return vreinterpretq_bf16_u16(vld1q_u16(p)); }
  static double sum(Accumulator acc) { return sum_lanes<float>(acc); }
};

struct Bfloat16Dot : Bfloat16 {
  static constexpr int kOperations = 2 * kElements;
  static Accumulator multiply_add(Accumulator acc, Vector a, Vector b) {
    return vbfdotq_f32(acc, a, b);
  }
};

struct Bfloat16Matrix : TwoByTwo<Bfloat16> {
  static Accumulator multiply_add(Accumulator acc, Vector a, Vector b) {
    return vbfmmlaq_f32(acc, a, b);
  }
};

struct Int8 : SmallIntegers {
  using Element = std::int8_t;
  using Vector = int8x16_t;
  using Accumulator = int32x4_t;
  static constexpr int kElements = 16;
  static constexpr int kAccumulators = kAccumulators24;
  static std::int8_t encode(int value) { return static_cast<std::int8_t>(value); }
  static Vector load(const std::int8_t* p) { return vld1q_s8(p); }
  static double sum(Accumulator acc) { return sum_lanes<std::int32_t>(acc); }
};

struct Int8Matrix : TwoByTwo<Int8> {
  static Accumulator multiply_add(Accumulator acc, Vector a, Vector b) {
    return vmmlaq_s32(acc, a, b);
  }
};

}  // namespace

namespace arm64 {

constinit const ChainCode kNeonBfloat16Dot{chain_work<Bfloat16Dot>(), run_chain<Bfloat16Dot>,
                                           65536};
constinit const ChainCode kNeonBfloat16Matrix{chain_work<Bfloat16Matrix>(),
                                              run_chain<Bfloat16Matrix>, 65536};
constinit const ChainCode kNeonInt8Matrix{chain_work<Int8Matrix>(), run_chain<Int8Matrix>, 65536};

}  // namespace arm64
}  // namespace nnbt
