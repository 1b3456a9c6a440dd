// What the iOS app measures and shows: pure C++, so that it's tested without a phone.
#pragma once

#include <functional>
#include <string>

#include "conv/conv.h"
#include "measure/measure.h"

namespace nnbt {

// Measures every variant on the GPU and the ANE and hands over one line of text per row as soon as
// it's known. `shape` gives the sizes; its variant and device are replaced.
void measure_rows(const ConvSpec& shape, const MeasureOptions& options,
                  const std::function<void(const std::string&)>& show);

}  // namespace nnbt
