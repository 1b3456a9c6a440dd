// Memory bandwidth: the STREAM kernels (J. McCalpin), plus pure reads and writes, on float64
// arrays. The table has one row per kernel and one column per convention for counting bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/isa_code.h"
#include "cpu/pages.h"
#include "cpu/team.h"
#include "measure/step.h"

namespace nnbt {

struct StreamKernel {
  std::string_view name;
  int reads;       // arrays read
  int writes;      // arrays written; non-temporal stores apply only if there are any
  int operations;  // floating-point, per element
  // Bytes per element by the convention of bcopy, which counts each moved byte once; 0: not
  // applicable.
  int bcopy_bytes;

  // Per element, by the convention of STREAM: what the formula reads and writes.
  [[nodiscard]] int counted_bytes() const { return 8 * (reads + writes); }

  // Per element, including write-allocate: what ordinary stores first read into the cache.
  [[nodiscard]] int write_allocate_bytes() const { return 8 * (reads + 2 * writes); }
};

std::span<const StreamKernel> stream_kernels();

// Loops compiled for one instruction set.
struct StreamSet {
  std::string_view isa;
  std::string (*missing)();  // why this machine cannot run them, as a sentence, or empty
  const StreamCode* code;
};

std::span<const StreamSet> stream_sets();

struct StreamOptions {
  std::int64_t array_bytes = 0;  // of each array, for all threads together; rounded down to 64
  int threads = 0;               // 0: one per allowed CPU
  bool nontemporal = false;
  std::int64_t passes = 0;  // per run; 0: about 256 MiB of traffic per thread
  std::string_view isa{};   // empty: the widest available
};

class StreamStep final : public Step {
 public:
  // Allocates the arrays; each thread is the first to write its part. Throws Unsupported for an
  // unknown kernel or isa, non-temporal stores of a kernel without stores, and arrays with less
  // than 64 bytes per thread or too large for the machine; std::invalid_argument for negative
  // counts.
  StreamStep(std::string_view kernel, const StreamOptions& options);

  void run() override;

  [[nodiscard]] const StreamKernel& kernel() const { return kernel_; }
  [[nodiscard]] std::string_view isa() const { return isa_; }
  [[nodiscard]] const Team& team() const { return team_; }
  [[nodiscard]] bool nontemporal() const { return nontemporal_; }
  [[nodiscard]] std::int64_t passes() const { return passes_; }
  [[nodiscard]] std::int64_t array_bytes() const {
    return static_cast<std::int64_t>(count_ * sizeof(double));
  }
  [[nodiscard]] std::int64_t working_set_bytes() const;
  [[nodiscard]] std::int64_t huge_page_bytes() const { return pages_.huge_bytes(); }

  // Of one run. Traffic is what crosses the memory bus if the arrays do not fit in any cache: with
  // write-allocate for ordinary stores, without it for non-temporal ones.
  [[nodiscard]] std::int64_t work_bytes() const;
  [[nodiscard]] std::int64_t traffic_bytes() const;
  [[nodiscard]] std::int64_t work_ops() const;

  // The array that the kernel writes (for `read`: reads).
  std::span<double> destination();

  // Checks every element after the runs against the expected values, then poisons the destination,
  // makes one more pass and checks again; `read` checks its sums. nullopt if all is correct, else a
  // sentence. Call it after timing: it touches all arrays.
  std::optional<std::string> verify();

 private:
  struct alignas(128) ThreadSum {
    double sum = 0;
  };
  struct Part {
    std::size_t begin;
    std::size_t end;
  };

  [[nodiscard]] Part part_of(int thread) const;
  [[nodiscard]] double scalar(std::int64_t pass) const;
  [[nodiscard]] double expected(std::size_t i, double s) const;
  void pass_over(int thread, const Part& part, std::int64_t pass);
  std::optional<std::string> check_contents();
  std::optional<std::string> check_sums(std::int64_t passes);

  StreamKernel kernel_;
  std::string_view isa_;
  StreamPass pass_;
  bool nontemporal_;
  std::size_t count_;  // elements per array
  Team team_;
  Pages pages_;
  double* x_;
  double* y_;
  double* out_;
  std::int64_t passes_;
  std::int64_t passes_done_ = 0;
  std::vector<ThreadSum> sums_;
};

}  // namespace nnbt
