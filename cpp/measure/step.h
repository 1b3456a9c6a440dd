// A Step is one blocking unit of work that can be run again: a Python callable that ends in
// mx.eval, a STREAM pass, an FMA chain, a compiled graph. It returns only when its work is done.
#pragma once

namespace nnbt {

class Step {
 public:
  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  virtual ~Step() = default;

  virtual void run() = 0;
};

// No work: its time is what the loop and the clock cost.
class EmptyStep final : public Step {
 public:
  void run() override {}
};

}  // namespace nnbt
