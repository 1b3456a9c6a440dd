#include "peak.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "measure.h"
#include "unsupported.h"

namespace nnbt {
namespace {

constexpr double kAutomaticCycles = 30e6;  // 10 ms at 3 GHz

std::int64_t automatic_iterations(const PeakChain& chain) {
  const double rate = chain.instructions_per_cycle();
  const auto instructions = static_cast<double>(chain.code->work().instructions);
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(kAutomaticCycles * (rate > 0 ? rate : 2) / instructions));
}

// In pieces, each with fresh accumulators, so that no sum outgrows what its dtype holds exactly.
double run_in_pieces(const ChainCode& code, std::int64_t iterations) {
  double sum = 0;
  for (std::int64_t left = iterations; left > 0; left -= code.max_iterations) {
    sum += code.run(std::min(left, code.max_iterations));
  }
  return sum;
}

// A chain and then a number of dependent additions, on every thread of a team.
class LoadedClockStep final : public Step {
 public:
  LoadedClockStep(Team& team, const ChainCode* load, std::int64_t load_iterations,
                  const ChainCode& additions, std::int64_t iterations)
      : team_(team),
        load_(load),
        load_iterations_(load_iterations),
        additions_(additions),
        iterations_(iterations) {}

  void run() override {
    team_.run([this](int /*index*/) {
      if (load_ != nullptr) run_in_pieces(*load_, load_iterations_);
      run_in_pieces(additions_, iterations_);
    });
  }

 private:
  Team& team_;
  const ChainCode* load_;
  std::int64_t load_iterations_;
  const ChainCode& additions_;
  std::int64_t iterations_;
};

}  // namespace

const PeakChain& find_peak_chain(std::string_view name) {
  const auto chains = peak_chains();
  const auto row = std::ranges::find(chains, name, &PeakChain::name);
  if (row != chains.end()) return *row;
  std::string known;
  for (const PeakChain& chain : chains) known += (known.empty() ? "" : ", ") + std::string(chain.name);
  throw Unsupported("There is no peak chain \"" + std::string(name) + "\" here: choose one of " +
                    known + ".");
}

PeakStep::PeakStep(const PeakChain& chain, int threads, std::int64_t iterations)
    : chain_(chain), iterations_(iterations), expected_(0), team_(threads) {
  if (iterations < 0) throw std::invalid_argument("PeakStep: iterations can't be negative");
  if (const std::string reason = chain.missing(); !reason.empty()) throw Unsupported(reason);
  if (iterations_ == 0) iterations_ = automatic_iterations(chain);
  expected_ = static_cast<double>(iterations_) * chain.code->work().sum;
  results_.resize(static_cast<std::size_t>(team_.size()));
}

void PeakStep::run() {
  team_.run([this](int index) {
    const double sum = run_in_pieces(*chain_.code, iterations_);
    ThreadResult& result = results_[static_cast<std::size_t>(index)];
    ++result.runs;
    if (sum != expected_) ++result.wrong;
    result.last_sum = sum;
  });
}

std::int64_t PeakStep::work_ops() const {
  return chain_.code->work().operations * iterations_ * team_.size();
}

std::optional<std::string> PeakStep::verify() const {
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const ThreadResult& result = results_[i];
    if (result.runs == 0) return "Nothing has run yet, so there is no result to check.";
    if (result.wrong == 0) continue;
    std::ostringstream text;
    text.precision(std::numeric_limits<double>::max_digits10);
    text << "Chain " << chain_.name << " lost work: thread " << i << " had a wrong sum in "
         << result.wrong << " of " << result.runs << " runs (last " << result.last_sum
         << ", closed form " << expected_ << ").";
    return text.str();
  }
  return std::nullopt;
}

double core_clock_hz(const ClockOptions& options) {
  // A core that left its clock for the load takes it back within a millisecond of the load's end.
  const double addition_cycles = options.under.empty() ? 6e6 : 6e5;  // 2 or 0.2 ms at 3 GHz
  constexpr double kLoadShare = 0.1;                                 // of automatic: 1 ms
  if (options.repetitions < 1) throw std::invalid_argument("core_clock_hz: repetitions below 1");
  const PeakChain& clock = find_peak_chain(kClockChain);
  const PeakChain* load = options.under.empty() ? nullptr : &find_peak_chain(options.under);
  if (load != nullptr) {
    if (const std::string reason = load->missing(); !reason.empty()) throw Unsupported(reason);
  }
  const ChainCode* load_code = load != nullptr ? load->code : nullptr;
  const std::int64_t load_iterations =
      load != nullptr ? std::max<std::int64_t>(1, static_cast<std::int64_t>(
                            kLoadShare * static_cast<double>(automatic_iterations(*load))))
                      : 0;
  const std::int64_t per_iteration = clock.code->work().operations;
  const auto few = static_cast<std::int64_t>(addition_cycles / static_cast<double>(per_iteration));
  // The difference of two lengths cancels the load and the time to wake the team.
  Team team(options.threads);
  LoadedClockStep shorter(team, load_code, load_iterations, *clock.code, few);
  LoadedClockStep longer(team, load_code, load_iterations, *clock.code, 2 * few);
  const MeasureOptions once{.warmup = 0, .runs = 1};
  std::int64_t shorter_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t longer_ns = shorter_ns;
  for (int i = 0; i < options.repetitions; ++i) {
    shorter_ns = std::min(shorter_ns, measure(shorter, once).samples_ns.front());
    longer_ns = std::min(longer_ns, measure(longer, once).samples_ns.front());
  }
  if (longer_ns <= shorter_ns) {
    throw Unsupported("The clock could not be measured: the machine is too busy; try again.");
  }
  return static_cast<double>(few * per_iteration) * 1e9 /
         static_cast<double>(longer_ns - shorter_ns);
}

}  // namespace nnbt
