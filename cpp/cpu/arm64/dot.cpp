#include <arm_neon.h>

#include "cpu/arm64/isa.h"
#include "cpu/peak_loop.h"

namespace nnbt {
namespace {

// Four products per 32-bit lane.
struct Int8 : SmallIntegers {
  using Element = std::int8_t;
  using Vector = int8x16_t;
  using Accumulator = int32x4_t;
  static constexpr int kElements = 16;
  static constexpr int kAccumulators = 24;
  static constexpr int kOperations = 2 * kElements;
  static std::int8_t encode(int value) { return static_cast<std::int8_t>(value); }
  static Vector load(const std::int8_t* p) { return vld1q_s8(p); }
  static Accumulator multiply_add(Accumulator acc, Vector a, Vector b) {
    return vdotq_s32(acc, a, b);
  }
  static double sum(Accumulator acc) { return sum_lanes<std::int32_t>(acc); }
};

}  // namespace

namespace arm64 {

constinit const ChainCode kNeonInt8Dot{chain_work<Int8>(), run_chain<Int8>, 65536};

}  // namespace arm64
}  // namespace nnbt
