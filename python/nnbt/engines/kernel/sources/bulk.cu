// Memory streams through the bulk copy engine of compute capability 9.0 and later: one thread keeps
// STAGES pieces of PIECE_BYTES in flight between global and shared memory, without registers.
namespace nnbt {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void barrier_init(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void barrier_wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ void bulk_load(void* shared, const void* global, uint32_t bytes,
                                          uint64_t* barrier) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

__device__ __forceinline__ void bulk_store(void* global, const void* shared, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
               "r"(shared_address(shared)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Returns once at most PENDING stores still read shared memory.
template <int PENDING>
__device__ __forceinline__ void bulk_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// Block b moves the pieces b, b + gridDim.x, ... of PIECES.
template <int PIECES, int PIECE_BYTES, int STAGES>
__device__ __forceinline__ void bulk_copy(const void* a, void* out) {
  extern __shared__ __align__(128) unsigned char ring[];
  __shared__ uint64_t full[STAGES];
  if (threadIdx.x != 0) return;
  const auto* source = static_cast<const unsigned char*>(a);
  auto* target = static_cast<unsigned char*>(out);
  const int count = (PIECES - static_cast<int>(blockIdx.x) + gridDim.x - 1) / gridDim.x;
  const auto offset = [](int i) {
    return (static_cast<size_t>(i) * gridDim.x + blockIdx.x) * PIECE_BYTES;
  };
  for (int stage = 0; stage < STAGES; ++stage) barrier_init(&full[stage]);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  for (int i = 0; i < min(STAGES, count); ++i) {
    bulk_load(ring + i * PIECE_BYTES, source + offset(i), PIECE_BYTES, &full[i]);
  }
  for (int i = 0; i < count; ++i) {
    const int stage = i % STAGES;
    barrier_wait(&full[stage], (i / STAGES) & 1);
    bulk_store(target + offset(i), ring + stage * PIECE_BYTES, PIECE_BYTES);
    const int next = i - 1 + STAGES;  // goes where piece i - 1 was
    if (i > 0 && next < count) {
      bulk_store_wait_read<1>();
      const int free_stage = next % STAGES;
      bulk_load(ring + free_stage * PIECE_BYTES, source + offset(next), PIECE_BYTES,
                &full[free_stage]);
    }
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// out[block] = sum of the words that the block read (mod 2^32).
template <int PIECES, int PIECE_BYTES, int STAGES>
__device__ __forceinline__ void bulk_read(const void* a, uint32_t* out) {
  extern __shared__ __align__(128) unsigned char ring[];
  __shared__ uint64_t full[STAGES];
  const auto* source = static_cast<const unsigned char*>(a);
  const int count = (PIECES - static_cast<int>(blockIdx.x) + gridDim.x - 1) / gridDim.x;
  const auto fetch = [=](int i) {
    bulk_load(ring + (i % STAGES) * PIECE_BYTES,
              source + (static_cast<size_t>(i) * gridDim.x + blockIdx.x) * PIECE_BYTES, PIECE_BYTES,
              &full[i % STAGES]);
  };
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) barrier_init(&full[stage]);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    for (int i = 0; i < min(STAGES, count); ++i) fetch(i);
  }
  __syncthreads();
  uint32_t sum = 0;
  for (int i = 0; i < count; ++i) {
    const int stage = i % STAGES;
    barrier_wait(&full[stage], (i / STAGES) & 1);
    const auto* piece = reinterpret_cast<const uint4*>(ring + stage * PIECE_BYTES);
    for (int at = threadIdx.x; at < PIECE_BYTES / 16; at += blockDim.x) {
      const uint4 v = piece[at];
      sum += v.x + v.y + v.z + v.w;
    }
    __syncthreads();
    if (threadIdx.x == 0 && i + STAGES < count) fetch(i + STAGES);
  }
  write_block_sum(sum, out + blockIdx.x);
}

}  // namespace nnbt
