// Peak arithmetic throughput: chains of one instruction on registers only, enough of them
// independent to keep every execution port busy. The table has one row per chain.
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

// All products are exact, so after n iterations of acc += a * b the sum of the accumulators is
// exactly n * work.sum: a chain that skipped work has another sum.
struct PeakChain {
  std::string_view name;         // "avx2_float32"
  std::string_view isa;          // "AVX2 + FMA"
  std::string_view dtype;        // of the operands: "bfloat16"
  std::string_view accumulator;  // dtype of the sums: "float32"
  std::string_view instruction;  // the counted one in assembler: "vfmadd*ps"
  // Most counted instructions that a core can start per cycle; 0 if that differs between chips.
  double (*instructions_per_cycle)();
  std::string (*missing)();  // what the CPU reports as missing, as a sentence, or empty
  const ChainCode* code;
  // Factor on code->work on this machine: 1, except for registers of variable length. Baseline
  // code, like everything that describes a chain.
  std::int64_t (*scale)() = [] { return std::int64_t{1}; };

  // Work of an iteration on this machine; at the minimum length if it lacks such registers.
  [[nodiscard]] ChainWork work() const;

  // Why this machine cannot run the chain, as a sentence; empty if it can. In addition to what the
  // CPU reports, one iteration is tried in a process of its own, once per chain: a Xeon guest under
  // Firecracker reported an instruction set that then raised SIGILL.
  [[nodiscard]] std::string unusable() const;

  // Address of the chain's code within the file it was loaded from, for a disassembler.
  [[nodiscard]] std::int64_t code_offset() const;
};

// The compiled chains of all instruction sets of this architecture. The row "dependent_add" is the
// clock: each addition waits for the previous one, one per cycle.
std::span<const PeakChain> peak_chains();

// Throws Unsupported, listing the known names, for any other.
const PeakChain& find_peak_chain(std::string_view name);

inline constexpr std::string_view kClockChain = "dependent_add";

class PeakStep final : public Step {
 public:
  // `threads` and `cpus` as for Team. `iterations` 0: about 10 ms at 3 GHz. Throws Unsupported if
  // the machine cannot run the chain, and std::invalid_argument for negative counts.
  PeakStep(const PeakChain& chain, int threads, std::int64_t iterations,
           const std::vector<int>& cpus = {});

  void run() override;

  [[nodiscard]] const PeakChain& chain() const { return chain_; }
  [[nodiscard]] const Team& team() const { return team_; }
  [[nodiscard]] std::int64_t iterations() const { return iterations_; }

  // Operations of one run, over all threads.
  [[nodiscard]] std::int64_t work_ops() const;

  // nullopt if every sum of every run so far was correct, else a sentence.
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
  int threads = 1;           // at the same time; 0: one per allowed CPU
  std::string_view under{};  // chain run for 0.3 ms before each reading; default: additions
  int repetitions = 100;
};

// Clock in Hz of the slowest core while all threads run: from the lower quartile of the times of
// dependent additions (one per cycle), each taken right after a load. `under` measures the clock
// after wide vectors or tiles. Takes 0.3 ms per repetition.
double core_clock_hz(const ClockOptions& options = {});

}  // namespace nnbt
