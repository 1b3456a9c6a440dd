// Memory bandwidth: the STREAM kernels of J. McCalpin, with pure reading and writing, on float64
// arrays. One row of the table per kernel, every byte convention a column.
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
  int writes;      // arrays written; stores that go round the caches apply only where there are any
  int operations;  // floating-point, per element
  // A copy in the convention of bcopy: how many bytes ended up elsewhere. 0: no such convention.
  int bcopy_bytes;

  // Per element, in the convention of STREAM: what the formula reads and writes.
  [[nodiscard]] int counted_bytes() const { return 8 * (reads + writes); }

  // Per element, with what an ordinary store first reads into the cache.
  [[nodiscard]] int write_allocate_bytes() const { return 8 * (reads + 2 * writes); }
};

std::span<const StreamKernel> stream_kernels();

// The loops compiled for one instruction set, widest last.
struct StreamSet {
  std::string_view isa;
  std::string (*missing)();  // why this machine can't run them, a sentence; empty when it can
  const StreamCode* code;
};

std::span<const StreamSet> stream_sets();

struct StreamOptions {
  std::int64_t array_bytes = 0;  // of each array, over all threads; rounded down to 64
  int threads = 0;               // 0: one per allowed processor
  bool nontemporal = false;
  std::int64_t passes = 0;  // over the arrays per run; 0: about 256 MiB of traffic per thread
  std::string_view isa{};   // empty: the widest that this machine has
};

class StreamStep final : public Step {
 public:
  // Allocates the arrays; every thread writes its own part first. Throws Unsupported for an unknown
  // kernel or isa, for non-temporal stores of a kernel without stores, for arrays too small to give
  // each thread 64 bytes or too large for the machine; std::invalid_argument for negative counts.
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

  // Of one run. Traffic is what crosses the bus when the arrays fit in no cache: with the reads
  // that ordinary stores cause, without them for non-temporal ones.
  [[nodiscard]] std::int64_t work_bytes() const;
  [[nodiscard]] std::int64_t traffic_bytes() const;
  [[nodiscard]] std::int64_t work_ops() const;

  // The array that the kernel writes (for `read`, the one it reads).
  std::span<double> destination();

  // Checks every element that the runs left behind against the closed form, then poisons the
  // destination, does one more pass and checks again; `read` checks its sums. Nothing when all is
  // right, else a sentence. Not to be timed: it touches all arrays.
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
  std::size_t count_;  // elements of an array
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
