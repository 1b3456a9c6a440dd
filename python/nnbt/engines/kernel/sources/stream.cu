// Memory streams with 16-byte accesses. A block owns chunks of UNROLL * blockDim.x vectors: all
// loads of a chunk are issued before its first store, so a thread keeps UNROLL (two inputs: 2 *
// UNROLL) 16-byte loads in flight.
namespace nnbt {

enum Cache { kDefault = 0, kStreaming = 1, kNoAllocate = 2, kStreamingStores = 3 };

// Not ld.global.nc: without possible aliasing ptxas moves half of the loads behind the first
// stores, so that half as many are in flight.
template <int CACHE>
__device__ __forceinline__ uint4 load(const uint4* p) {
  if constexpr (CACHE == kStreaming) return __ldcs(p);
  if constexpr (CACHE == kNoAllocate) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
  }
  return *p;
}

template <int CACHE>
__device__ __forceinline__ void store(uint4* p, uint4 v) {
  if constexpr (CACHE == kDefault) {
    *p = v;
  } else {
    __stcs(p, v);
  }
}

__device__ __forceinline__ uint4 multiply_add(uint4 a, uint4 b, float scalar) {
  return {__float_as_uint(fmaf(scalar, __uint_as_float(b.x), __uint_as_float(a.x))),
          __float_as_uint(fmaf(scalar, __uint_as_float(b.y), __uint_as_float(a.y))),
          __float_as_uint(fmaf(scalar, __uint_as_float(b.z), __uint_as_float(a.z))),
          __float_as_uint(fmaf(scalar, __uint_as_float(b.w), __uint_as_float(a.w)))};
}

// CHUNKS is 0 when every block has exactly one chunk.
template <int UNROLL, int CHUNKS, class Body>
__device__ __forceinline__ void for_each_chunk(Body body) {
  const int chunks = CHUNKS > 0 ? CHUNKS : gridDim.x;
  for (int chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    body(static_cast<size_t>(chunk) * UNROLL * blockDim.x + threadIdx.x);
  }
}

template <int UNROLL, int CHUNKS, int CACHE>
__device__ __forceinline__ void copy(const void* a, void* out) {
  const auto* source = static_cast<const uint4*>(a);
  auto* target = static_cast<uint4*>(out);
  for_each_chunk<UNROLL, CHUNKS>([=](size_t first) {
    uint4 v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) v[u] = load<CACHE>(source + first + u * blockDim.x);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) store<CACHE>(target + first + u * blockDim.x, v[u]);
  });
}

// out = a + scalar * b; the scalars are powers of two, so that a fused and a separate
// multiplication round alike and the output can be compared bit by bit.
template <int UNROLL, int CHUNKS, int CACHE>
__device__ __forceinline__ void triad(const void* a, const void* b, void* out, float scalar) {
  const auto* left = static_cast<const uint4*>(a);
  const auto* right = static_cast<const uint4*>(b);
  auto* target = static_cast<uint4*>(out);
  for_each_chunk<UNROLL, CHUNKS>([=](size_t first) {
    uint4 v[UNROLL], w[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      v[u] = load<CACHE>(left + first + u * blockDim.x);
      w[u] = load<CACHE>(right + first + u * blockDim.x);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      store<CACHE>(target + first + u * blockDim.x, multiply_add(v[u], w[u], scalar));
    }
  });
}

// Word i becomes i * 2654435761 + seed (mod 2^32): random-looking bits that need no input.
template <int UNROLL, int CHUNKS, int CACHE>
__device__ __forceinline__ void write(const uint32_t* seed, void* out) {
  auto* target = static_cast<uint4*>(out);
  const uint32_t add = *seed;
  for_each_chunk<UNROLL, CHUNKS>([=](size_t first) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const size_t at = first + u * blockDim.x;
      const uint32_t x = static_cast<uint32_t>(at) * 4u * 2654435761u + add;
      store<CACHE>(target + at, {x, x + 2654435761u, x + 2u * 2654435761u, x + 3u * 2654435761u});
    }
  });
}

// Sum of x over the block (mod 2^32), written by thread 0.
__device__ __forceinline__ void write_block_sum(uint32_t x, uint32_t* out) {
  __shared__ uint32_t sums[32];
  x = __reduce_add_sync(0xffffffffu, x);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t total = 0;
    for (int warp = 0; warp < blockDim.x / 32; ++warp) total += sums[warp];
    *out = total;
  }
}

// out[block] = sum of the words that the block read (mod 2^32).
template <int UNROLL, int CHUNKS, int CACHE>
__device__ __forceinline__ void read(const void* a, uint32_t* out) {
  const auto* source = static_cast<const uint4*>(a);
  uint32_t sum = 0;
  for_each_chunk<UNROLL, CHUNKS>([&sum, source](size_t first) {
    uint4 v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) v[u] = load<CACHE>(source + first + u * blockDim.x);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) sum += v[u].x + v[u].y + v[u].z + v[u].w;
  });
  write_block_sum(sum, out + blockIdx.x);
}

}  // namespace nnbt
