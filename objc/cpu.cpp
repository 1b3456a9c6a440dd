#include "cpu/cpu.h"

#include <sys/sysctl.h>

#include <string>
#include <utility>

namespace nnbt {
namespace {

std::int64_t system_value(const std::string& name) {
  std::int64_t value = 0;
  std::size_t size = sizeof value;
  return sysctlbyname(name.c_str(), &value, &size, nullptr, 0) == 0 ? value : 0;
}

}  // namespace

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < system_value("hw.logicalcpu"); ++cpu) cpus.push_back(cpu);
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

int allowed_cores() { return static_cast<int>(allowed_cpus().size()); }

// Apple silicon ignores affinity tags: the scheduler alone chooses between the types of cores.
bool pin_this_thread(int /*cpu*/) { return false; }

std::vector<CacheLevel> data_caches() {
  // perflevel0 is the cluster of performance cores, which share its L2.
  constexpr std::pair<int, const char*> kCaches[] = {
      {1, "hw.perflevel0.l1dcachesize"}, {2, "hw.perflevel0.l2cachesize"}, {3, "hw.l3cachesize"}};
  std::vector<CacheLevel> caches;
  for (const auto& [level, name] : kCaches) {
    if (const std::int64_t bytes = system_value(name); bytes > 0) caches.push_back({level, bytes});
  }
  return caches;
}

bool arm_feature(std::string_view name) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"asimdhp", "hw.optional.arm.FEAT_FP16"},   {"asimddp", "hw.optional.arm.FEAT_DotProd"},
      {"bf16", "hw.optional.arm.FEAT_BF16"},      {"i8mm", "hw.optional.arm.FEAT_I8MM"},
      {"sme", "hw.optional.arm.FEAT_SME"},        {"smef64f64", "hw.optional.arm.FEAT_SME_F64F64"},
      {"smei8i32", "hw.optional.arm.SME_I8I32"},  {"smef16f32", "hw.optional.arm.SME_F16F32"},
      {"smeb16f32", "hw.optional.arm.SME_B16F32"}};
  for (const auto& [linux_name, apple_name] : kNames) {
    if (linux_name == name) return system_value(apple_name) != 0;
  }
  return false;
}

// No Apple CPU has SVE outside SME streaming mode.
std::int64_t sve_vector_bytes() { return 0; }

std::int64_t sme_vector_bytes() { return system_value("hw.optional.arm.sme_max_svl_b"); }

bool permit_amx_tiles() { return false; }

bool advise_huge_pages(void* /*address*/, std::size_t /*bytes*/) { return false; }

std::int64_t huge_page_bytes(const void* /*address*/, std::size_t /*bytes*/) { return 0; }

}  // namespace nnbt
