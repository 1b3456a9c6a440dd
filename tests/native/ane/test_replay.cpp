#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ane/replay.h"
#include "conv/data.h"
#include "conv/half.h"
#include "fake_clock.h"

namespace {

using namespace nnbt;
using namespace nnbt::ane;
using testing::fake_clock;
using testing::fake_now_ns;

// What the engine should do, and what happened to it.
struct Engine {
  std::size_t registers = 29;
  std::uint64_t change = 1000;  // of every register, per evaluation
  std::optional<std::uint64_t> hw_ns = 900;
  std::optional<std::uint32_t> mask = 15;
  bool stats_present = true;
  bool prepare_fails = false;
  bool wrong_output = false;
  std::int64_t fails_at = -1;  // this evaluation
  int refused_loads = 0;       // the first ones

  std::int64_t evaluations = 0;
  std::int64_t snapshots = 0;
  int loads = 0;
  int unloads = 0;
};

ConvSpec small() {
  ConvSpec spec;
  spec.size = 4;
  spec.channels = 2;
  spec.layers = 1;
  spec.device = ConvDevice::kAne;
  return spec;
}

// The correct result, from the reference.
std::vector<std::byte> right_output() {
  const ConvSpec spec = small();
  ConvReference reference(spec);
  std::vector<std::uint16_t> values;
  for (std::int64_t channel = 0; channel < spec.channels; ++channel) {
    for (std::int64_t pixel = 0; pixel < spec.size * spec.size; ++pixel) {
      const auto all = reference.pixel(0, pixel / spec.size, pixel % spec.size);
      values.push_back(float_to_half(all.at(static_cast<std::size_t>(channel))));
    }
  }
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

class FakeProgram final : public Program {
 public:
  explicit FakeProgram(Engine& engine) : engine_(engine) {}
  FakeProgram(const FakeProgram&) = delete;
  FakeProgram& operator=(const FakeProgram&) = delete;
  ~FakeProgram() override { ++engine_.unloads; }

  void prepare() override {
    if (engine_.prepare_fails) throw std::runtime_error("tensors of another shape");
  }
  void run() override {
    fake_now_ns += 1'000'000;
    if (++engine_.evaluations == engine_.fails_at) throw std::runtime_error("domain 8: failed");
  }
  std::optional<std::uint32_t> mask() const override { return engine_.mask; }
  std::optional<std::uint64_t> hw_ns() const override { return engine_.hw_ns; }
  Snapshot snapshot() const override {
    ++engine_.snapshots;
    Snapshot out;
    out.stats_present = engine_.stats_present;
    if (!engine_.stats_present) return out;
    out.data_bytes = engine_.registers * sizeof(std::uint64_t);
    out.registers.assign(engine_.registers,
                         engine_.change * static_cast<std::uint64_t>(engine_.evaluations));
    return out;
  }
  std::string label(std::size_t index) const override { return "label " + std::to_string(index); }
  std::vector<std::byte> output() const override {
    if (engine_.wrong_output) return std::vector<std::byte>(right_output().size());
    return right_output();
  }

 private:
  Engine& engine_;
};

Bundle one_region() {
  Bundle bundle;
  bundle.regions.push_back({"/d", "k", "k.bc.mlir", "", "h16c"});
  bundle.fully_placed = true;
  return bundle;
}

Device whole() {
  Device device;
  device.present = true;
  device.cores = 16;
  return device;
}

Replay replayed(Engine& engine, const Bundle& bundle = one_region(),
                const Device& device = whole()) {
  fake_now_ns = 0;
  ReplayOptions options;
  options.measure.runs = 4;
  return replay(
      bundle, device, small(), options,
      [&](const Region&, bool) -> std::unique_ptr<Program> {
        if (engine.loads++ < engine.refused_loads) throw std::runtime_error("domain 6: refused");
        return std::make_unique<FakeProgram>(engine);
      },
      fake_clock);
}

TEST_CASE("windows follow one another without a gap, after 3 runs and 50 ms") {
  Engine engine;
  const Replay out = replayed(engine);
  CHECK(out.status == Status::kOk);
  CHECK(out.detail.empty());
  CHECK(out.architecture == "h16c");
  CHECK(out.cores == 16U);
  CHECK(out.fully_placed == true);
  REQUIRE(out.windows.size() == 5);
  const std::uint64_t first = out.windows.front().before.at(10);
  CHECK(first >= 50 * engine.change);  // a run takes 1 ms
  for (std::size_t i = 0; i < out.windows.size(); ++i) {
    const Window& window = out.windows.at(i);
    CHECK(window.before.at(10) == first + (i * 4 * engine.change));
    CHECK(window.after.at(10) == first + ((i + 1) * 4 * engine.change));
    CHECK(window.evaluations == 4);
    CHECK(window.wall_ns.value_or(0) == doctest::Approx(1e6));
    CHECK(window.hw_ns.value_or(0) == doctest::Approx(900));
  }
  CHECK(out.wall_samples_ns.size() == 20);
  CHECK(out.hw_samples_ns.size() == 20);
  CHECK(out.labels.size() == 29);
  CHECK(out.labels.at(3) == "label 3");
  CHECK(engine.snapshots == 6);
  CHECK(engine.unloads == 1);
  REQUIRE(out.check.has_value());
  CHECK(out.check->ok);
}

TEST_CASE("a slow evaluation still gets three warm-up runs") {
  Engine engine;
  fake_now_ns = 0;
  const auto load = [&](const Region&, bool) { return std::make_unique<FakeProgram>(engine); };
  ReplayOptions options;
  options.windows = 3;
  options.measure.runs = 1;
  const auto slow = []() { return fake_now_ns += 60'000'000; };
  const Replay out = replay(one_region(), whole(), small(), options, load, slow);
  CHECK(out.windows.front().before.at(0) == 3 * engine.change);
}

TEST_CASE("obstacles before loading are reported without loading") {
  const auto status = [](const Bundle& bundle, const Device& device) {
    Engine engine;
    const Replay out = replayed(engine, bundle, device);
    CHECK(engine.loads == 0);
    CHECK(out.windows.empty());
    return std::pair(status_row(out.status).name, out.detail);
  };
  Device device;
  CHECK(status(one_region(), device).first == "no_ane");
  device = whole();
  device.virtual_machine = true;
  CHECK(status(one_region(), device).first == "no_ane");
  device = whole();
  device.missing = {"_ANEModel", "-[_ANERequest perfStats]"};
  CHECK(status(one_region(), device) ==
        std::pair(std::string_view("framework_missing"),
                  std::string("missing: _ANEModel, -[_ANERequest perfStats]")));
  Bundle bundle = one_region();
  bundle.fully_placed = false;
  CHECK(status(bundle, whole()).first == "not_placed_on_ane");
  bundle = one_region();
  bundle.regions.push_back(bundle.regions.front());
  CHECK(status(bundle, whole()).first == "not_placed_on_ane");
  CHECK(status(Bundle{}, whole()).first == "no_region");
}

TEST_CASE("failures keep the engine's error text, and everything is unloaded") {
  Engine engine;
  engine.refused_loads = 2;
  Replay out = replayed(engine);
  CHECK(out.status == Status::kLoadFailed);
  CHECK(out.detail == "domain 6: refused");

  engine = {};
  engine.prepare_fails = true;
  out = replayed(engine);
  CHECK(out.status == Status::kEvaluationFailed);
  CHECK(out.detail == "tensors of another shape");
  CHECK(engine.unloads == 1);

  for (const std::int64_t evaluation : {1, 2, 55, 60}) {
    engine = {};
    engine.fails_at = evaluation;
    out = replayed(engine);
    CHECK(out.status == Status::kEvaluationFailed);
    CHECK(out.detail == "domain 8: failed");
    CHECK(engine.unloads == 1);
  }

  engine = {};
  engine.wrong_output = true;
  out = replayed(engine);
  CHECK(out.status == Status::kEvaluationFailed);
  CHECK(out.detail.starts_with("the result of the replay is wrong: "));
}

TEST_CASE("locks are distinguished, and times are kept") {
  Engine engine;
  engine.mask = 0;
  engine.stats_present = false;
  Replay out = replayed(engine);
  CHECK(out.status == Status::kLockedMaskZeroed);
  CHECK(out.wall_samples_ns.size() == 20);
  CHECK(out.windows.empty());

  engine = {};
  engine.stats_present = false;
  engine.hw_ns = std::nullopt;
  out = replayed(engine);
  CHECK(out.status == Status::kLockedNoStats);
  CHECK(out.hw_samples_ns.empty());
  CHECK(out.wall_samples_ns.size() == 20);

  engine = {};
  engine.registers = 20;
  out = replayed(engine);
  CHECK(out.status == Status::kLockedNoCounters);
  CHECK(out.windows.front().after.size() == 20);

  engine = {};
  engine.registers = 65;
  out = replayed(engine);
  CHECK(out.status == Status::kUnknownFormat);
  CHECK(out.detail == "the counter data has 520 bytes");

  engine = {};
  engine.refused_loads = 1;
  out = replayed(engine);
  CHECK(out.status == Status::kOk);
  CHECK(out.detail ==
        "loaded without counters, because loading with counters failed: domain 6: refused");
}

TEST_CASE("live counters override a mask that reads back as zero; zeros do not") {
  Engine engine;
  engine.mask = 0;
  CHECK(replayed(engine).status == Status::kOk);
  engine = {};
  engine.mask = 0;
  engine.change = 0;
  CHECK(replayed(engine).status == Status::kLockedMaskZeroed);
  engine = {};
  engine.mask = std::nullopt;  // no such property on this release
  engine.change = 0;
  CHECK(replayed(engine).status == Status::kOk);  // decoding says "zeros"
}

TEST_CASE("fewer than three windows are refused") {
  ReplayOptions options;
  options.windows = 2;
  CHECK_THROWS_AS(replay(one_region(), whole(), small(), options, {}), std::invalid_argument);
}

class Package {
 public:
  Package()
      : path_(std::filesystem::temp_directory_path() /
              ("nnbt-bundle-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_ / "ane_bundle");
  }
  ~Package() { std::filesystem::remove_all(path_); }
  Package(const Package&) = delete;
  Package& operator=(const Package&) = delete;

  void write(const std::string& name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST_CASE("regions of a package") {
  const Package package;
  CHECK(read_bundle(package.path()).regions.empty());
  CHECK_FALSE(read_bundle(package.path()).fully_placed);
  CHECK(read_bundle("/nonexistent").regions.empty());
  package.write("ane_bundle/b.bc.mlir", "x");
  package.write("ane_bundle/a.bc.mlir", "x");
  package.write("ane_bundle/a.bc.weights", "x");
  package.write("ane_bundle/c.llir.bundle", "x");
  package.write("ane_bundle/compiler_options_a.plist", "not a property list");
  const Bundle bundle = read_bundle(package.path());
  REQUIRE(bundle.regions.size() == 2);
  CHECK(bundle.regions[0].key == "a");
  CHECK(bundle.regions[0].network_file == "a.bc.mlir");
  CHECK(bundle.regions[0].options_file == "compiler_options_a.plist");
  CHECK_FALSE(bundle.regions[0].architecture);
  CHECK(bundle.regions[1].options_file.empty());
}

TEST_CASE("the target that compiler options name") {
  const auto options = [](Plist target) { return Plist{PlistDict{{"h17g", std::move(target)}}}; };
  CHECK(target_architecture(options({PlistDict{}})) == "h17g");
  CHECK(target_architecture(options({PlistDict{{"TargetArchitecture", {"h17c"}}}})) == "h17c");
  CHECK(target_architecture(options({PlistDict{{"TargetArchitecture", {}}}})) == "h17g");
  CHECK_FALSE(target_architecture(options({"h17c"})));
  CHECK_FALSE(target_architecture({PlistDict{}}));
  CHECK_FALSE(target_architecture({PlistArray{}}));
}

}  // namespace
