#include "power.h"

#include <array>
#include <cstddef>

#include "json.h"

namespace nnbt {
namespace {

constexpr std::array<std::string_view, 5> kThermalNames = {"nominal", "fair", "serious", "critical",
                                                           "unknown"};
constexpr std::array<std::string_view, 3> kKperfNames = {"absent", "needs_root", "ok"};

std::optional<std::uint64_t> change(std::uint64_t begin, std::uint64_t end) {
  if (end <= begin) return std::nullopt;
  return end - begin;
}

std::string count(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "null";
}

std::string energies(const std::map<std::string, double>& energy_j) {
  std::string json = "{";
  for (const auto& [rail, joules] : energy_j) {
    if (json.size() > 1) json += ", ";
    json += json_quoted(rail) + ": " + json_number(joules);
  }
  return json + "}";
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
  std::string json = R"({"ioreport": )" + json_quoted(energy_source_name(reading.ioreport)) +
                     R"(, "detail": )" + json_quoted(reading.detail);
  if (reading.energy_j) json += R"(, "energy_j": )" + energies(*reading.energy_j);
  json += R"(, "window_s": )" + json_number(reading.window_s) + R"(, "thermal_state": )" +
          json_quoted(thermal_state_name(reading.thermal)) + R"(, "low_power_mode": )";
  json += reading.low_power_mode ? (*reading.low_power_mode ? "true" : "false") : "null";
  return json + R"(, "cpu_cycles": )" + count(reading.cpu_cycles) + R"(, "cpu_instructions": )" +
         count(reading.cpu_instructions) + R"(, "kperf": )" +
         json_quoted(kperf_state_name(reading.kperf)) + "}";
}

}  // namespace nnbt
