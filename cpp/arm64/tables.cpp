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

constexpr auto always = []() -> std::string { return {}; };

template <const Feature& feature>
std::string missing() {
  if (arm_feature(feature.name)) return {};
  return "This processor has no " + std::string(feature.name) + " (" + feature.since + ").";
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
};

constexpr StreamSet kStreamSets[] = {{"NEON", always, &arm64::kStreamNeon}};

}  // namespace

std::span<const PeakChain> peak_chains() { return kChains; }

std::span<const StreamSet> stream_sets() { return kStreamSets; }

}  // namespace nnbt
