// The Apple seam: 2-D convolution chains through MPSGraph, in pure C++. The build picks the folder
// that implements make_conv (objc, or a refusal in cpp/linux); everything that is arithmetic is in
// conv.cpp, data.h, check.h and package/placement.h, and runs everywhere.
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
  kW8a8,  // the same with int8 weights: compilers may fuse it to an int8 convolution
};
enum class ConvFill { kNormal, kZeros };
enum class ConvPadding { kSame, kValid };
enum class ConvLayout { kNchw, kNhwc };

// L layers, each from `channels` to `channels`, square images and kernels, stride 1.
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
  // 0 keeps the graph on the GPU, 1 lets MPSGraph place it; none: 0 for the GPU, 1 for the ANE.
  std::optional<int> optimization_level;
  std::int64_t enqueue = 1;  // submissions in flight per run; above 1 dispatch overlaps
  std::uint64_t seed = 1;
};

// Bytes of one element of the input and the output.
std::size_t conv_element_bytes(ConvVariant variant);

// Size of one image after `layers` layers.
std::int64_t conv_output_size(const ConvSpec& spec, std::int64_t layers);

struct ConvWork {
  double ops;        // 2 * multiply-accumulates by the usual count (border taps included)
  double exact_ops;  // the same without the taps that fall on padding
  std::size_t input_bytes;
  std::size_t weight_bytes;  // of all weight constants
  std::size_t output_bytes;
};

// Operations of one submission: ops = 2 B H W C C K K per layer; exact_ops counts a tap only where
// it meets the image. A run makes spec.enqueue submissions.
ConvWork conv_work(const ConvSpec& spec);

// Throws std::invalid_argument for numbers that make no convolution, Unsupported for a variant that
// the device can't run: INT8 on the GPU ends in abort() inside MPSGraph, so it's refused here.
void validate(const ConvSpec& spec);

// The optimisation level that the spec asks for or its device implies.
int optimization_level(const ConvSpec& spec);

// The spec as one JSON object, with the names that the command line uses; kept inside saved
// packages.
std::string to_json(const ConvSpec& spec);

class ConvStep : public Step {
 public:
  virtual const ConvSpec& spec() const = 0;
  virtual std::int64_t compile_ns() const = 0;  // building apart from every run
  virtual std::string device_name() const = 0;
  // The bytes of the last result in the spec's layout; valid until the next run.
  virtual std::span<const std::byte> output() const = 0;
  // Serialises to a temporary package and reads its manifest; runs once if nothing ran yet. Not to
  // be called inside a timed run.
  virtual PlacementEvidence placement() = 0;
  // Writes a self-contained package directory: serialised beside the target, verified, renamed;
  // runs once if nothing ran yet, since MPSGraph may compile the ANE's part that late.
  // Returns what couldn't be added (a sentence), empty when complete. Throws Unsupported where the
  // target exists or can't be written.
  virtual std::string save_package(const std::string& directory) = 0;
};

// Empty where convolutions can be made on this machine, else the sentence that says why not.
std::string conv_refusal();

// Builds and compiles the chain; `package` loads a saved package instead (the spec must be the one
// it was saved with). Throws Unsupported, std::invalid_argument or std::runtime_error.
std::unique_ptr<ConvStep> make_conv(const ConvSpec& spec, const std::string& package = {});

}  // namespace nnbt
