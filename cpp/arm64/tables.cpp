#include <algorithm>
#include <string>

#include "arm64/isa.h"
#include "cpu.h"
#include "peak.h"
#include "stream.h"

namespace nnbt {
namespace {

struct Feature {
  const char* name;   // as in the "Features" line of /proc/cpuinfo
  const char* since;  // where it is found
};

constexpr Feature kHalf{"asimdhp", "Armv8.2 half precision: Cortex-A75, Apple A11"};
constexpr Feature kDot{"asimddp", "Armv8.2 dot products: Cortex-A75, Apple A13"};
constexpr Feature kBf16{"bf16", "Armv8.6: Neoverse V1 and N2, Apple M2"};
constexpr Feature kI8mm{"i8mm", "Armv8.6: Neoverse V1 and N2, Apple M2"};

constexpr Feature kSve{"sve", "Scalable Vector Extension: Neoverse V1 and N2, A64FX"};
constexpr Feature kSveBf16{"svebf16", "SVE of Armv8.6: Neoverse V1 and N2"};
constexpr Feature kSveI8mm{"svei8mm", "SVE of Armv8.6: Neoverse V1 and N2"};
constexpr Feature kSme{"sme", "Scalable Matrix Extension: Apple M4"};
constexpr Feature kSmeF64{"smef64f64", "an option of SME: Apple M4"};
constexpr Feature kSmeF16{"smef16f32", "Scalable Matrix Extension: Apple M4"};
constexpr Feature kSmeB16{"smeb16f32", "Scalable Matrix Extension: Apple M4"};
constexpr Feature kSmeI8{"smei8i32", "Scalable Matrix Extension: Apple M4"};

constexpr auto always = []() -> std::string { return {}; };

template <const Feature& feature>
std::string missing() {
  if (arm_feature(feature.name)) return {};
  return "This processor has no " + std::string(feature.name) + " (" + feature.since + ").";
}

constexpr std::int64_t kLeastVectorBytes = 16;

// A vector has so many times the elements that it has at 128 bits; a tile, the square.
[[maybe_unused]] std::int64_t sve_vector() {
  return std::max(sve_vector_bytes(), kLeastVectorBytes) / kLeastVectorBytes;
}

[[maybe_unused]] std::int64_t sme_tile() {
  const std::int64_t side = std::max(sme_vector_bytes(), kLeastVectorBytes) / kLeastVectorBytes;
  return side * side;
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
    {"sve_float32", "SVE", "float32", "float32", "fmla", unknown, missing<kSve>,
     &arm64::kSveFloat32, sve_vector},
    {"sve_float64", "SVE", "float64", "float64", "fmla", unknown, missing<kSve>,
     &arm64::kSveFloat64, sve_vector},
    {"sve_float16", "SVE", "float16", "float16", "fmla", unknown, missing<kSve>,
     &arm64::kSveFloat16, sve_vector},
    {"sve_int8_dot", "SVE", "int8", "int32", "sdot", unknown, missing<kSve>, &arm64::kSveInt8Dot,
     sve_vector},
    {"sve_int8_matrix", "SVE I8MM", "int8", "int32", "smmla", unknown, missing<kSveI8mm>,
     &arm64::kSveInt8Matrix, sve_vector},
    {"sve_bfloat16_dot", "SVE BF16", "bfloat16", "float32", "bfdot", unknown, missing<kSveBf16>,
     &arm64::kSveBfloat16Dot, sve_vector},
    {"sve_bfloat16_matrix", "SVE BF16", "bfloat16", "float32", "bfmmla", unknown, missing<kSveBf16>,
     &arm64::kSveBfloat16Matrix, sve_vector},
#endif
#ifndef NNBT_WITHOUT_SME
    {"sme_float32", "SME", "float32", "float32", "fmopa", unknown, missing<kSme>,
     &arm64::kSmeFloat32, sme_tile},
    {"sme_float64", "SME F64F64", "float64", "float64", "fmopa", unknown, missing<kSmeF64>,
     &arm64::kSmeFloat64, sme_tile},
    {"sme_float16", "SME", "float16", "float32", "fmopa", unknown, missing<kSmeF16>,
     &arm64::kSmeFloat16, sme_tile},
    {"sme_bfloat16", "SME", "bfloat16", "float32", "bfmopa", unknown, missing<kSmeB16>,
     &arm64::kSmeBfloat16, sme_tile},
    {"sme_int8", "SME", "int8", "int32", "smopa", unknown, missing<kSmeI8>, &arm64::kSmeInt8,
     sme_tile},
#endif
};

constexpr StreamSet kStreamSets[] = {{"NEON", always, &arm64::kStreamNeon}};

}  // namespace

std::span<const PeakChain> peak_chains() { return kChains; }

std::span<const StreamSet> stream_sets() { return kStreamSets; }

}  // namespace nnbt
