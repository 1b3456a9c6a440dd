// Faults that a test enables through the environment variable NNBT_DOUBLE_FAULT (comma-separated).
// Read every time, so that a test can disable them again.
#pragma once

#include <cstdlib>
#include <string>

namespace doubles {

inline bool fault(const char* name) {
  const char* faults = std::getenv("NNBT_DOUBLE_FAULT");
  if (faults == nullptr) return false;
  const std::string wanted = std::string(",") + name + ",";
  return ("," + std::string(faults) + ",").find(wanted) != std::string::npos;
}

}  // namespace doubles
