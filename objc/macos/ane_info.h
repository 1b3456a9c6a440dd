// What can be read about the Neural Engine and its locks without loading anything. Pure C++.
#pragma once

#include <optional>
#include <string>

#include "ane/replay.h"

namespace nnbt::ane {

// Unreadable values are absent; nothing is guessed. With several engines, the first driver node is
// used.
struct Info {
  Device device;
  std::optional<std::string> driver;     // bundle that the kernel loaded
  std::optional<std::string> firmware;   // whether it is loaded, and the version of the engine
  std::optional<std::string> boot_args;  // a hint: only the counters show what is locked
  std::optional<std::string> sip;        // system integrity protection
};

Info read_info();

// The part that a replay needs.
Device read_device();

}  // namespace nnbt::ane
