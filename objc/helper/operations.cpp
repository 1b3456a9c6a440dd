#include "operations.h"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "base/json_writer.h"
#include "conv/check.h"
#include "document.h"
#include "macos/ane_client.h"
#include "macos/ane_info.h"
#include "macos/entitlement.h"
#include "macos/power_probe.h"
#include "power/power.h"

namespace nnbt {
namespace {

namespace fs = std::filesystem;
using json::boolean;
using json::Object;
using json::text;

// A package that is deleted after the replay.
class TemporaryPackage {
 public:
  TemporaryPackage() {
    static std::atomic<int> count{0};
    path_ = fs::temp_directory_path() /
            ("nnbt-replay-" + std::to_string(getpid()) + "-" + std::to_string(count++));
  }
  ~TemporaryPackage() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryPackage(const TemporaryPackage&) = delete;
  TemporaryPackage& operator=(const TemporaryPackage&) = delete;

  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

ane::Replay not_replayed(ane::Status status, const std::exception& problem) {
  ane::Replay replay;
  replay.status = status;
  replay.detail = problem.what();
  return replay;
}

// Takes the step, because its executable must be released before the client loads the same program.
// `package` has the regions of the step; if empty, a temporary one is saved. Failures become a
// status, so that earlier measurements are not lost.
ane::Replay replay_step(std::unique_ptr<ConvStep> step, std::string package,
                        const ane::ReplayOptions& options) {
  const ConvSpec spec = step->spec();
  const TemporaryPackage temporary;
  std::string note;
  try {
    if (package.empty()) {
      package = temporary.path();
      note = step->save_package(package);
    }
  } catch (const std::runtime_error& problem) {
    return not_replayed(ane::Status::kNoRegion, problem);
  }
  step.reset();
  try {
    ane::Replay replay = ane::replay_package(package, spec, options);
    if (replay.status != ane::Status::kOk && replay.detail.empty()) replay.detail = note;
    return replay;
  } catch (const std::runtime_error& problem) {  // querying the device raised
    return not_replayed(ane::Status::kFrameworkMissing, problem);
  }
}

// The requested package that has regions: it is replayed instead of being compiled again.
std::string package_with_regions(const HelperRequest& request) {
  for (const std::string& package : {request.save_package, request.package}) {
    if (!package.empty() && !ane::read_bundle(package).regions.empty()) return package;
  }
  return {};
}

std::string measure_document(const HelperRequest& request) {
  std::unique_ptr<ConvStep> step = make_conv(request.spec, request.package);
  std::vector<std::unique_ptr<Probe>> probes = make_probes();
  std::optional<PowerProbe> power;
  PowerReading energy;
  if (request.power) probes.push_back(power_window(power.emplace(), energy));
  const Samples samples = measure(*step, request.measure, probes);
  Object out;
  out.add("status", text("ok"))
      .add("device_name", text(step->device_name()))
      .add("spec", to_json(step->spec()))
      .add("compile_ns", json::number(step->compile_ns()));
  add_samples(out, samples);
  if (power) out.add("power", power_json(energy));
  out.add("check", check_json(check_conv(step->spec(), step->output())));
  if (request.placement && request.spec.device == ConvDevice::kAne) {
    add_placement(out, judge_placement(step->placement(), {}, {}));
  }
  if (!request.save_package.empty()) {
    out.add("package_note", text(step->save_package(request.save_package)));
  }
  if (request.pmu) {
    const ane::ReplayOptions options{request.pmu_windows, request.measure};
    const std::string package = package_with_regions(request);
    out.add("pmu", replay_json(replay_step(std::move(step), package, options)));
  }
  return out.str();
}

// 38 million multiplies, about 10 us on the engine: enough for every status except a judgement of
// speed.
ConvSpec selftest_spec() {
  ConvSpec spec;
  spec.size = 32;
  spec.channels = 32;
  spec.layers = 4;
  spec.device = ConvDevice::kAne;
  return spec;
}

ane::Replay selftest_replay() {
  ane::ReplayOptions options;
  options.windows = ane::kMinWindows;
  options.measure.runs = 20;
  std::unique_ptr<ConvStep> step;
  try {
    step = make_conv(selftest_spec());
  } catch (const std::runtime_error& problem) {
    return not_replayed(ane::Status::kNoRegion, problem);
  }
  ane::Replay replay = replay_step(std::move(step), {}, options);
  if (replay.status != ane::Status::kOk) return replay;
  for (ane::Window& window : replay.windows) {
    window.wall_ns.reset();
    window.hw_ns.reset();
  }
  replay.status = ane::decode_windows(replay.windows, {}).status;
  return replay;
}

std::string selftest_document() {
  const ane::Device device = ane::read_device();
  ane::Replay replay;
  if (!device.present || device.virtual_machine) {
    replay.status = ane::Status::kNoAne;
  } else if (!device.missing.empty()) {
    replay.status = ane::Status::kFrameworkMissing;
  } else {
    replay = selftest_replay();
  }
  return Object()
      .add("status", text("ok"))
      .add("selftest", Object()
                           .add("framework_complete", boolean(device.missing.empty()))
                           .add("missing", json::texts(device.missing))
                           .add("entitled", boolean(ane::counters_entitled().value_or(false)))
                           .add("counters", text(ane::status_row(replay.status).name))
                           .add("detail", text(replay.detail))
                           .str())
      .add("version", text(NNBT_VERSION))
      .str();
}

std::string info_document() {
  return Object()
      .add("status", text("ok"))
      .add("ane", info_json(ane::read_info(), ane::counters_entitled()))
      .add("power", power_json(PowerProbe().availability()))
      .str();
}

}  // namespace

std::string perform(const HelperRequest& request) {
  switch (request.op) {
    case HelperOp::kMeasure:
      return measure_document(request);
    case HelperOp::kSelftest:
      return selftest_document();
    case HelperOp::kInfo:
      return info_document();
  }
  throw std::invalid_argument("unknown op");
}

}  // namespace nnbt
