// neural.cpp with SVE registers.
#include "cpu/arm64/isa.h"
#include "cpu/arm64/sve_loop.h"
#include "cpu/arm64/two_by_two.h"

namespace nnbt {
namespace {

constexpr int kAccumulators24 = 24;

struct Bfloat16 : SmallIntegers {
  using Element = std::uint16_t;
  static constexpr int kElements = 8;
  static constexpr int kAccumulators = kAccumulators24;
  static std::uint16_t encode(int value) { return bfloat16_bits(value); }
  static svbfloat16_t load(const std::uint16_t* p) {
    return svreinterpret_bf16(svld1rq(svptrue_b8(), p));
  }
  static svfloat32_t zero() { return svdup_f32(0); }
  static double sum(svfloat32_t acc) { return sum_sve_lanes<float>(acc); }
};

struct Bfloat16Dot : Bfloat16 {
  static constexpr int kOperations = 2 * kElements;
  static svfloat32_t multiply_add(svfloat32_t acc, svbfloat16_t a, svbfloat16_t b) {
    return svbfdot(acc, a, b);
  }
};

struct Bfloat16Matrix : TwoByTwo<Bfloat16> {
  static svfloat32_t multiply_add(svfloat32_t acc, svbfloat16_t a, svbfloat16_t b) {
    return svbfmmla(acc, a, b);
  }
};

struct Int8 : SmallIntegers {
  using Element = std::int8_t;
  static constexpr int kElements = 16;
  static constexpr int kAccumulators = kAccumulators24;
  static std::int8_t encode(int value) { return static_cast<std::int8_t>(value); }
  static svint8_t load(const std::int8_t* p) { return svld1rq(svptrue_b8(), p); }
  static svint32_t zero() { return svdup_s32(0); }
  static double sum(svint32_t acc) { return sum_sve_lanes<std::int32_t>(acc); }
};

struct Int8Matrix : TwoByTwo<Int8> {
  static svint32_t multiply_add(svint32_t acc, svint8_t a, svint8_t b) { return svmmla(acc, a, b); }
};

}  // namespace

namespace arm64 {

constinit const ChainCode kSveBfloat16Dot{chain_work<Bfloat16Dot>(), run_sve_chain<Bfloat16Dot>,
                                          65536};
constinit const ChainCode kSveBfloat16Matrix{chain_work<Bfloat16Matrix>(),
                                             run_sve_chain<Bfloat16Matrix>, 65536};
constinit const ChainCode kSveInt8Matrix{chain_work<Int8Matrix>(), run_sve_chain<Int8Matrix>,
                                         65536};

}  // namespace arm64
}  // namespace nnbt
