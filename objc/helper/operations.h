// What the helper does for a request: measure, test itself, or report what it can read.
#pragma once

#include <string>

#include "request.h"

namespace nnbt {

// Returns a JSON document. Throws Unsupported, std::invalid_argument or std::runtime_error.
std::string perform(const HelperRequest& request);

}  // namespace nnbt
