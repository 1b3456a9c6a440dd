// The CPUs, caches and memory as the operating system reports them. Like platform_probes.h: the
// build selects cpp/linux/cpu.cpp or objc/cpu.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace nnbt {

// CPUs that this process may use: the first of each core, then their SMT siblings.
std::vector<int> allowed_cpus();

// Number of cores among them. Two SMT siblings share one set of execution ports.
int allowed_cores();

// Pins the calling thread to one CPU; false if the system cannot.
bool pin_this_thread(int cpu);

struct CacheLevel {
  int level;
  std::int64_t bytes;  // of one data or unified cache
};

// Data and unified caches of the first allowed CPU, nearest first; empty if unknown.
std::vector<CacheLevel> data_caches();

// Whether the system reports an arm64 extension, by its name in Linux: "asimdhp", "bf16", "sve",
// "smef64f64". Meaningless on other architectures.
bool arm_feature(std::string_view name);

// Bytes of an SVE register of this thread, and of one in SME streaming mode; 0 if the CPU has none.
std::int64_t sve_vector_bytes();
std::int64_t sme_vector_bytes();

// Requests AMX tiles for this process; false if the system refuses or doesn't know AMX.
bool permit_amx_tiles();

// Requests huge pages for a mapping; false if the system has none.
bool advise_huge_pages(void* address, std::size_t bytes);

// Bytes of the mapping at `address` that are in huge pages now; 0 if unknown.
std::int64_t huge_page_bytes(const void* address, std::size_t bytes);

}  // namespace nnbt
