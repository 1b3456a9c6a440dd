// Replays a compiled region on the Neural Engine and takes its counters in windows. The order of
// steps and what each failure means is here and portable; objc/macos/ane_client.mm is the engine.
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

inline constexpr std::int64_t kMinWindows = 3;  // fewer can't show resets and other clients
inline constexpr std::int64_t kDefaultWindows = 5;
// The first calls after seconds of idling take up to 100 times as long (M1: 260 ms after 5 s).
inline constexpr std::int64_t kWarmupRuns = 3;
inline constexpr double kWarmupSeconds = 0.05;

// What can be known of the engine before anything is loaded.
struct Device {
  bool present = false;
  bool virtual_machine = false;
  std::vector<std::string> missing;  // classes and methods that the framework lacks
  std::optional<std::string> architecture;
  std::optional<std::size_t> cores;
};

// What the last evaluation left behind.
struct Snapshot {
  bool stats_present = false;
  std::optional<std::size_t> data_bytes;
  std::vector<std::uint64_t> registers;  // cumulative; whole 64-bit words of the data
};

// A loaded program; run() is one evaluation and throws std::runtime_error with domain and code
// where it fails. The destructor unloads.
class Program : public Step {
 public:
  // Makes tensors and the one request; throws std::runtime_error where they don't fit the model.
  virtual void prepare() = 0;
  virtual std::optional<std::uint32_t> mask() const = 0;   // read back after loading
  virtual std::optional<std::uint64_t> hw_ns() const = 0;  // of the last evaluation
  virtual Snapshot snapshot() const = 0;
  virtual std::string label(std::size_t index) const = 0;  // the framework's, empty without one
  virtual std::vector<std::byte> output() const = 0;       // dense
};

// Loads one region, with or without asking for counters; throws std::runtime_error.
using Loader = std::function<std::unique_ptr<Program>(const Region&, bool with_counters)>;

struct ReplayOptions {
  std::int64_t windows = kDefaultWindows;
  MeasureOptions measure;  // runs: per window; budget_s: of all windows together
};

struct Replay {
  Status status = Status::kNoAne;
  std::string detail;  // error, domain and code, or what was done differently
  std::optional<std::string> architecture;
  std::optional<std::size_t> cores;
  std::optional<bool> fully_placed;
  std::vector<std::string> labels;
  std::vector<Window> windows;  // only those that have registers, which are raw
  std::vector<std::int64_t> wall_samples_ns;
  std::vector<std::uint64_t> hw_samples_ns;  // empty unless every evaluation had one
  std::optional<ConvCheck> check;            // of the last evaluation's output
};

// Throws std::invalid_argument for fewer than kMinWindows windows or measure options that are
// none; whatever goes wrong with the engine is a status with a detail.
Replay replay(const Bundle& bundle, const Device& device, const ConvSpec& spec,
              const ReplayOptions& options, const Loader& load, Clock now = steady_now_ns);

}  // namespace nnbt::ane
