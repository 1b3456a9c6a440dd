// Tensor cores of Hopper (sm_90a) through wgmma: every warpgroup of a block multiplies its own
// 64-row tile A by the block's 256-column tile B, each 128 bytes deep (four k-slices of 32 bytes),
// and adds to a 64 x 256 accumulator in registers. `multiply_accumulate(d, a, b)` (one instruction,
// A by descriptor or in registers) comes from the caller's header.
namespace nnbt {

constexpr int kRows = 64, kColumns = 256;

struct SharedOperand {
  uint64_t base;
  __device__ __forceinline__ SharedOperand(const uint32_t* tile, const uint32_t*)
      : base(descriptor(tile)) {}
  __device__ __forceinline__ uint64_t operator()(int slice) const { return base + slice * 16; }
};

// Fragments: rows (lane / 4) and (lane / 4) + 8 of the warp's 16; 4-byte words (lane % 4) and
// (lane % 4) + 4.
struct RegisterOperand {
  uint32_t words[kSlices][4];
  __device__ __forceinline__ RegisterOperand(const uint32_t*, const uint32_t* rows) {
    const int lane = threadIdx.x % 32, first = (threadIdx.x / 32 % 4) * 16 + lane / 4;
#pragma unroll
    for (int s = 0; s < kSlices; ++s) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        words[s][r] = rows[(first + 8 * (r % 2)) * kWords + s * 8 + lane % 4 + 4 * (r / 2)];
      }
    }
  }
  __device__ __forceinline__ const uint32_t (&operator()(int slice) const)[4] {
    return words[slice];
  }
};

// An iteration is PASSES products of the whole depth, one commit and one wait: while one warpgroup
// waits, the other's instructions keep the tensor cores busy.
template <class Accumulator, class OperandA, int WARPGROUPS, int PASSES>
__device__ __forceinline__ void wgmma_passes(const uint32_t* a, const uint32_t* b,
                                             const int32_t* iterations, Accumulator* out,
                                             uint64_t* clocks) {
  __shared__ __align__(128) uint32_t tile_a[WARPGROUPS * kRows * kWords];
  __shared__ __align__(128) uint32_t tile_b[kColumns * kWords];
  // The same in all lanes; the shuffle tells the compiler, which then uses uniform registers.
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
  load_tile(tile_a, a, WARPGROUPS * kRows, threadIdx.x, blockDim.x);
  load_tile(tile_b, b, kColumns, threadIdx.x, blockDim.x);
  stamp<kStart>(clocks);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const OperandA operand_a(tile_a + warpgroup * kRows * kWords, a + warpgroup * kRows * kWords);
  const uint64_t operand_b = descriptor(tile_b);
  Accumulator d[kColumns / 2] = {};
  const int n = *iterations;
#pragma unroll 1
  for (int iteration = 0; iteration < n; ++iteration) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int j = 0; j < PASSES * kSlices; ++j) {
      multiply_accumulate(d, operand_a(j % kSlices), operand_b + (j % kSlices) * 16);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  keep_in_registers(d);
  stamp<kEnd>(clocks);
  const int lane = threadIdx.x % 32, row = (threadIdx.x / 32 % 4) * 16 + lane / 4;
  out += (static_cast<size_t>(blockIdx.x) * WARPGROUPS + warpgroup) * kRows * kColumns;
#pragma unroll
  for (int r = 0; r < kColumns / 2; ++r) {
    out[(row + 8 * (r / 2 % 2)) * kColumns + r / 4 * 8 + lane % 4 * 2 + r % 2] = d[r];
  }
}

}  // namespace nnbt
