#include "measure/platform_probes.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string>

namespace nnbt {
namespace {

// First line of /proc/stat: cpu user nice system idle iowait irq softirq steal ..., in ticks
// (usually 10 ms), summed over all CPUs.
struct SystemTime {
  double busy_s;
  double steal_s;
};

std::optional<SystemTime> read_system_time() {
  std::ifstream stat("/proc/stat");
  std::string label;
  std::array<double, 8> ticks{};
  stat >> label;
  for (double& tick : ticks) stat >> tick;
  if (!stat) return std::nullopt;
  const auto per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
  return SystemTime{(user + nice + system + irq + softirq) / per_second, steal / per_second};
}

double own_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + (static_cast<double>(time.tv_usec) * 1e-6);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Steal time is when the hypervisor ran other guests while this one was ready to run.
class BackgroundLoadProbe final : public Probe {
 public:
  void begin() override {
    start_ = read_system_time();
    own_start_ = own_time();
  }

  void end(std::vector<Reading>& readings) override {
    const std::optional<SystemTime> now = read_system_time();
    if (!start_ || !now) return;
    const double others = now->busy_s - start_->busy_s - (own_time() - own_start_);
    readings.push_back({"steal_time", "s", now->steal_s - start_->steal_s});
    readings.push_back({"other_cpu_time", "s", std::max(0.0, others)});
  }

 private:
  std::optional<SystemTime> start_;
  double own_start_ = 0;
};

constexpr std::array<ProbeRow, 1> kProbes{{
    {"background", "steal time, and CPU time of other processes",
     []() -> std::unique_ptr<Probe> { return std::make_unique<BackgroundLoadProbe>(); }},
}};

}  // namespace

std::span<const ProbeRow> platform_probes() { return kProbes; }

}  // namespace nnbt
