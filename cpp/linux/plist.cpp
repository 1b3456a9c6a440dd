#include "package/plist.h"

#include "base/unsupported.h"

namespace nnbt {

Plist parse_plist(std::span<const std::byte> /*bytes*/) {
  throw Unsupported("MPSGraph packages can be read on Apple systems only");
}

}  // namespace nnbt
