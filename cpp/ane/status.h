// Whether a process can read the Neural Engine's counters, decided from what was observed, never
// from entitlements or boot-args (which are only hints).
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

// What the replay observed, in that order. An optional without a value was not observed.
struct GateFacts {
  bool has_ane = false;
  bool virtual_machine = false;
  bool framework_complete = false;        // every class and selector exists
  std::optional<bool> fully_placed;       // from the package manifest
  std::size_t regions = 0;                // regions that can be replayed
  bool loaded = false;                    // the daemon accepted the model
  std::optional<std::uint32_t> mask;      // counter mask of the model, read back after loading
  bool evaluated = false;                 // every evaluation succeeded
  bool stats_present = false;             // the request has performance statistics
  std::optional<std::size_t> data_bytes;  // length of the counter data
};

// The first obstacle, or kOk if there is counter data that can be decoded.
Status gate_status(const GateFacts& facts);

// How the helper process ended. `return_code` is negative for a signal, as in Python's subprocess;
// the shell's 128 + signal works too.
Status helper_status(int return_code, bool timed_out, bool has_output);

}  // namespace nnbt::ane
