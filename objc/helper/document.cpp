#include "document.h"

namespace nnbt {
namespace {

using json::boolean;
using json::list;
using json::maybe;
using json::number;
using json::numbers;
using json::Object;
using json::text;
using json::texts;

std::string optional_text(const std::optional<std::string>& value) { return maybe(value, text); }

std::string optional_number(const auto& value) {
  return maybe(value, [](const auto& present) { return number(present); });
}

std::string reading_json(const Reading& reading) {
  return Object()
      .add("name", text(reading.name))
      .add("unit", text(reading.unit))
      .add("value", number(reading.value))
      .str();
}

std::string window_json(const ane::Window& window) {
  return Object()
      .add("before", numbers(window.before))
      .add("after", numbers(window.after))
      .add("evaluations", number(window.evaluations))
      .add("wall_ns", optional_number(window.wall_ns))
      .add("hw_ns", optional_number(window.hw_ns))
      .str();
}

}  // namespace

void add_samples(Object& out, const Samples& samples) {
  out.add("first_run_ns", number(samples.first_run_ns))
      .add("warmup_runs", number(samples.warmup_runs))
      .add("samples_ns", numbers(samples.samples_ns))
      .add("window_ns", number(samples.window_ns))
      .add("settled", boolean(samples.settled))
      .add("stop", text(stop_name(samples.stop)))
      .add("readings", list(samples.readings, reading_json));
}

void add_placement(Object& out, const PlacementVerdict& verdict) {
  out.add("placement", text(placement_name(verdict.placement)))
      .add("evidence", texts(verdict.evidence));
}

std::string check_json(const ConvCheck& check) {
  return Object()
      .add("ok", boolean(check.ok))
      .add("compared", number(check.compared))
      .add("relative_error", number(check.relative_error))
      .add("zero_fraction", number(check.zero_fraction))
      .add("non_finite", number(check.non_finite))
      .add("detail", text(check.detail))
      .str();
}

std::string replay_json(const ane::Replay& replay) {
  return Object()
      .add("status", text(ane::status_row(replay.status).name))
      .add("detail", text(replay.detail))
      .add("architecture", optional_text(replay.architecture))
      .add("cores", optional_number(replay.cores))
      .add("labels", texts(replay.labels))
      .add("fully_placed", maybe(replay.fully_placed, boolean))
      .add("windows", list(replay.windows, window_json))
      .add("wall_samples_ns", numbers(replay.wall_samples_ns))
      .add("hw_samples_ns", numbers(replay.hw_samples_ns))
      .add("check", maybe(replay.check, check_json))
      .str();
}

std::string info_json(const ane::Info& info, std::optional<bool> entitled) {
  return Object()
      .add("present", boolean(info.device.present))
      .add("driver", optional_text(info.driver))
      .add("architecture", optional_text(info.device.architecture))
      .add("cores", optional_number(info.device.cores))
      .add("firmware", optional_text(info.firmware))
      .add("entitled", maybe(entitled, boolean))
      .add("boot_args", optional_text(info.boot_args))
      .add("sip", optional_text(info.sip))
      .add("virtual_machine", boolean(info.device.virtual_machine))
      .add("framework_complete", boolean(info.device.missing.empty()))
      .add("missing", texts(info.device.missing))
      .str();
}

std::string refusal_json(const char* status, const std::string& sentence) {
  return Object().add("status", text(status)).add("message", text(sentence)).str();
}

}  // namespace nnbt
