// AVX-512 extensions for neural networks: BF16 and VNNI dot products.
#include <immintrin.h>

#include "cpu/peak_loop.h"
#include "cpu/x86/isa.h"

namespace nnbt {
namespace {

struct Dot : SmallIntegers {
  using Vector = __m512i;
  static constexpr int kAccumulators = 16;
  static Vector load(const void* p) { return _mm512_load_si512(p); }
};

// Two products per float32 lane.
struct Bfloat16 : Dot {
  using Element = std::uint16_t;
  using Accumulator = __m512;
  static constexpr int kElements = 32;
  static constexpr int kOperations = 2 * kElements;
  static std::uint16_t encode(int value) { return bfloat16_bits(value); }
  static Accumulator multiply_add(Accumulator acc, Vector a, Vector b) {
    return _mm512_dpbf16_ps(acc, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  static double sum(Accumulator acc) { return sum_lanes<float>(acc); }
};

// Four products of an unsigned and a signed byte per 32-bit lane.
struct Int8 : Dot {
  using Element = std::int8_t;
  using Accumulator = __m512i;
  static constexpr int kElements = 64;
  static constexpr int kOperations = 2 * kElements;
  static std::int8_t encode(int value) { return static_cast<std::int8_t>(value); }
  static Accumulator multiply_add(Accumulator acc, Vector a, Vector b) {
    return _mm512_dpbusd_epi32(acc, a, b);
  }
  static double sum(Accumulator acc) { return sum_lanes<std::int32_t>(acc); }
};

}  // namespace

namespace x86 {

constinit const ChainCode kAvx512Bfloat16{chain_work<Bfloat16>(), run_chain<Bfloat16>, 65536};
constinit const ChainCode kAvx512VnniInt8{chain_work<Int8>(), run_chain<Int8>, 65536};

}  // namespace x86
}  // namespace nnbt
