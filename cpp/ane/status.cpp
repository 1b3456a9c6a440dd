#include "ane/status.h"

#include <array>

#include "ane/registers.h"

namespace nnbt::ane {
namespace {

constexpr int kSignalAbort = 6;
constexpr int kSignalKill = 9;
constexpr int kShellSignalBase = 128;

constexpr std::array kStatuses = {
    StatusRow{Status::kOk, "ok", "The counters change with the work and stay within its bounds."},
    StatusRow{Status::kNoAne, "no_ane",
              "No Neural Engine can be reached here: run on a Mac with Apple silicon, outside of a "
              "virtual machine."},
    StatusRow{Status::kFrameworkMissing, "framework_missing",
              "This system's AppleNeuralEngine framework lacks a class or a method that is needed: "
              "use the MPSGraph rows, and report the build of the system."},
    StatusRow{Status::kNotPlacedOnAne, "not_placed_on_ane",
              "The graph isn't one Neural Engine region, so counters would describe other work: "
              "use fp16 or int8 and a smaller shape."},
    StatusRow{Status::kNoRegion, "no_region",
              "The compiler emitted no region that can be replayed (newer systems use another "
              "format): use the MPSGraph latency."},
    StatusRow{Status::kLoadFailed, "load_failed",
              "The Neural Engine's daemon refused the model: look up the error's domain and code, "
              "and end other programs that hold the same model."},
    StatusRow{Status::kLockedMaskZeroed, "locked_mask_zeroed",
              "The system cleared the counter mask for this process: sign a copy of the helper "
              "(`nnbt sign-helper`); times stay valid."},
    StatusRow{Status::kEvaluationFailed, "evaluation_failed",
              "An evaluation on the Neural Engine failed, so neither times nor counters are shown: "
              "try a smaller shape, and see the error's domain and code."},
    StatusRow{Status::kLockedNoStats, "locked_no_stats",
              "The system ran the model but returned no statistics: sign a copy of the helper "
              "(`nnbt sign-helper`); times stay valid."},
    StatusRow{Status::kLockedNoCounters, "locked_no_counters",
              "The statistics carry no counters, at most the hardware time: sign a copy of the "
              "helper (`nnbt sign-helper`); times stay valid."},
    StatusRow{Status::kUnknownFormat, "unknown_format",
              "The counter data has a length this version doesn't know: keep the raw data and "
              "report the build of the system."},
    StatusRow{Status::kZeros, "zeros",
              "Every register reads zero, as for a process that may not see them: sign a copy of "
              "the helper (`nnbt sign-helper`)."},
    StatusRow{Status::kFrozen, "frozen",
              "The nominal cycles don't move while the model runs: the counters are not live here, "
              "use the times."},
    StatusRow{Status::kReset, "reset",
              "The counters went backwards in every window (unloading or power cycling resets "
              "them): run again, with longer windows."},
    StatusRow{Status::kImplausible, "implausible",
              "Clock or multiplies per cycle are outside of what the hardware can do: another "
              "program may use the Neural Engine, or this chip's registers differ; only raw "
              "values are shown."},
    StatusRow{Status::kKilledByAmfi, "killed_by_amfi",
              "The system killed the signed helper at start, since its entitlement is restricted: "
              "delete the signed copy; the shipped helper still gives times."},
    StatusRow{Status::kAborted, "aborted",
              "The helper aborted inside a system framework (an assertion, such as INT8 "
              "convolution on the GPU): other variants are unaffected."},
    StatusRow{Status::kTimedOut, "timed_out",
              "The helper didn't answer in time and was stopped: wait 15 s for the daemon to "
              "recover, then try a smaller shape."},
    StatusRow{Status::kHelperFailed, "helper_failed",
              "The helper ended without a result: its error output says why."},
};

}  // namespace

std::span<const StatusRow> status_table() { return kStatuses; }

const StatusRow& status_row(Status status) {
  for (const StatusRow& row : kStatuses) {
    if (row.status == status) return row;
  }
  return kStatuses.back();
}

Status gate_status(const GateFacts& facts) {
  if (!facts.has_ane || facts.virtual_machine) return Status::kNoAne;
  if (!facts.framework_complete) return Status::kFrameworkMissing;
  if (!facts.fully_placed.value_or(true) || facts.regions > 1) return Status::kNotPlacedOnAne;
  if (facts.regions == 0) return Status::kNoRegion;
  if (!facts.loaded) return Status::kLoadFailed;
  if (!facts.evaluated) return Status::kEvaluationFailed;
  if (facts.mask.value_or(1U) == 0U) return Status::kLockedMaskZeroed;
  if (!facts.stats_present) return Status::kLockedNoStats;
  constexpr std::size_t kRegisterBytes = sizeof(std::uint64_t);
  const std::size_t bytes = facts.data_bytes.value_or(0);
  if (bytes < kMinRegisters * kRegisterBytes) return Status::kLockedNoCounters;
  if (bytes > kMaxRegisters * kRegisterBytes || bytes % kRegisterBytes != 0) {
    return Status::kUnknownFormat;
  }
  return Status::kOk;
}

Status helper_status(int return_code, bool timed_out, bool has_output) {
  if (timed_out) return Status::kTimedOut;
  const int signal = return_code < 0                  ? -return_code
                     : return_code > kShellSignalBase ? return_code - kShellSignalBase
                                                      : 0;
  if (signal == kSignalKill && !has_output) return Status::kKilledByAmfi;
  if (signal == kSignalAbort) return Status::kAborted;
  if (signal != 0 || return_code != 0 || !has_output) return Status::kHelperFailed;
  return Status::kOk;
}

}  // namespace nnbt::ane
