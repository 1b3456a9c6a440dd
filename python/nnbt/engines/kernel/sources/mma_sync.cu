// Tensor cores through mma.sync (compute capability 8.0 and later). All operands stay in registers:
// a warp multiplies a 32-row tile by a 32-column tile, each 128 bytes deep, and adds to a 32 x 32
// accumulator. `multiply_accumulate(d, a, b)` (one instruction) comes from the caller's header.
namespace nnbt {

// A k-slice of an operand is 32 bytes deep in every dtype, so fragments are the same 4-byte words
// of it: word (lane % 4) and, 16 bytes later, word (lane % 4) + 4.
template <class Accumulator, int PASSES>
__device__ __forceinline__ void mma_sync_passes(const uint32_t* a, const uint32_t* b,
                                                const int32_t* iterations, Accumulator* out,
                                                uint64_t* clocks) {
  constexpr int kRowTiles = 2, kColumnTiles = 4, kSlices = 4, kWords = 32;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = lane / 4, word = lane % 4;
  a += warp * 32 * kWords;
  b += warp * 32 * kWords;
  uint32_t fa[kRowTiles][kSlices][4], fb[kColumnTiles][kSlices][2];
#pragma unroll
  for (int s = 0; s < kSlices; ++s) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        fa[i][s][r] = a[(i * 16 + group + 8 * (r % 2)) * kWords + s * 8 + word + 4 * (r / 2)];
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j) {
        fb[j][s][r] = b[(j * 8 + group) * kWords + s * 8 + word + 4 * r];
      }
    }
  }
  Accumulator d[kRowTiles][kColumnTiles][4] = {};
  const int n = *iterations;
  stamp<kStart>(clocks);
#pragma unroll 1
  for (int iteration = 0; iteration < n; ++iteration) {
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass) {
#pragma unroll
      for (int s = 0; s < kSlices; ++s) {
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
          for (int j = 0; j < kColumnTiles; ++j) multiply_accumulate(d[i][j], fa[i][s], fb[j][s]);
        }
      }
    }
  }
  stamp<kEnd>(clocks);
  out += (static_cast<size_t>(blockIdx.x) * (blockDim.x / 32) + warp) * 32 * 32;
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int j = 0; j < kColumnTiles; ++j) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        out[(i * 16 + group + 8 * (r / 2)) * 32 + j * 8 + word * 2 + r % 2] = d[i][j][r];
      }
    }
  }
}

}  // namespace nnbt
