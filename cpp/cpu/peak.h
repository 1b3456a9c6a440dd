// Peak arithmetic: chains of one instruction on registers alone, many enough and independent
// enough to keep every execution port busy. One row of the table per chain.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/isa_code.h"
#include "cpu/team.h"
#include "measure/step.h"

namespace nnbt {

// The accumulators take exactly representable products, acc += a * b, so that their sum after n
// iterations is n * work.sum to the last bit: a chain that lost work gives another sum.
struct PeakChain {
  std::string_view name;         // "avx2_float32"
  std::string_view isa;          // "AVX2 + FMA"
  std::string_view dtype;        // of the operands: "bfloat16"
  std::string_view accumulator;  // dtype of the sums: "float32"
  std::string_view instruction;  // the counted one as an assembler spells it: "vfmadd*ps"
  // Counted instructions a core starts per cycle at best; 0 where that differs between chips.
  double (*instructions_per_cycle)();
  std::string (*missing)();  // what the processor says it lacks, a sentence; empty for nothing
  const ChainCode* code;
  // How many times code->work this machine does: 1, but for registers whose length differs between
  // machines. Baseline code, as all that describes a chain.
  std::int64_t (*scale)() = [] { return std::int64_t{1}; };

  // What an iteration does on this machine; at the least length where it lacks such registers.
  [[nodiscard]] ChainWork work() const;

  // Why this machine can't run it, a sentence; empty when it can. Beyond what the processor says,
  // one iteration is tried in a process of its own: a Xeon guest under Firecracker reported an
  // instruction set that ended the process with SIGILL. The trial is made once per chain.
  [[nodiscard]] std::string unusable() const;

  // Address of the chain's code within the file it was loaded from, for a disassembler.
  [[nodiscard]] std::int64_t code_offset() const;
};

// The chains compiled in, for all instruction sets of this architecture. The row "dependent_add" is
// the clock: each addition waits for the one before, one cycle each.
std::span<const PeakChain> peak_chains();

// Throws Unsupported, naming the rows that exist, for an unknown name.
const PeakChain& find_peak_chain(std::string_view name);

inline constexpr std::string_view kClockChain = "dependent_add";

class PeakStep final : public Step {
 public:
  // `threads` and `cpus` as for Team. `iterations` 0: about 10 ms of work at 3 GHz. Throws
  // Unsupported when the machine can't run the chain, std::invalid_argument for negative counts.
  PeakStep(const PeakChain& chain, int threads, std::int64_t iterations,
           const std::vector<int>& cpus = {});

  void run() override;

  [[nodiscard]] const PeakChain& chain() const { return chain_; }
  [[nodiscard]] const Team& team() const { return team_; }
  [[nodiscard]] std::int64_t iterations() const { return iterations_; }

  // Operations of one run, all threads.
  [[nodiscard]] std::int64_t work_ops() const;

  // Nothing when every sum of every run so far was the closed form's; else a sentence.
  [[nodiscard]] std::optional<std::string> verify() const;

 private:
  struct alignas(128) ThreadResult {
    std::int64_t runs = 0;
    std::int64_t wrong = 0;
    double last_sum = 0;
  };

  PeakChain chain_;
  ChainWork work_;
  std::int64_t iterations_;
  double expected_ = 0;
  Team team_;
  std::vector<ThreadResult> results_;
};

struct ClockOptions {
  int threads = 1;           // all at once; 0: one per allowed processor
  std::string_view under{};  // chain that runs for 0.3 ms before each reading; empty: additions
  int repetitions = 100;
};

// Clock of the slowest of the cores in Hz while all threads run: from the lower quartile of the
// times of additions that wait for one another, one a cycle, each right after a load. `under` tells
// the clock that wide vectors or tiles leave the core. Takes 0.3 ms a repetition.
double core_clock_hz(const ClockOptions& options = {});

}  // namespace nnbt
