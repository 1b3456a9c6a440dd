// What tcgen05 needs besides its products (PTX ISA, chapter tcgen05): tensor memory, 128 lanes x
// 512 columns of 4 bytes per multiprocessor, barriers that the unit arrives at, and fences between
// threads and unit. Tests replace this file by a model of the unit.
namespace nnbt {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// One thread of a whole warp.
__device__ __forceinline__ bool elected() {
  uint32_t is_elected;
  asm volatile(
      "{\n.reg .pred one;\n"
      "elect.sync _|one, 0xffffffff;\n"
      "selp.b32 %0, 1, 0, one;\n}"
      : "=r"(is_elected));
  return is_elected != 0;
}

// By a whole warp; waits until other blocks have freed enough. Writes to `address`.
template <int COLUMNS>
__device__ __forceinline__ void allocate_columns(uint32_t* address) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                   shared_address(address)),
               "n"(COLUMNS)
               : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

// By the same warp, before the block ends: columns that stay allocated block the multiprocessor.
template <int COLUMNS>
__device__ __forceinline__ void free_columns(uint32_t address) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "n"(COLUMNS)
               : "memory");
}

// Lane i of the warp gets 32 columns of its own lane of tensor memory.
__device__ __forceinline__ void load_columns(uint32_t (&w)[32], uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]), "=r"(w[4]), "=r"(w[5]), "=r"(w[6]),
        "=r"(w[7]), "=r"(w[8]), "=r"(w[9]), "=r"(w[10]), "=r"(w[11]), "=r"(w[12]), "=r"(w[13]),
        "=r"(w[14]), "=r"(w[15]), "=r"(w[16]), "=r"(w[17]), "=r"(w[18]), "=r"(w[19]), "=r"(w[20]),
        "=r"(w[21]), "=r"(w[22]), "=r"(w[23]), "=r"(w[24]), "=r"(w[25]), "=r"(w[26]), "=r"(w[27]),
        "=r"(w[28]), "=r"(w[29]), "=r"(w[30]), "=r"(w[31])
      : "r"(address)
      : "memory");
}

__device__ __forceinline__ void init_barrier(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}

// Makes this thread's writes to shared memory, and barriers it initialized, visible to the unit.
__device__ __forceinline__ void fence_shared_memory() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void fence_before_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

__device__ __forceinline__ void fence_after_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// Makes the unit arrive at the barrier after all products that this thread has issued.
__device__ __forceinline__ void commit(uint64_t* barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                   shared_address(barrier))
               : "memory");
}

// Whether the phase of this parity is complete. test_wait returns at once, try_wait may sleep for a
// time limit of the system.
__device__ __forceinline__ bool arrived(uint64_t* barrier, uint32_t parity) {
  uint32_t is_over;
  asm volatile(
      "{\n.reg .pred over;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 over, [%1], %2;\n"
      "selp.b32 %0, 1, 0, over;\n}"
      : "=r"(is_over)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return is_over != 0;
}

// Up to 1 us: a sleep takes at most twice the requested time.
__device__ __forceinline__ void nap() { __nanosleep(500); }

}  // namespace nnbt
