#include "conv/conv.h"

#import <Metal/Metal.h>
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "conv/data.h"
#include "conv/names.h"
#import "graph.h"
#include "measure/clock.h"
#import "package.h"
#import "private_api.h"
#import "support.h"

namespace nnbt {
namespace {

constexpr unsigned long long kPreferAne = 2;
constexpr std::chrono::seconds kCompletionTimeout{60};

// Counts submissions down and keeps the first error. The handlers run on a thread of the framework.
class Completion {
 public:
  void expect(std::int64_t submissions) {
    const std::scoped_lock lock(mutex_);
    pending_ = submissions;
    error_.clear();
  }

  void finish(std::string error) {
    const std::scoped_lock lock(mutex_);
    if (error_.empty()) error_ = std::move(error);
    --pending_;
    done_.notify_all();
  }

  std::string error() {
    const std::scoped_lock lock(mutex_);
    return error_;
  }

  std::string wait() {
    std::unique_lock lock(mutex_);
    if (done_.wait_for(lock, kCompletionTimeout, [this] { return pending_ <= 0; })) return error_;
    return "submissions did not complete within 60 s";
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::int64_t pending_ = 0;
  std::string error_;
};

std::string no_ane_sentence() {
  Class<NNBTGraphDevices> devices = static_cast<Class<NNBTGraphDevices>>([MPSGraphDevice class]);
  if ([(id)devices respondsToSelector:@selector(ANEDevice)] && [devices ANEDevice] == nil) {
    return "MPSGraph finds no Neural Engine on this machine (virtual machines have none); use "
           "--device gpu";
  }
  return {};
}

void prefer_ane(MPSGraphCompilationDescriptor* _Nonnull options) {
  if ([options respondsToSelector:@selector(setPreferredDevice:)]) {
    [(id<NNBTCompilationOptions>)options setPreferredDevice:kPreferAne];
    return;
  }
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
  // The documented option, deprecated in macOS 14; it sets the same preference.
  options.optimizationProfile = MPSGraphOptimizationProfilePowerEfficiency;
#pragma clang diagnostic pop
}

MPSGraphCompilationDescriptor* _Nonnull compilation_options(const ConvSpec& spec) {
  MPSGraphCompilationDescriptor* options = [MPSGraphCompilationDescriptor new];
  options.optimizationLevel =
      optimization_level(spec) == 0 ? MPSGraphOptimizationLevel0 : MPSGraphOptimizationLevel1;
  options.waitForCompilationCompletion = YES;
  if (spec.device == ConvDevice::kAne) prefer_ane(options);
  return options;
}

class MpsGraphConv final : public ConvStep {
 public:
  MpsGraphConv(const ConvSpec& spec, const std::string& package) : spec_(spec) {
    guarded("preparing the device", [&] { return prepare_device(); });
    guarded("compiling the chain", [&] { return compile(package); });
    guarded("preparing a run", [&] { return prepare_run(); });
  }

  ~MpsGraphConv() override {
    @autoreleasepool {
      inputs_ = nil;
      results_ = nil;
      execution_ = nil;
      executable_ = nil;
    }
  }

  void run() override {
    guarded("running the chain",
            [this] { return spec_.enqueue > 1 ? run_overlapped() : run_blocking(); });
    has_run_ = true;
  }

  const ConvSpec& spec() const override { return spec_; }
  std::int64_t compile_ns() const override { return compile_ns_; }
  std::string device_name() const override { return device_name_; }

  std::span<const std::byte> output() const override {
    return {static_cast<const std::byte*>([output_ contents]), conv_work(spec_).output_bytes};
  }

  PlacementEvidence placement() override {
    run_once();
    return package_evidence(package_source(executable_, spec_), fallback_disabled_);
  }

  std::string save_package(const std::string& directory) override {
    run_once();
    return nnbt::save_package(package_source(executable_, spec_), directory);
  }

 private:
  // The first run compiles the ANE's regions at the latest, and only then is a fallback visible.
  void run_once() {
    if (!has_run_) run();
  }

  Failure prepare_device() {
    device_ = MTLCreateSystemDefaultDevice();
    if (device_ == nil) {
      return unsupported("this machine has no Metal device; use --engine mlx --device cpu");
    }
    device_name_ = to_string(device_.name);
    if (spec_.device == ConvDevice::kAne) {
      std::string sentence = no_ane_sentence();
      if (!sentence.empty()) return unsupported(std::move(sentence));
    }
    queue_ = [device_ newCommandQueue];
    return queue_ != nil ? Failure{} : Failure{"Metal returned no command queue", false};
  }

  Failure compile(const std::string& package) {
    MPSGraphDevice* device = [MPSGraphDevice deviceWithMTLDevice:device_];
    MPSGraphCompilationDescriptor* options = compilation_options(spec_);
    if (!package.empty()) {
      const std::int64_t start = steady_now_ns();
      executable_ = load_package(package, spec_, device, options);
      compile_ns_ = steady_now_ns() - start;
      if (executable_ == nil) return unsupported("MPSGraph cannot load the package " + package);
      return {};
    }
    const Chain chain = build_chain(spec_);
    MPSGraphShapedType* type = [[MPSGraphShapedType alloc] initWithShape:image_shape(spec_, 0)
                                                                dataType:element_type(spec_)];
    const std::int64_t start = steady_now_ns();
    executable_ = [chain.graph compileWithDevice:device
                                           feeds:@{chain.input : type}
                                   targetTensors:@[ chain.output ]
                                targetOperations:nil
                           compilationDescriptor:options];
    compile_ns_ = steady_now_ns() - start;
    if (executable_ != nil) return {};
    return unsupported("MPSGraph cannot compile the " +
                       std::string(kVariantNames.name(spec_.variant)) +
                       " chain for this device; try another --dtype or a smaller shape");
  }

  Failure prepare_run() {
    const ConvWork work = conv_work(spec_);
    const std::size_t largest = std::max(work.input_bytes, work.output_bytes);
    if (largest > device_.maxBufferLength) {
      return unsupported(
          "a tensor of " + std::to_string(largest) +
          " bytes exceeds the largest buffer of this GPU; use smaller --sizes or --batch");
    }
    id<MTLBuffer> input = [device_ newBufferWithLength:work.input_bytes
                                               options:MTLResourceStorageModeShared];
    output_ = [device_ newBufferWithLength:work.output_bytes options:MTLResourceStorageModeShared];
    if (input == nil || output_ == nil) {
      return unsupported("not enough memory for the tensors; use smaller --sizes or --batch");
    }
    const std::vector<std::byte> bytes = conv_input(spec_);
    std::memcpy([input contents], bytes.data(), bytes.size());
    inputs_ = @[ tensor_data(input, 0) ];
    results_ = @[ tensor_data(output_, spec_.layers) ];
    execution_ = [MPSGraphExecutableExecutionDescriptor new];
    execution_.waitUntilCompleted = spec_.enqueue > 1 ? NO : YES;
    const std::shared_ptr<Completion> completion = completion_;
    execution_.completionHandler = ^(NSArray<MPSGraphTensorData*>*, NSError* error) {
      completion->finish(error != nil ? to_string(error.localizedDescription) : std::string());
    };
    if (spec_.device == ConvDevice::kAne &&
        [execution_ respondsToSelector:@selector(setDisableANEFallback:)]) {
      [(id<NNBTExecutionOptions>)execution_ setDisableANEFallback:YES];
      fallback_disabled_ = true;
    }
    return {};
  }

  MPSGraphTensorData* _Nonnull tensor_data(id<MTLBuffer> _Nonnull buffer, std::int64_t layers) {
    return [[MPSGraphTensorData alloc] initWithMTLBuffer:buffer
                                                   shape:image_shape(spec_, layers)
                                                dataType:element_type(spec_)];
  }

  Failure run_blocking() {
    completion_->expect(1);
    NSArray<MPSGraphTensorData*>* results = [executable_ runWithMTLCommandQueue:queue_
                                                                    inputsArray:inputs_
                                                                   resultsArray:results_
                                                            executionDescriptor:execution_];
    std::string error = completion_->error();
    if (!error.empty()) return {"MPSGraph failed to run the chain: " + error, false};
    return results.count == 1 ? Failure{} : Failure{"MPSGraph returned no result", false};
  }

  // Overlapping submissions hide the cost of dispatch, so the time of such a run is not a latency.
  Failure run_overlapped() {
    completion_->expect(spec_.enqueue);
    for (std::int64_t i = 0; i < spec_.enqueue; ++i) {
      [executable_ runAsyncWithMTLCommandQueue:queue_
                                   inputsArray:inputs_
                                  resultsArray:results_
                           executionDescriptor:execution_];
    }
    std::string error = completion_->wait();
    if (!error.empty()) return {"MPSGraph failed to run the chain: " + error, false};
    return {};
  }

  ConvSpec spec_;
  std::string device_name_;
  std::int64_t compile_ns_ = 0;
  bool fallback_disabled_ = false;
  bool has_run_ = false;
  std::shared_ptr<Completion> completion_ = std::make_shared<Completion>();
  id<MTLDevice> device_;
  id<MTLCommandQueue> queue_;
  id<MTLBuffer> output_;
  MPSGraphExecutable* executable_;
  MPSGraphExecutableExecutionDescriptor* execution_;
  NSArray<MPSGraphTensorData*>* inputs_;
  NSArray<MPSGraphTensorData*>* results_;
};

}  // namespace

std::string conv_refusal() {
  std::string sentence;
  @autoreleasepool {
    if (MTLCreateSystemDefaultDevice() == nil) sentence = "this machine has no Metal device";
  }
  return sentence;
}

std::unique_ptr<ConvStep> make_conv(const ConvSpec& spec, const std::string& package) {
  validate(spec);
  if (!package.empty()) require_package(package);
  return std::make_unique<MpsGraphConv>(spec, package);
}

}  // namespace nnbt
