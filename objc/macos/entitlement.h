// The one entitlement that matters here. Only that of the main executable counts.
#pragma once

#include <optional>

namespace nnbt::ane {

// Whether this process's signature claims com.apple.ane.hardware-counters; a hint, since the system
// may ignore it. nullopt if unreadable.
std::optional<bool> counters_entitled();

}  // namespace nnbt::ane
