#include "conv/conv.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <utility>

#include "bindings/bindings.h"
#include "conv/check.h"
#include "conv/data.h"
#include "conv/names.h"
#include "package/placement.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using nnbt::ConvCheck;
using nnbt::ConvSpec;
using nnbt::ConvStep;
using nnbt::ConvWork;

nb::bytes as_bytes(std::span<const std::byte> bytes) {
  return nb::bytes(bytes.data(), bytes.size());
}

std::span<const std::byte> as_span(const nb::bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

void add_spec(nb::module_& m) {
  nb::class_<ConvSpec>(m, "ConvSpec",
                       "A chain of 2-D convolutions: square images and kernels, stride 1, from\n"
                       "`channels` to `channels`. Enumerations are strings.")
      .def(
          "__init__",
          [](ConvSpec* self, const std::string& variant, const std::string& device,
             std::int64_t batch, std::int64_t size, std::int64_t channels, std::int64_t layers,
             std::int64_t kernel, const std::string& fill, const std::string& padding,
             const std::string& layout, bool shared_weights, std::optional<int> optimization_level,
             std::int64_t enqueue, std::uint64_t seed) {
            ConvSpec spec;
            spec.batch = batch;
            spec.size = size;
            spec.channels = channels;
            spec.layers = layers;
            spec.kernel = kernel;
            spec.variant = nnbt::kVariantNames.value(variant);
            spec.device = nnbt::kDeviceNames.value(device);
            spec.fill = nnbt::kFillNames.value(fill);
            spec.padding = nnbt::kPaddingNames.value(padding);
            spec.layout = nnbt::kLayoutNames.value(layout);
            spec.shared_weights = shared_weights;
            spec.optimization_level = optimization_level;
            spec.enqueue = enqueue;
            spec.seed = seed;
            new (self) ConvSpec(spec);
          },
          nb::kw_only(), "variant"_a = "fp16", "device"_a = "gpu", "batch"_a = 1, "size"_a = 256,
          "channels"_a = 128, "layers"_a = 20, "kernel"_a = 3, "fill"_a = "normal",
          "padding"_a = "same", "layout"_a = "nchw", "shared_weights"_a = true,
          "optimization_level"_a = nb::none(), "enqueue"_a = 1, "seed"_a = 1)
      .def_prop_ro("variant", [](const ConvSpec& s) { return nnbt::kVariantNames.name(s.variant); })
      .def_prop_ro("device", [](const ConvSpec& s) { return nnbt::kDeviceNames.name(s.device); })
      .def_ro("batch", &ConvSpec::batch)
      .def_ro("size", &ConvSpec::size, "Height and width of the input.")
      .def_ro("channels", &ConvSpec::channels)
      .def_ro("layers", &ConvSpec::layers)
      .def_ro("kernel", &ConvSpec::kernel)
      .def_prop_ro("fill", [](const ConvSpec& s) { return nnbt::kFillNames.name(s.fill); })
      .def_prop_ro("padding", [](const ConvSpec& s) { return nnbt::kPaddingNames.name(s.padding); })
      .def_prop_ro("layout", [](const ConvSpec& s) { return nnbt::kLayoutNames.name(s.layout); })
      .def_ro("shared_weights", &ConvSpec::shared_weights)
      .def_prop_ro("optimization_level", &nnbt::optimization_level)
      .def_ro("enqueue", &ConvSpec::enqueue, "Submissions in flight per run.")
      .def_ro("seed", &ConvSpec::seed)
      .def("to_json", &nnbt::to_json)
      .def("validate", &nnbt::validate,
           "Raises ValueError for invalid numbers, Unsupported for a variant that the device "
           "cannot\n"
           "run.");

  nb::class_<ConvWork>(m, "ConvWork", "Operations and bytes of one submission.")
      .def_ro("ops", &ConvWork::ops, "2 B H W C C K K per layer, as in published tables.")
      .def_ro("exact_ops", &ConvWork::exact_ops, "Without the taps that fall on padding.")
      .def_ro("input_bytes", &ConvWork::input_bytes)
      .def_ro("weight_bytes", &ConvWork::weight_bytes)
      .def_ro("output_bytes", &ConvWork::output_bytes);
  m.def("conv_work", &nnbt::conv_work, "spec"_a);
}

void add_data(nb::module_& m) {
  m.def(
      "conv_input", [](const ConvSpec& spec) { return as_bytes(nnbt::conv_input(spec)); }, "spec"_a,
      "Bytes of the input: float16 or int8, in the spec's layout.");
  m.def(
      "conv_weights",
      [](const ConvSpec& spec, std::int64_t layer) {
        return as_bytes(nnbt::conv_weights(spec, layer));
      },
      "spec"_a, "layer"_a = 0,
      "Bytes of one layer's weights: float16 (fp16, qdq) or int8, ordered output, input, height,\n"
      "width.");
  m.def(
      "conv_scales",
      [](const ConvSpec& spec) {
        const nnbt::ConvScales scales = nnbt::conv_scales(spec);
        return std::pair(scales.activation, scales.weight);
      },
      "spec"_a, "Real values of one int8 step of an activation and of a weight.");

  nb::class_<ConvCheck>(m, "ConvCheck", "Whether the result of a chain is correct.")
      .def_ro("ok", &ConvCheck::ok)
      .def_ro("compared", &ConvCheck::compared,
              "Values compared with a float64 reference; 0 if it takes too long or is undefined.")
      .def_ro("relative_error", &ConvCheck::relative_error, "Euclidean, over the compared values.")
      .def_ro("zero_fraction", &ConvCheck::zero_fraction)
      .def_ro("non_finite", &ConvCheck::non_finite)
      .def_ro("detail", &ConvCheck::detail);
  m.def(
      "check_conv",
      [](const ConvSpec& spec, const nb::bytes& output, double max_reference_macs) {
        const std::span<const std::byte> bytes = as_span(output);
        nb::gil_scoped_release release;
        return nnbt::check_conv(spec, bytes, max_reference_macs);
      },
      "spec"_a, "output"_a, "max_reference_macs"_a = nnbt::kReferenceMacs,
      "Compares sampled pixels with a float64 reference of at most that many\n"
      "multiply-accumulates; always checks for zeros, infinities and NaN.");
}

void add_placement(nb::module_& m) {
  m.def(
      "weigh_latency",
      [](const std::string& placement, const std::vector<std::string>& evidence, double ane_ns,
         double gpu_ns) {
        using nnbt::Placement;
        nnbt::PlacementVerdict verdict{Placement::kUnproven, evidence};
        for (const Placement known :
             {Placement::kProven, Placement::kLikely, Placement::kNotOnAne}) {
          if (nnbt::placement_name(known) == placement) verdict.placement = known;
        }
        verdict = nnbt::weigh_latency(std::move(verdict), ane_ns, gpu_ns);
        return std::pair(std::string(nnbt::placement_name(verdict.placement)),
                         std::move(verdict.evidence));
      },
      "placement"_a, "evidence"_a, "ane_ns"_a, "gpu_ns"_a,
      "(verdict, evidence) of an ANE row once the median nanoseconds of both devices are known, "
      "from\n"
      "the helper's verdict without them.");
}

}  // namespace

namespace nnbt::bindings {

void add_conv(nb::module_& m) {
  add_spec(m);
  add_data(m);
  add_placement(m);
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<ConvStep, Step>(m, "ConvStep",
                             "A compiled chain: one run is spec.enqueue submissions.")
      .def_prop_ro("spec", [](const ConvStep& step) { return step.spec(); })
      .def_prop_ro("compile_ns", &ConvStep::compile_ns, "Nanoseconds to build and compile.")
      .def_prop_ro("device_name", &ConvStep::device_name)
      .def(
          "output", [](const ConvStep& step) { return as_bytes(step.output()); },
          "Bytes of the last result: float16 or int8, in the spec's layout.")
      .def(
          "check",
          [](const ConvStep& step, double max_reference_macs) {
            return nnbt::check_conv(step.spec(), step.output(), max_reference_macs);
          },
          "max_reference_macs"_a = nnbt::kReferenceMacs, Release(),
          "check_conv of the last result; run first.")
      .def("save_package", &ConvStep::save_package, "directory"_a, Release(),
           "Writes a self-contained .mpsgraphpackage; returns what could not be added, or \"\".");
  m.def(
      "conv_available",
      []() -> std::optional<std::string> {
        std::string refusal = nnbt::conv_refusal();
        if (refusal.empty()) return std::nullopt;
        return refusal;
      },
      "None if make_conv works on this machine, else the reason.");
  m.def(
      "make_conv",
      [](const ConvSpec& spec, const std::optional<std::string>& package) {
        return nnbt::make_conv(spec, package.value_or(""));
      },
      "spec"_a, "package"_a = nb::none(), Release(),
      "Builds and compiles the chain, or loads it from a saved package.");
}

}  // namespace nnbt::bindings
