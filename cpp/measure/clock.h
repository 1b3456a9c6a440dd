// The monotonic clock behind every measurement, in nanoseconds from an arbitrary start.
#pragma once

#include <cstdint>

namespace nnbt {

using Clock = std::int64_t (*)();

std::int64_t steady_now_ns();

struct ClockInfo {
  std::int64_t resolution_ns;  // smallest nonzero difference between two readings
  double cost_ns;              // time of one reading: mean over a batch, best of several batches
};

// Measured on every call (about 1 ms), since both differ between machines and virtualised clocks.
ClockInfo calibrate_clock(Clock now = steady_now_ns);

}  // namespace nnbt
