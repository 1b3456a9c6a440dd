#include "platform.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace nnbt {
namespace {

// Steal is the time a hypervisor gave to other guests while this one wanted to run.
class StealProbe final : public Probe {
 public:
  void begin() override { start_ = read(); }

  void end(std::vector<Reading>& readings) override {
    const std::optional<double> now = read();
    if (start_ && now) readings.push_back({"steal_time", "s", *now - *start_});
  }

 private:
  // First line of /proc/stat: cpu user nice system idle iowait irq softirq steal ... in ticks.
  static std::optional<double> read() {
    std::ifstream stat("/proc/stat");
    std::string label;
    std::array<std::int64_t, 8> ticks{};
    stat >> label;
    for (std::int64_t& tick : ticks) stat >> tick;
    if (!stat) return std::nullopt;
    return static_cast<double>(ticks[7]) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

  std::optional<double> start_;
};

constexpr std::array<ProbeRow, 1> kProbes{{
    {"steal", "processor time taken by other guests of the host (/proc/stat)",
     []() -> std::unique_ptr<Probe> { return std::make_unique<StealProbe>(); }},
}};

}  // namespace

std::span<const ProbeRow> platform_probes() { return kProbes; }

}  // namespace nnbt
