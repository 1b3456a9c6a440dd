// What a file compiled for one instruction set hands to the tables of peak.h and stream.h: plain
// functions. No library header here, for the reason peak_loop.h gives.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nnbt {

// What a chain does in one iteration of its loop; with registers of no fixed length, at 128 bits.
struct ChainWork {
  std::int64_t instructions;  // of the counted kind, in the loop body
  std::int64_t operations;    // additions and multiplications, all lanes
  double sum;                 // growth of the sum over all accumulators, lanes included
};

struct ChainCode {
  // Data, not a function: to describe a chain must not run code of its instruction set. (GCC 15
  // made AVX-512 of these sums, and a list of the chains ended other processors by SIGILL.)
  ChainWork work;
  // Runs 1 <= iterations <= max_iterations and returns the sum over all accumulators.
  double (*run)(std::int64_t iterations);
  std::int64_t max_iterations;  // beyond it the accumulators would round or overflow
};

// One pass over n doubles, n a multiple of 8, all arrays aligned to 64 bytes; s is the scalar of
// the kernel. Returns the sum that `read` computes, 0 for the others.
using StreamPass = double (*)(double* out, const double* x, const double* y, std::size_t n,
                              double s);

// In the order of the stream_kernels() table.
inline constexpr std::size_t kStreamKernels = 6;

struct StreamCode {
  StreamPass ordinary[kStreamKernels];
  StreamPass nontemporal[kStreamKernels];  // null where a kernel stores nothing
};

}  // namespace nnbt
