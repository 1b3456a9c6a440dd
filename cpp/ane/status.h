// What stands between a process and the Neural Engine's counters, decided by what was observed,
// never by entitlements or boot-args (those are hints only).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace nnbt::ane {

enum class Status : std::uint8_t {
  kOk,
  kNoAne,
  kFrameworkMissing,
  kNotPlacedOnAne,
  kNoRegion,
  kLoadFailed,
  kLockedMaskZeroed,
  kEvaluationFailed,
  kLockedNoStats,
  kLockedNoCounters,
  kUnknownFormat,
  kZeros,
  kFrozen,
  kReset,
  kImplausible,
  kKilledByAmfi,
  kAborted,
  kTimedOut,
  kHelperFailed,
};

struct StatusRow {
  Status status;
  std::string_view name;
  std::string_view sentence;  // what it means and what the user can do
};

std::span<const StatusRow> status_table();
const StatusRow& status_row(Status status);

// What the replay saw, in the order in which it sees it. An optional without a value was not seen.
struct GateFacts {
  bool has_ane = false;
  bool virtual_machine = false;
  bool framework_complete = false;        // every class and selector is there
  std::optional<bool> fully_placed;       // from the package manifest
  std::size_t regions = 0;                // regions that the compiler emitted for replay
  bool loaded = false;                    // the daemon took the model
  std::optional<std::uint32_t> mask;      // counter mask of the model, read back after loading
  bool evaluated = false;                 // every evaluation succeeded
  bool stats_present = false;             // the request carries performance statistics
  std::optional<std::size_t> data_bytes;  // length of the counter data
};

// The first obstacle, or kOk: the counter data is there and can be decoded.
Status gate_status(const GateFacts& facts);

// How the helper process ended. `return_code` is negative for a signal, as in Python's subprocess;
// 128 + signal, a shell's form, is understood too.
Status helper_status(int return_code, bool timed_out, bool has_output);

}  // namespace nnbt::ane
