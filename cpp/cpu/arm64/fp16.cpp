#include <arm_neon.h>

#include "cpu/arm64/isa.h"
#include "cpu/peak_loop.h"

namespace nnbt {
namespace {

struct Float16 : UnitProducts {
  using Element = float16_t;
  using Vector = float16x8_t;
  using Accumulator = float16x8_t;
  static constexpr int kElements = 8;
  static constexpr int kAccumulators = 24;
  static constexpr int kOperations = 2 * kElements;
  static float16_t encode(double value) { return static_cast<float16_t>(value); }
  static Vector load(const float16_t* p) { return vld1q_f16(p); }
  static Vector multiply_add(Vector acc, Vector a, Vector b) { return vfmaq_f16(acc, a, b); }
  static double sum(Vector acc) { return sum_lanes<float16_t>(acc); }
};

}  // namespace

namespace arm64 {

constinit const ChainCode kNeonFloat16{chain_work<Float16>(), run_chain<Float16>,
                                       UnitProducts::kMaxIterations};

}  // namespace arm64
}  // namespace nnbt
