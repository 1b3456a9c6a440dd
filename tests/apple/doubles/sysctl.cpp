// Darwin's sysctlbyname with the answers of a machine of four cores; unknown names fail.
#include <sys/sysctl.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

extern "C" int sysctlbyname(const char* name, void* value, size_t* size, void* /*new_value*/,
                            size_t /*new_size*/) {
  constexpr std::pair<std::string_view, std::int64_t> kAnswers[] = {
      {"hw.logicalcpu", 4},
      {"hw.perflevel0.l1dcachesize", 128 * 1024},
      {"hw.perflevel0.l2cachesize", 16 * 1024 * 1024},
  };
  for (const auto& [known, answer] : kAnswers) {
    if (known != name || *size < sizeof answer) continue;
    std::memcpy(value, &answer, sizeof answer);
    *size = sizeof answer;
    return 0;
  }
  return -1;
}
