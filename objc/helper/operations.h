// What the helper does for a request: measure, test itself, or tell what it can read.
#pragma once

#include <string>

#include "request.h"

namespace nnbt {

// One JSON document. Throws Unsupported, std::invalid_argument or std::runtime_error.
std::string perform(const HelperRequest& request);

}  // namespace nnbt
