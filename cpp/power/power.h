// Energy and CPU cycles of a window of work, and the state of the machine. objc/macos reads the
// values; this file says what they mean and writes them as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "power/rails.h"

namespace nnbt {

// NSProcessInfo's thermal states, worst last. Unknown ones count as the worst.
enum class ThermalState : std::uint8_t { kNominal, kFair, kSerious, kCritical, kUnknown };
ThermalState thermal_state(long long level);
std::string_view thermal_state_name(ThermalState state);

// Counted by the kernel for this process, since its start.
struct ProcessUsage {
  std::uint64_t cycles = 0;
  std::uint64_t instructions = 0;
};

struct PowerReading {
  EnergySource ioreport = EnergySource::kAbsent;
  std::string detail;                                     // evidence, as a sentence
  std::optional<std::map<std::string, double>> energy_j;  // by rail; only with EnergySource::kOk
  double window_s = 0;
  ThermalState thermal = ThermalState::kUnknown;  // the worse of start and end
  std::optional<bool> low_power_mode;             // at the start or the end
  std::optional<std::uint64_t> cpu_cycles;        // of all threads of this process
  std::optional<std::uint64_t> cpu_instructions;
};

// Sets the change between two readings. A counter that did not increase is left out: the process
// ran in between, so it does not count (virtual machines) or is wrong.
void add_usage(PowerReading& reading, const std::optional<ProcessUsage>& begin,
               const std::optional<ProcessUsage>& end);

// The "power" object of the helper's document, as JSON.
std::string power_json(const PowerReading& reading);

}  // namespace nnbt
