#include "ane/status.h"

#include <array>

#include "ane/registers.h"

namespace nnbt::ane {
namespace {

constexpr int kSignalAbort = 6;
constexpr int kSignalKill = 9;
constexpr int kShellSignalBase = 128;

constexpr std::array kStatuses = {
    StatusRow{Status::kOk, "ok", "The counters follow the work and stay within its bounds."},
    StatusRow{
        Status::kNoAne, "no_ane",
        "There is no Neural Engine here: use a Mac with Apple silicon, outside a virtual machine."},
    StatusRow{
        Status::kFrameworkMissing, "framework_missing",
        "The AppleNeuralEngine framework of this OS lacks a required class or method: use the "
        "MPSGraph rows, and report the OS build."},
    StatusRow{
        Status::kNotPlacedOnAne, "not_placed_on_ane",
        "The graph is not a single Neural Engine region, so counters would describe other work: "
        "use fp16 or int8 and a smaller shape."},
    StatusRow{
        Status::kNoRegion, "no_region",
        "The compiler emitted no region that can be replayed (newer releases use another format): "
        "use the MPSGraph latency."},
    StatusRow{
        Status::kLoadFailed, "load_failed",
        "The Neural Engine's daemon rejected the model: look up the domain and code of the error, "
        "and quit other programs that have loaded the same model."},
    StatusRow{Status::kLockedMaskZeroed, "locked_mask_zeroed",
              "The OS cleared the counter mask of this process: sign a copy of the helper (`nnbt "
              "sign-helper`). Times are still valid."},
    StatusRow{
        Status::kEvaluationFailed, "evaluation_failed",
        "An evaluation on the Neural Engine failed, so there are no times and no counters: try a "
        "smaller shape, and look up the domain and code of the error."},
    StatusRow{
        Status::kLockedNoStats, "locked_no_stats",
        "The model ran, but without statistics: sign a copy of the helper (`nnbt sign-helper`). "
        "Times are still valid."},
    StatusRow{
        Status::kLockedNoCounters, "locked_no_counters",
        "The statistics contain no counters, at most the hardware time: sign a copy of the helper "
        "(`nnbt sign-helper`). Times are still valid."},
    StatusRow{Status::kUnknownFormat, "unknown_format",
              "The counter data has an unknown length: keep the raw data and report the OS build."},
    StatusRow{
        Status::kZeros, "zeros",
        "Every register is zero, as for a process without permission: sign a copy of the helper "
        "(`nnbt sign-helper`)."},
    StatusRow{
        Status::kFrozen, "frozen",
        "The nominal cycles do not change while the model runs, so the counters are not live: use "
        "the times."},
    StatusRow{
        Status::kReset, "reset",
        "The counters went backwards in every window (unloading and power cycling reset them): run "
        "again, with longer windows."},
    StatusRow{
        Status::kImplausible, "implausible",
        "The clock or the multiplies per cycle exceed the hardware: another program may be using "
        "the Neural Engine, or this chip has different registers. Only raw values are shown."},
    StatusRow{Status::kKilledByAmfi, "killed_by_amfi",
              "The OS killed the signed helper at start because its entitlement is restricted: "
              "delete the "
              "signed copy. The shipped helper still measures times."},
    StatusRow{
        Status::kAborted, "aborted",
        "The helper aborted in a system framework (an assertion, as for INT8 convolution on the "
        "GPU): other variants are not affected."},
    StatusRow{
        Status::kTimedOut, "timed_out",
        "The helper did not answer in time and was stopped: wait 15 s for the daemon to recover, "
        "then try a smaller shape."},
    StatusRow{Status::kHelperFailed, "helper_failed",
              "The helper exited without a result: see its error output."},
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
