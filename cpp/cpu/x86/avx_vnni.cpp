#include <immintrin.h>

#include "cpu/peak_loop.h"
#include "cpu/x86/isa.h"

namespace nnbt {
namespace {

// Four products of an unsigned and a signed byte per 32-bit lane.
struct Int8 : SmallIntegers {
  using Element = std::int8_t;
  using Vector = __m256i;
  using Accumulator = __m256i;
  static constexpr int kElements = 32;
  static constexpr int kAccumulators = 12;
  static constexpr int kOperations = 2 * kElements;
  static std::int8_t encode(int value) { return static_cast<std::int8_t>(value); }
  static Vector load(const std::int8_t* p) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Vector multiply_add(Vector acc, Vector a, Vector b) {
    return _mm256_dpbusd_avx_epi32(acc, a, b);
  }
  static double sum(Vector acc) { return sum_lanes<std::int32_t>(acc); }
};

}  // namespace

namespace x86 {

constinit const ChainCode kAvxVnniInt8{chain_work<Int8>(), run_chain<Int8>, 65536};

}  // namespace x86
}  // namespace nnbt
