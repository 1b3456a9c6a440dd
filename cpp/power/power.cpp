#include "power/power.h"

#include <array>
#include <cstddef>

#include "base/json_writer.h"

namespace nnbt {
namespace {

constexpr std::array<std::string_view, 5> kThermalNames = {"nominal", "fair", "serious", "critical",
                                                           "unknown"};
constexpr std::array<std::string_view, 3> kKperfNames = {"absent", "needs_root", "ok"};

std::optional<std::uint64_t> change(std::uint64_t begin, std::uint64_t end) {
  if (end <= begin) return std::nullopt;
  return end - begin;
}

std::string energies(const std::map<std::string, double>& energy_j) {
  json::Object object;
  for (const auto& [rail, joules] : energy_j) object.add(rail, json::number(joules));
  return object.str();
}

}  // namespace

ThermalState thermal_state(long long level) {
  constexpr auto kCritical = static_cast<long long>(ThermalState::kCritical);
  if (level < 0 || level > kCritical) return ThermalState::kUnknown;
  return static_cast<ThermalState>(level);
}

std::string_view thermal_state_name(ThermalState state) {
  return kThermalNames.at(static_cast<std::size_t>(state));
}

std::string_view kperf_state_name(KperfState state) {
  return kKperfNames.at(static_cast<std::size_t>(state));
}

void add_usage(PowerReading& reading, const std::optional<ProcessUsage>& begin,
               const std::optional<ProcessUsage>& end) {
  if (!begin || !end) return;
  reading.cpu_cycles = change(begin->cycles, end->cycles);
  reading.cpu_instructions = change(begin->instructions, end->instructions);
  if (const auto energy_nj = change(begin->energy_nj, end->energy_nj)) {
    reading.process_energy_j = static_cast<double>(*energy_nj) / 1e9;
  }
}

std::string power_json(const PowerReading& reading) {
  const auto count = [](std::uint64_t value) { return json::number(value); };
  json::Object object;
  object.add("ioreport", json::text(energy_source_name(reading.ioreport)))
      .add("detail", json::text(reading.detail));
  if (reading.energy_j) object.add("energy_j", energies(*reading.energy_j));
  return object.add("window_s", json::number(reading.window_s))
      .add("thermal_state", json::text(thermal_state_name(reading.thermal)))
      .add("low_power_mode", json::maybe(reading.low_power_mode, json::boolean))
      .add("cpu_cycles", json::maybe(reading.cpu_cycles, count))
      .add("cpu_instructions", json::maybe(reading.cpu_instructions, count))
      .add("kperf", json::text(kperf_state_name(reading.kperf)))
      .str();
}

}  // namespace nnbt
