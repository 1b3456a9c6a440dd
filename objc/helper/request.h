// A request to the helper process: one JSON object on standard input.
#pragma once

#include <string>

#include "conv.h"
#include "measure.h"

namespace nnbt {

struct HelperRequest {
  ConvSpec spec;
  MeasureOptions measure;
  std::string package;       // load this instead of building
  std::string save_package;  // and save to this
  bool placement = true;
};

// Throws std::invalid_argument for text that isn't a request. Unknown keys are refused: a misspelt
// one would silently measure something else.
HelperRequest parse_request(const std::string& json);

}  // namespace nnbt
