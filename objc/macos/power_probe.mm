#import "power_probe.h"

#include <libproc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#import "ioreport.h"
#include "measure/clock.h"

namespace nnbt {
namespace {

constexpr std::int64_t kLookNs = 100'000'000;
constexpr std::int64_t kLongestLookNs = 2'500'000'000;

std::optional<ProcessUsage> process_usage() {
  rusage_info_v6 usage{};
  if (proc_pid_rusage(getpid(), RUSAGE_INFO_V6, reinterpret_cast<rusage_info_t*>(&usage)) != 0) {
    return std::nullopt;
  }
  return ProcessUsage{.cycles = usage.ri_cycles, .instructions = usage.ri_instructions};
}

struct MachineState {
  ThermalState thermal;
  bool low_power;
};

MachineState machine_state() {
  @autoreleasepool {
    NSProcessInfo* process = NSProcessInfo.processInfo;
    return {thermal_state(static_cast<long long>(process.thermalState)),
            process.lowPowerModeEnabled == YES};
  }
}

class PowerWindow final : public Probe {
 public:
  PowerWindow(PowerProbe& power, PowerReading& reading) : power_(power), reading_(reading) {}

  void begin() override { power_.start(); }
  void end(std::vector<Reading>& /*readings*/) override { reading_ = power_.stop(); }

 private:
  PowerProbe& power_;
  PowerReading& reading_;
};

}  // namespace

struct PowerProbe::State {
  IoReport ioreport;
  bool started = false;
  MachineState machine{};
  std::optional<EnergySample> energy;
  std::optional<ProcessUsage> usage;
  std::int64_t start_ns = 0;

  EnergyVerdict judged(const std::optional<EnergySample>& end, std::int64_t window_ns) const {
    if (ioreport.source() != EnergySource::kOk) {
      return {ioreport.source(), ioreport.problem(), {}};
    }
    if (!energy || !end) return {EnergySource::kDenied, "IOReport returned no sample", {}};
    return judge_energy(*energy, *end, window_ns);
  }
};

PowerProbe::PowerProbe() : state_(std::make_unique<State>()) {}
PowerProbe::~PowerProbe() = default;

void PowerProbe::start() {
  state_->started = true;
  state_->machine = machine_state();
  state_->energy = state_->ioreport.sample();
  state_->usage = process_usage();
  state_->start_ns = steady_now_ns();
}

PowerReading PowerProbe::stop() {
  const std::int64_t end_ns = steady_now_ns();
  const std::optional<ProcessUsage> usage = process_usage();
  if (!state_->started) throw std::logic_error("PowerProbe::stop() without start()");
  state_->started = false;
  const std::int64_t window_ns = end_ns - state_->start_ns;
  EnergyVerdict verdict = state_->judged(state_->ioreport.sample(), window_ns);
  const MachineState machine = machine_state();

  PowerReading reading;
  reading.ioreport = verdict.source;
  reading.detail = std::move(verdict.detail);
  if (verdict.source == EnergySource::kOk) reading.energy_j = std::move(verdict.energy_j);
  reading.window_s = static_cast<double>(window_ns) / 1e9;
  reading.thermal = std::max(state_->machine.thermal, machine.thermal);
  reading.low_power_mode = state_->machine.low_power || machine.low_power;
  add_usage(reading, state_->usage, usage);
  return reading;
}

PowerReading PowerProbe::availability() {
  start();
  const std::int64_t first_ns = state_->start_ns;
  for (;;) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kLookNs));
    PowerReading reading = stop();
    reading.energy_j.reset();
    const bool waiting = reading.ioreport == EnergySource::kFrozenZero;
    if (!waiting || steady_now_ns() - first_ns > kLongestLookNs) return reading;
    state_->started = true;  // the same window continues
  }
}

std::unique_ptr<Probe> power_window(PowerProbe& power, PowerReading& reading) {
  return std::make_unique<PowerWindow>(power, reading);
}

}  // namespace nnbt
