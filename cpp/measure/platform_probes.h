// Probes that differ between operating systems. The build selects the implementation (cpp/linux or
// objc), so no code above this header asks which system it runs on.
#pragma once

#include <span>

#include "measure/probe.h"

namespace nnbt {

std::span<const ProbeRow> platform_probes();

}  // namespace nnbt
