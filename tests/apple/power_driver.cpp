// Runs the power probe on doubles and prints its last reading as JSON; check_power.py reads it.
//
// usage: nnbt_power_driver WINDOWS WINDOW_MS | info | measure
#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "macos/power_probe.h"
#include "measure/measure.h"

namespace {

using namespace nnbt;

PowerReading last_of(PowerProbe& probe, int windows, int window_ms) {
  PowerReading reading;
  for (int window = 0; window < windows; ++window) {
    probe.start();
    std::this_thread::sleep_for(std::chrono::milliseconds(window_ms));
    reading = probe.stop();
  }
  return reading;
}

struct Pause final : Step {
  void run() override { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }
};

PowerReading of_timed_runs(PowerProbe& power) {
  PowerReading reading;
  std::vector<std::unique_ptr<Probe>> probes;
  probes.push_back(power_window(power, reading));
  Pause pause;
  MeasureOptions options;
  options.runs = 3;
  measure(pause, options, probes);
  return reading;
}

PowerReading read(int count, char** words) {
  PowerProbe probe;
  if (count == 2 && std::string(words[1]) == "info") return probe.availability();
  if (count == 2 && std::string(words[1]) == "measure") return of_timed_runs(probe);
  if (count == 3) return last_of(probe, std::atoi(words[1]), std::atoi(words[2]));
  std::cerr << "usage: nnbt_power_driver WINDOWS WINDOW_MS | info | measure\n";
  std::exit(2);
}

// Number of live objects of the double after the probe is destroyed.
long live_objects() {
  void* library = dlopen("/usr/lib/libIOReport.dylib", RTLD_LAZY);
  if (library == nullptr) return 0;
  const auto live = reinterpret_cast<long (*)()>(dlsym(library, "nnbt_double_ioreport_live"));
  return live != nullptr ? live() : 0;
}

}  // namespace

int main(int count, char** words) {
  const PowerReading reading = read(count, words);
  std::cout << power_json(reading) << '\n';
  if (const long live = live_objects(); live != 0) {
    std::cerr << live << " objects of IOReport are still alive\n";
    return 1;
  }
  return 0;
}
