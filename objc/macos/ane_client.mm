#include "ane_client.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>

#import "ane_attributes.h"
#include "ane_info.h"
#include "conv/data.h"
#import "private_api.h"
#import "support.h"
#import "surface.h"

namespace nnbt::ane {
namespace {

constexpr const char* kFramework = "AppleNeuralEngine";
constexpr unsigned int kUserInitiated = 25;  // as in all published callers
constexpr unsigned int kAllStatistics = 15;  // bit 2 attaches the counters; above 15 there are none
constexpr long long kCounterStatistics = 2;
constexpr std::size_t kStatisticsBytes = 4096;

// The driver's codes, such as 0xe00002f0, are usually written in hexadecimal.
std::string code_of(NSError* _Nonnull error) {
  constexpr NSInteger kLargestSmall = 0xFFFF;
  if (error.code >= 0 && error.code <= kLargestSmall) return std::to_string(error.code);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%x", static_cast<std::uint32_t>(error.code));
  return text.data();
}

std::string describe_one(NSError* _Nonnull error) {
  return to_string(error.domain) + " " + code_of(error) + ": " +
         to_string(error.localizedDescription);
}

// "domain 5: text (domain 7: text)", the underlying error last.
std::string describe(NSError* _Nullable error) {
  if (error == nil) return "no error was reported";
  NSError* top = error;
  std::string text = describe_one(top);
  id below = top.userInfo[NSUnderlyingErrorKey];
  if ([below isKindOfClass:[NSError class]]) text += " (" + describe_one(below) + ")";
  return text;
}

NSDictionary<NSString*, id>* _Nonnull load_options(const Region& region, const Device& device,
                                                   bool with_counters) {
  NSMutableDictionary<NSString*, id>* options = [NSMutableDictionary dictionary];
  options[@"kANEFModelType"] = @"kANEFModelANECIR";
  options[@"kANEFNetPlistFilenameKey"] = to_ns(region.network_file);
  if (!region.options_file.empty()) {
    options[@"kANEFCompilerOptionsFilenameKey"] = to_ns(region.options_file);
  }
  // The compiler's target can differ from the name of the device (M5 Max: h17c and h17g).
  const auto& target = region.architecture ? region.architecture : device.architecture;
  if (target) options[@"kANEFTargetArchitectureKey"] = to_ns(*target);
  if (with_counters) options[@"kANEFPerformanceStatsMask"] = @(kAllStatistics);
  return options;
}

class AneProgram final : public Program {
 public:
  AneProgram(const Region& region, const ConvSpec& spec, const Device& device, bool with_counters)
      : region_(region), spec_(spec), device_(device), with_counters_(with_counters) {}

  // Separate from the constructor, so that the destructor unloads if a later part raises.
  void load() {
    guarded("loading the region", [this] { return load_model(); }, kFramework);
  }

  void prepare() override {
    guarded("reading the model's tensors", [this] { return find_tensors(); }, kFramework);
    input_ = complete(input_);
    output_ = complete(output_);
    make_surfaces();
    guarded("making the request", [this] { return make_request(); }, kFramework);
  }

  ~AneProgram() override {
    @autoreleasepool {
      @try {
        if (loaded_) {
          NSError* error = nil;
          [client_ unloadModel:model_ options:@{} qos:kUserInitiated error:&error];
        }
      } @catch (NSException*) {
        loaded_ = false;  // nothing else can be done here
      }
      request_ = nil;
      model_ = nil;
      client_ = nil;
    }
  }

  void run() override {
    guarded("evaluating the region", [this] { return evaluate(); }, kFramework);
  }

  std::optional<std::uint32_t> mask() const override { return mask_; }

  std::optional<std::uint64_t> hw_ns() const override {
    std::uint64_t time = 0;
    guarded(
        "reading the time",
        [&] {
          time = [statistics() hwExecutionTime];
          return Failure{};
        },
        kFramework);
    return time > 0 ? std::optional(time) : std::nullopt;
  }

  Snapshot snapshot() const override {
    Snapshot out;
    guarded(
        "reading the counters",
        [&] {
          id<NNBTAneStatistics> statistics = this->statistics();
          out.stats_present = statistics != nil;
          NSData* data = [statistics perfCounterData];
          if (![data isKindOfClass:[NSData class]]) return Failure{};
          out.data_bytes = data.length;
          out.registers.resize(data.length / sizeof(std::uint64_t));
          std::memcpy(out.registers.data(), data.bytes,
                      out.registers.size() * sizeof(std::uint64_t));
          return Failure{};
        },
        kFramework);
    return out;
  }

  std::string label(std::size_t index) const override {
    std::string name;
    guarded(
        "naming a counter",
        [&] {
          id<NNBTAneStatistics> statistics = this->statistics();
          if ([(id)statistics respondsToSelector:@selector(stringForPerfCounter:)]) {
            name = to_string([statistics stringForPerfCounter:static_cast<int>(index)]);
          }
          return Failure{};
        },
        kFramework);
    // One of the framework's names ends in a colon.
    if (name.ends_with(':')) name.pop_back();
    return name;
  }

  std::vector<std::byte> output() const override {
    std::vector<std::byte> dense;
    output_surface_.with_bytes(
        true, [&](std::span<std::byte> bytes) { dense = copy_from_surface(output_, bytes); });
    return dense;
  }

 private:
  Failure load_model() {
    Class<NNBTAneModels> models =
        static_cast<Class<NNBTAneModels>>(NSClassFromString(@"_ANEModel"));
    Class<NNBTAneClients> clients =
        static_cast<Class<NNBTAneClients>>(NSClassFromString(@"_ANEClient"));
    NSURL* directory = [NSURL fileURLWithPath:to_ns(region_.directory)];
    NSString* key = to_ns(region_.key);
    client_ = [clients sharedConnection];
    model_ = [(id)models respondsToSelector:@selector(modelAtURL:key:mpsConstants:)]
                 ? [models modelAtURL:directory key:key mpsConstants:@"constants"]
                 : [models modelAtURL:directory key:key];
    if (client_ == nil || model_ == nil) return {"the daemon cannot be reached", false};
    const bool has_mask = [(id)model_ respondsToSelector:@selector(perfStatsMask)] &&
                          [(id)model_ respondsToSelector:@selector(setPerfStatsMask:)];
    // Set in addition to the option: if it then reads 0, the system cleared it.
    if (with_counters_ && has_mask) [model_ setPerfStatsMask:kAllStatistics];
    NSError* error = nil;
    loaded_ = [client_ loadModel:model_
                         options:load_options(region_, device_, with_counters_)
                             qos:kUserInitiated
                           error:&error];
    if (!loaded_) return {describe(error), false};
    if (has_mask) mask_ = [model_ perfStatsMask];
    return {};
  }

  Failure find_tensors() {
    Attributes attributes = read_attributes([model_ modelAttributes]);
    if (!attributes.one_input_and_output) {
      return {"the loaded model does not list exactly one input and one output", false};
    }
    input_ = std::move(attributes.input);
    output_ = std::move(attributes.output);
    input_indices_ = attributes.input_indices;
    output_indices_ = attributes.output_indices;
    procedure_ = attributes.procedure;
    return {};
  }

  void make_surfaces() {
    const std::vector<std::byte> input = conv_input(spec_);
    if (dense_bytes(output_) != conv_work(spec_).output_bytes) {
      throw std::runtime_error("the model's output takes " + std::to_string(dense_bytes(output_)) +
                               " bytes, but the convolution's has " +
                               std::to_string(conv_work(spec_).output_bytes));
    }
    input_surface_ = Surface(surface_bytes(input_));
    output_surface_ = Surface(surface_bytes(output_));
    input_surface_.with_bytes(
        false, [&](std::span<std::byte> bytes) { copy_to_surface(input_, input, bytes); });
    if (with_counters_) statistics_surface_ = Surface(kStatisticsBytes);
  }

  Failure make_request() {
    Class<NNBTAneSurfaces> surfaces =
        static_cast<Class<NNBTAneSurfaces>>(NSClassFromString(@"_ANEIOSurfaceObject"));
    Class<NNBTAneRequests> requests =
        static_cast<Class<NNBTAneRequests>>(NSClassFromString(@"_ANERequest"));
    id input = [surfaces objectWithIOSurface:input_surface_.get()];
    id output = [surfaces objectWithIOSurface:output_surface_.get()];
    if (input == nil || output == nil) return {"the framework accepted no surface", false};
    NSMutableArray* statistics = [NSMutableArray array];
    if (with_counters_) {
      Class<NNBTAneStatisticsSurfaces> statistics_surfaces =
          static_cast<Class<NNBTAneStatisticsSurfaces>>(
              NSClassFromString(@"_ANEPerformanceStatsIOSurface"));
      id counters = [surfaces objectWithIOSurface:statistics_surface_.get()];
      if (counters != nil) {
        counters = [statistics_surfaces objectWithIOSurface:counters statType:kCounterStatistics];
      }
      if (counters != nil) [statistics addObject:counters];
    }
    request_ = [requests requestWithInputs:@[ input ]
                              inputIndices:input_indices_
                                   outputs:@[ output ]
                             outputIndices:output_indices_
                                 perfStats:statistics
                            procedureIndex:procedure_];
    if (request_ == nil || ![request_ validate]) {
      return {"the framework rejected the request as invalid", false};
    }
    options_ = with_counters_
                   ? @{@"kANEFPerformanceStatsMask" : @(kAllStatistics),
                       @"enableProfiling" : @YES}
                   : @{};
    return {};
  }

  Failure evaluate() {
    NSError* error = nil;
    const BOOL done = [client_ evaluateWithModel:model_
                                         options:options_
                                         request:request_
                                             qos:kUserInitiated
                                           error:&error];
    if (done && error == nil) return {};
    return {"an evaluation failed: " + describe(error), false};
  }

  // Of the last evaluation; nil if there are none.
  id<NNBTAneStatistics> _Nullable statistics() const {
    id found = [request_ perfStats];
    const bool usable = [found respondsToSelector:@selector(hwExecutionTime)] &&
                        [found respondsToSelector:@selector(perfCounterData)];
    return usable ? found : nil;
  }

  Region region_;
  ConvSpec spec_;
  Device device_;
  bool with_counters_;
  BOOL loaded_ = NO;
  std::optional<std::uint32_t> mask_;
  Tensor input_;
  Tensor output_;
  Surface input_surface_;
  Surface output_surface_;
  Surface statistics_surface_;
  id<NNBTAneClient> client_;
  id<NNBTAneModel> model_;
  id<NNBTAneRequest> request_;
  NSArray<NSNumber*>* input_indices_;
  NSArray<NSNumber*>* output_indices_;
  NSNumber* procedure_;
  NSDictionary<NSString*, id>* options_;
};

}  // namespace

std::unique_ptr<Program> load_program(const Region& region, const ConvSpec& spec,
                                      const Device& device, bool with_counters) {
  auto program = std::make_unique<AneProgram>(region, spec, device, with_counters);
  program->load();
  return program;
}

Replay replay_package(const std::string& package, const ConvSpec& spec,
                      const ReplayOptions& options) {
  const Device device = read_device();
  const Loader load = [&](const Region& region, bool with_counters) {
    return load_program(region, spec, device, with_counters);
  };
  return replay(read_bundle(package), device, spec, options, load);
}

}  // namespace nnbt::ane
