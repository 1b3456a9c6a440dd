// The processor and its memory as the operating system shows them. Like platform_probes.h: the
// build picks cpp/linux/cpu.cpp or objc/cpu.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace nnbt {

// Logical processors this process may run on, one of each core first, then their SMT siblings.
std::vector<int> allowed_cpus();

// How many cores those are: two SMT siblings share one set of execution ports.
int allowed_cores();

// Binds the calling thread to one logical processor; false where the system has no such call.
bool pin_this_thread(int cpu);

struct CacheLevel {
  int level;
  std::int64_t bytes;  // of one instance of the data or unified cache
};

// Data and unified caches of the first allowed processor, nearest first; empty where not told.
std::vector<CacheLevel> data_caches();

// Whether the system reports an extension of arm64, in Linux's spelling: "asimdhp", "bf16", "sve",
// "smef64f64". Of no meaning on other processors.
bool arm_feature(std::string_view name);

// Length in bytes of this thread's SVE registers, and of those in SME's streaming mode; 0 where the
// processor has none.
std::int64_t sve_vector_bytes();
std::int64_t sme_vector_bytes();

// Asks the system for this process's use of AMX tiles; false when it refuses or knows no AMX.
bool permit_amx_tiles();

// Asks for huge pages behind a mapping; false where the system offers none.
bool advise_huge_pages(void* address, std::size_t bytes);

// Bytes of the mapping at `address` that lie in huge pages now; 0 where the system doesn't tell.
std::int64_t huge_page_bytes(const void* address, std::size_t bytes);

}  // namespace nnbt
