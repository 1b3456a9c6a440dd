// What differs between operating systems. The build picks the folder that implements it
// (cpp/linux or objc), so nothing above this header asks which system it runs on.
#pragma once

#include <span>

#include "measure/probe.h"

namespace nnbt {

std::span<const ProbeRow> platform_probes();

}  // namespace nnbt
