#include "nnbt_conv.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <string_view>

#include "conv/check.h"
#include "conv/conv.h"
#include "conv/names.h"
#include "measure/measure.h"
#include "measure/stats.h"

namespace {

using namespace nnbt;

template <std::size_t Size>
void assign(char (&target)[Size], std::string_view text) {
  const std::size_t length = std::min(text.size(), Size - 1);
  std::copy_n(text.begin(), length, target);
  target[length] = '\0';
}

ConvSpec spec_of(const nnbt_conv_request& request) {
  ConvSpec spec;
  spec.batch = request.batch;
  spec.size = request.size;
  spec.channels = request.channels;
  spec.layers = request.layers;
  spec.kernel = request.kernel;
  spec.variant = kVariantNames.value(request.variant != nullptr ? request.variant : "");
  spec.device = kDeviceNames.value(request.device != nullptr ? request.device : "");
  return spec;
}

void measure_into(const nnbt_conv_request& request, nnbt_conv_result& result) {
  const ConvSpec spec = spec_of(request);
  const std::unique_ptr<ConvStep> step = make_conv(spec);
  MeasureOptions options;
  options.runs = request.runs;
  const Samples samples = measure(*step, options);
  const ConvCheck check = check_conv(spec, step->output());
  result.median_ns = median(samples.samples_ns);
  result.tops = conv_work(spec).ops / result.median_ns / 1e3;
  result.compile_ns = step->compile_ns();
  result.runs = static_cast<int64_t>(samples.samples_ns.size());
  result.right = check.ok ? 1 : 0;
  assign(result.sentence, check.detail);
  if (spec.device == ConvDevice::kAne) {
    const PlacementVerdict verdict = judge_placement(step->placement(), result.median_ns, {});
    assign(result.placement, placement_name(verdict.placement));
  }
}

}  // namespace

nnbt_conv_request nnbt_conv_standard(void) {
  const ConvSpec spec;
  return {spec.batch, spec.size, spec.channels, spec.layers, spec.kernel, 0, "fp16", "gpu"};
}

int nnbt_conv_measure(const nnbt_conv_request* request, nnbt_conv_result* result) {
  *result = {};
  try {
    measure_into(*request, *result);
    return 1;
  } catch (const std::exception& problem) {
    *result = {};
    assign(result->sentence, problem.what());
    return 0;
  }
}
