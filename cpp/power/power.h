// What a window of work cost in energy and processor cycles, and the state the machine was in. The
// values are read in objc/macos; here is what they mean and how they are written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "power/rails.h"

namespace nnbt {

// NSProcessInfo's levels, worst last; unknown ones count as worse than all that are known.
enum class ThermalState : std::uint8_t { kNominal, kFair, kSerious, kCritical, kUnknown };
ThermalState thermal_state(long long level);
std::string_view thermal_state_name(ThermalState state);

// Of this process since its start, as the kernel accounts it.
struct ProcessUsage {
  std::uint64_t cycles = 0;
  std::uint64_t instructions = 0;
};

struct PowerReading {
  EnergySource ioreport = EnergySource::kAbsent;
  std::string detail;                                     // evidence, in words
  std::optional<std::map<std::string, double>> energy_j;  // by rail; only with EnergySource::kOk
  double window_s = 0;
  ThermalState thermal = ThermalState::kUnknown;  // the worse of both ends of the window
  std::optional<bool> low_power_mode;             // at either end
  std::optional<std::uint64_t> cpu_cycles;        // of this process, all threads
  std::optional<std::uint64_t> cpu_instructions;
};

// Fills in the change between two readings of the process. No change is no counter: code ran
// between them, so a virtual machine's zeros are left out, as is one that went backwards.
void add_usage(PowerReading& reading, const std::optional<ProcessUsage>& begin,
               const std::optional<ProcessUsage>& end);

// The "power" object of the helper's document, as JSON.
std::string power_json(const PowerReading& reading);

}  // namespace nnbt
