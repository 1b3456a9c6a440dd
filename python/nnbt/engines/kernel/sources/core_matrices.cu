// Operand tiles in shared memory, as wgmma and tcgen05 read them by descriptor: K-major rows of 128
// bytes (four k-slices of 32 bytes), no swizzle.
namespace nnbt {

constexpr int kWords = 32, kSlices = 4;

// Without swizzle, a K-major operand lies as core matrices of 8 rows x 16 bytes, 128 bytes each.
// Here the eight core matrices of 8 rows follow one another along K.
__device__ __forceinline__ int core_matrix_word(int row, int word) {
  return (row / 8) * 8 * kWords + (word / 4) * 32 + (row % 8) * 4 + word % 4;
}

// Matrix descriptor: address, stride along K (128 bytes) and from 8 rows to the next (1024 bytes),
// each in units of 16 bytes; layout type 0 (no swizzle). The next k-slice is 16 units later.
__device__ __forceinline__ uint64_t descriptor(const uint32_t* tile) {
  const uint64_t address = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  return ((address & 0x3ffff) >> 4) | (uint64_t{128 >> 4} << 16) | (uint64_t{1024 >> 4} << 32);
}

__device__ __forceinline__ void load_tile(uint32_t* tile, const uint32_t* rows, int count, int rank,
                                          int threads) {
  for (int i = rank; i < count * kWords; i += threads) {
    tile[core_matrix_word(i / kWords, i % kWords)] = rows[i];
  }
}

}  // namespace nnbt
