#include "ane/counters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace nnbt::ane {
namespace {

constexpr double kOpsPerMac = 2.0;
constexpr double kNsPerSecond = 1e9;
constexpr double kMinClockHz = 0.3e9;
constexpr double kMaxClockHz = 4e9;
// The usual operation count treats SAME borders as full: 0.5 % too many at 256 x 256, 2.1 % at 64 x
// 64.
constexpr double kBorderOvercount = 1.022;
constexpr double kImplausibleUtilisation = 1.6;
constexpr double kClosure = 0.02;
constexpr double kHypothesis = 0.05;

struct PeakRow {
  Precision precision;
  unsigned first_generation;
  double macs_per_cycle_core;
};

// Measured saturation: FP16 on M1, M3, M4, M5; INT8 is no faster on M1 and M3 and twice as fast
// from M4 on.
constexpr std::array kPeaks = {
    PeakRow{Precision::kFp16, 13, 256},
    PeakRow{Precision::kInt8, 13, 256},
    PeakRow{Precision::kInt8, 16, 512},
};
constexpr unsigned kWinogradGeneration = 18;  // 3x3 convolutions compute 1/1.5 of the count
constexpr double kWinogradGain = 1.5;

constexpr std::array kReasons = {
    ReasonRow{
        reason::kCountersInconsistent,
        "An accounting identity does not hold, so the numbers in its scope are not reliable."},
    ReasonRow{
        reason::kAboveMacCeiling,
        "More multiplies per cycle than lanes, because of counted borders or a Winograd algorithm: "
        "no utilisation is reported."},
    ReasonRow{
        reason::kPeakAssumed,
        "The architecture is unknown, so the INT8 peak of h16 and later (512) is assumed; h13 to "
        "h15 have 256."},
    ReasonRow{
        reason::kClockFromWall,
        "There is no hardware time: the clock is derived from wall time and is a lower bound."},
    ReasonRow{reason::kLayoutUnknown,
              "The data does not fit exactly one register layout, so traffic and energy are not "
              "identified."},
    ReasonRow{
        reason::kNoTrafficBounds,
        "Without bounds on the bytes of the workload, no register can be accepted as traffic."},
    ReasonRow{reason::kTrafficUnstable,
              "The traffic register differs by more than 0.5 % between windows of one program."},
    ReasonRow{reason::kFewWindows,
              "With fewer than three clean windows, other users of the engine cannot be detected."},
    ReasonRow{reason::kCounterReset, "Counters went backwards in a window, which was not used."},
    ReasonRow{
        reason::kOtherClient,
        "Nominal cycles differ by more than 5 % between windows: another program used the engine. "
        "Those windows were not used."},
};

std::optional<unsigned> generation_of(std::string_view architecture) {
  if (architecture.size() < 2 || architecture.front() != 'h') return std::nullopt;
  unsigned generation = 0;
  const std::string_view digits = architecture.substr(1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), generation);
  if (parsed.ec != std::errc{} || generation < kPeaks.front().first_generation) return std::nullopt;
  return generation;
}

double peak_of(Precision precision, unsigned generation) {
  double peak = 0;
  for (const PeakRow& row : kPeaks) {
    if (row.precision == precision && row.first_generation <= generation) {
      peak = row.macs_per_cycle_core;
    }
  }
  return peak;
}

void require_positive(const std::optional<double>& value, const char* name) {
  if (value && (!std::isfinite(*value) || *value <= 0)) {
    throw std::invalid_argument(std::string(name) + " must be positive and finite");
  }
}

void check_context(const Context& context) {
  require_positive(context.macs, "macs");
  require_positive(context.wall_ns, "wall_ns");
  require_positive(context.hw_ns, "hw_ns");
  require_positive(context.min_bytes, "min_bytes");
  require_positive(context.max_bytes, "max_bytes");
  if (context.cores == 0) throw std::invalid_argument("cores must be at least 1");
}

void add_identity(Decoded& out, const Identity& identity) {
  out.identities.push_back(identity);
  if (!identity.holds && identity.scope != "hypothesis") {
    out.add_reason(reason::kCountersInconsistent);
  }
}

bool near(double left, double right, double tolerance) {
  return std::abs(left - right) <= tolerance * right;
}

void decode_times(const Context& context, Decoded& out) {
  if (context.macs && context.wall_ns) {
    out.ops_per_s = kOpsPerMac * *context.macs / *context.wall_ns * kNsPerSecond;
  }
  if (context.macs && context.hw_ns) {
    out.hw_ops_per_s = kOpsPerMac * *context.macs / *context.hw_ns * kNsPerSecond;
  }
  if (context.wall_ns && context.hw_ns) {
    const bool holds = *context.hw_ns <= *context.wall_ns;
    add_identity(out, {"hw_within_wall", "numbers", "hardware time <= wall time (ns)",
                       *context.hw_ns, *context.wall_ns, holds});
    if (holds) out.dispatch_ns = *context.wall_ns - *context.hw_ns;
  }
}

// False if the clock or the multiplies per cycle are beyond the hardware.
bool decode_cycles(double nominal, const Context& context, Decoded& out) {
  const auto cores = static_cast<double>(context.cores);
  bool plausible = true;
  if (const auto time_ns = context.hw_ns ? context.hw_ns : context.wall_ns) {
    const double clock = nominal / (*time_ns / kNsPerSecond * cores);
    // Wall time includes dispatch, so a low clock from it proves nothing.
    plausible = clock <= kMaxClockHz && (clock >= kMinClockHz || !context.hw_ns);
    out.clock_hz = clock;
    if (!context.hw_ns) out.add_reason(reason::kClockFromWall);
    add_identity(out, {"clock_plausible", "numbers", "0.3e9 <= clock <= 4e9 (Hz)", clock,
                       kMaxClockHz, plausible});
  }
  const auto generation = generation_of(context.architecture);
  const double peak =
      peak_of(context.precision, generation.value_or(kPeaks.back().first_generation));
  if (!generation && context.precision == Precision::kInt8) out.add_reason(reason::kPeakAssumed);
  out.peak_macs_per_cycle_core = peak;
  if (out.clock_hz) out.ceiling_ops_per_s = kOpsPerMac * peak * cores * *out.clock_hz;
  if (!context.macs) return plausible;

  const double rate = *context.macs / nominal;
  const double gain = generation.value_or(0) >= kWinogradGeneration ? kWinogradGain : 1.0;
  add_identity(
      out, {"macs_within_lanes", "numbers", "multiplies <= lanes x nominal cycles", *context.macs,
            peak * gain * nominal, *context.macs <= kBorderOvercount * peak * gain * nominal});
  out.macs_per_cycle_core = rate;
  out.macs_per_cycle_chip = rate * cores;
  if (rate <= peak) {
    out.utilisation = rate / peak;
  } else {
    out.add_reason(reason::kAboveMacCeiling);
  }
  return plausible && rate <= kImplausibleUtilisation * peak;
}

void withhold_cycles(Decoded& out) {
  out.macs_per_cycle_core.reset();
  out.macs_per_cycle_chip.reset();
  out.utilisation.reset();
  out.clock_hz.reset();
  out.ceiling_ops_per_s.reset();
}

void decode_layout(const Deltas& deltas, const Context& context, Decoded& out) {
  out.layout = context.layout;
  if (out.layout == Layout::kUnknown) {
    const std::array observations = {
        Observation{deltas, context.macs, context.min_bytes, context.max_bytes}};
    Detection detection = detect_layout(observations);
    out.layout = detection.layout;
    out.layout_evidence = std::move(detection.evidence);
  }
  if (out.layout == Layout::kUnknown) out.add_reason(reason::kLayoutUnknown);
}

void decode_traffic(const Deltas& deltas, const Context& context, Decoded& out) {
  for (const LayoutRow& row : layout_table()) {
    if (row.layout != out.layout) continue;
    out.energy_units = value_at(deltas, row.energy);
    const auto total = value_at(deltas, row.dma_total);
    const auto read = value_at(deltas, row.dma_read);
    if (!total) return;
    if (read) {
      add_identity(out, {"reads_within_traffic", "breakdown", "reads <= traffic (lines)", *read,
                         *total, *read <= *total});
    }
    if (!context.min_bytes || !context.max_bytes) {
      out.add_reason(reason::kNoTrafficBounds);
      return;
    }
    const double bytes = *total * static_cast<double>(kDmaLineBytes);
    const bool holds = traffic_within_bounds(bytes, *context.min_bytes, *context.max_bytes);
    add_identity(out, {"traffic_within_bounds", "breakdown", "least <= traffic <= most (bytes)",
                       bytes, *context.max_bytes, holds});
    if (!holds) return;
    out.dma_register = row.dma_total;
    out.dma_bytes = bytes;
    if (read && *read <= *total) out.dma_read_bytes = *read * static_cast<double>(kDmaLineBytes);
    if (const auto time_ns = context.hw_ns ? context.hw_ns : context.wall_ns) {
      out.dma_bytes_per_s = bytes / *time_ns * kNsPerSecond;
    }
  }
}

std::optional<double> sum_of(const Deltas& deltas, std::span<const std::size_t> indices) {
  double sum = 0;
  for (const std::size_t index : indices) {
    const auto value = value_at(deltas, index);
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum;
}

void decode_breakdown(const Deltas& deltas, double nominal, const Context& context, Decoded& out) {
  constexpr std::array<std::size_t, 4> kPipeline = {13, 14, 15, 16};
  constexpr std::array<std::size_t, 3> kPublished = {13, 15, 21};
  constexpr std::array<std::size_t, 3> kShifted = {12, 13, 14};
  constexpr std::size_t kThrottle = 11;
  constexpr std::size_t kShiftedCompute = 12;
  const auto pipeline = sum_of(deltas, kPipeline);
  if (pipeline) {
    add_identity(out, {"framework_closure", "breakdown",
                       "[13] + [14] + [15] + [16] = nominal cycles, by the framework's names",
                       *pipeline, nominal, near(*pipeline, nominal, kClosure)});
  }
  const auto published = sum_of(deltas, kPublished);
  if (published && out.layout != Layout::kDmaAt17) {
    add_identity(out, {"published_closure", "breakdown",
                       "[13] + [15] + [21] = nominal cycles, a published claim", *published,
                       nominal, near(*published, nominal, kClosure)});
  }
  if (const auto sum = sum_of(deltas, kShifted)) {
    add_identity(out, {"shifted_within_nominal", "hypothesis",
                       "[12] + [13] + [14] <= nominal cycles, if the names are shifted by one",
                       *sum, nominal, *sum <= nominal});
  }
  const auto compute = value_at(deltas, kShiftedCompute);
  if (compute && context.macs && out.peak_macs_per_cycle_core) {
    const double expected = *context.macs / *out.peak_macs_per_cycle_core;
    add_identity(out, {"shifted_compute", "hypothesis",
                       "[12] = multiplies / lanes, if the names are shifted by one", *compute,
                       expected, near(*compute, expected, kHypothesis)});
  }
  const auto add_share = [&](std::size_t index) {
    const auto value = value_at(deltas, index);
    if (value && *value <= nominal) out.shares.push_back({index, *value / nominal});
  };
  add_share(kThrottle);
  double saved = 0;
  for (const std::size_t index : kPipeline) saved += value_at(deltas, index).value_or(0);
  if (saved > nominal) return;
  for (const std::size_t index : kPipeline) add_share(index);
}

}  // namespace

std::span<const ReasonRow> reason_table() { return kReasons; }

void Decoded::add_reason(std::string_view code) {
  if (std::ranges::find(reasons, code) == reasons.end()) reasons.push_back(code);
}

std::optional<std::vector<std::uint64_t>> parse_registers(std::span<const std::uint8_t> data) {
  constexpr std::size_t kBytes = sizeof(std::uint64_t);
  constexpr unsigned kBitsPerByte = 8;
  const std::size_t count = data.size() / kBytes;
  if (data.size() % kBytes != 0 || count < kMinRegisters || count > kMaxRegisters) {
    return std::nullopt;
  }
  std::vector<std::uint64_t> registers(count);
  for (std::size_t i = 0; i < data.size(); ++i) {
    registers[i / kBytes] |= std::uint64_t{data[i]} << (kBitsPerByte * (i % kBytes));
  }
  return registers;
}

Decoded decode(const Deltas& deltas, const Context& context) {
  check_context(context);
  Decoded out;
  out.deltas = deltas;
  decode_times(context, out);
  if (deltas.size() < kMinRegisters) {
    out.status = Status::kLockedNoCounters;
    return out;
  }
  if (deltas.size() > kMaxRegisters) {
    out.status = Status::kUnknownFormat;
    return out;
  }
  const auto nominal = value_at(deltas, kNominalCycles);
  if (!nominal) throw std::invalid_argument("register 10, the nominal cycles, is missing");
  if (*nominal == 0) {
    const bool all_zero =
        std::ranges::all_of(deltas, [](const auto& delta) { return delta.value_or(0) == 0; });
    out.status = all_zero ? Status::kZeros : Status::kFrozen;
    return out;
  }
  decode_layout(deltas, context, out);
  if (!decode_cycles(*nominal, context, out)) {
    out.status = Status::kImplausible;
    withhold_cycles(out);
    return out;
  }
  decode_traffic(deltas, context, out);
  decode_breakdown(deltas, *nominal, context, out);
  return out;
}

}  // namespace nnbt::ane
