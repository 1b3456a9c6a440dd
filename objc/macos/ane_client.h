// The Neural Engine's private client: loads a compiled region, evaluates it, reads its counters.
// Pure C++. Release any MPSGraph executable of the same graph first: loading a program twice fails
// (0xE00002F0).
#pragma once

#include <memory>
#include <string>

#include "ane/replay.h"

namespace nnbt::ane {

// Throws std::runtime_error with the domain and code of the error if the daemon rejects the region.
std::unique_ptr<Program> load_program(const Region& region, const ConvSpec& spec,
                                      const Device& device, bool with_counters);

// Replays the convolution of a saved package; errors as for replay().
Replay replay_package(const std::string& package, const ConvSpec& spec,
                      const ReplayOptions& options);

}  // namespace nnbt::ane
