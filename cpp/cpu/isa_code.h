// What the files compiled for one instruction set provide to the tables of peak.h and stream.h:
// plain functions. No library headers here; peak_loop.h says why.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nnbt {

// Work of one iteration of a chain's loop. For registers of variable length: with 128 bits.
struct ChainWork {
  std::int64_t instructions;  // counted ones in the loop body
  std::int64_t operations;    // additions and multiplications, all lanes
  double sum;                 // increase of the sum over all lanes of all accumulators
};

struct ChainCode {
  // Data, not a function: describing a chain must not run code of its instruction set. (GCC 15
  // compiled these sums to AVX-512, and listing the chains crashed other CPUs with SIGILL.)
  ChainWork work;
  // Runs 1 <= iterations <= max_iterations and returns the sum over all accumulators.
  double (*run)(std::int64_t iterations);
  std::int64_t max_iterations;  // beyond, accumulators would round or overflow
};

// One pass over n doubles (a multiple of 8); all arrays are aligned to 64 bytes; s is the scalar of
// the kernel. Returns the sum for `read`, 0 for the others.
using StreamPass = double (*)(double* out, const double* x, const double* y, std::size_t n,
                              double s);

// In the order of the stream_kernels() table.
inline constexpr std::size_t kStreamKernels = 6;

struct StreamCode {
  StreamPass ordinary[kStreamKernels];
  StreamPass nontemporal[kStreamKernels];  // null if the kernel stores nothing
};

}  // namespace nnbt
