// Energy, processor cycles and thermal state over a window of work, without root. macOS only: iOS
// has neither libproc's header nor a private library that an app may open.
#pragma once

#include <memory>

#include "measure/probe.h"
#include "power/power.h"

namespace nnbt {

// Make one and use it for every window of the process: each one subscribes, see ioreport.h. Never
// throws for what the system lacks; the reading says so.
class PowerProbe {
 public:
  PowerProbe();
  PowerProbe(const PowerProbe&) = delete;
  PowerProbe& operator=(const PowerProbe&) = delete;
  ~PowerProbe();

  // Directly around the work: both take a few ms, which the window leaves out.
  void start();
  PowerReading stop();  // throws std::logic_error without a start() before it

  // What there is to read, without energies: in steps of 100 ms until a counter moves, at most 2.5
  // s, since some systems publish their counters every 2.2 s.
  PowerReading availability();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// For measure(): starts and stops with the timed runs and leaves the result in `reading`. Both
// arguments must outlive it.
std::unique_ptr<Probe> power_window(PowerProbe& power, PowerReading& reading);

}  // namespace nnbt
