// Darwin's sysctlbyname, answering for a machine with four cores; unknown names fail.
#include <sys/sysctl.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "graph_state.h"

namespace {

int answer(const void* bytes, std::size_t count, void* value, std::size_t* size) {
  if (*size < count) return -1;
  std::memcpy(value, bytes, count);
  *size = count;
  return 0;
}

}  // namespace

extern "C" int sysctlbyname(const char* name, void* value, size_t* size, void* /*new_value*/,
                            size_t /*new_size*/) {
  constexpr std::pair<std::string_view, std::int64_t> kAnswers[] = {
      {"hw.logicalcpu", 4},
      {"hw.perflevel0.l1dcachesize", 128 * 1024},
      {"hw.perflevel0.l2cachesize", 16 * 1024 * 1024},
  };
  const std::string_view wanted = name;
  for (const auto& [known, number] : kAnswers) {
    if (known == wanted) return answer(&number, sizeof number, value, size);
  }
  if (wanted == "kern.hv_vmm_present") {
    const std::int32_t present = doubles::fault("virtual_machine") ? 1 : 0;
    return answer(&present, sizeof present, value, size);
  }
  const char* boot_args = std::getenv("NNBT_DOUBLE_BOOT_ARGS");
  if (wanted == "kern.bootargs" && boot_args != nullptr) {
    return answer(boot_args, std::strlen(boot_args) + 1, value, size);
  }
  return -1;
}
