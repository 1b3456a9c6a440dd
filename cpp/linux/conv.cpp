#include "conv/conv.h"

#include "base/unsupported.h"

namespace nnbt {

std::string conv_refusal() {
  return "MPSGraph needs an Apple machine with macOS 15 or later; use --engine mlx here";
}

std::unique_ptr<ConvStep> make_conv(const ConvSpec& spec, const std::string& /*package*/) {
  validate(spec);
  throw Unsupported(conv_refusal());
}

}  // namespace nnbt
