#include <immintrin.h>

#include "cpu/peak_loop.h"
#include "cpu/stream_loop.h"
#include "cpu/x86/isa.h"

namespace nnbt {
namespace {

struct Fma : SmallIntegers {
  static constexpr int kAccumulators = 12;  // with four operands: all sixteen registers
};

struct Float32 : Fma {
  using Element = float;
  using Vector = __m256;
  using Accumulator = __m256;
  static constexpr int kElements = 8;
  static constexpr int kOperations = 2 * kElements;
  static float encode(int value) { return static_cast<float>(value); }
  static Vector load(const float* p) { return _mm256_load_ps(p); }
  static Vector multiply_add(Vector acc, Vector a, Vector b) { return _mm256_fmadd_ps(a, b, acc); }
  static double sum(Vector acc) { return sum_lanes<float>(acc); }
};

struct Float64 : Fma {
  using Element = double;
  using Vector = __m256d;
  using Accumulator = __m256d;
  static constexpr int kElements = 4;
  static constexpr int kOperations = 2 * kElements;
  static double encode(int value) { return value; }
  static Vector load(const double* p) { return _mm256_load_pd(p); }
  static Vector multiply_add(Vector acc, Vector a, Vector b) { return _mm256_fmadd_pd(a, b, acc); }
  static double sum(Vector acc) { return sum_lanes<double>(acc); }
};

struct Stores {
  static constexpr int kBytes = 32;
  static void nontemporal(double* p, VectorOf<kBytes> value) { _mm256_stream_pd(p, value); }
  static void fence() { _mm_sfence(); }
};

}  // namespace

namespace x86 {

constinit const ChainCode kAvx2Float32{chain_work<Float32>(), run_chain<Float32>, 65536};
constinit const ChainCode kAvx2Float64{chain_work<Float64>(), run_chain<Float64>, 65536};
constinit const StreamCode kStreamAvx2 = stream_code<Stores>;

}  // namespace x86
}  // namespace nnbt
