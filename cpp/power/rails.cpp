#include "power/rails.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <iomanip>
#include <sstream>
#include <utility>

namespace nnbt {
namespace {

// An idle M3 Max uses 0.04 W for all cores, so 4 mJ in this time; the counters have a resolution of
// 1 mJ.
constexpr std::int64_t kFrozenWindowNs = 100'000'000;
constexpr double kSpanTolerance = 0.1;
constexpr double kMaxWatts = 1000.0;

struct Scale {
  std::string_view unit;
  double counts_per_joule;
};
constexpr std::array kScales = {Scale{"mJ", 1e3}, Scale{"uJ", 1e6}, Scale{"nJ", 1e9}};

// Whole rails only: the group also lists cores, clusters and caches, which are parts of them. The
// first pattern of a rail that matches any channel is used, so that a package and its dies are
// never added up. # is a number. Channel lists: M5 Max, M1 Ultra and M5 Ultra (lablup/all-smi).
struct Family {
  std::string_view rail;
  std::string_view pattern;
};
constexpr std::array kFamilies = {
    Family{"CPU", "CPU Energy"},
    Family{"CPU", "DIE_#_CPU Energy"},
    Family{"GPU", "GPU Energy"},
    Family{"GPU", "GPU"},
    Family{"GPU", "GPU#"},
    Family{"GPU", "GPU#_#"},
    Family{"GPU SRAM", "GPU SRAM"},
    Family{"GPU SRAM", "GPU SRAM#"},
    Family{"GPU SRAM", "GPU SRAM#_#"},
    Family{"ANE", "ANE"},
    Family{"ANE", "ANE#"},
    Family{"ANE", "ANE#_#"},
    Family{"DRAM", "DRAM"},
    Family{"DRAM", "DRAM#"},
    Family{"DRAM", "DRAM#_#"},
};
constexpr std::string_view kWitness = "CPU";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool matches(std::string_view pattern, std::string_view name) {
  for (const char c : pattern) {
    std::size_t length = 1;
    if (c == '#') {
      length = static_cast<std::size_t>(std::ranges::find_if_not(name, is_digit) - name.begin());
    } else if (!name.starts_with(c)) {
      return false;
    }
    if (length == 0) return false;
    name.remove_prefix(length);
  }
  return name.empty();
}

// The same counter in the other sample. Names may repeat, but keep their order.
const EnergyCounter* counterpart(const EnergySample& begin, const EnergySample& end,
                                 const EnergyCounter& counter) {
  const auto same = [&](const EnergyCounter& c) { return c.channel == counter.channel; };
  std::size_t earlier = 0;
  for (const EnergyCounter& c : end) {
    if (&c == &counter) break;
    if (same(c)) ++earlier;
  }
  for (const EnergyCounter& c : begin) {
    if (same(c) && earlier-- == 0) return &c;
  }
  return nullptr;
}

struct Change {
  std::string channel;
  std::string trouble;  // why there is no difference
  double joules = 0;
  std::optional<std::int64_t> span_ns;  // between the two updates
};

struct Rail {
  std::string_view name;
  std::vector<Change> changes;
};

Change change_of(const EnergySample& begin, const EnergySample& end, const EnergyCounter& counter) {
  Change change{.channel = counter.channel, .trouble = {}, .joules = 0, .span_ns = {}};
  const std::optional<double> scale = counts_per_joule(counter.unit);
  const EnergyCounter* before = counterpart(begin, end, counter);
  if (!scale) {
    change.trouble = "has the unknown unit \"" + counter.unit + "\"";
  } else if (before == nullptr) {
    change.trouble = "appeared during the window";
  } else {
    // Wraps instead of overflowing: garbage values must end up as a rejected change.
    const auto counts = static_cast<std::int64_t>(static_cast<std::uint64_t>(counter.value) -
                                                  static_cast<std::uint64_t>(before->value));
    change.joules = static_cast<double>(counts) / *scale;
    if (before->published_ns != 0 && counter.published_ns != 0) {
      change.span_ns = counter.published_ns - before->published_ns;
    }
  }
  return change;
}

std::vector<Rail> rails_of(const EnergySample& begin, const EnergySample& end) {
  std::vector<Rail> rails;
  std::string_view filled;  // the rail that an earlier pattern has filled
  for (const auto& [rail, pattern] : kFamilies) {
    if (rail == filled) continue;
    Rail found{rail, {}};
    for (const EnergyCounter& counter : end) {
      if (matches(pattern, counter.channel)) {
        found.changes.push_back(change_of(begin, end, counter));
      }
    }
    if (found.changes.empty()) continue;
    filled = rail;
    rails.push_back(std::move(found));
  }
  return rails;
}

bool moved(const Change& change) { return change.joules != 0; }
bool stood_still(const Change& change) { return change.trouble.empty() && change.joules == 0; }

double joules(const Rail& rail) {
  double sum = 0;
  for (const Change& change : rail.changes) sum += change.joules;
  return sum;
}

std::string seconds(std::int64_t ns) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(3) << static_cast<double>(ns) * 1e-9 << " s";
  return text.str();
}

// Why a change cannot be the energy of the window; empty if it can.
std::string doubt(const Change& change, std::int64_t window_ns) {
  const std::string& channel = change.channel;
  if (!change.trouble.empty()) return channel + " " + change.trouble;
  if (change.joules < 0) return channel + " went backwards";
  const double window_s = static_cast<double>(window_ns) * 1e-9;
  if (change.joules > kMaxWatts * window_s) return channel + " implies more than 1 kW";
  if (!change.span_ns) return {};
  const auto apart = static_cast<double>(std::abs(*change.span_ns - window_ns));
  if (apart <= kSpanTolerance * static_cast<double>(window_ns)) return {};
  return channel + " covers " + seconds(*change.span_ns) + ", but the window is " +
         seconds(window_ns);
}

void append(std::string& text, const std::string& more) {
  if (!text.empty()) text += "; ";
  text += more;
}

// The CPU's rail changes whenever a program runs; without one, at least one of the others does.
std::vector<Rail> witnesses_of(const std::vector<Rail>& rails) {
  const auto cpu = std::ranges::find(rails, kWitness, &Rail::name);
  return cpu == rails.end() ? rails : std::vector<Rail>{*cpu};
}

std::string names_of(const std::vector<Rail>& rails) {
  std::string names;
  for (const Rail& rail : rails) names += (names.empty() ? "" : ", ") + std::string(rail.name);
  return names;
}

// What the update times say about counters that did not change.
std::string frozen_reason(const std::vector<Rail>& witnesses) {
  bool stamped = false;
  bool republished = false;
  for (const Rail& rail : witnesses) {
    for (const Change& change : rail.changes) {
      stamped |= change.span_ns.has_value();
      republished |= change.span_ns.value_or(0) > 0;
    }
  }
  if (republished) return "although they were updated: this system hides them";
  if (stamped) {
    return "and were not updated in that time: some systems update them every 2 s or less often, "
           "so "
           "use a longer window";
  }
  return "which is impossible while a program runs: this system hides them";
}

EnergyVerdict believed(const std::vector<Rail>& rails, std::int64_t window_ns) {
  EnergyVerdict verdict{.source = EnergySource::kOk, .detail = {}, .energy_j = {}};
  for (const Rail& rail : rails) {
    std::string sum;
    std::string doubts;
    for (const Change& change : rail.changes) {
      sum += (sum.empty() ? "" : " + ") + change.channel;
      if (const std::string why = doubt(change, window_ns); !why.empty()) append(doubts, why);
    }
    if (doubts.empty()) {
      verdict.energy_j.emplace(rail.name, joules(rail));
      append(verdict.detail, std::string(rail.name) + " is " + sum);
    } else {
      append(verdict.detail, std::string(rail.name) + " is left out: " + doubts);
    }
  }
  return verdict;
}

}  // namespace

std::string_view energy_source_name(EnergySource source) {
  constexpr std::array<std::string_view, 4> kNames = {"absent", "denied", "frozen_zero", "ok"};
  return kNames.at(static_cast<std::size_t>(source));
}

std::optional<double> counts_per_joule(std::string_view unit) {
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  while (unit.ends_with(' ')) unit.remove_suffix(1);
  const auto found = std::ranges::find(kScales, unit, &Scale::unit);
  if (found == kScales.end()) return std::nullopt;
  return found->counts_per_joule;
}

EnergyVerdict judge_energy(const EnergySample& begin, const EnergySample& end,
                           std::int64_t window_ns) {
  const std::vector<Rail> rails = rails_of(begin, end);
  if (rails.empty()) {
    const std::string count = std::to_string(end.size());
    return {
        EnergySource::kAbsent, "none of " + count + " energy channels belongs to a known rail", {}};
  }
  const std::vector<Rail> witnesses = witnesses_of(rails);
  const auto frozen = [](const Rail& rail) {
    return std::ranges::all_of(rail.changes, stood_still);
  };
  if (!std::ranges::all_of(witnesses, frozen)) return believed(rails, window_ns);
  if (window_ns < kFrozenWindowNs) {
    return {EnergySource::kOk,
            "no counter changed in " + seconds(window_ns) + ": measure for longer than " +
                seconds(kFrozenWindowNs),
            {}};
  }
  std::string detail = "the counters of " + names_of(witnesses) + " did not change in " +
                       seconds(window_ns) + ", " + frozen_reason(witnesses);
  for (const Rail& rail : rails) {
    if (!std::ranges::any_of(rail.changes, moved)) continue;
    append(detail, std::string(rail.name) + " changed, but is left out too");
  }
  return {EnergySource::kFrozenZero, detail, {}};
}

}  // namespace nnbt
