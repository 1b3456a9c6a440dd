#include "rows.h"

#include <cstdio>
#include <exception>
#include <map>
#include <optional>

#include "base/unsupported.h"
#include "conv/check.h"
#include "conv/names.h"
#include "measure/stats.h"

namespace nnbt {
namespace {

std::string cell(std::string_view text, std::size_t width) {
  std::string padded(text);
  padded.resize(std::max(width, padded.size()), ' ');
  return padded;
}

std::string number(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3g %s", value, unit);
  return cell(text, 12);
}

// Median nanoseconds of the GPU rows, to compare the ANE rows with.
using GpuTimes = std::map<ConvVariant, double>;

std::string measure_row(const ConvSpec& spec, const MeasureOptions& options, GpuTimes& gpu) {
  const std::unique_ptr<ConvStep> step = make_conv(spec);
  const Samples samples = measure(*step, options);
  const double run_ns = median(samples.samples_ns);
  const double ops = conv_work(spec).ops * static_cast<double>(spec.enqueue);
  const ConvCheck check = check_conv(spec, step->output());
  std::string line = number(run_ns / 1e6, "ms") + number(ops / run_ns / 1e3, "TOPS");
  line += check.ok ? "right  " : "WRONG: " + check.detail + "  ";
  if (spec.device == ConvDevice::kGpu) {
    gpu[spec.variant] = run_ns;
    return line;
  }
  const auto other = gpu.find(spec.variant);
  const auto gpu_ns = other == gpu.end() ? std::nullopt : std::optional(other->second);
  return line + placement_name(judge_placement(step->placement(), run_ns, gpu_ns).placement);
}

}  // namespace

void measure_rows(const ConvSpec& shape, const MeasureOptions& options,
                  const std::function<void(const std::string&)>& show) {
  GpuTimes gpu;
  for (const auto& [variant_name, variant] : kVariantNames.rows) {
    for (const auto& [device_name, device] : kDeviceNames.rows) {
      ConvSpec spec = shape;
      spec.variant = variant;
      spec.device = device;
      const std::string head = cell(variant_name, 6) + cell(device_name, 5);
      try {
        show(head + measure_row(spec, options, gpu));
      } catch (const Unsupported& refusal) {
        show(head + refusal.what());
      } catch (const std::exception& problem) {
        show(head + "error: " + problem.what());
      }
    }
  }
}

}  // namespace nnbt
