// A pass is 128 FMAs per thread in 16 independent chains: acc[k] += p[i] * q[i], then
// acc[k] -= p[i] * r[i], for each of the four i (see fma.cu).
template <typename T, int PASSES>
void nnbt_fma_passes(const device T* p_all, const device T* q_all, const device T* r_all,
                     const device T* start, int iterations, uint thread_index, uint thread_in_grid,
                     device T* out) {
  T p[4], q[4], r[4], acc[16];
  for (int i = 0; i < 4; ++i) {
    p[i] = p_all[thread_index * 4 + i];
    q[i] = q_all[thread_index * 4 + i];
    r[i] = r_all[thread_index * 4 + i];
  }
  for (int k = 0; k < 16; ++k) acc[k] = start[thread_index * 16 + k];
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (int pass = 0; pass < PASSES; ++pass) {
      for (int i = 0; i < 4; ++i) {
        for (int k = 0; k < 16; ++k) acc[k] = metal::fma(p[i], q[i], acc[k]);
        for (int k = 0; k < 16; ++k) acc[k] = metal::fma(-p[i], r[i], acc[k]);
      }
    }
  }
  for (int k = 0; k < 16; ++k) out[thread_in_grid * 16 + k] = acc[k];
}

// A simdgroup multiplies a 16 x 16 tile of A by a 32 x 16 tile of B (transposed) and adds to a 16 x 32
// float accumulator: 16 instructions of 8 x 8 x 8 per pass.
template <typename T, int PASSES>
void nnbt_simdgroup_passes(const device T* a, const device T* b, int iterations, uint simdgroup,
                           uint simdgroup_in_grid, device float* out) {
  constexpr int kRowTiles = 2, kColumnTiles = 4, kSlices = 2, kDepth = 16;
  metal::simdgroup_matrix<T, 8, 8> fa[kRowTiles][kSlices], fb[kColumnTiles][kSlices];
  metal::simdgroup_matrix<float, 8, 8> d[kRowTiles][kColumnTiles];
  a += simdgroup * 16 * kDepth;
  b += simdgroup * 32 * kDepth;
  for (int s = 0; s < kSlices; ++s) {
    for (int i = 0; i < kRowTiles; ++i) {
      metal::simdgroup_load(fa[i][s], a + i * 8 * kDepth + s * 8, kDepth);
    }
    for (int j = 0; j < kColumnTiles; ++j) {
      metal::simdgroup_load(fb[j][s], b + j * 8 * kDepth + s * 8, kDepth, ulong2(0, 0), true);
    }
  }
  for (int i = 0; i < kRowTiles; ++i) {
    for (int j = 0; j < kColumnTiles; ++j) {
      d[i][j] = metal::make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (int pass = 0; pass < PASSES; ++pass) {
      for (int s = 0; s < kSlices; ++s) {
        for (int i = 0; i < kRowTiles; ++i) {
          for (int j = 0; j < kColumnTiles; ++j) {
            metal::simdgroup_multiply_accumulate(d[i][j], fa[i][s], fb[j][s], d[i][j]);
          }
        }
      }
    }
  }
  out += simdgroup_in_grid * 16 * 32;
  for (int i = 0; i < kRowTiles; ++i) {
    for (int j = 0; j < kColumnTiles; ++j) {
      metal::simdgroup_store(d[i][j], out + i * 8 * 32 + j * 8, 32);
    }
  }
}
