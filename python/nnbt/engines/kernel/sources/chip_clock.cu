// The clock that the chip counts under the load of the kernel. NVML's differs: it reported 1,965
// MHz while the multiprocessors of an H200 counted 1,785 million cycles per second.
namespace nnbt {

enum Stamp { kStart = 0, kEnd = 1 };

// The block's first thread writes cycles and nanoseconds to the block's four words immediately, so
// that no register stays live across the loop. The end is that of the slowest warp.
template <Stamp AT>
__device__ __forceinline__ void stamp(uint64_t* clocks) {
  if constexpr (AT == kEnd) __syncthreads();
  if (threadIdx.x != 0) return;
  uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  uint64_t* words = clocks + 4 * blockIdx.x + 2 * AT;
  words[0] = clock64();
  words[1] = ns;
}

}  // namespace nnbt
