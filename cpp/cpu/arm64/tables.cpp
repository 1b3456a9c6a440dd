#include <algorithm>
#include <string>

#include "cpu/arm64/isa.h"
#include "cpu/cpu.h"
#include "cpu/peak.h"
#include "cpu/stream.h"

namespace nnbt {
namespace {

struct Feature {
  const char* name;   // as in the "Features" line of /proc/cpuinfo
  const char* since;  // where it first appeared
};

constexpr Feature kHalf{"asimdhp", "Armv8.2 half precision: Cortex-A75, Apple A11"};
constexpr Feature kDot{"asimddp", "Armv8.2 dot products: Cortex-A75, Apple A13"};
constexpr Feature kBf16{"bf16", "Armv8.6: Neoverse V1 and N2, Apple M2"};
constexpr Feature kI8mm{"i8mm", "Armv8.6: Neoverse V1 and N2, Apple M2"};

#ifndef NNBT_WITHOUT_SVE
struct Sve {
  static constexpr Feature kBase{"sve", "Scalable Vector Extension: Neoverse V1 and N2, A64FX"};
  static constexpr Feature kBf16{"svebf16", "SVE of Armv8.6: Neoverse V1 and N2"};
  static constexpr Feature kI8mm{"svei8mm", "SVE of Armv8.6: Neoverse V1 and N2"};

  // In units of 128 bits.
  static std::int64_t scale() { return std::max<std::int64_t>(sve_vector_bytes() / 16, 1); }
};
#endif

#ifndef NNBT_WITHOUT_SME
struct Sme {
  static constexpr Feature kBase{"sme", "Scalable Matrix Extension: Apple M4"};
  static constexpr Feature kF64{"smef64f64", "optional in SME: Apple M4"};
  static constexpr Feature kF16{"smef16f32", "Scalable Matrix Extension: Apple M4"};
  static constexpr Feature kB16{"smeb16f32", "Scalable Matrix Extension: Apple M4"};
  static constexpr Feature kI8{"smei8i32", "Scalable Matrix Extension: Apple M4"};

  // Rows and columns of a tile grow with the streaming vector length.
  static std::int64_t scale() {
    const std::int64_t side = std::max<std::int64_t>(sme_vector_bytes() / 16, 1);
    return side * side;
  }
};
#endif

constexpr auto always = []() -> std::string { return {}; };

template <const Feature& feature>
std::string missing() {
  if (arm_feature(feature.name)) return {};
  return "This CPU has no " + std::string(feature.name) + " (" + feature.since + ").";
}

double one() { return 1; }
// Two ports on Neoverse N1, four on Apple's cores and Neoverse V1 and later.
double unknown() { return 0; }

constexpr PeakChain kChains[] = {
    {kClockChain, "arm64", "int64", "int64", "add", one, always, &arm64::kDependentAdd},
    {"neon_float32", "NEON", "float32", "float32", "fmla", unknown, always, &arm64::kNeonFloat32},
    {"neon_float64", "NEON", "float64", "float64", "fmla", unknown, always, &arm64::kNeonFloat64},
    {"neon_float16", "NEON FP16", "float16", "float16", "fmla", unknown, missing<kHalf>,
     &arm64::kNeonFloat16},
    {"neon_int8_dot", "NEON DotProd", "int8", "int32", "sdot", unknown, missing<kDot>,
     &arm64::kNeonInt8Dot},
    {"neon_int8_matrix", "NEON I8MM", "int8", "int32", "smmla", unknown, missing<kI8mm>,
     &arm64::kNeonInt8Matrix},
    {"neon_bfloat16_dot", "NEON BF16", "bfloat16", "float32", "bfdot", unknown, missing<kBf16>,
     &arm64::kNeonBfloat16Dot},
    {"neon_bfloat16_matrix", "NEON BF16", "bfloat16", "float32", "bfmmla", unknown, missing<kBf16>,
     &arm64::kNeonBfloat16Matrix},
#ifndef NNBT_WITHOUT_SVE
    {"sve_float32", "SVE", "float32", "float32", "fmla", unknown, missing<Sve::kBase>,
     &arm64::kSveFloat32, Sve::scale},
    {"sve_float64", "SVE", "float64", "float64", "fmla", unknown, missing<Sve::kBase>,
     &arm64::kSveFloat64, Sve::scale},
    {"sve_float16", "SVE", "float16", "float16", "fmla", unknown, missing<Sve::kBase>,
     &arm64::kSveFloat16, Sve::scale},
    {"sve_int8_dot", "SVE", "int8", "int32", "sdot", unknown, missing<Sve::kBase>,
     &arm64::kSveInt8Dot, Sve::scale},
    {"sve_int8_matrix", "SVE I8MM", "int8", "int32", "smmla", unknown, missing<Sve::kI8mm>,
     &arm64::kSveInt8Matrix, Sve::scale},
    {"sve_bfloat16_dot", "SVE BF16", "bfloat16", "float32", "bfdot", unknown, missing<Sve::kBf16>,
     &arm64::kSveBfloat16Dot, Sve::scale},
    {"sve_bfloat16_matrix", "SVE BF16", "bfloat16", "float32", "bfmmla", unknown,
     missing<Sve::kBf16>, &arm64::kSveBfloat16Matrix, Sve::scale},
#endif
#ifndef NNBT_WITHOUT_SME
    {"sme_float32", "SME", "float32", "float32", "fmopa", unknown, missing<Sme::kBase>,
     &arm64::kSmeFloat32, Sme::scale},
    {"sme_float64", "SME F64F64", "float64", "float64", "fmopa", unknown, missing<Sme::kF64>,
     &arm64::kSmeFloat64, Sme::scale},
    {"sme_float16", "SME", "float16", "float32", "fmopa", unknown, missing<Sme::kF16>,
     &arm64::kSmeFloat16, Sme::scale},
    {"sme_bfloat16", "SME", "bfloat16", "float32", "bfmopa", unknown, missing<Sme::kB16>,
     &arm64::kSmeBfloat16, Sme::scale},
    {"sme_int8", "SME", "int8", "int32", "smopa", unknown, missing<Sme::kI8>, &arm64::kSmeInt8,
     Sme::scale},
#endif
};

constexpr StreamSet kStreamSets[] = {{"NEON", always, &arm64::kStreamNeon}};

}  // namespace

std::span<const PeakChain> peak_chains() { return kChains; }

std::span<const StreamSet> stream_sets() { return kStreamSets; }

}  // namespace nnbt
