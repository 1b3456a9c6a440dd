// Fused multiply-adds on the ordinary float32 lanes.
namespace nnbt {

// A pass is 128 FMAs per thread in 16 independent chains with different start values:
// acc[k] += p[i] * q[i] for all k, then acc[k] -= p[i] * r[i], for each of the four i. With r close
// to q the sums stay small enough to be exact for any number of passes, although the operands have
// random bits. The factors stay the same for 16 instructions: a register bank delivers one operand
// per cycle, and factors that change with each FMA gave 76 to 86 % of the rate (H200).
template <int PASSES>
__device__ __forceinline__ void fma_passes(const float* p_all, const float* q_all,
                                           const float* r_all, const float* start,
                                           const int32_t* iterations, float* out,
                                           uint64_t* clocks) {
  float p[4], q[4], r[4], acc[16];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    p[i] = p_all[threadIdx.x * 4 + i];
    q[i] = q_all[threadIdx.x * 4 + i];
    r[i] = r_all[threadIdx.x * 4 + i];
  }
#pragma unroll
  for (int k = 0; k < 16; ++k) acc[k] = start[threadIdx.x * 16 + k];
  const int n = *iterations;
  stamp<kStart>(clocks);
#pragma unroll 1
  for (int iteration = 0; iteration < n; ++iteration) {
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int k = 0; k < 16; ++k) acc[k] = fmaf(p[i], q[i], acc[k]);
#pragma unroll
        for (int k = 0; k < 16; ++k) acc[k] = fmaf(-p[i], r[i], acc[k]);
      }
    }
  }
  stamp<kEnd>(clocks);
  float* mine = out + (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 16;
#pragma unroll
  for (int k = 0; k < 16; ++k) mine[k] = acc[k];
}

}  // namespace nnbt
