// SSE2 has no fused multiply-add, and acc += a * b with a constant product would be hoisted out of
// the loop. So each accumulator goes x -> 2x + c -> (2x + c) / 2 + d, which increases it by c / 2 +
// d: exact, countable, and wrong if a single multiplication or addition is missing.
#include <emmintrin.h>

#include "cpu/peak_loop.h"
#include "cpu/stream_loop.h"
#include "cpu/x86/isa.h"

namespace nnbt {
namespace {

constexpr int kAccumulators = 12;  // with four constants: all sixteen registers

struct Float32 {
  using Element = float;
  using Vector = __m128;
  static Vector load(const float* p) { return _mm_load_ps(p); }
  static Vector multiply(Vector x, Vector y) { return _mm_mul_ps(x, y); }
  static Vector add(Vector x, Vector y) { return _mm_add_ps(x, y); }
};

struct Float64 {
  using Element = double;
  using Vector = __m128d;
  static Vector load(const double* p) { return _mm_load_pd(p); }
  static Vector multiply(Vector x, Vector y) { return _mm_mul_pd(x, y); }
  static Vector add(Vector x, Vector y) { return _mm_add_pd(x, y); }
};

template <class Isa>
constexpr int kLanes = sizeof(typename Isa::Vector) / sizeof(typename Isa::Element);

constexpr int twice_c(int lane) { return 2 * (1 + lane); }
constexpr int d(int lane) { return 2 + lane; }

template <class Isa>
constexpr ChainWork mul_add_work() noexcept {
  double sum = 0;
  for (int lane = 0; lane < kLanes<Isa>; ++lane) sum += 1 + lane + d(lane);
  constexpr std::int64_t kInstructions = std::int64_t{4} * kAccumulators;
  return {kInstructions, kInstructions * kLanes<Isa>, kAccumulators * sum};
}

template <class Isa, int... i>
[[gnu::always_inline]] inline double run_mul_add(std::int64_t iterations,
                                                 std::integer_sequence<int, i...> /*all*/) {
  using Vector = typename Isa::Vector;
  alignas(64) typename Isa::Element values[4][kLanes<Isa>];
  for (int lane = 0; lane < kLanes<Isa>; ++lane) {
    values[0][lane] = 2;
    values[1][lane] = static_cast<typename Isa::Element>(twice_c(lane));
    values[2][lane] = static_cast<typename Isa::Element>(0.5);
    values[3][lane] = static_cast<typename Isa::Element>(d(lane));
  }
  Vector zero[sizeof...(i)] = {};
  asm volatile("" : : "r"(values), "r"(zero) : "memory");  // see peak_loop.h
  const Vector two = Isa::load(values[0]);
  const Vector c = Isa::load(values[1]);
  const Vector half = Isa::load(values[2]);
  const Vector d = Isa::load(values[3]);
  Vector x[sizeof...(i)] = {zero[i]...};
#pragma GCC unroll 1
  for (std::int64_t n = 0; n < iterations; ++n) {
    ((x[i] = Isa::add(Isa::multiply(x[i], two), c)), ...);
    ((x[i] = Isa::add(Isa::multiply(x[i], half), d)), ...);
  }
  return (sum_lanes<typename Isa::Element>(x[i]) + ...);
}

template <class Isa>
double run_mul_add_chain(std::int64_t iterations) {
  return run_mul_add<Isa>(iterations, std::make_integer_sequence<int, kAccumulators>{});
}

struct Stores {
  static constexpr int kBytes = 16;
  static void nontemporal(double* p, VectorOf<kBytes> value) { _mm_stream_pd(p, value); }
  static void fence() { _mm_sfence(); }
};

// Register to register, because Intel cores from Golden Cove on execute `add $constant` while
// renaming, several per cycle. Sixteen per iteration make the loop counter cheap.
double run_dependent_add(std::int64_t iterations) {
  std::int64_t sum = 0;
  const std::int64_t one = iterations > 0 ? 1 : 0;
#pragma GCC unroll 1
  for (std::int64_t n = 0; n < iterations; ++n) {
    asm volatile(".rept 16\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(one));
  }
  return static_cast<double>(sum);
}

constexpr ChainWork dependent_add_work() noexcept { return {16, 16, 16}; }

}  // namespace

namespace x86 {

constinit const ChainCode kSse2Float32{mul_add_work<Float32>(), run_mul_add_chain<Float32>, 65536};
constinit const ChainCode kSse2Float64{mul_add_work<Float64>(), run_mul_add_chain<Float64>, 65536};
constinit const ChainCode kDependentAdd{dependent_add_work(), run_dependent_add, 1048576};
constinit const StreamCode kStreamSse2 = stream_code<Stores>;

}  // namespace x86
}  // namespace nnbt
