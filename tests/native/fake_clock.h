// A clock that only steps advance, to test measure() without timing anything.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "measure/step.h"

namespace nnbt::testing {

inline std::int64_t fake_now_ns = 0;

inline std::int64_t fake_clock() { return fake_now_ns; }

// Takes `duration(run)` nanoseconds for run 0, 1, 2, ...
class FakeStep final : public Step {
 public:
  explicit FakeStep(std::function<std::int64_t(std::int64_t)> duration)
      : duration_(std::move(duration)) {}

  void run() override { fake_now_ns += duration_(runs_++); }

  [[nodiscard]] std::int64_t runs() const { return runs_; }

 private:
  std::function<std::int64_t(std::int64_t)> duration_;
  std::int64_t runs_ = 0;
};

}  // namespace nnbt::testing
