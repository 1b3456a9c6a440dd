// Energy, CPU cycles and thermal state over a window of work, without root. macOS only: iOS has no
// header for libproc, and apps may not open private libraries.
#pragma once

#include <memory>

#include "measure/probe.h"
#include "power/power.h"

namespace nnbt {

// Create one and use it for every window of the process: each one subscribes, see ioreport.h.
// Missing support does not throw; the reading says what is missing.
class PowerProbe {
 public:
  PowerProbe();
  PowerProbe(const PowerProbe&) = delete;
  PowerProbe& operator=(const PowerProbe&) = delete;
  ~PowerProbe();

  // Call these directly before and after the work; the few ms they take are not part of the window.
  void start();
  PowerReading stop();  // throws std::logic_error without start()

  // What can be read, without energies. Looks every 100 ms until a counter changes, for at most 2.5
  // s: some systems update their counters every 2.2 s.
  PowerReading availability();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// For measure(): a probe that starts and stops with the timed runs and stores the result in
// `reading`. Both arguments must outlive it.
std::unique_ptr<Probe> power_window(PowerProbe& power, PowerReading& reading);

}  // namespace nnbt
