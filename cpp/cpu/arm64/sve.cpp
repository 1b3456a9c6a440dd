#include "cpu/arm64/isa.h"
#include "cpu/arm64/sve_loop.h"

namespace nnbt {
namespace {

constexpr int kAccumulators24 = 24;  // as for NEON

struct Float32 : SmallIntegers {
  using Element = float;
  static constexpr int kElements = 4;
  static constexpr int kAccumulators = kAccumulators24;
  static constexpr int kOperations = 2 * kElements;
  static float encode(int value) { return static_cast<float>(value); }
  static svfloat32_t load(const float* p) { return svld1rq(svptrue_b8(), p); }
  static svfloat32_t zero() { return svdup_f32(0); }
  static svfloat32_t multiply_add(svfloat32_t acc, svfloat32_t a, svfloat32_t b) {
    return svmla_x(svptrue_b32(), acc, a, b);
  }
  static double sum(svfloat32_t acc) { return sum_sve_lanes<float>(acc); }
};

struct Float64 : SmallIntegers {
  using Element = double;
  static constexpr int kElements = 2;
  static constexpr int kAccumulators = kAccumulators24;
  static constexpr int kOperations = 2 * kElements;
  static double encode(int value) { return value; }
  static svfloat64_t load(const double* p) { return svld1rq(svptrue_b8(), p); }
  static svfloat64_t zero() { return svdup_f64(0); }
  static svfloat64_t multiply_add(svfloat64_t acc, svfloat64_t a, svfloat64_t b) {
    return svmla_x(svptrue_b64(), acc, a, b);
  }
  static double sum(svfloat64_t acc) { return sum_sve_lanes<double>(acc); }
};

struct Float16 : UnitProducts {
  using Element = float16_t;
  static constexpr int kElements = 8;
  static constexpr int kAccumulators = kAccumulators24;
  static constexpr int kOperations = 2 * kElements;
  static float16_t encode(double value) { return static_cast<float16_t>(value); }
  static svfloat16_t load(const float16_t* p) { return svld1rq(svptrue_b8(), p); }
  static svfloat16_t zero() { return svdup_f16(0); }
  static svfloat16_t multiply_add(svfloat16_t acc, svfloat16_t a, svfloat16_t b) {
    return svmla_x(svptrue_b16(), acc, a, b);
  }
  static double sum(svfloat16_t acc) { return sum_sve_lanes<float16_t>(acc); }
};

// Four products per 32-bit lane.
struct Int8Dot : SmallIntegers {
  using Element = std::int8_t;
  static constexpr int kElements = 16;
  static constexpr int kAccumulators = kAccumulators24;
  static constexpr int kOperations = 2 * kElements;
  static std::int8_t encode(int value) { return static_cast<std::int8_t>(value); }
  static svint8_t load(const std::int8_t* p) { return svld1rq(svptrue_b8(), p); }
  static svint32_t zero() { return svdup_s32(0); }
  static svint32_t multiply_add(svint32_t acc, svint8_t a, svint8_t b) { return svdot(acc, a, b); }
  static double sum(svint32_t acc) { return sum_sve_lanes<std::int32_t>(acc); }
};

}  // namespace

namespace arm64 {

constinit const ChainCode kSveFloat32{chain_work<Float32>(), run_sve_chain<Float32>, 65536};
constinit const ChainCode kSveFloat64{chain_work<Float64>(), run_sve_chain<Float64>, 65536};
constinit const ChainCode kSveFloat16{chain_work<Float16>(), run_sve_chain<Float16>,
                                      UnitProducts::kMaxIterations};
constinit const ChainCode kSveInt8Dot{chain_work<Int8Dot>(), run_sve_chain<Int8Dot>, 65536};

}  // namespace arm64
}  // namespace nnbt
