// A Step is one blocking unit of work that can be repeated: a Python callable that ends in mx.eval,
// a STREAM pass, an FMA chain, a compiled graph. It returns only when its work is done.
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

// Does nothing: its time is the cost of the loop and the clock.
class EmptyStep final : public Step {
 public:
  void run() override {}
};

}  // namespace nnbt
