// 2-D convolution chains through MPSGraph, as pure C++. The build selects the implementation of
// make_conv (objc, or a refusal in cpp/linux); the arithmetic (conv.cpp, data.h, check.h,
// package/placement.h) runs everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "measure/step.h"
#include "package/placement.h"

namespace nnbt {

enum class ConvVariant {
  kFp16,  // float16 convolution
  kInt8,  // int8 convolution, cast to float16 and back between layers
  kQdq,   // dequantise, float16 convolution with float16 weights, quantise
  kW8a8,  // as qdq with int8 weights: compilers may fuse it to int8
};
enum class ConvFill { kNormal, kZeros };
enum class ConvPadding { kSame, kValid };
enum class ConvLayout { kNchw, kNhwc };

// `layers` layers, each from `channels` to `channels`; square images and kernels, stride 1.
struct ConvSpec {
  std::int64_t batch = 1;
  std::int64_t size = 256;  // height and width of the input
  std::int64_t channels = 128;
  std::int64_t layers = 20;
  std::int64_t kernel = 3;
  ConvVariant variant = ConvVariant::kFp16;
  ConvDevice device = ConvDevice::kGpu;
  ConvFill fill = ConvFill::kNormal;
  ConvPadding padding = ConvPadding::kSame;
  ConvLayout layout = ConvLayout::kNchw;
  bool shared_weights = true;  // one weight constant for all layers
  // 0 keeps the graph on the GPU, 1 lets MPSGraph place it. Default: 0 for the GPU, 1 for the ANE.
  std::optional<int> optimization_level;
  std::int64_t enqueue = 1;  // submissions in flight per run; above 1, dispatch overlaps
  std::uint64_t seed = 1;
};

// Bytes of one element of the input and the output.
std::size_t conv_element_bytes(ConvVariant variant);

// Height and width of an image after `layers` layers.
std::int64_t conv_output_size(const ConvSpec& spec, std::int64_t layers);

struct ConvWork {
  double ops;        // 2 per multiply-accumulate, border taps included (usual count)
  double exact_ops;  // without the taps that fall on padding
  std::size_t input_bytes;
  std::size_t weight_bytes;  // of all weight constants
  std::size_t output_bytes;
};

// Work of one submission: ops = 2 B H W C C K K per layer; exact_ops counts only taps that fall on
// the image. A run makes spec.enqueue submissions.
ConvWork conv_work(const ConvSpec& spec);

// Throws std::invalid_argument for invalid numbers, and Unsupported for a variant that the device
// cannot run: INT8 on the GPU would call abort() inside MPSGraph.
void validate(const ConvSpec& spec);

// The optimisation level of the spec, or the default of its device.
int optimization_level(const ConvSpec& spec);

// The spec as a JSON object, with the names of the command line; also stored in saved packages.
std::string to_json(const ConvSpec& spec);

class ConvStep : public Step {
 public:
  virtual const ConvSpec& spec() const = 0;
  virtual std::int64_t compile_ns() const = 0;  // time to build and compile, not part of any run
  virtual std::string device_name() const = 0;
  // Bytes of the last result, in the spec's layout; valid until the next run.
  virtual std::span<const std::byte> output() const = 0;
  // Serialises to a temporary package and reads its manifest, after one run if there was none. Not
  // for use within a timed run.
  virtual PlacementEvidence placement() = 0;
  // Writes a self-contained package directory (see save_package in package/save.h), after one run
  // if there was none: MPSGraph may compile the ANE part that late.
  virtual std::string save_package(const std::string& directory) = 0;
};

// Empty if this machine can run convolutions through MPSGraph, else the reason as a sentence.
std::string conv_refusal();

// Builds and compiles the chain, or loads it from `package`, which must have been saved with the
// same spec. Throws Unsupported, std::invalid_argument or std::runtime_error.
std::unique_ptr<ConvStep> make_conv(const ConvSpec& spec, const std::string& package = {});

}  // namespace nnbt
