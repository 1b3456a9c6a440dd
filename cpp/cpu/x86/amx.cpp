// AMX tiles: C (16 x 16) += A (16 rows) * B, both with 64 bytes per row. Four products of two A and
// two B tiles, as in the inner loop of a matrix product: four independent chains hide the latency
// of 52 cycles at a rate of one per 16.
#include <immintrin.h>

#include "cpu/peak_loop.h"
#include "cpu/x86/isa.h"

namespace nnbt {
namespace {

constexpr int kRows = 16;
constexpr int kRowBytes = 64;

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

struct Bfloat16 {
  using Element = std::uint16_t;
  using Sum = float;
  static std::uint16_t encode(int value) { return bfloat16_bits(value); }
};

struct Int8 {
  using Element = std::int8_t;
  using Sum = std::int32_t;
  static std::int8_t encode(int value) { return static_cast<std::int8_t>(value); }
};

template <class Isa>
constexpr int kDepth = kRowBytes / sizeof(typename Isa::Element);  // products per sum

// A's element (row, k) and B's (k, column) depend on k and on the row or column, so a missing tile
// row or column changes the sum.
constexpr int a_value(int which, int row, int k) { return 1 + (k * 7 + row + which * 3) % 4; }
constexpr int b_value(int which, int k, int column) { return 1 + (k * 5 + column + which) % 4; }

template <class Isa>
constexpr ChainWork tile_work() noexcept {
  double sum = 0;
  for (int tile = 0; tile < 4; ++tile) {
    for (int k = 0; k < kDepth<Isa>; ++k) {
      double a = 0;
      double b = 0;
      for (int i = 0; i < kRows; ++i) {
        a += a_value(tile % 2, i, k);
        b += b_value(tile / 2, k, i);
      }
      sum += a * b;
    }
  }
  return {4, std::int64_t{4} * 2 * kRows * kRows * kDepth<Isa>, sum};
}

template <class Isa>
struct Operands {
  // B's tile interleaves 4-byte groups of k: row k / g holds elements k ... k+g-1 of each column.
  static constexpr int kGroup = 4 / sizeof(typename Isa::Element);

  alignas(64) typename Isa::Element a[2][kRows][kDepth<Isa>];
  alignas(64) typename Isa::Element b[2][kRows][kDepth<Isa>];

  Operands() {
    for (int which = 0; which < 2; ++which) {
      for (int i = 0; i < kRows; ++i) {
        for (int k = 0; k < kDepth<Isa>; ++k) {
          a[which][i][k] = Isa::encode(a_value(which, i, k));
          b[which][k / kGroup][i * kGroup + k % kGroup] = Isa::encode(b_value(which, k, i));
        }
      }
    }
  }
};

// Up to GCC 12, the intrinsics declare that they read 8 bytes of the configuration and nothing of a
// tile: other stores are eliminated as dead, and ldtilecfg crashes (SIGSEGV).
void keep_in_memory(const void* data) { asm volatile("" : : "r"(data) : "memory"); }

void configure_tiles() {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = kRowBytes;
    config.rows[tile] = kRows;
  }
  keep_in_memory(&config);
  _tile_loadconfig(&config);
}

template <class Sum>
double sum_and_release_tiles() {
  alignas(64) Sum c[4][kRows][kRows];
  _tile_stored(0, c[0], kRowBytes);
  _tile_stored(1, c[1], kRowBytes);
  _tile_stored(2, c[2], kRowBytes);
  _tile_stored(3, c[3], kRowBytes);
  _tile_release();
  double sum = 0;
  for (const auto& tile : c) {
    for (const auto& row : tile) {
      for (const Sum value : row) sum += static_cast<double>(value);
    }
  }
  return sum;
}

template <class Isa>
void start_tiles() {
  const Operands<Isa> operands;
  keep_in_memory(&operands);
  configure_tiles();
  _tile_loadd(4, operands.a[0], kRowBytes);
  _tile_loadd(5, operands.a[1], kRowBytes);
  _tile_loadd(6, operands.b[0], kRowBytes);
  _tile_loadd(7, operands.b[1], kRowBytes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

double run_bfloat16(std::int64_t iterations) {
  start_tiles<Bfloat16>();
#pragma GCC unroll 1
  for (std::int64_t n = 0; n < iterations; ++n) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 5, 6);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  return sum_and_release_tiles<Bfloat16::Sum>();
}

double run_int8(std::int64_t iterations) {
  start_tiles<Int8>();
#pragma GCC unroll 1
  for (std::int64_t n = 0; n < iterations; ++n) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 5, 6);
    _tile_dpbssd(2, 4, 7);
    _tile_dpbssd(3, 5, 7);
  }
  return sum_and_release_tiles<Int8::Sum>();
}

}  // namespace

namespace x86 {

// A float32 accumulator grows by at most 32 * 16 per iteration and is exact up to 2^24.
constinit const ChainCode kAmxBfloat16{tile_work<Bfloat16>(), run_bfloat16, 32768};
constinit const ChainCode kAmxInt8{tile_work<Int8>(), run_int8, 32768};

}  // namespace x86
}  // namespace nnbt
