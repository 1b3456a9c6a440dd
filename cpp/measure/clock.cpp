#include "measure/clock.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace nnbt {

std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

ClockInfo calibrate_clock(Clock now) {
  constexpr int kBatches = 16;
  constexpr int kReadings = 1000;
  std::int64_t resolution = std::numeric_limits<std::int64_t>::max();
  double cost = std::numeric_limits<double>::infinity();
  for (int batch = 0; batch < kBatches; ++batch) {
    const std::int64_t start = now();
    std::int64_t previous = start;
    for (int i = 0; i < kReadings; ++i) {
      const std::int64_t current = now();
      if (current > previous) resolution = std::min(resolution, current - previous);
      previous = current;
    }
    cost = std::min(cost, static_cast<double>(previous - start) / kReadings);
  }
  return {resolution, cost};
}

}  // namespace nnbt
