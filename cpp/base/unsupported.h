// Thrown when this machine or library cannot do something. The text is a sentence for the user that
// says what to do instead. Python sees it as nnbt.Unsupported. Any other exception is a bug and
// propagates.
#pragma once

#include <stdexcept>

namespace nnbt {

class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace nnbt
