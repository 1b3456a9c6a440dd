#include <immintrin.h>

#include "cpu/peak_loop.h"
#include "cpu/x86/isa.h"

namespace nnbt {
namespace {

struct Float16 : UnitProducts {
  using Element = _Float16;
  using Vector = __m512h;
  using Accumulator = __m512h;
  static constexpr int kElements = 32;
  static constexpr int kAccumulators = 16;
  static constexpr int kOperations = 2 * kElements;
  static _Float16 encode(double value) { return static_cast<_Float16>(value); }
  static Vector load(const void* p) { return _mm512_load_ph(p); }
  static Vector multiply_add(Vector acc, Vector a, Vector b) { return _mm512_fmadd_ph(a, b, acc); }
  static double sum(Vector acc) { return sum_lanes<_Float16>(acc); }
};

}  // namespace

namespace x86 {

constinit const ChainCode kAvx512Float16{chain_work<Float16>(), run_chain<Float16>,
                                         UnitProducts::kMaxIterations};

}  // namespace x86
}  // namespace nnbt
