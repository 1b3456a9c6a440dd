// Turns Neural Engine counters into numbers: pure arithmetic on saved or live counters, on any
// machine. A number that the counters do not support is absent, and an identity says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ane/registers.h"
#include "ane/status.h"

namespace nnbt::ane {

// Change of each register per evaluation; none for a register that was not saved.
using Deltas = std::vector<std::optional<std::uint64_t>>;

enum class Precision : std::uint8_t { kFp16, kInt8 };

// What is known about an evaluation besides its counters.
struct Context {
  std::optional<double> macs;       // multiply-accumulates
  std::optional<double> wall_ns;    // measured on the host
  std::optional<double> hw_ns;      // hardware execution time from the driver
  std::optional<double> min_bytes;  // compulsory traffic: input, output and weights once
  std::optional<double> max_bytes;  // every tensor of every layer written and read once
  std::size_t cores = 16;
  Precision precision = Precision::kFp16;  // of the multiplier's operands
  std::string architecture;                // "h16g", as the driver names it; empty: unknown
  Layout layout = Layout::kUnknown;        // if kUnknown, decode() detects it
};

// Codes of what limits the use of a decoding.
namespace reason {
inline constexpr std::string_view kCountersInconsistent = "COUNTERS_INCONSISTENT";
inline constexpr std::string_view kAboveMacCeiling = "ABOVE_MAC_CEILING";
inline constexpr std::string_view kPeakAssumed = "PEAK_ASSUMED";
inline constexpr std::string_view kClockFromWall = "CLOCK_FROM_WALL";
inline constexpr std::string_view kLayoutUnknown = "LAYOUT_UNKNOWN";
inline constexpr std::string_view kNoTrafficBounds = "NO_TRAFFIC_BOUNDS";
inline constexpr std::string_view kTrafficUnstable = "TRAFFIC_UNSTABLE";
inline constexpr std::string_view kFewWindows = "FEW_WINDOWS";
inline constexpr std::string_view kCounterReset = "COUNTER_RESET";
inline constexpr std::string_view kOtherClient = "OTHER_ANE_CLIENT";
}  // namespace reason

struct ReasonRow {
  std::string_view code;
  std::string_view sentence;
};

std::span<const ReasonRow> reason_table();

// One accounting check. `left` and `right` are the two sides of the claim, in its unit.
struct Identity {
  std::string_view name;
  std::string_view scope;  // "numbers", "breakdown" (stalls, traffic) or "hypothesis"
  std::string_view claim;
  double left = 0;
  double right = 0;
  bool holds = false;
};

// Share of the nominal cycles, at most 1, of the register with that index.
struct Share {
  std::size_t index;
  double of_nominal;
};

struct Decoded {
  Status status = Status::kOk;
  Layout layout = Layout::kUnknown;
  std::vector<std::string> layout_evidence;
  std::optional<double> macs_per_cycle_core;
  std::optional<double> macs_per_cycle_chip;
  std::optional<double> peak_macs_per_cycle_core;
  std::optional<double> utilisation;        // of that peak, at most 1
  std::optional<double> clock_hz;           // a lower bound if only wall time is known
  std::optional<double> ops_per_s;          // two per multiply-accumulate, from wall time
  std::optional<double> hw_ops_per_s;       // the same, from hardware time
  std::optional<double> ceiling_ops_per_s;  // peak at clock_hz
  std::optional<double> dispatch_ns;        // wall time minus hardware time
  std::optional<std::size_t> dma_register;
  std::optional<double> dma_bytes;
  std::optional<double> dma_read_bytes;
  std::optional<double> dma_bytes_per_s;  // from hardware time if known, else from wall time
  std::optional<double> energy_units;     // of unknown unit, never joules
  Deltas deltas;                          // the decoded changes, per evaluation
  std::vector<Share> shares;
  std::vector<Identity> identities;
  std::vector<std::string_view> reasons;
  std::size_t windows_used = 1;
  std::size_t windows_reset = 0;   // not used: counters went backwards
  std::size_t windows_shared = 0;  // not used: another program used the engine

  void add_reason(std::string_view code);  // ignores repeats
};

// Two snapshots before and after `evaluations` runs of one program. Times are means per evaluation.
struct Window {
  std::vector<std::uint64_t> before;
  std::vector<std::uint64_t> after;
  std::uint64_t evaluations = 0;
  std::optional<double> wall_ns;
  std::optional<double> hw_ns;
};

struct Observation {
  Deltas deltas;
  std::optional<double> macs;
  std::optional<double> min_bytes;
  std::optional<double> max_bytes;
};

struct Detection {
  Layout layout = Layout::kUnknown;
  std::vector<std::string> evidence;
};

// The one layout that some observation supports and none contradicts; kUnknown if there is not
// exactly one. Evidence: which register is an accumulator too large for cycles, traffic within its
// bounds, and no traffic register that follows cycles in workloads of different intensity.
Detection detect_layout(std::span<const Observation> observations);

// Change of the register; nullopt if it was not saved.
std::optional<double> value_at(const Deltas& deltas, std::size_t index);

// Whether `bytes` lies between min_bytes and 1.05 max_bytes.
bool traffic_within_bounds(double bytes, double min_bytes, double max_bytes);

// Registers from the framework's little-endian data; nullopt unless it holds 24 to 64 whole
// registers.
std::optional<std::vector<std::uint64_t>> parse_registers(std::span<const std::uint8_t> data);

// Throws std::invalid_argument if a value in the context is not positive and finite, or there are
// no cores.
Decoded decode(const Deltas& deltas, const Context& context);

// Decodes the cleanest of several windows. Windows that went backwards, or have over 5 % more
// nominal cycles than the lowest, are not used, and traffic must repeat within 0.5 %. The windows'
// times replace those in `context`.
Decoded decode_windows(std::span<const Window> windows, const Context& context);

}  // namespace nnbt::ane
