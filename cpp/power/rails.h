// Energy counters that the system provides per channel (Apple's IOReport): which channels make up a
// rail, and whether their change over a window is plausible. Pure arithmetic; objc/macos reads the
// counters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nnbt {

enum class EnergySource : std::uint8_t {
  kAbsent,      // no library, no channels, or no known channel
  kDenied,      // channels are listed, but this process may not subscribe or sample
  kFrozenZero,  // counters did not change while a program was running
  kOk,
};
std::string_view energy_source_name(EnergySource source);

struct EnergyCounter {
  std::string channel;            // "ANE0"
  std::string unit;               // "mJ"
  std::int64_t value = 0;         // since an arbitrary start, in `unit`
  std::int64_t published_ns = 0;  // when the driver updated it, on any clock; 0: unknown
};
using EnergySample = std::vector<EnergyCounter>;

// For mJ, uJ and nJ, the only units seen; nullopt for any other. Surrounding spaces are ignored.
std::optional<double> counts_per_joule(std::string_view unit);

struct EnergyVerdict {
  EnergySource source = EnergySource::kAbsent;
  std::string detail;                      // evidence: what was added up, what was left out and why
  std::map<std::string, double> energy_j;  // by rail (CPU, GPU, GPU SRAM, ANE, DRAM); only when kOk
};

// The change between two samples over a window of `window_ns`. A rail is left out, with the reason
// in `detail`, if one of its counters went backwards, appeared during the window, implies more than
// 1 kW, or covers another span than the window: newer systems update their counters every 0.4 to
// 2.2 s or even every 30 min, so a change may include work before the window.
EnergyVerdict judge_energy(const EnergySample& begin, const EnergySample& end,
                           std::int64_t window_ns);

}  // namespace nnbt
