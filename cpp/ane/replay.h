// Replays a compiled region on the Neural Engine and reads its counters in windows. The sequence of
// steps and the meaning of each failure are portable and defined here; objc/macos/ane_client.mm
// implements the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ane/bundle.h"
#include "ane/counters.h"
#include "ane/status.h"
#include "conv/check.h"
#include "conv/conv.h"
#include "measure/clock.h"
#include "measure/measure.h"
#include "measure/step.h"

namespace nnbt::ane {

inline constexpr std::int64_t kMinWindows = 3;  // fewer cannot reveal resets or other clients
inline constexpr std::int64_t kDefaultWindows = 5;
// The first calls after some idle seconds take up to 100 times as long (M1: 260 ms after 5 s).
inline constexpr std::int64_t kWarmupRuns = 3;
inline constexpr double kWarmupSeconds = 0.05;

// What is known about the engine before anything is loaded.
struct Device {
  bool present = false;
  bool virtual_machine = false;
  std::vector<std::string> missing;  // classes and methods missing from the framework
  std::optional<std::string> architecture;
  std::optional<std::size_t> cores;
};

// What the last evaluation reported.
struct Snapshot {
  bool stats_present = false;
  std::optional<std::size_t> data_bytes;
  std::vector<std::uint64_t> registers;  // cumulative; the whole 64-bit words of the data
};

// A loaded program. run() is one evaluation; it throws std::runtime_error with domain and code if
// that fails. The destructor unloads.
class Program : public Step {
 public:
  // Creates the tensors and the request; throws std::runtime_error if they do not fit the model.
  virtual void prepare() = 0;
  virtual std::optional<std::uint32_t> mask() const = 0;   // read back after loading
  virtual std::optional<std::uint64_t> hw_ns() const = 0;  // of the last evaluation
  virtual Snapshot snapshot() const = 0;
  virtual std::string label(std::size_t index) const = 0;  // name in the framework, or empty
  virtual std::vector<std::byte> output() const = 0;       // without padding
};

// Loads one region, with or without counters; throws std::runtime_error.
using Loader = std::function<std::unique_ptr<Program>(const Region&, bool with_counters)>;

struct ReplayOptions {
  std::int64_t windows = kDefaultWindows;
  MeasureOptions measure;  // runs is per window, budget_s for all windows
};

struct Replay {
  Status status = Status::kNoAne;
  std::string detail;  // error with domain and code, or what was done differently
  std::optional<std::string> architecture;
  std::optional<std::size_t> cores;
  std::optional<bool> fully_placed;
  std::vector<std::string> labels;
  std::vector<Window> windows;  // only those with registers, which are raw
  std::vector<std::int64_t> wall_samples_ns;
  std::vector<std::uint64_t> hw_samples_ns;  // empty unless there is one for every evaluation
  std::optional<ConvCheck> check;            // of the last evaluation's output
};

// Throws std::invalid_argument for fewer than kMinWindows windows or invalid measure options.
// Failures of the engine are returned as a status with a detail.
Replay replay(const Bundle& bundle, const Device& device, const ConvSpec& spec,
              const ReplayOptions& options, const Loader& load, Clock now = steady_now_ns);

}  // namespace nnbt::ane
