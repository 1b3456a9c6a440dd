// Matrix units of compute capability 10.x and 11.0 through tcgen05, compiled but not run on such a
// chip yet. One thread of a block multiplies the 128-row tile A by the 256-column tile B, each 128
// bytes deep, and adds to 128 x 256 sums in tensor memory, one lane per row.
// `multiply_accumulate(sums, a, b, instruction, add)`, one instruction, comes from the caller's
// header.
namespace nnbt {

constexpr int kRows = 128, kColumns = 256;
// Polls per launch, at most about 1 us each; a normal launch takes 9 ms. A barrier at which the
// unit never arrives thus ends the kernel within 2 s.
constexpr uint32_t kPolls = 1 << 20;
// NaN or -1: what a block writes if its products did not finish.
constexpr uint32_t kUnfinished = 0xffffffff;

// Instruction descriptor: bits 4-5 type of the sums, 7-9 and 10-12 of A and B, 17-22 columns / 8,
// 24-28 rows / 16. What stays 0 is dense, K-major, without negation or saturation.
__device__ constexpr uint32_t instruction_descriptor(uint32_t sums, uint32_t elements) {
  return sums << 4 | elements << 7 | elements << 10 | uint32_t{kColumns / 8} << 17 |
         uint32_t{kRows / 16} << 24;
}

// wgmma's descriptor, but bits 46-48 are a version that must be 1.
__device__ __forceinline__ uint64_t tcgen05_descriptor(const uint32_t* tile) {
  return descriptor(tile) | uint64_t{1} << 46;
}

__device__ __forceinline__ bool wait_for(uint64_t* barrier, uint32_t parity, uint32_t& polls) {
  while (!arrived(barrier, parity)) {
    if (polls == 0) return false;
    --polls;
    nap();
  }
  return true;
}

// An iteration is PASSES products of the whole depth and one commit. The thread waits for the
// iteration before, so that the unit never runs out of instructions. False: they never finished.
template <uint32_t INSTRUCTION, int PASSES>
__device__ __forceinline__ bool multiply(uint32_t sums, uint64_t a, uint64_t b, uint32_t n,
                                         uint64_t* done) {
  uint32_t polls = kPolls;
#pragma unroll 1
  for (uint32_t i = 0; i < n; ++i) {
#pragma unroll
    for (int j = 0; j < PASSES * kSlices; ++j) {
      const uint64_t slice = j % kSlices * 16;
      multiply_accumulate(sums, a + slice, b + slice, INSTRUCTION, i > 0 || j > 0);
    }
    commit(&done[i % 2]);
    if (i > 0 && !wait_for(&done[(i - 1) % 2], (i - 1) / 2 % 2, polls)) return false;
  }
  return wait_for(&done[(n - 1) % 2], (n - 1) / 2 % 2, polls);
}

template <uint32_t SUMS, uint32_t ELEMENTS, int PASSES>
__device__ __forceinline__ void tcgen05_passes(const uint32_t* a, const uint32_t* b,
                                               const int32_t* iterations, void* out,
                                               uint64_t* clocks) {
  extern __shared__ __align__(128) uint32_t tiles[];
  __shared__ uint64_t done[2];
  __shared__ uint32_t address;
  __shared__ bool finished;
  uint32_t *const tile_a = tiles, *const tile_b = tiles + kRows * kWords;
  const uint32_t warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  if (warp == 0) allocate_columns<kColumns>(&address);
  if (threadIdx.x == 0) {
    finished = false;
    init_barrier(&done[0]);
    init_barrier(&done[1]);
  }
  load_tile(tile_a, a, kRows, threadIdx.x, blockDim.x);
  load_tile(tile_b, b, kColumns, threadIdx.x, blockDim.x);
  stamp<kStart>(clocks);
  fence_shared_memory();
  fence_before_sync();
  __syncthreads();
  fence_after_sync();
  const uint32_t sums = address;
  if (warp == 0 && elected()) {
    finished = multiply<instruction_descriptor(SUMS, ELEMENTS), PASSES>(
        sums, tcgen05_descriptor(tile_a), tcgen05_descriptor(tile_b),
        static_cast<uint32_t>(*iterations), done);
  }
  __syncwarp();
  stamp<kEnd>(clocks);
  __syncwarp();  // the loads need whole warps
  fence_after_sync();
  const bool valid = finished;
  auto* row =
      static_cast<uint4*>(out) + (blockIdx.x * size_t{kRows} + threadIdx.x) * (kColumns / 4);
#pragma unroll 1
  for (int column = 0; column < kColumns; column += 32) {
    uint32_t w[32];
#pragma unroll
    for (uint32_t& word : w) word = kUnfinished;
    if (valid) load_columns(w, sums + (warp * 32 << 16) + column);
#pragma unroll
    for (int i = 0; i < 32; i += 4) *row++ = uint4{w[i], w[i + 1], w[i + 2], w[i + 3]};
  }
  fence_before_sync();
  __syncthreads();
  if (warp == 0) {
    fence_after_sync();
    free_columns<kColumns>(sums);
  }
}

}  // namespace nnbt
