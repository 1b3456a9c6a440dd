// Ceilings of this CPU: STREAM kernels and peak chains as Steps for measure().
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/bindings.h"
#include "cpu/cpu.h"
#include "cpu/peak.h"
#include "cpu/stream.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using nnbt::PeakChain;
using nnbt::PeakStep;
using nnbt::Step;
using nnbt::StreamKernel;
using nnbt::StreamSet;
using nnbt::StreamStep;

std::optional<std::string> reason_or_none(std::string reason) {
  return reason.empty() ? std::nullopt : std::optional(std::move(reason));
}

void add_stream_tables(nb::module_& m) {
  nb::class_<StreamKernel>(m, "StreamKernel",
                           "A row of the STREAM table (J. McCalpin); elements are float64.")
      .def_prop_ro("name", [](const StreamKernel& k) { return k.name; })
      .def_ro("reads", &StreamKernel::reads, "Arrays read.")
      .def_ro("writes", &StreamKernel::writes, "Arrays written.")
      .def_ro("operations", &StreamKernel::operations, "Floating-point operations per element.")
      .def_prop_ro("counted_bytes", &StreamKernel::counted_bytes,
                   "Bytes per element by STREAM's convention: what the formula reads and writes.")
      .def_prop_ro("write_allocate_bytes", &StreamKernel::write_allocate_bytes,
                   "Bytes per element that cross the memory bus, including write-allocate.")
      .def_prop_ro(
          "bcopy_bytes",
          [](const StreamKernel& k) {
            return k.bcopy_bytes > 0 ? std::optional(k.bcopy_bytes) : std::nullopt;
          },
          "Bytes per element by the convention of bcopy (each moved byte counts once), or None.")
      .def_prop_ro(
          "nontemporal", [](const StreamKernel& k) { return k.writes > 0; },
          "Whether there are non-temporal stores.");

  nb::class_<StreamSet>(m, "StreamSet", "STREAM loops compiled for one instruction set.")
      .def_prop_ro("isa", [](const StreamSet& set) { return set.isa; })
      .def_prop_ro("available", [](const StreamSet& set) { return set.missing().empty(); })
      .def_prop_ro(
          "reason", [](const StreamSet& set) { return reason_or_none(set.missing()); },
          "Why this machine cannot run them, or None.");

  m.def(
      "stream_kernels",
      [] {
        const auto rows = nnbt::stream_kernels();
        return std::vector<StreamKernel>(rows.begin(), rows.end());
      },
      "The STREAM kernels: read, write, copy, scale, add, triad.");
  m.def(
      "stream_sets",
      [] {
        const auto rows = nnbt::stream_sets();
        return std::vector<StreamSet>(rows.begin(), rows.end());
      },
      "The instruction sets with STREAM loops, widest last.");
}

void add_stream_step(nb::module_& m) {
  nb::class_<StreamStep, Step>(m, "StreamStep", "Passes of a STREAM kernel over its arrays.")
      .def_prop_ro("kernel", [](const StreamStep& s) { return s.kernel(); })
      .def_prop_ro("isa", &StreamStep::isa, "Instruction set of the loop.")
      .def_prop_ro("nontemporal", &StreamStep::nontemporal)
      .def_prop_ro("threads", [](const StreamStep& s) { return s.team().size(); })
      .def_prop_ro(
          "cpus", [](const StreamStep& s) { return s.team().cpus(); },
          "CPU of each thread; -1 if it is not pinned.")
      .def_prop_ro("passes", &StreamStep::passes, "Passes over the arrays per run.")
      .def_prop_ro("array_bytes", &StreamStep::array_bytes, "Bytes of one array.")
      .def_prop_ro("working_set_bytes", &StreamStep::working_set_bytes, "Bytes of all arrays.")
      .def_prop_ro("huge_page_bytes", &StreamStep::huge_page_bytes, "Bytes in huge pages now.")
      .def_prop_ro("work_bytes", &StreamStep::work_bytes,
                   "Bytes of one run by STREAM's convention.")
      .def_prop_ro(
          "traffic_bytes", &StreamStep::traffic_bytes,
          "Bytes of one run that cross the memory bus if the arrays do not fit in any cache:\n"
          "with write-allocate for ordinary stores, without it for non-temporal ones.")
      .def_prop_ro("work_ops", &StreamStep::work_ops, "Floating-point operations of one run.")
      .def_prop_ro(
          "destination",
          [](StreamStep& s) {
            const auto view = s.destination();
            return nb::ndarray<nb::numpy, double, nb::ndim<1>>(view.data(), {view.size()},
                                                               nb::handle());
          },
          nb::rv_policy::reference_internal,
          "A view of the array that the kernel writes (read: reads).")
      .def("verify", &StreamStep::verify, nb::call_guard<nb::gil_scoped_release>(),
           "Compares every element with its expected value, poisons the destination, makes one "
           "more\n"
           "pass and compares again (read: compares its sums). None if all is correct, else a\n"
           "sentence. Call it after timing.");

  m.def(
      "make_stream",
      [](std::string_view kernel, std::int64_t bytes, int threads, bool nontemporal,
         std::int64_t passes, std::string_view isa) {
        return new StreamStep(kernel, {bytes, threads, nontemporal, passes, isa});
      },
      "kernel"_a, "bytes"_a, "threads"_a = 0, "nontemporal"_a = false, nb::kw_only(),
      "passes"_a = 0, "isa"_a = "", nb::call_guard<nb::gil_scoped_release>(),
      "A Step over arrays of `bytes` bytes each, shared by all threads (0: one per allowed "
      "CPU).\n\n"
      "passes = 0 chooses about 256 MiB of counted bytes per thread and run, so that waking the\n"
      "threads (5 to 50 us) does not matter; isa = \"\" uses the widest available loops. Raises\n"
      "Unsupported for an unknown kernel or isa, non-temporal stores of a kernel without stores,\n"
      "and arrays too small for the threads or too large for the machine.");
}

void add_peak(nb::module_& m) {
  nb::class_<PeakChain>(m, "PeakChain",
                        "A row of the peak table: one instruction, on registers only.")
      .def_prop_ro("name", [](const PeakChain& c) { return c.name; })
      .def_prop_ro("isa", [](const PeakChain& c) { return c.isa; })
      .def_prop_ro(
          "dtype", [](const PeakChain& c) { return c.dtype; }, "Of the operands.")
      .def_prop_ro(
          "accumulator", [](const PeakChain& c) { return c.accumulator; }, "dtype of the sums.")
      .def_prop_ro(
          "instruction", [](const PeakChain& c) { return c.instruction; },
          "The counted instructions in assembler, joined by +; * is a wildcard.")
      .def_prop_ro(
          "instructions", [](const PeakChain& c) { return c.work().instructions; },
          "Number of them in one iteration of the loop.")
      .def_prop_ro(
          "operations", [](const PeakChain& c) { return c.work().operations; },
          "Additions and multiplications of one iteration, with the vector length of this machine\n"
          "(128 bits for SVE and SME if it has neither).")
      .def_prop_ro(
          "instructions_per_cycle",
          [](const PeakChain& c) {
            const double rate = c.instructions_per_cycle();
            return rate > 0 ? std::optional(rate) : std::nullopt;
          },
          "Most of them that a core of this machine can start per cycle (execution ports); None "
          "if\n"
          "that differs between chips.")
      .def_prop_ro(
          "operations_per_cycle",
          [](const PeakChain& c) {
            const nnbt::ChainWork work = c.work();
            const double rate = c.instructions_per_cycle() * static_cast<double>(work.operations) /
                                static_cast<double>(work.instructions);
            return rate > 0 ? std::optional(rate) : std::nullopt;
          },
          "Maximum per core; multiplied by cores and clock, the clock-derived peak.")
      .def_prop_ro("available", [](const PeakChain& c) { return c.unusable().empty(); })
      .def_prop_ro(
          "reason", [](const PeakChain& c) { return reason_or_none(c.unusable()); },
          "Why this machine cannot run the chain, or None.")
      .def_prop_ro(
          "code_offset", [](const PeakChain& c) { return c.code_offset(); },
          "Address of the chain's code within the extension's file, for a disassembler.");

  nb::class_<PeakStep, Step>(m, "PeakStep", "Iterations of a peak chain on every thread.")
      .def_prop_ro("chain", [](const PeakStep& s) { return s.chain(); })
      .def_prop_ro("threads", [](const PeakStep& s) { return s.team().size(); })
      .def_prop_ro(
          "cpus", [](const PeakStep& s) { return s.team().cpus(); },
          "CPU of each thread; -1 if it is not pinned.")
      .def_prop_ro("iterations", &PeakStep::iterations, "Of the loop, per thread and run.")
      .def_prop_ro("work_ops", &PeakStep::work_ops,
                   "Additions and multiplications of one run, all threads.")
      .def("verify", &PeakStep::verify,
           "None if the sums of all runs so far were correct, else a sentence: the chain skipped "
           "work\n"
           "and its rate is not valid.");

  m.def(
      "peak_chains",
      [] {
        const auto rows = nnbt::peak_chains();
        return std::vector<PeakChain>(rows.begin(), rows.end());
      },
      "All chains of this architecture; `reason` says why this machine cannot run one.");
  m.def(
      "make_peak",
      [](std::string_view chain, int threads, std::int64_t iterations,
         const std::vector<int>& cpus) {
        return new PeakStep(nnbt::find_peak_chain(chain), threads, iterations, cpus);
      },
      "chain"_a, "threads"_a = 0, "iterations"_a = 0, nb::kw_only(), "cpus"_a = std::vector<int>{},
      nb::call_guard<nb::gil_scoped_release>(),
      "A Step that runs a chain on that many threads (0: one per allowed CPU).\n\n"
      "iterations = 0 takes about 10 ms at 3 GHz. The threads are pinned to `cpus`, in this "
      "order,\n"
      "if there are any. Raises Unsupported for an unknown chain, or one that this machine cannot\n"
      "run.");
  m.def(
      "core_clock_hz",
      [](int threads, std::string_view under, int repetitions) {
        return nnbt::core_clock_hz({threads, under, repetitions});
      },
      "threads"_a = 1, "under"_a = "", nb::kw_only(), "repetitions"_a = 100,
      nb::call_guard<nb::gil_scoped_release>(),
      "Clock in Hz of the slowest of `threads` cores, from dependent additions, one per cycle.\n\n"
      "`under` names a peak chain to run right before each reading, for the clock after wide\n"
      "vectors or tiles. Median of the repetitions, 0.3 ms each.");
}

}  // namespace

namespace nnbt::bindings {

void add_ceilings(nb::module_& m) {
  add_stream_tables(m);
  add_stream_step(m);
  add_peak(m);
  m.def("allowed_cpus", nnbt::allowed_cpus,
        "CPUs that this process may use: the first of each core, then their SMT siblings.");
  m.def("allowed_cores", nnbt::allowed_cores,
        "Number of cores among them: SMT siblings share one set of execution ports.");
  m.def(
      "cache_bytes",
      [] {
        std::map<int, std::int64_t> caches;
        for (const nnbt::CacheLevel& cache : nnbt::data_caches()) caches[cache.level] = cache.bytes;
        return caches;
      },
      "Bytes of one data or unified cache, by level; unknown levels are left out.");
}

}  // namespace nnbt::bindings
