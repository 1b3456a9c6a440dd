#include "measure/probe.h"

#include <sys/resource.h>

#include <utility>

#include "measure/platform_probes.h"

namespace nnbt {
namespace {

struct Counter {
  const char* name;
  const char* unit;
  double (*read)(const rusage&);
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + (static_cast<double>(time.tv_usec) * 1e-6);
}

constexpr Counter kCounters[] = {
    {"minor_faults", "count", [](const rusage& u) { return static_cast<double>(u.ru_minflt); }},
    {"major_faults", "count", [](const rusage& u) { return static_cast<double>(u.ru_majflt); }},
    {"voluntary_switches", "count",
     [](const rusage& u) { return static_cast<double>(u.ru_nvcsw); }},
    {"involuntary_switches", "count",
     [](const rusage& u) { return static_cast<double>(u.ru_nivcsw); }},
    {"user_time", "s", [](const rusage& u) { return seconds(u.ru_utime); }},
    {"system_time", "s", [](const rusage& u) { return seconds(u.ru_stime); }},
};

class ProcessProbe final : public Probe {
 public:
  void begin() override { getrusage(RUSAGE_SELF, &start_); }

  void end(std::vector<Reading>& readings) override {
    rusage now{};
    getrusage(RUSAGE_SELF, &now);
    for (const Counter& counter : kCounters) {
      readings.push_back({counter.name, counter.unit, counter.read(now) - counter.read(start_)});
    }
  }

 private:
  rusage start_{};
};

}  // namespace

const std::vector<ProbeRow>& probe_table() {
  static const std::vector<ProbeRow> rows = [] {
    std::vector<ProbeRow> table{
        {"process",
         "page faults, context switches, user and system time of this "
         "process (getrusage)",
         []() -> std::unique_ptr<Probe> { return std::make_unique<ProcessProbe>(); }}};
    for (const ProbeRow& row : platform_probes()) table.push_back(row);
    return table;
  }();
  return rows;
}

std::vector<std::unique_ptr<Probe>> make_probes() {
  std::vector<std::unique_ptr<Probe>> probes;
  for (const ProbeRow& row : probe_table()) {
    if (auto probe = row.make()) probes.push_back(std::move(probe));
  }
  return probes;
}

}  // namespace nnbt
