#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "ane/counters.h"
#include "bindings/bindings.h"

namespace nb = nanobind;
namespace ane = nnbt::ane;
using namespace nb::literals;

namespace {

ane::Precision precision_of(const std::string& name) {
  if (name == "fp16") return ane::Precision::kFp16;
  if (name == "int8") return ane::Precision::kInt8;
  throw std::invalid_argument(
      "precision must be 'fp16' or 'int8', the type of the multiplied operands");
}

ane::Layout layout_of(const std::optional<std::string>& name) {
  if (!name) return ane::Layout::kUnknown;
  for (const ane::LayoutRow& row : ane::layout_table()) {
    if (row.name == *name) return row.layout;
  }
  throw std::invalid_argument("layout must be 'dma17', 'dma21' or None");
}

std::vector<std::tuple<std::string_view, std::string_view>> status_rows() {
  std::vector<std::tuple<std::string_view, std::string_view>> rows;
  for (const ane::StatusRow& row : ane::status_table()) rows.emplace_back(row.name, row.sentence);
  return rows;
}

std::vector<std::tuple<std::string_view, std::string_view>> reason_rows() {
  std::vector<std::tuple<std::string_view, std::string_view>> rows;
  for (const ane::ReasonRow& row : ane::reason_table()) rows.emplace_back(row.code, row.sentence);
  return rows;
}

using ReadingTuple = std::tuple<std::string_view, std::string_view, std::string_view>;

ReadingTuple reading_tuple(const ane::RegisterReading& reading) {
  return {reading.meaning, reading.unit, ane::confidence_name(reading.confidence)};
}

using RegisterTuple = std::tuple<std::size_t, std::string_view, ReadingTuple, ReadingTuple,
                                 ReadingTuple, std::string_view, std::string_view>;

std::vector<RegisterTuple> register_rows() {
  std::vector<RegisterTuple> rows;
  for (const ane::RegisterRow& row : ane::register_table()) {
    rows.emplace_back(
        row.index, row.label, reading_tuple(ane::register_reading(row, ane::Layout::kUnknown)),
        reading_tuple(row.dma17), reading_tuple(row.dma21), row.evidence, row.falsifier);
  }
  return rows;
}

void add_types(nb::module_& m) {
  nb::class_<ane::Identity>(m, "AneIdentity", "One accounting check of a decoding.")
      .def_ro("name", &ane::Identity::name)
      .def_ro("scope", &ane::Identity::scope)
      .def_ro("claim", &ane::Identity::claim)
      .def_ro("left", &ane::Identity::left)
      .def_ro("right", &ane::Identity::right)
      .def_ro("holds", &ane::Identity::holds);

  nb::class_<ane::Decoded>(m, "AneDecoded",
                           "What the counters support; see the Python class DecodedCounters.")
      .def_prop_ro("status", [](const ane::Decoded& d) { return ane::status_row(d.status).name; })
      .def_prop_ro("layout",
                   [](const ane::Decoded& d) -> std::optional<std::string_view> {
                     if (d.layout == ane::Layout::kUnknown) return std::nullopt;
                     return ane::layout_name(d.layout);
                   })
      .def_ro("layout_evidence", &ane::Decoded::layout_evidence)
      .def_ro("macs_per_cycle_core", &ane::Decoded::macs_per_cycle_core)
      .def_ro("macs_per_cycle_chip", &ane::Decoded::macs_per_cycle_chip)
      .def_ro("peak_macs_per_cycle_core", &ane::Decoded::peak_macs_per_cycle_core)
      .def_ro("utilisation", &ane::Decoded::utilisation)
      .def_ro("clock_hz", &ane::Decoded::clock_hz)
      .def_ro("ops_per_s", &ane::Decoded::ops_per_s)
      .def_ro("hw_ops_per_s", &ane::Decoded::hw_ops_per_s)
      .def_ro("ceiling_ops_per_s", &ane::Decoded::ceiling_ops_per_s)
      .def_ro("dispatch_ns", &ane::Decoded::dispatch_ns)
      .def_ro("dma_register", &ane::Decoded::dma_register)
      .def_ro("dma_bytes", &ane::Decoded::dma_bytes)
      .def_ro("dma_read_bytes", &ane::Decoded::dma_read_bytes)
      .def_ro("dma_bytes_per_s", &ane::Decoded::dma_bytes_per_s)
      .def_ro("energy_units", &ane::Decoded::energy_units)
      .def_prop_ro("shares",
                   [](const ane::Decoded& d) {
                     std::vector<std::tuple<std::size_t, double>> rows;
                     rows.reserve(d.shares.size());
                     for (const auto& share : d.shares) {
                       rows.emplace_back(share.index, share.of_nominal);
                     }
                     return rows;
                   })
      .def_ro("identities", &ane::Decoded::identities)
      .def_ro("reasons", &ane::Decoded::reasons)
      .def_ro("windows_used", &ane::Decoded::windows_used)
      .def_ro("windows_reset", &ane::Decoded::windows_reset)
      .def_ro("windows_shared", &ane::Decoded::windows_shared)
      .def_ro("deltas", &ane::Decoded::deltas);

  nb::class_<ane::Context>(m, "AneContext",
                           "What is known about an evaluation besides its counters.")
      .def(
          "__init__",
          [](ane::Context* self, std::optional<double> macs, std::optional<double> wall_ns,
             std::optional<double> hw_ns, std::optional<double> min_bytes,
             std::optional<double> max_bytes, std::size_t cores, const std::string& precision,
             const std::optional<std::string>& architecture,
             const std::optional<std::string>& layout) {
            new (self) ane::Context{macs,
                                    wall_ns,
                                    hw_ns,
                                    min_bytes,
                                    max_bytes,
                                    cores,
                                    precision_of(precision),
                                    architecture.value_or(""),
                                    layout_of(layout)};
          },
          nb::kw_only(), "macs"_a = nb::none(), "wall_ns"_a = nb::none(), "hw_ns"_a = nb::none(),
          "min_bytes"_a = nb::none(), "max_bytes"_a = nb::none(), "cores"_a = 16,
          "precision"_a = "fp16", "architecture"_a = nb::none(), "layout"_a = nb::none());

  nb::class_<ane::Window>(m, "AneWindow", "Two snapshots before and after the runs of one program.")
      .def(
          "__init__",
          [](ane::Window* self, std::vector<std::uint64_t> before, std::vector<std::uint64_t> after,
             std::uint64_t evaluations, std::optional<double> wall_ns,
             std::optional<double> hw_ns) {
            new (self)
                ane::Window{std::move(before), std::move(after), evaluations, wall_ns, hw_ns};
          },
          "before"_a, "after"_a, "evaluations"_a, "wall_ns"_a = nb::none(), "hw_ns"_a = nb::none());

  nb::class_<ane::Observation>(m, "AneObservation", "One workload from which to detect the layout.")
      .def(
          "__init__",
          [](ane::Observation* self, ane::Deltas deltas, std::optional<double> macs,
             std::optional<double> min_bytes, std::optional<double> max_bytes) {
            new (self) ane::Observation{std::move(deltas), macs, min_bytes, max_bytes};
          },
          "deltas"_a, "macs"_a = nb::none(), "min_bytes"_a = nb::none(),
          "max_bytes"_a = nb::none());
}

}  // namespace

namespace nnbt::bindings {

void add_ane(nb::module_& m) {
  add_types(m);
  m.def("ane_decode", &ane::decode, "deltas"_a, "context"_a,
        "Decodes the counter changes of one evaluation.");
  m.def(
      "ane_decode_windows",
      [](const std::vector<ane::Window>& windows, const ane::Context& context) {
        return ane::decode_windows(windows, context);
      },
      "windows"_a, "context"_a, "Decodes the cleanest of several windows.");
  m.def(
      "ane_detect_layout",
      [](const std::vector<ane::Observation>& observations)
          -> std::tuple<std::optional<std::string_view>, std::vector<std::string>> {
        ane::Detection found = ane::detect_layout(observations);
        if (found.layout == ane::Layout::kUnknown) return {std::nullopt, std::move(found.evidence)};
        return {ane::layout_name(found.layout), std::move(found.evidence)};
      },
      "observations"_a, "(layout or None, evidence) from the counters of several workloads.");
  m.def(
      "ane_parse_registers",
      [](const nb::bytes& data) {
        return ane::parse_registers(
            std::span(static_cast<const std::uint8_t*>(data.data()), data.size()));
      },
      "data"_a, "Registers from the framework's data; None if its length is unknown.");
  m.def(
      "ane_helper_status",
      [](int return_code, bool timed_out, bool has_output) {
        return ane::status_row(ane::helper_status(return_code, timed_out, has_output)).name;
      },
      "return_code"_a, "timed_out"_a, "has_output"_a,
      "Status of a helper process, by how it ended; negative return codes are signals.");
  m.def("ane_registers", &register_rows,
        "Rows (index, label, reading, dma17 reading, dma21 reading, evidence, falsifier); a\n"
        "reading is (meaning, unit, confidence).");
  m.def("ane_statuses", &status_rows, "Rows (name, sentence) of all counter statuses.");
  m.def("ane_reasons", &reason_rows, "Rows (code, sentence) of what can limit a decoding.");
}

}  // namespace nnbt::bindings
