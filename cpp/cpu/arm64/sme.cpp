// SME: outer products of two registers into the tiles of ZA, whose rows and columns have the
// streaming vector length, 128 to 2048 bits. An Isa describes 128 bits, which repeat along a
// register, so work and sums grow with the square of the length.
//
// Compiled for plain arm64: the asm block of each chain enables SME in the assembler.
#include <arm_neon.h>

#include "cpu/arm64/isa.h"
#include "cpu/peak_loop.h"

namespace nnbt {
namespace {

constexpr std::size_t kLargestVectorBytes = 256;
constexpr int kBlock = 8;    // instructions, a multiple of kTiles
constexpr int kRepeats = 4;  // of the block per iteration, to make the loop counter cheap

// Each element of a tile adds one sum of kDepth products of consecutive elements of a and b.
template <class ElementType, class SumType>
struct OuterProduct : SmallIntegers {
  using Element = ElementType;
  using Sum = SumType;
  static constexpr int kElements = 16 / static_cast<int>(sizeof(Element));
  static constexpr int kTiles = static_cast<int>(sizeof(Sum));
  static constexpr int kRows = 16 / static_cast<int>(sizeof(Sum));
  static constexpr int kDepth = kElements / kRows;
  static constexpr int kOperations = 2 * kRows * kRows * kDepth;
  static_assert(kBlock % kTiles == 0);

  static constexpr double sum_of_products(int a_register, int b_register) {
    double sum = 0;
    for (int k = 0; k < kDepth; ++k) {
      double column = 0;
      double row = 0;
      for (int i = 0; i < kRows; ++i) {
        column += a(a_register, i * kDepth + k);
        row += b(b_register, i * kDepth + k);
      }
      sum += column * row;
    }
    return sum;
  }
};

// An asm block cannot take an instruction's name from a template, and assemblers disagree on the
// names of the extensions (sme-f64, sme-f64f64), so these are opcodes from the Arm architecture
// manual (DDI 0487, A64 SME instructions), with all registers and tiles 0.
struct Float32 : OuterProduct<float, float> {
  static constexpr std::int64_t kOpcode = 0x80800000;  // FMOPA za.s, z.s
  static float encode(int value) { return static_cast<float>(value); }
};

struct Float64 : OuterProduct<double, double> {
  static constexpr std::int64_t kOpcode = 0x80C00000;  // FMOPA za.d, z.d
  static double encode(int value) { return value; }
};

struct Float16 : OuterProduct<float16_t, float> {
  static constexpr std::int64_t kOpcode = 0x81A00000;  // FMOPA za.s, z.h
  static float16_t encode(int value) { return static_cast<float16_t>(value); }
};

struct Bfloat16 : OuterProduct<std::uint16_t, float> {
  static constexpr std::int64_t kOpcode = 0x81800000;  // BFMOPA za.s, z.h
  static std::uint16_t encode(int value) { return bfloat16_bits(value); }
};

struct Int8 : OuterProduct<std::int8_t, std::int32_t> {
  static constexpr std::int64_t kOpcode = 0xA0800000;  // SMOPA za.s, z.b
  static std::int8_t encode(int value) { return static_cast<std::int8_t>(value); }
};

template <class Isa>
constexpr ChainWork outer_work() noexcept {
  double sum = 0;
  for (int i = 0; i < kBlock; ++i) sum += Isa::sum_of_products(a_of(i), b_of(i));
  constexpr std::int64_t kInstructions = std::int64_t{kBlock} * kRepeats;
  return {kInstructions, kInstructions * Isa::kOperations, sum * kRepeats};
}

// The i-th instruction of the block: a in z0 and z1, b in z2 and z3, all lanes active by p0.
template <class Isa, int i>
constexpr std::int64_t kOuterProduct =
    Isa::kOpcode | (2 + b_of(i)) << 16 | a_of(i) << 5 | i % Isa::kTiles;

template <class Isa>
struct Operands {
  alignas(16) typename Isa::Element a[2][Isa::kElements];
  alignas(16) typename Isa::Element b[2][Isa::kElements];

  Operands() {
    for (int which = 0; which < 2; ++which) {
      for (int j = 0; j < Isa::kElements; ++j) {
        a[which][j] = Isa::encode(Isa::a(which, j));
        b[which][j] = Isa::encode(Isa::b(which, j));
      }
    }
  }
};

// Streaming mode changes the vector registers under the surrounding code, and may trap what a
// compiler makes of ordinary floating-point code, so this one block is all there is between smstart
// and smstop. ZA is off before (no caller has lazily saved state in it) and after.
template <class Isa>
double run_outer_products(std::int64_t iterations) {
  using Sum = typename Isa::Sum;
  const Operands<Isa> operands;
  alignas(64) Sum za[kLargestVectorBytes * kLargestVectorBytes / sizeof(Sum)];
  Sum* row = za;
  std::int64_t vector_bytes = 0;
  asm volatile(
      ".arch_extension sme\n\t"
      "smstart\n\t"
      "ptrue p0.b\n\t"
      "ld1rqb {z0.b}, p0/z, [%[a]]\n\t"
      "ld1rqb {z1.b}, p0/z, [%[a], #16]\n\t"
      "ld1rqb {z2.b}, p0/z, [%[b]]\n\t"
      "ld1rqb {z3.b}, p0/z, [%[b], #16]\n\t"
      "zero {za}\n"
      "1:\n\t"
      ".rept %c[repeats]\n\t"
      ".inst %c[i0], %c[i1], %c[i2], %c[i3], %c[i4], %c[i5], %c[i6], %c[i7]\n\t"
      ".endr\n\t"
      "subs %[iterations], %[iterations], #1\n\t"
      "b.ne 1b\n\t"
      "cntb %[bytes]\n\t"
      "mov x12, #0\n"
      "2:\n\t"
      "str za[w12, 0], [%[row]]\n\t"
      "add %[row], %[row], %[bytes]\n\t"
      "add x12, x12, #1\n\t"
      "cmp x12, %[bytes]\n\t"
      "b.ne 2b\n\t"
      "smstop"
      : [iterations] "+r"(iterations), [row] "+r"(row), [bytes] "=&r"(vector_bytes)
      : [a] "r"(operands.a), [b] "r"(operands.b), [repeats] "i"(kRepeats),
        [i0] "i"(kOuterProduct<Isa, 0>), [i1] "i"(kOuterProduct<Isa, 1>),
        [i2] "i"(kOuterProduct<Isa, 2>), [i3] "i"(kOuterProduct<Isa, 3>),
        [i4] "i"(kOuterProduct<Isa, 4>), [i5] "i"(kOuterProduct<Isa, 5>),
        [i6] "i"(kOuterProduct<Isa, 6>), [i7] "i"(kOuterProduct<Isa, 7>)
      : "cc", "memory", "x12", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10",
        "p11", "p12", "p13", "p14", "p15", "z0", "z1", "z2", "z3", "z4", "z5", "z6", "z7", "z8",
        "z9", "z10", "z11", "z12", "z13", "z14", "z15", "z16", "z17", "z18", "z19", "z20", "z21",
        "z22", "z23", "z24", "z25", "z26", "z27", "z28", "z29", "z30", "z31");
  double sum = 0;
  for (const Sum* element = za; element != row; ++element) sum += static_cast<double>(*element);
  return sum;
}

}  // namespace

namespace arm64 {

// A float32 in a tile grows by at most 8 * 2 * 16 per iteration and is exact up to 2^24.
constinit const ChainCode kSmeFloat32{outer_work<Float32>(), run_outer_products<Float32>, 32768};
constinit const ChainCode kSmeFloat64{outer_work<Float64>(), run_outer_products<Float64>, 32768};
constinit const ChainCode kSmeFloat16{outer_work<Float16>(), run_outer_products<Float16>, 32768};
constinit const ChainCode kSmeBfloat16{outer_work<Bfloat16>(), run_outer_products<Bfloat16>, 32768};
constinit const ChainCode kSmeInt8{outer_work<Int8>(), run_outer_products<Int8>, 32768};

}  // namespace arm64
}  // namespace nnbt
