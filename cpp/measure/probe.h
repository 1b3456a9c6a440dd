// A Probe observes the window of the timed runs: begin() just before the first run, end() just
// after the last. Values that the machine does not provide are left out of the readings, never
// reported as zero.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nnbt {

struct Reading {
  std::string name;  // "minor_faults"
  std::string unit;  // "count", "s", "J"
  double value;      // change over the window; for gauges, the mean
};

class Probe {
 public:
  Probe() = default;
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  virtual ~Probe() = default;

  virtual void begin() = 0;
  virtual void end(std::vector<Reading>& readings) = 0;
};

// One row per probe. `make` may return null if the machine has nothing to read.
struct ProbeRow {
  std::string_view name;
  std::string_view description;
  std::unique_ptr<Probe> (*make)();
};

// The probes of this platform, the process probe first.
const std::vector<ProbeRow>& probe_table();

// An instance of each probe that has something to read on this machine.
std::vector<std::unique_ptr<Probe>> make_probes();

}  // namespace nnbt
