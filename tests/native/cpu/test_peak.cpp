#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "base/unsupported.h"
#include "cpu/peak.h"

using nnbt::ChainCode;
using nnbt::ChainWork;
using nnbt::PeakChain;
using nnbt::PeakStep;

namespace {

PeakChain make_chain(const ChainCode& code) {
  return {.name = "test",
          .isa = "none",
          .dtype = "float64",
          .accumulator = "float64",
          .instruction = "add",
          .instructions_per_cycle = [] { return 1.0; },
          .missing = [] { return std::string(); },
          .code = &code};
}

constexpr ChainWork kThreeATime{1, 2, 3.0};

}  // namespace

TEST_CASE("every chain that this machine can run has the expected sum") {
  int ran = 0;
  for (const PeakChain& chain : nnbt::peak_chains()) {
    if (!chain.unusable().empty()) continue;
    CAPTURE(chain.name);
    for (const std::int64_t iterations : {1, 37}) {
      PeakStep step(chain, 2, iterations);
      step.run();
      step.run();
      const std::optional<std::string> fault = step.verify();
      CHECK_MESSAGE(!fault, fault.value_or(""));
      CHECK(step.work_ops() == chain.work().operations * iterations * 2);
    }
    ++ran;
  }
  CHECK(ran >= 2);  // the clock, and what every CPU of the architecture has
}

template <int kSignal>
double dies(std::int64_t) {
  (void)std::raise(kSignal);
  return 0;
}

TEST_CASE("a chain that kills the process is reported with its signal") {
  const auto nothing_missing = []() -> std::string { return {}; };
  const auto one = [] { return 1.0; };
  static constinit const nnbt::ChainCode kRefused{{1, 2, 3.0}, dies<SIGILL>, 1};
  static constinit const nnbt::ChainCode kFaulty{{1, 2, 3.0}, dies<SIGSEGV>, 1};
  PeakChain chain{"none", "SIMD", "int8", "int32", "add", one, nothing_missing, &kRefused};
  CHECK(
      chain.unusable() ==
      "The CPU reports SIMD, but running it kills the process: the hypervisor or operating system "
      "does not allow it.");
  chain.code = &kFaulty;
  CHECK(chain.unusable().find("(Segmentation fault). This is a bug in nnbt") != std::string::npos);
}

// "full length" takes 20 s under emulation with the shortest registers; .ci/arm64 runs it once.
TEST_CASE("full length: exactly one piece, and several with a remainder") {
  for (const PeakChain& chain : nnbt::peak_chains()) {
    if (!chain.unusable().empty()) continue;
    CAPTURE(chain.name);
    const std::int64_t most = chain.code->max_iterations;
    for (const std::int64_t iterations : {most, 2 * most + 5}) {
      PeakStep step(chain, 1, iterations);
      step.run();
      const std::optional<std::string> fault = step.verify();
      CHECK_MESSAGE(!fault, fault.value_or(""));
    }
  }
}

TEST_CASE("full length: accumulators stay exact up to max_iterations, one more still counts") {
  for (const PeakChain& chain : nnbt::peak_chains()) {
    if (!chain.unusable().empty()) continue;
    CAPTURE(chain.name);
    const std::int64_t most = chain.code->max_iterations;
    CHECK(chain.code->run(most) - chain.code->run(most - 1) == chain.work().sum);
  }
}

TEST_CASE("a skipped iteration is detected in every chain") {
  static const ChainCode* whole = nullptr;
  for (const PeakChain& chain : nnbt::peak_chains()) {
    if (!chain.unusable().empty()) continue;
    CAPTURE(chain.name);
    whole = chain.code;
    const ChainCode lossy{whole->work, [](std::int64_t n) { return whole->run(n - 1); },
                          whole->max_iterations};
    PeakChain planted = chain;
    planted.code = &lossy;
    PeakStep step(planted, 1, 38);
    step.run();
    CHECK(step.verify().value_or("").find("skipped work") != std::string::npos);
  }
}

TEST_CASE("work and sum grow with variable register lengths, and shorter registers are detected") {
  static std::int64_t length = 4;
  static const ChainCode code{
      kThreeATime, [](std::int64_t n) { return 3.0 * static_cast<double>(n * length); }, 100};
  PeakChain chain = make_chain(code);
  chain.scale = [] { return length; };
  PeakStep step(chain, 1, 250);
  step.run();
  CHECK(!step.verify());
  CHECK(step.work_ops() == 2 * 250 * 4);
  length = 3;
  step.run();
  CHECK(step.verify().value_or("").find("1 of 2 runs") != std::string::npos);
}

TEST_CASE("one skipped iteration in a million, once, is detected") {
  static int calls = 0;
  static const ChainCode lossy{
      kThreeATime,
      [](std::int64_t n) { return 3.0 * static_cast<double>(++calls == 4 ? n - 1 : n); }, 1 << 20};
  PeakStep step(make_chain(lossy), 1, 1 << 20);
  for (int run = 0; run < 3; ++run) step.run();
  CHECK(!step.verify());
  step.run();
  step.run();
  const std::string fault = step.verify().value_or("");
  CHECK(fault.find("skipped work") != std::string::npos);
  CHECK(fault.find("1 of 5 runs") != std::string::npos);
}

TEST_CASE("long runs are split into pieces that the accumulators can hold") {
  static std::int64_t largest = 0;
  static std::int64_t total = 0;
  static const ChainCode counting{kThreeATime,
                                  [](std::int64_t n) {
                                    largest = std::max(largest, n);
                                    total += n;
                                    return 3.0 * static_cast<double>(n);
                                  },
                                  100};
  PeakStep step(make_chain(counting), 1, 1234);
  step.run();
  CHECK(largest == 100);
  CHECK(total == 1234);
  CHECK(!step.verify());
  CHECK(step.work_ops() == 2 * 1234);
}

TEST_CASE("nothing verifies before the first run") {
  PeakStep step(nnbt::find_peak_chain(nnbt::kClockChain), 1, 1);
  CHECK(step.verify().value_or("").find("Nothing has run") == 0);
}

TEST_CASE("the table: unique names, whole instructions, no empty text") {
  std::set<std::string_view> names;
  for (const PeakChain& chain : nnbt::peak_chains()) {
    CAPTURE(chain.name);
    CHECK(names.insert(chain.name).second);
    CHECK(!chain.isa.empty());
    CHECK(!chain.instruction.empty());
    const ChainWork work = chain.work();
    CHECK(work.instructions > 0);
    CHECK(work.operations % work.instructions == 0);
    CHECK(work.sum > 0);
    CHECK(chain.code->max_iterations >= 1024);
  }
}

TEST_CASE("impossible requests are refused with a sentence") {
  CHECK_THROWS_AS(nnbt::find_peak_chain("abacus"), nnbt::Unsupported);
  CHECK_THROWS_AS(PeakStep(nnbt::find_peak_chain(nnbt::kClockChain), 1, -1), std::invalid_argument);
  static const ChainCode code{kThreeATime, [](std::int64_t) { return 0.0; }, 1};
  PeakChain absent = make_chain(code);
  absent.missing = [] { return std::string("This processor has no abacus."); };
  CHECK_THROWS_WITH_AS(PeakStep(absent, 1, 1), "This processor has no abacus.", nnbt::Unsupported);
  for (const PeakChain& chain : nnbt::peak_chains()) {
    const std::string reason = chain.unusable();
    if (!reason.empty()) {
      CHECK_THROWS_WITH_AS(PeakStep(chain, 1, 1), reason.c_str(), nnbt::Unsupported);
      CHECK(reason.back() == '.');
    }
  }
}

TEST_CASE("the clock of a core is between 0.2 and 10 GHz, with and without a load") {
  const double free = nnbt::core_clock_hz();
  CHECK(free > 0.2e9);
  CHECK(free < 10e9);
  CHECK_THROWS_AS(nnbt::core_clock_hz({.under = "abacus"}), nnbt::Unsupported);
  CHECK_THROWS_AS(nnbt::core_clock_hz({.repetitions = 0}), std::invalid_argument);
}
