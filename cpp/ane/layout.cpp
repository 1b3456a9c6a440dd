#include <cmath>
#include <utility>

#include "ane/counters.h"

namespace nnbt::ane {
namespace {

// No cycle count reaches this multiple of the nominal core-cycles; accumulators reach 766 to 944.
constexpr double kAccumulatorPerCycle = 100.0;
constexpr double kTrafficSlack = 1.05;
// If the multiplies per byte of two workloads differ by this factor, a traffic register cannot show
// the same lines per cycle within 1 %, but a clock does (0.0470 to 0.0473 in seven M4 runs).
constexpr double kOtherIntensity = 1.5;
constexpr double kSameRate = 0.01;

struct Findings {
  std::size_t supporting = 0;
  std::size_t contradicting = 0;
  std::vector<std::string> sentences;

  void add(bool supports, std::string sentence) {
    ++(supports ? supporting : contradicting);
    sentences.push_back(std::move(sentence));
  }
};

std::string name_of(const LayoutRow& row, std::size_t index) {
  return std::string(row.name) + ": register " + std::to_string(index);
}

void check_traffic(const LayoutRow& row, const Observation& seen, Findings& findings) {
  const auto total = value_at(seen.deltas, row.dma_total);
  if (!total) return;
  const std::string name = name_of(row, row.dma_total);
  if (*total == 0) {
    findings.add(false, name + " is zero, but every run reads its input");
    return;
  }
  const auto read = value_at(seen.deltas, row.dma_read);
  if (read && *read > *total) findings.add(false, name + " is below the reads, which it includes");
  const double bytes = *total * static_cast<double>(kDmaLineBytes);
  if (seen.min_bytes && bytes < *seen.min_bytes) {
    findings.add(false, name + " times 64 is below the compulsory traffic");
  } else if (seen.max_bytes && bytes > kTrafficSlack * *seen.max_bytes) {
    findings.add(false, name + " times 64 exceeds every tensor moved once per layer");
  } else if (seen.min_bytes && seen.max_bytes) {
    findings.add(true, name + " times 64 is within the traffic bounds");
  }
}

void check_accumulator(const LayoutRow& row, const Observation& seen, Findings& findings) {
  const auto energy = value_at(seen.deltas, row.energy);
  const auto nominal = value_at(seen.deltas, kNominalCycles);
  if (!energy || !nominal || *nominal == 0) return;
  const bool accumulates = *energy > kAccumulatorPerCycle * *nominal;
  findings.add(accumulates, name_of(row, row.energy) +
                                (accumulates ? " is too large for cycles, as energy is"
                                             : " is no larger than cycles, unlike energy"));
}

struct Rate {
  double macs_per_byte;
  double lines_per_cycle;
};

std::optional<Rate> rate_of(const LayoutRow& row, const Observation& seen) {
  const auto total = value_at(seen.deltas, row.dma_total);
  const auto nominal = value_at(seen.deltas, kNominalCycles);
  if (!total || !nominal || *nominal == 0 || !seen.macs || !seen.min_bytes) return std::nullopt;
  return Rate{*seen.macs / *seen.min_bytes, *total / *nominal};
}

bool follows_cycles(const Rate& a, const Rate& b) {
  const double intensity = a.macs_per_byte / b.macs_per_byte;
  if (intensity < kOtherIntensity && intensity > 1.0 / kOtherIntensity) return false;
  return std::abs(a.lines_per_cycle - b.lines_per_cycle) <= kSameRate * b.lines_per_cycle;
}

void check_clock_like(const LayoutRow& row, std::span<const Observation> observations,
                      Findings& findings) {
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const auto first = rate_of(row, observations[i]);
    for (std::size_t j = i + 1; first && j < observations.size(); ++j) {
      const auto second = rate_of(row, observations[j]);
      if (second && follows_cycles(*first, *second)) {
        findings.add(false, name_of(row, row.dma_total) +
                                " follows cycles, not bytes, in two different workloads");
        return;
      }
    }
  }
}

}  // namespace

std::optional<double> value_at(const Deltas& deltas, std::size_t index) {
  if (index >= deltas.size()) return std::nullopt;
  const std::optional<std::uint64_t>& delta = deltas[index];
  if (!delta) return std::nullopt;
  return static_cast<double>(*delta);
}

bool traffic_within_bounds(double bytes, double min_bytes, double max_bytes) {
  return bytes >= min_bytes && bytes <= kTrafficSlack * max_bytes;
}

Detection detect_layout(std::span<const Observation> observations) {
  Detection detection;
  std::size_t candidates = 0;
  for (const LayoutRow& row : layout_table()) {
    Findings findings;
    for (const Observation& seen : observations) {
      check_traffic(row, seen, findings);
      check_accumulator(row, seen, findings);
    }
    check_clock_like(row, observations, findings);
    if (findings.contradicting == 0 && findings.supporting > 0) {
      ++candidates;
      detection.layout = row.layout;
    }
    for (std::string& text : findings.sentences) detection.evidence.push_back(std::move(text));
  }
  if (candidates != 1) detection.layout = Layout::kUnknown;
  return detection;
}

}  // namespace nnbt::ane
