#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "ane/counters.h"

namespace nnbt::ane {
namespace {

// Nominal cycles of one program repeat to well under 1 %; another client adds its own.
constexpr double kSharedCycles = 1.05;
constexpr double kTrafficRepeats = 0.005;
constexpr std::size_t kMinWindows = 3;

struct CleanWindow {
  const Window* window;
  Deltas deltas;
  double nominal;
};

bool went_backwards(const Window& window) {
  if (window.before.size() != window.after.size()) return true;
  return !std::ranges::equal(
      window.before, window.after,
      [](std::uint64_t before, std::uint64_t after) { return before <= after; });
}

bool all_zero(const Window& window) {
  const auto is_zero = [](std::uint64_t value) { return value == 0; };
  return std::ranges::all_of(window.before, is_zero) && std::ranges::all_of(window.after, is_zero);
}

Deltas deltas_of(const Window& window) {
  Deltas deltas;
  deltas.reserve(window.after.size());
  for (std::size_t i = 0; i < window.after.size(); ++i) {
    deltas.emplace_back((window.after[i] - window.before[i]) / window.evaluations);
  }
  return deltas;
}

void check_traffic_repeats(std::span<const CleanWindow> windows, Decoded& out) {
  if (!out.dma_register) return;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const CleanWindow& window : windows) {
    const double lines = value_at(window.deltas, *out.dma_register).value_or(0);
    least = std::min(least, lines);
    most = std::max(most, lines);
  }
  if (most - least <= kTrafficRepeats * most) return;
  out.dma_register.reset();
  out.dma_bytes.reset();
  out.dma_read_bytes.reset();
  out.dma_bytes_per_s.reset();
  out.add_reason(reason::kTrafficUnstable);
}

// The result if no window can be decoded.
Decoded without_window(std::span<const Window> windows, std::size_t resets) {
  Decoded out;
  out.windows_used = 0;
  out.windows_reset = resets;
  out.status = windows.empty() ? Status::kLockedNoCounters : Status::kReset;
  return out;
}

}  // namespace

Decoded decode_windows(std::span<const Window> windows, const Context& context) {
  std::vector<CleanWindow> clean;
  std::size_t resets = 0;
  double fewest = std::numeric_limits<double>::infinity();
  for (const Window& window : windows) {
    if (window.evaluations == 0) throw std::invalid_argument("a window without evaluations");
    if (went_backwards(window)) {
      ++resets;
      continue;
    }
    Deltas deltas = deltas_of(window);
    const double nominal = value_at(deltas, kNominalCycles).value_or(0);
    if (nominal > 0) fewest = std::min(fewest, nominal);
    clean.push_back({&window, std::move(deltas), nominal});
  }
  if (clean.empty()) return without_window(windows, resets);

  const std::size_t complete = clean.size();
  std::erase_if(clean, [fewest](const CleanWindow& window) {
    return window.nominal > kSharedCycles * fewest;
  });
  const auto best = std::ranges::min_element(clean, {}, &CleanWindow::nominal);
  Context own = context;
  own.wall_ns = best->window->wall_ns;
  own.hw_ns = best->window->hw_ns;
  Decoded out = decode(best->deltas, own);
  if (out.status == Status::kZeros && !all_zero(*best->window)) out.status = Status::kFrozen;
  out.windows_used = clean.size();
  out.windows_reset = resets;
  out.windows_shared = complete - clean.size();
  check_traffic_repeats(clean, out);
  if (resets > 0) out.add_reason(reason::kCounterReset);
  if (out.windows_shared > 0) out.add_reason(reason::kOtherClient);
  if (clean.size() < kMinWindows) out.add_reason(reason::kFewWindows);
  return out;
}

}  // namespace nnbt::ane
