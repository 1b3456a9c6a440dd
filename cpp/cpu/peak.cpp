#include "cpu/peak.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "base/unsupported.h"
#include "measure/clock.h"
#include "measure/stats.h"

namespace nnbt {
namespace {

constexpr double kAutomaticCycles = 30e6;  // 10 ms at 3 GHz

std::int64_t automatic_iterations(const PeakChain& chain) {
  const double rate = chain.instructions_per_cycle();
  const auto instructions = static_cast<double>(chain.code->work.instructions);
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(kAutomaticCycles * (rate > 0 ? rate : 2) / instructions));
}

// In pieces with fresh accumulators, so that no sum exceeds what its dtype holds exactly.
double run_in_pieces(const ChainCode& code, std::int64_t iterations) {
  double sum = 0;
  for (std::int64_t left = iterations; left > 0; left -= code.max_iterations) {
    sum += code.run(std::min(left, code.max_iterations));
  }
  return sum;
}

constexpr double kLoadShare = 0.03;  // of automatic_iterations: 0.3 ms
// 5 us at 3 GHz. A Xeon has 2.30 GHz for tiles, measured by additions between them. After 0.3 ms of
// tiles, additions measured 2.28 in 5 us (the median), 2.33 in 20 us, 2.47 in 0.1 ms and 2.58 in
// 0.2 ms.
constexpr std::int64_t kAdditions = 15'008;  // a multiple of 16, the additions in an iteration

// Median time of kAdditions on this core, each time right after the load.
double addition_ns(const PeakChain& additions, const PeakChain& load, int repetitions) {
  const std::int64_t iterations = kAdditions / additions.code->work.operations;
  const auto load_iterations = static_cast<std::int64_t>(
      std::ceil(kLoadShare * static_cast<double>(automatic_iterations(load))));
  std::vector<std::int64_t> times;
  for (int i = 0; i < repetitions; ++i) {
    run_in_pieces(*load.code, load_iterations);
    // Reading the clock takes up to 1 % of 5 us.
    const std::int64_t start = steady_now_ns();
    const std::int64_t before = steady_now_ns();
    run_in_pieces(*additions.code, iterations);
    const std::int64_t after = steady_now_ns();
    times.push_back(std::max<std::int64_t>(1, (after - before) - (before - start)));
  }
  return median(times);
}

// The signal that kills a child process within one iteration; 0 if none. The child calls only the
// chain: other threads may have held locks at the time of the fork.
int fatal_signal(const ChainCode& code) {
  const pid_t child = fork();
  if (child == -1) return 0;  // no process available: trust the CPU
  if (child == 0) {
    // The parent's handlers (such as Python's faulthandler) would report the crash.
    for (const int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) (void)std::signal(number, SIG_DFL);
    code.run(1);
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

ChainWork PeakChain::work() const {
  const std::int64_t times = scale();
  return {code->work.instructions, code->work.operations * times,
          code->work.sum * static_cast<double>(times)};
}

std::string PeakChain::unusable() const {
  static std::mutex mutex;
  static std::map<const ChainCode*, int> tried;
  if (std::string reason = missing(); !reason.empty()) return reason;
  const std::scoped_lock lock(mutex);
  const auto [entry, first] = tried.try_emplace(code, 0);
  if (first) entry->second = fatal_signal(*code);
  const int signal = entry->second;
  if (signal == 0) return {};
  const std::string ends =
      "The CPU reports " + std::string(isa) + ", but running it kills the process";
  if (signal == SIGILL) return ends + ": the hypervisor or operating system does not allow it.";
  return ends + " (" + strsignal(signal) +
         "). This is a bug in nnbt or the system: please report it.";
}

std::int64_t PeakChain::code_offset() const {
  const auto* const address = reinterpret_cast<const char*>(code->run);
  Dl_info info{};
  if (dladdr(address, &info) == 0) return 0;
  return address - static_cast<const char*>(info.dli_fbase);
}

const PeakChain& find_peak_chain(std::string_view name) {
  const auto chains = peak_chains();
  const auto row = std::ranges::find(chains, name, &PeakChain::name);
  if (row != chains.end()) return *row;
  std::string known;
  for (const PeakChain& chain : chains)
    known += (known.empty() ? "" : ", ") + std::string(chain.name);
  throw Unsupported("Unknown peak chain \"" + std::string(name) + "\": use one of " + known + ".");
}

PeakStep::PeakStep(const PeakChain& chain, int threads, std::int64_t iterations,
                   const std::vector<int>& cpus)
    : chain_(chain), work_(chain.work()), iterations_(iterations), team_(threads, cpus) {
  if (iterations < 0) throw std::invalid_argument("PeakStep: iterations must not be negative");
  if (const std::string reason = chain.unusable(); !reason.empty()) throw Unsupported(reason);
  if (iterations_ == 0) iterations_ = automatic_iterations(chain);
  expected_ = static_cast<double>(iterations_) * work_.sum;
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

std::int64_t PeakStep::work_ops() const { return work_.operations * iterations_ * team_.size(); }

std::optional<std::string> PeakStep::verify() const {
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const ThreadResult& result = results_[i];
    if (result.runs == 0) return "Nothing has run yet, so there is no result to verify.";
    if (result.wrong == 0) continue;
    std::ostringstream text;
    text.precision(std::numeric_limits<double>::max_digits10);
    text << "Chain " << chain_.name << " skipped work: thread " << i << " had a wrong sum in "
         << result.wrong << " of " << result.runs << " runs (last " << result.last_sum
         << ", expected " << expected_ << ").";
    return text.str();
  }
  return std::nullopt;
}

double core_clock_hz(const ClockOptions& options) {
  if (options.repetitions < 1)
    throw std::invalid_argument("core_clock_hz: repetitions must be at least 1");
  const PeakChain& additions = find_peak_chain(kClockChain);
  const PeakChain& load = options.under.empty() ? additions : find_peak_chain(options.under);
  if (const std::string reason = load.unusable(); !reason.empty()) throw Unsupported(reason);
  Team team(options.threads);
  std::vector<double> times_ns(static_cast<std::size_t>(team.size()));
  team.run([&](int index) {
    times_ns[static_cast<std::size_t>(index)] = addition_ns(additions, load, options.repetitions);
  });
  return static_cast<double>(kAdditions) * 1e9 / *std::ranges::max_element(times_ns);
}

}  // namespace nnbt
