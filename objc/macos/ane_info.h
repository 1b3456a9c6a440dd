// What can be read of the Neural Engine and its locks without loading anything. Pure C++.
#pragma once

#include <optional>
#include <string>

#include "ane/replay.h"

namespace nnbt::ane {

// A value that can't be read has none; nothing is guessed. Of several engines' driver nodes the
// first counts.
struct Info {
  Device device;
  std::optional<std::string> driver;     // bundle that the kernel loaded
  std::optional<std::string> firmware;   // whether it is loaded, and the engine's version
  std::optional<std::string> boot_args;  // hints only: the counters themselves say what is locked
  std::optional<std::string> sip;        // system integrity protection
};

Info read_info();

// The part of it that a replay needs.
Device read_device();

}  // namespace nnbt::ane
