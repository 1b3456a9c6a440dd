// What the iOS app measures and shows: pure C++, so it can be tested without a phone.
#pragma once

#include <functional>
#include <string>

#include "conv/conv.h"
#include "measure/measure.h"

namespace nnbt {

// Measures every variant on the GPU and the ANE, and passes each row to `show` as a line of text
// when it is done. `shape` gives the sizes; its variant and device are replaced.
void measure_rows(const ConvSpec& shape, const MeasureOptions& options,
                  const std::function<void(const std::string&)>& show);

}  // namespace nnbt
