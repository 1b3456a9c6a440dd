// Drives the runner on doubles without Python, for the sanitizers: every variant, both devices,
// overlapped submissions, packages, replays with counters and every fault. Exits with 1 at the
// first failure.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/unsupported.h"
#include "conv/check.h"
#include "conv/conv.h"
#include "conv/names.h"
#include "ios/rows.h"
#include "macos/ane_client.h"
#include "macos/ane_info.h"
#include "macos/entitlement.h"
#include "swift/nnbt_conv.h"

extern "C" long nnbt_doubles_live_objects();

namespace {

using namespace nnbt;

void require(bool good, const std::string& what) {
  if (good) return;
  std::cerr << "driver: " << what << '\n';
  std::exit(1);
}

ConvSpec small(ConvVariant variant, ConvDevice device) {
  ConvSpec spec;
  spec.size = 5;
  spec.channels = 3;
  spec.layers = 2;
  spec.variant = variant;
  spec.device = device;
  return spec;
}

void run_variant(ConvSpec spec, const std::filesystem::path& directory) {
  const std::unique_ptr<ConvStep> step = make_conv(spec);
  step->run();
  step->run();
  require(check_conv(spec, step->output()).ok, "wrong result: " + to_json(spec));
  const std::string package = (directory / "p.mpsgraphpackage").string();
  require(step->save_package(package).empty(), "the package is incomplete: " + to_json(spec));
  const std::unique_ptr<ConvStep> loaded = make_conv(spec, package);
  loaded->run();
  require(check_conv(spec, loaded->output()).ok, "wrong result of a package: " + to_json(spec));
  if (spec.device == ConvDevice::kAne) {
    const PlacementVerdict verdict = judge_placement(step->placement(), {}, {});
    require(verdict.placement == Placement::kProven, "not proven: " + to_json(spec));
  }
  std::filesystem::remove_all(package);
}

// A fault may show while compiling, running, checking or saving, but it must show.
bool fault_is_seen(const char* name, const std::filesystem::path& directory) {
  setenv("NNBT_DOUBLE_FAULT", name, 1);
  const ConvSpec spec = small(ConvVariant::kFp16, ConvDevice::kAne);
  bool seen = false;
  try {
    const std::unique_ptr<ConvStep> step = make_conv(spec);
    step->run();
    seen = !check_conv(spec, step->output()).ok;
    seen |= judge_placement(step->placement(), {}, {}).placement != Placement::kProven;
    seen |= !step->save_package((directory / name).string()).empty();
  } catch (const std::runtime_error&) {
    seen = true;
  }
  unsetenv("NNBT_DOUBLE_FAULT");
  return seen;
}

// The lines of the iOS app: a row for each variant and device, and a refusal for int8 on the GPU.
void show_rows() {
  int right = 0;
  int refused = 0;
  const ConvSpec shape = small(ConvVariant::kFp16, ConvDevice::kGpu);
  MeasureOptions options;
  options.runs = 3;
  measure_rows(shape, options, [&](const std::string& line) {
    right += line.find(" TOPS") != std::string::npos && line.find("right") != std::string::npos;
    refused += line.starts_with("int8  gpu") && line.find("--device ane") != std::string::npos;
  });
  require(right == 7 && refused == 1, "the rows of the iOS app");
}

void call_from_c() {
  nnbt_conv_request request = nnbt_conv_standard();
  require(request.layers == 20 && request.channels == 128, "the standard workload");
  request = {1, 5, 3, 2, 3, 4, "qdq", "ane"};
  nnbt_conv_result result;
  require(nnbt_conv_measure(&request, &result) == 1, result.sentence);
  require(result.right == 1 && result.runs == 4 && result.median_ns > 0, "the C caller's result");
  require(std::string(result.placement) == "proven", "the C caller's placement");
  request.device = nullptr;
  require(nnbt_conv_measure(&request, &result) == 0, "a device that is null");
  require(std::string(result.sentence) == "device is one of gpu, ane", result.sentence);
}

// Saves the package of a step and releases the step, as the helper does: the engine does not load a
// program twice.
std::string saved_package(const ConvSpec& spec, const std::filesystem::path& directory) {
  const std::unique_ptr<ConvStep> step = make_conv(spec);
  std::string package = (directory / "replay.mpsgraphpackage").string();
  std::filesystem::remove_all(package);
  step->save_package(package);
  return package;
}

ane::Replay replayed(const std::string& package, const ConvSpec& spec) {
  ane::ReplayOptions options;
  options.windows = ane::kMinWindows;
  options.measure.runs = 2;
  return ane::replay_package(package, spec, options);
}

void replay_everything(const std::filesystem::path& directory) {
  for (const auto& [name, variant] : kVariantNames.rows) {
    ConvSpec spec = small(variant, ConvDevice::kAne);
    spec.size = 7;  // 14 and 7 bytes per row: padded
    const ane::Replay replay = replayed(saved_package(spec, directory), spec);
    require(replay.status == ane::Status::kOk, to_json(spec) + ": " + replay.detail);
    require(replay.check && replay.check->ok, "the replay's result is wrong: " + to_json(spec));
  }
  const ConvSpec spec = small(ConvVariant::kFp16, ConvDevice::kAne);
  const std::string package = saved_package(spec, directory);
  for (const char* fault : {"load_fails",
                            "load_exception",
                            "no_connection",
                            "evaluation_fails",
                            "evaluation_fails_later",
                            "evaluation_exception",
                            "evaluation_error_only",
                            "two_inputs",
                            "no_attributes",
                            "odd_type",
                            "odd_width",
                            "interleaved",
                            "no_surface",
                            "no_lock",
                            "invalid_request",
                            "mask_zeroed",
                            "no_stats",
                            "no_stats_surface",
                            "no_counter_data",
                            "odd_counters",
                            "ane_zero_output",
                            "no_evaluate",
                            "no_engine",
                            "virtual_machine"}) {
    setenv("NNBT_DOUBLE_FAULT", fault, 1);
    require(replayed(package, spec).status != ane::Status::kOk,
            std::string("nobody saw the fault ") + fault);
    unsetenv("NNBT_DOUBLE_FAULT");
  }
  ane::Device device = ane::read_device();
  for (int i = 0; i < 200; ++i) {
    const auto program =
        ane::load_program(ane::read_bundle(package).regions.at(0), spec, device, true);
    program->prepare();
    program->run();
    require(check_conv(spec, program->output()).ok, "a replay's result is wrong");
  }
  require(ane::read_info().driver.has_value(), "the driver's name");
  require(ane::counters_entitled() == std::optional(false), "the entitlement");
}

}  // namespace

int main() {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("nnbt-driver-" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  for (const auto& [name, variant] : kVariantNames.rows) {
    for (const auto& [device_name, device] : kDeviceNames.rows) {
      if (variant == ConvVariant::kInt8 && device == ConvDevice::kGpu) continue;
      for (const std::int64_t enqueue : {1, 3}) {
        ConvSpec spec = small(variant, device);
        spec.enqueue = enqueue;
        spec.layout = enqueue == 1 ? ConvLayout::kNchw : ConvLayout::kNhwc;
        run_variant(spec, directory);
      }
    }
  }
  for (const char* fault : {"no_metal",          "no_ane",          "no_queue",
                            "no_memory",         "small_buffers",   "compile_nil",
                            "compile_exception", "run_exception",   "run_error",
                            "no_result",         "zero_output",     "nan_output",
                            "no_flags",          "gpu_fallback",    "disk_full",
                            "disk_full_silent",  "disk_full_later", "serialise_exception",
                            "no_region",         "two_regions"}) {
    require(fault_is_seen(fault, directory), std::string("nobody saw the fault ") + fault);
  }
  for (int i = 0; i < 200; ++i) {
    make_conv(small(ConvVariant::kQdq, ConvDevice::kGpu))->run();
  }
  show_rows();
  call_from_c();
  replay_everything(directory);
  std::filesystem::remove_all(directory);
  require(nnbt_doubles_live_objects() == 0, "objects are still alive");
  std::cout << "driver: every variant right, every fault seen, no object alive\n";
  return 0;
}
