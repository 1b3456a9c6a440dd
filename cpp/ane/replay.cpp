#include "ane/replay.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace nnbt::ane {
namespace {

// One evaluation and its hardware time. The framework keeps only the last one, so it is read within
// the timed run: three message sends, about 10 ns of at least 0.1 ms.
class Evaluation final : public Step {
 public:
  explicit Evaluation(Program& program) : program_(program) {}

  void run() override {
    program_.run();
    hw_ns_.push_back(program_.hw_ns());
  }

  std::vector<std::optional<std::uint64_t>> take_hw_ns() { return std::exchange(hw_ns_, {}); }

 private:
  Program& program_;
  std::vector<std::optional<std::uint64_t>> hw_ns_;
};

template <typename Number>
double mean_of(const std::vector<Number>& values) {
  double sum = 0;
  for (const Number value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

// Empty if one of them is missing.
std::vector<std::uint64_t> all_or_none(const std::vector<std::optional<std::uint64_t>>& values) {
  std::vector<std::uint64_t> all;
  for (const auto& value : values) {
    if (!value) return {};
    all.push_back(*value);
  }
  return all;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

MeasureOptions warmup_options() {
  MeasureOptions options;
  options.warmup = 0;
  options.min_runs = kWarmupRuns;
  options.budget_s = kWarmupSeconds;
  options.min_window_s = kWarmupSeconds;
  return options;
}

MeasureOptions window_options(const ReplayOptions& options) {
  MeasureOptions window = options.measure;
  window.warmup = 0;
  window.budget_s /= static_cast<double>(options.windows);
  window.min_window_s = std::max(window.min_window_s, kWarmupSeconds);
  return window;
}

bool any_register(const Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.registers, [](std::uint64_t value) { return value != 0; });
}

void take_windows(Program& program, const ReplayOptions& options, Clock now, Snapshot& last,
                  Replay& out) {
  Evaluation evaluation(program);
  measure(evaluation, warmup_options(), {}, {}, now);
  evaluation.take_hw_ns();
  last = program.snapshot();
  const MeasureOptions window = window_options(options);
  bool all_have_hw = true;
  for (std::int64_t i = 0; i < options.windows; ++i) {
    Snapshot before = std::exchange(last, {});
    const Samples samples = measure(evaluation, window, {}, {}, now);
    last = program.snapshot();
    const std::vector<std::uint64_t> hw_ns = all_or_none(evaluation.take_hw_ns());
    out.wall_samples_ns.insert(out.wall_samples_ns.end(), samples.samples_ns.begin(),
                               samples.samples_ns.end());
    out.hw_samples_ns.insert(out.hw_samples_ns.end(), hw_ns.begin(), hw_ns.end());
    all_have_hw = all_have_hw && !hw_ns.empty();
    if (before.registers.empty() || last.registers.empty()) continue;
    Window taken{std::move(before.registers), last.registers, samples.samples_ns.size(),
                 mean_of(samples.samples_ns), std::nullopt};
    if (!hw_ns.empty()) taken.hw_ns = mean_of(hw_ns);
    out.windows.push_back(std::move(taken));
  }
  if (!all_have_hw) out.hw_samples_ns.clear();
}

// Loads with counters; if that is refused, without: the times are still useful.
std::unique_ptr<Program> load_region(const Region& region, const Loader& load,
                                     std::string& detail) {
  try {
    return load(region, true);
  } catch (const std::runtime_error& problem) {
    detail = problem.what();
  }
  try {
    std::unique_ptr<Program> program = load(region, false);
    detail = "loaded without counters, because loading with counters failed: " + detail;
    return program;
  } catch (const std::runtime_error&) {
    return nullptr;
  }
}

void run_program(Program& program, const ConvSpec& spec, const ReplayOptions& options, Clock now,
                 GateFacts& facts, Replay& out) {
  Snapshot last;
  try {
    program.prepare();
    take_windows(program, options, now, last, out);
    for (std::size_t i = 0; i < last.registers.size(); ++i) out.labels.push_back(program.label(i));
    out.check = check_conv(spec, program.output());
  } catch (const std::runtime_error& problem) {
    out.detail = problem.what();
    return;
  }
  if (!out.check->ok) {
    out.detail = "the result of the replay is wrong: " + out.check->detail;
    return;
  }
  facts.evaluated = true;
  facts.stats_present = last.stats_present;
  facts.data_bytes = last.data_bytes;
  // Counters that have values override the mask: it is unknown whether every release writes it
  // back.
  if (!any_register(last)) facts.mask = program.mask();
  if (gate_status(facts) == Status::kUnknownFormat) {
    out.detail = "the counter data has " + std::to_string(last.data_bytes.value_or(0)) + " bytes";
  }
}

}  // namespace

Replay replay(const Bundle& bundle, const Device& device, const ConvSpec& spec,
              const ReplayOptions& options, const Loader& load, Clock now) {
  if (options.windows < kMinWindows) {
    throw std::invalid_argument("counters need at least " + std::to_string(kMinWindows) +
                                " windows");
  }
  Replay out;
  out.architecture = device.architecture;
  out.cores = device.cores;
  out.fully_placed = bundle.fully_placed;
  if (!out.architecture && !bundle.regions.empty()) {
    out.architecture = bundle.regions.front().architecture;
  }

  GateFacts facts;
  facts.has_ane = device.present;
  facts.virtual_machine = device.virtual_machine;
  facts.framework_complete = device.missing.empty();
  facts.fully_placed = bundle.fully_placed;
  facts.regions = bundle.regions.size();
  if (gate_status(facts) == Status::kLoadFailed) {  // nothing prevents loading
    const auto program = load_region(bundle.regions.front(), load, out.detail);
    facts.loaded = program != nullptr;
    if (program) run_program(*program, spec, options, now, facts, out);
  }
  out.status = gate_status(facts);
  if (out.status == Status::kFrameworkMissing) out.detail = "missing: " + joined(device.missing);
  return out;
}

}  // namespace nnbt::ane
