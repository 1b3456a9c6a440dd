// Runs the CUDA kernels' sources on the CPU: a thread for each CUDA thread of one block. Matrix
// instructions follow the fragment and descriptor layouts of the PTX manual, written here from the
// instruction's side.
#pragma once

#include <atomic>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))

struct uint4 {
  uint32_t x, y, z, w;
};

struct Index {
  unsigned x = 0;
};
inline thread_local Index threadIdx;
inline Index blockIdx, blockDim, gridDim;
inline std::unique_ptr<std::barrier<>> block_barrier;
inline std::vector<std::unique_ptr<std::barrier<>>> warp_barriers;

inline thread_local unsigned syncs = 0;  // of this thread in its block

inline void __syncthreads() {
  block_barrier->arrive_and_wait();
  ++syncs;
}
inline void warp_barrier() { warp_barriers[threadIdx.x / 32]->arrive_and_wait(); }
inline void __syncwarp() { warp_barrier(); }

// What a block must have put back when it ends.
inline void (*at_block_end)() = [] {};

// What each lane of a warp hands to the others.
template <class T>
T* exchange(T mine) {
  static std::vector<T> slots(1024);
  warp_barrier();
  slots[threadIdx.x] = mine;
  warp_barrier();
  return &slots[threadIdx.x / 32 * 32];
}

inline uint32_t __reduce_add_sync(uint32_t, uint32_t x) {
  const uint32_t* lanes = exchange(x);
  uint32_t sum = 0;
  for (int lane = 0; lane < 32; ++lane) sum += lanes[lane];
  return sum;
}
template <class T>
T __shfl_sync(uint32_t, T x, int lane) {
  return exchange(x)[lane];
}

// Counters of 1.785 GHz whose every reading is a millisecond after the one before.
inline std::atomic<int64_t> cycles_read, times_read;
inline int64_t clock64() { return ++cycles_read * 1'785'000; }
inline uint64_t global_timer() { return static_cast<uint64_t>(++times_read) * 1'000'000; }

inline uint4 __ldcs(const uint4* p) { return *p; }
inline void __stcs(uint4* p, uint4 v) { *p = v; }
inline float __uint_as_float(uint32_t x) { return std::bit_cast<float>(x); }
inline uint32_t __float_as_uint(float x) { return std::bit_cast<uint32_t>(x); }

// Shared memory lies in static arrays: addresses count from an anchor among them.
alignas(1024) inline unsigned char shared_anchor[16];
constexpr intptr_t kAnchor = 1 << 17;
inline size_t __cvta_generic_to_shared(const void* p) {
  return static_cast<size_t>(static_cast<const unsigned char*>(p) - shared_anchor + kAnchor);
}
inline const unsigned char* from_shared(uint64_t address) {
  return shared_anchor + (static_cast<intptr_t>(address) - kAnchor);
}

// Product of two k-slices of 32 bytes: bfloat16 or int8 elements.
template <class Accumulator>
Accumulator dot(const unsigned char* a, const unsigned char* b) {
  Accumulator sum = 0;
  if constexpr (std::is_same_v<Accumulator, float>) {
    for (int k = 0; k < 16; ++k) {
      uint16_t x, y;
      std::memcpy(&x, a + 2 * k, 2);
      std::memcpy(&y, b + 2 * k, 2);
      sum += std::bit_cast<float>(uint32_t{x} << 16) * std::bit_cast<float>(uint32_t{y} << 16);
    }
  } else {
    for (int k = 0; k < 32; ++k) sum += static_cast<int8_t>(a[k]) * static_cast<int8_t>(b[k]);
  }
  return sum;
}

// Gathers 32 bytes of a K-major matrix row by descriptor (no swizzle): core matrices of 8 rows x 16
// bytes; leading byte offset between them along K, stride byte offset between groups of 8 rows.
inline void gather(uint64_t descriptor, int row, unsigned char* bytes) {
  const uint64_t start = (descriptor & 0x3fff) << 4;
  const uint64_t leading = (descriptor >> 16 & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff)
                                                                      << 4;
  for (int half = 0; half < 2; ++half) {
    const uint64_t at = start + half * leading + row / 8 * stride + row % 8 * 16;
    std::memcpy(bytes + 16 * half, from_shared(at), 16);
  }
}

struct FragmentA {
  uint32_t words[4];
};
struct FragmentB {
  uint32_t words[2];
};

// Row `row` (of 16) of A from the registers of a warp: a0, a2 of lane 4 * row + word for rows below
// 8, a1, a3 for the rest.
inline void gather_a(const FragmentA* lanes, int row, unsigned char* bytes) {
  for (int word = 0; word < 8; ++word) {
    const uint32_t value = lanes[row % 8 * 4 + word % 4].words[row / 8 + 2 * (word / 4)];
    std::memcpy(bytes + 4 * word, &value, 4);
  }
}

namespace nnbt {

// mma.sync m16n8
template <class Accumulator>
void multiply_accumulate(Accumulator (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const FragmentA* all_a = exchange(FragmentA{{a[0], a[1], a[2], a[3]}});
  const FragmentB* all_b = exchange(FragmentB{{b[0], b[1]}});
  const int lane = threadIdx.x % 32;
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + (i >= 2 ? 8 : 0), column = lane % 4 * 2 + (i & 1);
    unsigned char x[32], y[32];
    gather_a(all_a, row, x);
    for (int word = 0; word < 8; ++word) {
      std::memcpy(y + 4 * word, &all_b[column * 4 + word % 4].words[word / 4], 4);
    }
    d[i] += dot<Accumulator>(x, y);
  }
  warp_barrier();
}

// wgmma m64n256: d[8 columns x 4] by the lane's rows and column pairs.
template <class Accumulator, class RowOfA>
void add_products(Accumulator (&d)[128], uint64_t b, RowOfA row_of_a) {
  const int lane = threadIdx.x % 32;
  for (int i = 0; i < 128; ++i) {
    const int row = lane / 4 + (i % 4 >= 2 ? 8 : 0), column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    unsigned char x[32], y[32];
    row_of_a(row, x);
    gather(b, column, y);
    d[i] += dot<Accumulator>(x, y);
  }
}

template <class Accumulator>
void multiply_accumulate(Accumulator (&d)[128], uint64_t a, uint64_t b) {
  const int warp = threadIdx.x / 32 % 4;
  add_products(d, b, [=](int row, unsigned char* x) { gather(a, warp * 16 + row, x); });
}

template <class Accumulator>
void multiply_accumulate(Accumulator (&d)[128], const uint32_t (&a)[4], uint64_t b) {
  const FragmentA* all = exchange(FragmentA{{a[0], a[1], a[2], a[3]}});
  add_products(d, b, [=](int row, unsigned char* x) { gather_a(all, row, x); });
  warp_barrier();
}

template <class Accumulator>
void keep_in_registers(Accumulator (&)[128]) {}

}  // namespace nnbt

// Runs kernel() for every block, one after the other.
template <class Kernel>
void launch(unsigned blocks, unsigned threads, Kernel kernel) {
  gridDim.x = blocks;
  blockDim.x = threads;
  for (unsigned block = 0; block < blocks; ++block) {
    blockIdx.x = block;
    block_barrier = std::make_unique<std::barrier<>>(threads);
    warp_barriers.clear();
    for (unsigned warp = 0; warp < (threads + 31) / 32; ++warp) {
      warp_barriers.push_back(std::make_unique<std::barrier<>>(32));
    }
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < threads; ++thread) {
      all.emplace_back([=] {
        threadIdx.x = thread;
        kernel();
      });
    }
    for (std::thread& thread : all) thread.join();
    at_block_end();
  }
}

template <class T>
std::vector<T> read_file(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  std::fseek(file, 0, SEEK_END);
  std::vector<T> data(static_cast<size_t>(std::ftell(file)) / sizeof(T));
  std::rewind(file);
  if (std::fread(data.data(), sizeof(T), data.size(), file) != data.size()) std::abort();
  std::fclose(file);
  return data;
}

template <class T>
void write_file(const char* path, const std::vector<T>& data) {
  std::FILE* file = std::fopen(path, "wb");
  if (std::fwrite(data.data(), sizeof(T), data.size(), file) != data.size()) std::abort();
  std::fclose(file);
}
