// The one entitlement that matters here. It counts in the process's main executable only.
#pragma once

#include <optional>

namespace nnbt::ane {

// Whether this process's signature claims com.apple.ane.hardware-counters; a hint, since the system
// may ignore it. None where that can't be read.
std::optional<bool> counters_entitled();

}  // namespace nnbt::ane
