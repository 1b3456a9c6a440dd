#include "power/power.h"

#include <array>
#include <cstddef>

#include "base/json_writer.h"

namespace nnbt {
namespace {

constexpr std::array<std::string_view, 5> kThermalNames = {"nominal", "fair", "serious", "critical",
                                                           "unknown"};

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

void add_usage(PowerReading& reading, const std::optional<ProcessUsage>& begin,
               const std::optional<ProcessUsage>& end) {
  if (!begin || !end) return;
  reading.cpu_cycles = change(begin->cycles, end->cycles);
  reading.cpu_instructions = change(begin->instructions, end->instructions);
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
      .str();
}

}  // namespace nnbt
