// Faults that a test switches on in the environment variable NNBT_DOUBLE_FAULT (comma-separated);
// read each time, so that a test can switch them off again.
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
