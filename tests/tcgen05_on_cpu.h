// A model of tcgen05 for cuda_on_cpu.h, from the instruction's side of the PTX manual: it stands
// for kernels/tensor_memory.cu and the product. Products run late, only when a barrier is polled,
// read shared memory then, and stop the program at bits that the manual doesn't allow. KIND is that
// of the product.
#pragma once

#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string_view>

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "tcgen05: %s\n", what);
  std::_Exit(3);
}

inline void require(bool holds, const char* what) {
  if (!holds) fail(what);
}

inline uint32_t bits(uint64_t word, unsigned first, unsigned last) {
  return static_cast<uint32_t>(word >> first & ((uint64_t{1} << (last - first + 1)) - 1));
}

struct Allocation {
  uint32_t column, count, warp;
};

struct Step {  // a product, or a commit where there is a barrier
  uint32_t sums;
  uint64_t a, b;
  uint32_t instruction, add;
  unsigned thread;
  const uint64_t* barrier;
};

struct Unit {
  std::mutex mutex;
  // Lanes x columns, at first NaNs as floats and large numbers as integers.
  std::vector<uint32_t> memory = std::vector<uint32_t>(128 * 512, 0x7fedcba9);
  std::vector<Allocation> allocations;
  bool may_allocate = true;
  std::set<unsigned> fenced;  // threads whose writes to shared memory the unit sees
  std::deque<Step> steps;
  std::map<const uint64_t*, uint32_t> phases;  // ended, by barrier
};
inline std::unique_ptr<Unit> unit = std::make_unique<Unit>();
inline thread_local unsigned ordered_at = 0;

inline void end_block() {
  require(unit->allocations.empty(), "columns were not freed");
  unit = std::make_unique<Unit>();
}
inline const bool has_end = (at_block_end = end_block, true);

inline bool allocated(uint32_t address, uint32_t count) {
  const uint32_t column = address & 0xffff;
  for (const Allocation& one : unit->allocations) {
    if (one.column <= column && column + count <= one.column + one.count) return true;
  }
  return false;
}

// Value of a float format with these widths of exponent and fraction.
inline float decode(uint32_t code, int exponent_bits, int fraction_bits) {
  const int exponent = code >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = code & ((1 << fraction_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const bool normal = exponent > 0;
  const float size = std::ldexp(static_cast<float>(fraction + (normal << fraction_bits)),
                                (normal ? exponent : 1) - bias - fraction_bits);
  return code >> (exponent_bits + fraction_bits) & 1 ? -size : size;
}

struct Format {
  std::string_view kind;
  uint32_t type, sums;  // in the instruction descriptor
  int bytes, exponent_bits, fraction_bits, ignored_bits;
};
// Rows of the instruction descriptor's table; TF32 ignores the low 13 bits of a word.
constexpr Format kFormats[] = {{"f16", 0, 1, 2, 5, 10, 0},   {"f16", 1, 1, 2, 8, 7, 0},
                               {"tf32", 2, 1, 4, 8, 10, 13}, {"f8f6f4", 0, 1, 1, 4, 3, 0},
                               {"f8f6f4", 1, 1, 1, 5, 2, 0}, {"i8", 1, 2, 1, 0, 0, 0}};

inline Format format_of(uint32_t instruction) {
  for (const Format& one : kFormats) {
    const bool same = one.kind == KIND && one.sums == bits(instruction, 4, 5) &&
                      one.type == bits(instruction, 7, 9) && one.type == bits(instruction, 10, 12);
    if (same) return one;
  }
  fail("no such types in this kind");
}

// The k-slice of 32 bytes of `rows` rows, as numbers.
inline std::vector<float> operand(uint64_t descriptor, uint32_t rows, const Format& format) {
  require(bits(descriptor, 14, 15) == 0 && bits(descriptor, 30, 31) == 0, "reserved bits");
  require(bits(descriptor, 46, 48) == 1, "the matrix descriptor's version is not 1");
  require(bits(descriptor, 49, 60) == 0, "a base offset or absolute stride without swizzle");
  require(bits(descriptor, 61, 63) == 0, "the model knows no swizzle");
  std::vector<float> values;
  for (uint32_t row = 0; row < rows; ++row) {
    unsigned char x[32];
    gather(descriptor, static_cast<int>(row), x);
    for (int at = 0; at < 32; at += format.bytes) {
      uint32_t code = 0;
      std::memcpy(&code, x + at, static_cast<size_t>(format.bytes));
      values.push_back(
          format.exponent_bits == 0
              ? static_cast<float>(static_cast<int8_t>(code))
              : decode(code >> format.ignored_bits, format.exponent_bits, format.fraction_bits));
    }
  }
  return values;
}

inline void multiply(const Step& step) {
  const uint32_t columns = bits(step.instruction, 17, 22) << 3;
  require(bits(step.instruction, 24, 28) << 4 == 128, "the model has 128 rows");
  require(columns >= 16 && columns <= 256 && columns % 16 == 0, "columns of the product");
  require((step.instruction & 0xe081e04f) == 0, "sparse, saturated, negated, transposed, reserved");
  require(step.sums >> 16 == 0, "sums begin at lane 0");
  require(allocated(step.sums, columns), "sums in columns that are not allocated");
  const Format format = format_of(step.instruction);
  const std::vector<float> a = operand(step.a, 128, format), b = operand(step.b, columns, format);
  const uint32_t depth = 32 / static_cast<uint32_t>(format.bytes);
  for (uint32_t row = 0; row < 128; ++row) {
    for (uint32_t column = 0; column < columns; ++column) {
      float sum = 0;  // exact up to 2^24, as its terms are
      for (uint32_t k = 0; k < depth; ++k) sum += a[row * depth + k] * b[column * depth + k];
      uint32_t& cell = unit->memory[row * 512 + (step.sums & 0xffff) + column];
      if (format.sums == 2) {
        cell = (step.add ? cell : 0) + static_cast<uint32_t>(static_cast<int32_t>(sum));
      } else {
        cell = std::bit_cast<uint32_t>((step.add ? std::bit_cast<float>(cell) : 0.0F) + sum);
      }
    }
  }
}

// Up to the next commit.
inline void run_steps() {
  while (!unit->steps.empty()) {
    const Step step = unit->steps.front();
    unit->steps.pop_front();
    if (step.barrier != nullptr) {
      ++unit->phases.at(step.barrier);
      return;
    }
    multiply(step);
  }
}

namespace nnbt {

inline bool elected() {
  warp_barrier();
  return threadIdx.x % 32 == 7;  // the manual names no lane
}

template <int COLUMNS>
void allocate_columns(uint32_t* address) {
  static_assert(COLUMNS >= 32 && COLUMNS <= 512 && std::has_single_bit(unsigned{COLUMNS}));
  warp_barrier();
  if (threadIdx.x % 32 == 0) {
    const std::scoped_lock lock(unit->mutex);
    require(unit->may_allocate, "allocation after the permit was given up");
    require(unit->allocations.empty() && COLUMNS <= 256, "the model allocates once");
    unit->may_allocate = false;
    unit->allocations.push_back({128, COLUMNS, threadIdx.x / 32});
    *address = 128;
  }
  warp_barrier();
}

template <int COLUMNS>
void free_columns(uint32_t address) {
  warp_barrier();
  if (threadIdx.x % 32 == 0) {
    const std::scoped_lock lock(unit->mutex);
    require(unit->allocations.size() == 1, "nothing to free");
    const Allocation& one = unit->allocations[0];
    require(one.column == address && one.count == COLUMNS, "freed what was not allocated");
    require(one.warp == threadIdx.x / 32, "another warp allocated");
    unit->allocations.clear();
  }
  warp_barrier();
}

inline void load_columns(uint32_t (&w)[32], uint32_t address) {
  warp_barrier();
  const std::scoped_lock lock(unit->mutex);
  require(ordered_at == syncs && syncs > 0, "no fence between a barrier and a load");
  require(address >> 16 == threadIdx.x / 32 % 4 * 32, "another warp's lanes");
  require(allocated(address, 32), "load of columns that are not allocated");
  const uint32_t first = threadIdx.x % 128 * 512 + (address & 0xffff);
  for (uint32_t i = 0; i < 32; ++i) w[i] = unit->memory[first + i];
}

inline void init_barrier(uint64_t* barrier) {
  const std::scoped_lock lock(unit->mutex);
  unit->phases[barrier] = 0;
}

inline void fence_shared_memory() {
  const std::scoped_lock lock(unit->mutex);
  unit->fenced.insert(threadIdx.x);
}

inline void fence_before_sync() {}
inline void fence_after_sync() { ordered_at = syncs; }

inline void multiply_accumulate(uint32_t sums, uint64_t a, uint64_t b, uint32_t instruction,
                                uint32_t add) {
  const std::scoped_lock lock(unit->mutex);
  require(unit->fenced.size() == blockDim.x, "writes to shared memory that the unit can't see");
  require(ordered_at == syncs && syncs > 0, "no fence between a barrier and a product");
  unit->steps.push_back({sums, a, b, instruction, add, threadIdx.x, nullptr});
}

inline void commit(uint64_t* barrier) {
  const std::scoped_lock lock(unit->mutex);
  require(unit->phases.count(barrier) == 1, "a barrier that was not initialised");
  for (const Step& one : unit->steps) {
    require(one.thread == threadIdx.x, "a commit is of the thread's own products");
  }
  unit->steps.push_back({0, 0, 0, 0, 0, threadIdx.x, barrier});
}

// The first answer after a commit is always no.
inline bool arrived(uint64_t* barrier, uint32_t parity) {
  const std::scoped_lock lock(unit->mutex);
  require(parity <= 1, "a parity is 0 or 1");
  if (unit->phases.at(barrier) % 2 != parity) return true;
  run_steps();
  return false;
}

inline void nap() { std::this_thread::yield(); }

}  // namespace nnbt
