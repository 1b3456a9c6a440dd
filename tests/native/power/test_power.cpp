#include <doctest/doctest.h>

#include <limits>
#include <optional>
#include <string>

#include "power/power.h"

namespace {

using nnbt::add_usage;
using nnbt::EnergySource;
using nnbt::power_json;
using nnbt::PowerReading;
using nnbt::ProcessUsage;
using nnbt::thermal_state;
using nnbt::thermal_state_name;
using nnbt::ThermalState;

}  // namespace

TEST_CASE("thermal levels have names, and unknown ones are the worst") {
  CHECK(thermal_state_name(thermal_state(0)) == "nominal");
  CHECK(thermal_state_name(thermal_state(1)) == "fair");
  CHECK(thermal_state_name(thermal_state(2)) == "serious");
  CHECK(thermal_state_name(thermal_state(3)) == "critical");
  CHECK(thermal_state_name(thermal_state(4)) == "unknown");
  CHECK(thermal_state_name(thermal_state(-1)) == "unknown");
  CHECK(thermal_state(9) > ThermalState::kCritical);
}

TEST_CASE("a process counter that did not increase is left out") {
  PowerReading reading;
  add_usage(reading, ProcessUsage{1000, 50}, ProcessUsage{4000, 50});
  CHECK(reading.cpu_cycles == 3000U);
  CHECK_FALSE(reading.cpu_instructions.has_value());
  PowerReading backwards;
  add_usage(backwards, ProcessUsage{10, 10}, ProcessUsage{9, 9});
  CHECK_FALSE(backwards.cpu_cycles.has_value());
  PowerReading unread;
  add_usage(unread, std::nullopt, ProcessUsage{9, 9});
  add_usage(unread, ProcessUsage{9, 9}, std::nullopt);
  CHECK_FALSE(unread.cpu_cycles.has_value());
}

TEST_CASE("an empty reading is an object of nulls") {
  CHECK(power_json({}) ==
        R"({"ioreport": "absent", "detail": "", "window_s": 0, "thermal_state": "unknown", )"
        R"("low_power_mode": null, "cpu_cycles": null, "cpu_instructions": null})");
}

TEST_CASE("a full reading has every key") {
  PowerReading reading;
  reading.ioreport = EnergySource::kOk;
  reading.detail = "CPU is \"CPU Energy\"";
  reading.energy_j = {{"CPU", 2.5}, {"ANE", 0.35}};
  reading.window_s = 1.25;
  reading.thermal = ThermalState::kSerious;
  reading.low_power_mode = true;
  reading.cpu_cycles = std::numeric_limits<std::uint64_t>::max();
  reading.cpu_instructions = 12;
  CHECK(power_json(reading) ==
        R"({"ioreport": "ok", "detail": "CPU is \"CPU Energy\"", )"
        R"("energy_j": {"ANE": 0.35, "CPU": 2.5}, "window_s": 1.25, "thermal_state": "serious", )"
        R"("low_power_mode": true, "cpu_cycles": 18446744073709551615, "cpu_instructions": 12})");
  reading.energy_j.emplace();
  CHECK(power_json(reading).find(R"("energy_j": {}, )") != std::string::npos);
}
