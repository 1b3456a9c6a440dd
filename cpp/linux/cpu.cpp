#include "cpu/cpu.h"

#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace nnbt {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_folder(int cpu) { return "/sys/devices/system/cpu/cpu" + std::to_string(cpu); }

// All CPUs of a core have the same list of siblings, so the list identifies the core.
std::string core_of(int cpu) {
  const std::string siblings = first_line(cpu_folder(cpu) + "/topology/thread_siblings_list");
  return siblings.empty() ? std::to_string(cpu) : siblings;
}

// The result has flags above the length.
std::int64_t vector_bytes(int request) {
  constexpr int kLengthMask = 0xFFFF;
  const int answer = prctl(request, 0, 0, 0, 0);
  return answer < 0 ? 0 : answer & kLengthMask;
}

std::vector<int> affinity() {
  // The kernel rejects a mask smaller than its own, so the size grows until it fits.
  for (int count = 1024; count <= 1'000'000; count *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<std::size_t>(count)), [](cpu_set_t* mask) { CPU_FREE(mask); });
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(count));
    if (!set || sched_getaffinity(0, size, set.get()) != 0) continue;
    std::vector<int> cpus;
    for (int cpu = 0; cpu < count; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), size, set.get())) cpus.push_back(cpu);
    }
    return cpus;
  }
  return {0};
}

// sysfs writes sizes as "48K" or "260M".
std::int64_t parse_size(const std::string& text) {
  std::istringstream stream(text);
  std::int64_t value = 0;
  char unit = ' ';
  stream >> value >> unit;
  if (unit == 'K') return value * 1024;
  if (unit == 'M') return value * 1024 * 1024;
  if (unit == 'G') return value * 1024 * 1024 * 1024;
  return value;
}

}  // namespace

std::vector<int> allowed_cpus() {
  std::map<std::string, int> seen;
  std::vector<std::pair<int, int>> ranked;  // (earlier siblings of the same core, CPU)
  for (const int cpu : affinity()) ranked.emplace_back(seen[core_of(cpu)]++, cpu);
  std::ranges::sort(ranked);
  std::vector<int> cpus;
  cpus.reserve(ranked.size());
  for (const auto& [rank, cpu] : ranked) cpus.push_back(cpu);
  return cpus;
}

int allowed_cores() {
  std::map<std::string, int> seen;
  for (const int cpu : affinity()) ++seen[core_of(cpu)];
  return static_cast<int>(seen.size());
}

bool pin_this_thread(int cpu) {
  const auto count = static_cast<std::size_t>(cpu) + 1;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
      CPU_ALLOC(count), [](cpu_set_t* mask) { CPU_FREE(mask); });
  if (!set) return false;
  CPU_ZERO_S(CPU_ALLOC_SIZE(count), set.get());
  CPU_SET_S(static_cast<std::size_t>(cpu), CPU_ALLOC_SIZE(count), set.get());
  return sched_setaffinity(0, CPU_ALLOC_SIZE(count), set.get()) == 0;
}

std::vector<CacheLevel> data_caches() {
  std::vector<CacheLevel> caches;
  const std::string folder = cpu_folder(allowed_cpus().front()) + "/cache/index";
  for (int index = 0;; ++index) {
    const std::string cache = folder + std::to_string(index);
    const std::string type = first_line(cache + "/type");
    if (type.empty()) break;
    if (type == "Instruction") continue;
    const std::string level = first_line(cache + "/level");
    const std::int64_t bytes = parse_size(first_line(cache + "/size"));
    if (!level.empty() && bytes > 0) caches.push_back({std::stoi(level), bytes});
  }
  std::ranges::sort(caches, {}, &CacheLevel::level);
  return caches;
}

bool arm_feature(std::string_view name) {
  // Source: Linux, arch/arm64/include/uapi/asm/hwcap.h.
  struct Bit {
    std::string_view name;
    unsigned long word;
    unsigned position;
  };
  constexpr Bit kBits[] = {
      {"asimdhp", AT_HWCAP, 10},   {"asimddp", AT_HWCAP, 20},    {"sve", AT_HWCAP, 22},
      {"svei8mm", AT_HWCAP2, 9},   {"svebf16", AT_HWCAP2, 12},   {"i8mm", AT_HWCAP2, 13},
      {"bf16", AT_HWCAP2, 14},     {"sme", AT_HWCAP2, 23},       {"smef64f64", AT_HWCAP2, 25},
      {"smei8i32", AT_HWCAP2, 26}, {"smef16f32", AT_HWCAP2, 27}, {"smeb16f32", AT_HWCAP2, 28}};
  const auto* const bit = std::ranges::find(kBits, name, &Bit::name);
  return bit != std::end(kBits) && (getauxval(bit->word) >> bit->position & 1UL) != 0;
}

// Source: Linux, include/uapi/linux/prctl.h; glibc's headers may be older than the kernel.
std::int64_t sve_vector_bytes() {
  constexpr int kSveGetVectorLength = 51;
  return vector_bytes(kSveGetVectorLength);
}

std::int64_t sme_vector_bytes() {
  constexpr int kSmeGetVectorLength = 64;
  return vector_bytes(kSmeGetVectorLength);
}

bool permit_amx_tiles() {
#ifdef SYS_arch_prctl
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM, Linux 5.16
  constexpr long kTileData = 18;               // XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool advise_huge_pages(void* address, std::size_t bytes) {
  return madvise(address, bytes, MADV_HUGEPAGE) == 0;
}

std::int64_t huge_page_bytes(const void* address, std::size_t bytes) {
  // /proc/self/smaps lists each mapping as a header line "7f00-7f20 rw-p ..." and then its fields.
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream smaps("/proc/self/smaps");
  std::int64_t total = 0;
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long first = 0;
    unsigned long last = 0;
    long kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2) {  // NOLINT(*-unchecked-*)
      inside = first < begin + bytes && last > begin;
    } else if (inside && std::sscanf(line.c_str(), "AnonHugePages: %ld", &kib) == 1) {  // NOLINT
      total += std::int64_t{kib} * 1024;
    }
  }
  return total;
}

}  // namespace nnbt
