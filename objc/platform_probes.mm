#include "measure/platform_probes.h"

#include <algorithm>
#include <array>

#import "support.h"

namespace nnbt {
namespace {

// A Mac that throttles or saves power does not show what it can do.
class ThermalProbe final : public Probe {
 public:
  void begin() override { state_ = read(); }

  // The worse of start and end: a state does not add up over the window.
  void end(std::vector<Reading>& readings) override {
    readings.push_back({"thermal_state", "level", std::max(state_, read())});
    @autoreleasepool {
      const bool saving = NSProcessInfo.processInfo.lowPowerModeEnabled;
      readings.push_back({"low_power_mode", "flag", saving ? 1.0 : 0.0});
    }
  }

 private:
  static double read() {
    @autoreleasepool {
      return static_cast<double>(NSProcessInfo.processInfo.thermalState);
    }
  }

  double state_ = 0;
};

constexpr std::array<ProbeRow, 1> kProbes{{
    {"thermal", "thermal state from 0 (nominal) to 3 (critical) and low power mode (NSProcessInfo)",
     []() -> std::unique_ptr<Probe> { return std::make_unique<ThermalProbe>(); }},
}};

}  // namespace

std::span<const ProbeRow> platform_probes() { return kProbes; }

}  // namespace nnbt
