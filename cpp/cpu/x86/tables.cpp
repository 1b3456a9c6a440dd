#include <cpuid.h>

#include <string>

#include "cpu/cpu.h"
#include "cpu/peak.h"
#include "cpu/stream.h"
#include "cpu/x86/isa.h"

namespace nnbt {
namespace {

struct Registers {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

// Register state that the operating system saves when it switches processes (XCR0).
unsigned saved_state() {
  constexpr unsigned kOsxsave = 1U << 27U;
  if ((cpuid(1, 0).ecx & kOsxsave) == 0) return 0;
  unsigned low = 0;
  unsigned high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

constexpr unsigned kYmm = 0x6;
constexpr unsigned kZmm = 0xE6;
constexpr unsigned kTiles = 0x60000;

struct Feature {
  const char* name;
  unsigned leaf;
  unsigned subleaf;
  unsigned Registers::* reg;
  unsigned bit;
  unsigned state;     // that the system must save for the feature to work
  const char* since;  // where it first appeared
};

// Source: Intel SDM volume 2A, CPUID, and volume 1, chapter 13 (XCR0).
constexpr Feature kFma{"FMA", 1, 0, &Registers::ecx, 12, kYmm, "Haswell, Zen"};
constexpr Feature kAvx2{"AVX2", 7, 0, &Registers::ebx, 5, kYmm, "Haswell, Zen"};
constexpr Feature kAvxVnni{"AVX-VNNI", 7, 1, &Registers::eax, 4, kYmm, "Alder Lake, Zen 5"};
constexpr Feature kAvx512{"AVX-512F", 7, 0, &Registers::ebx, 16, kZmm, "Skylake-SP, Zen 4"};
constexpr Feature kFp16{"AVX-512 FP16", 7, 0, &Registers::edx, 23, kZmm, "Sapphire Rapids"};
constexpr Feature kBf16{"AVX-512 BF16", 7, 1, &Registers::eax, 5, kZmm, "Cooper Lake, Zen 4"};
constexpr Feature kVnni{"AVX-512 VNNI", 7, 0, &Registers::ecx, 11, kZmm, "Cascade Lake, Zen 4"};
constexpr Feature kAmxBf16{"AMX-BF16", 7, 0, &Registers::edx, 22, kTiles, "Sapphire Rapids"};
constexpr Feature kAmxInt8{"AMX-INT8", 7, 0, &Registers::edx, 25, kTiles, "Sapphire Rapids"};

std::string missing(const Feature& feature) {
  const bool present = (cpuid(feature.leaf, feature.subleaf).*feature.reg >> feature.bit & 1U) != 0;
  const std::string name = feature.name;
  if (!present) {
    return "This CPU has no " + name + " (introduced with " + feature.since + ").";
  }
  if ((saved_state() & feature.state) != feature.state) {
    return "The CPU has " + name +
           ", but the operating system or hypervisor has not enabled its registers.";
  }
  return {};
}

constexpr auto always = []() -> std::string { return {}; };

std::string missing_avx2() {
  const std::string avx2 = missing(kAvx2);
  return avx2.empty() ? missing(kFma) : avx2;
}

template <const Feature& feature>
std::string missing_one() {
  return missing(feature);
}

template <const Feature& feature>
std::string missing_tiles() {
  if (std::string reason = missing(feature); !reason.empty()) return reason;
  if (permit_amx_tiles()) return {};
  return "The operating system does not allow AMX tiles for this process (ARCH_REQ_XCOMP_PERM, "
         "Linux 5.16).";
}

// AMD family 19h (Zen 3 without AVX-512, Zen 4 with it) executes 512-bit instructions in two
// halves.
bool halves_512_bits() {
  const unsigned signature = cpuid(1, 0).eax;
  const unsigned family = ((signature >> 8U) & 0xFU) + ((signature >> 20U) & 0xFFU);
  constexpr unsigned kAuthenticAmd = 0x68747541;  // "Auth" in ebx
  return cpuid(0, 0).ebx == kAuthenticAmd && family == 0x19;
}

// Two FMA ports: all AVX2 CPUs since Haswell and Zen 2; for 512 bits, server CPUs with the second
// unit (all Xeons since Ice Lake-SP).
double one() { return 1; }
double two() { return 2; }
double two_512() { return halves_512_bits() ? 1 : 2; }
double one_in_16() { return 1.0 / 16; }  // Intel Optimization Reference Manual, chapter 20 (AMX)
double unknown() { return 0; }

constexpr PeakChain kChains[] = {
    {kClockChain, "x86-64", "int64", "int64", "add", one, always, &x86::kDependentAdd},
    {"sse2_float32", "SSE2", "float32", "float32", "mulps+addps", unknown, always,
     &x86::kSse2Float32},
    {"sse2_float64", "SSE2", "float64", "float64", "mulpd+addpd", unknown, always,
     &x86::kSse2Float64},
    {"avx2_float32", "AVX2+FMA", "float32", "float32", "vfmadd*ps", two, missing_avx2,
     &x86::kAvx2Float32},
    {"avx2_float64", "AVX2+FMA", "float64", "float64", "vfmadd*pd", two, missing_avx2,
     &x86::kAvx2Float64},
    {"avx_vnni_int8", "AVX-VNNI", "int8", "int32", "vpdpbusd", two, missing_one<kAvxVnni>,
     &x86::kAvxVnniInt8},
    {"avx512_float32", "AVX-512F", "float32", "float32", "vfmadd*ps", two_512, missing_one<kAvx512>,
     &x86::kAvx512Float32},
    {"avx512_float64", "AVX-512F", "float64", "float64", "vfmadd*pd", two_512, missing_one<kAvx512>,
     &x86::kAvx512Float64},
#ifndef NNBT_WITHOUT_AVX512_FP16
    {"avx512_float16", "AVX-512 FP16", "float16", "float16", "vfmadd*ph", two_512,
     missing_one<kFp16>, &x86::kAvx512Float16},
#endif
    {"avx512_bfloat16", "AVX-512 BF16", "bfloat16", "float32", "vdpbf16ps", unknown,
     missing_one<kBf16>, &x86::kAvx512Bfloat16},
    {"avx512_vnni_int8", "AVX-512 VNNI", "int8", "int32", "vpdpbusd", two_512, missing_one<kVnni>,
     &x86::kAvx512VnniInt8},
    {"amx_bfloat16", "AMX-BF16", "bfloat16", "float32", "tdpbf16ps", one_in_16,
     missing_tiles<kAmxBf16>, &x86::kAmxBfloat16},
    {"amx_int8", "AMX-INT8", "int8", "int32", "tdpbssd", one_in_16, missing_tiles<kAmxInt8>,
     &x86::kAmxInt8},
};

constexpr StreamSet kStreamSets[] = {
    {"SSE2", always, &x86::kStreamSse2},
    {"AVX2", missing_avx2, &x86::kStreamAvx2},
    {"AVX-512F", missing_one<kAvx512>, &x86::kStreamAvx512},
};

}  // namespace

std::span<const PeakChain> peak_chains() { return kChains; }

std::span<const StreamSet> stream_sets() { return kStreamSets; }

}  // namespace nnbt
