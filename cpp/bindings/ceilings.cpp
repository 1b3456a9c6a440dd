// What this processor could do at best: STREAM kernels and peak chains as Steps for measure().
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
                   "Bytes per element in STREAM's convention: what the formula reads and writes.")
      .def_prop_ro("write_allocate_bytes", &StreamKernel::write_allocate_bytes,
                   "Bytes per element that cross the bus with ordinary stores, which first read\n"
                   "what they write into the cache.")
      .def_prop_ro(
          "bcopy_bytes",
          [](const StreamKernel& k) {
            return k.bcopy_bytes > 0 ? std::optional(k.bcopy_bytes) : std::nullopt;
          },
          "Bytes per element in the convention of bcopy (each moved byte counts once); None where\n"
          "nothing is merely moved.")
      .def_prop_ro(
          "nontemporal", [](const StreamKernel& k) { return k.writes > 0; },
          "Whether non-temporal stores apply.");

  nb::class_<StreamSet>(m, "StreamSet", "STREAM loops compiled for one instruction set.")
      .def_prop_ro("isa", [](const StreamSet& set) { return set.isa; })
      .def_prop_ro("available", [](const StreamSet& set) { return set.missing().empty(); })
      .def_prop_ro(
          "reason", [](const StreamSet& set) { return reason_or_none(set.missing()); },
          "Why this machine can't run them; None when it can.");

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
          "Processor each thread is pinned to; -1 where the system does not pin.")
      .def_prop_ro("passes", &StreamStep::passes, "Passes over the arrays per run.")
      .def_prop_ro("array_bytes", &StreamStep::array_bytes, "Bytes of one array.")
      .def_prop_ro("working_set_bytes", &StreamStep::working_set_bytes, "Bytes of all arrays.")
      .def_prop_ro("huge_page_bytes", &StreamStep::huge_page_bytes,
                   "Bytes that the system put into huge pages, now.")
      .def_prop_ro("work_bytes", &StreamStep::work_bytes,
                   "Bytes of one run in STREAM's convention.")
      .def_prop_ro("traffic_bytes", &StreamStep::traffic_bytes,
                   "Bytes of one run that cross the bus when the arrays fit in no cache: with the\n"
                   "reads that ordinary stores cause, without them for non-temporal stores.")
      .def_prop_ro("work_ops", &StreamStep::work_ops, "Floating-point operations of one run.")
      .def_prop_ro(
          "destination",
          [](StreamStep& s) {
            const auto view = s.destination();
            return nb::ndarray<nb::numpy, double, nb::ndim<1>>(view.data(), {view.size()},
                                                               nb::handle());
          },
          nb::rv_policy::reference_internal,
          "A view of the array that the kernel writes; for read, of the one it reads.")
      .def("verify", &StreamStep::verify, nb::call_guard<nb::gil_scoped_release>(),
           "Compares every element with the closed form, poisons the destination, does one more\n"
           "pass and compares again (read: compares its sums). None when all is right, else a\n"
           "sentence. Call it after timing.");

  m.def(
      "make_stream",
      [](std::string_view kernel, std::int64_t bytes, int threads, bool nontemporal,
         std::int64_t passes, std::string_view isa) {
        return new StreamStep(kernel, {bytes, threads, nontemporal, passes, isa});
      },
      "kernel"_a, "bytes"_a, "threads"_a = 0, "nontemporal"_a = false, nb::kw_only(),
      "passes"_a = 0, "isa"_a = "", nb::call_guard<nb::gil_scoped_release>(),
      "A Step over arrays of `bytes` bytes each, over all threads (0: one per allowed "
      "processor).\n\n"
      "passes = 0 chooses about 256 MiB of counted bytes per thread and run, so that waking the\n"
      "threads (5 to 50 us) disappears in it; isa = \"\" takes the widest loops this machine has.\n"
      "Raises Unsupported for an unknown kernel or isa, non-temporal stores where nothing is\n"
      "stored, and arrays too small for the threads or too large for the machine.");
}

void add_peak(nb::module_& m) {
  nb::class_<PeakChain>(m, "PeakChain", "A row of the peak table: one instruction, on registers.")
      .def_prop_ro("name", [](const PeakChain& c) { return c.name; })
      .def_prop_ro("isa", [](const PeakChain& c) { return c.isa; })
      .def_prop_ro(
          "dtype", [](const PeakChain& c) { return c.dtype; }, "Of the operands.")
      .def_prop_ro(
          "accumulator", [](const PeakChain& c) { return c.accumulator; }, "dtype of the sums.")
      .def_prop_ro(
          "instruction", [](const PeakChain& c) { return c.instruction; },
          "The counted instructions as an assembler spells them, joined by +; * is a wildcard.")
      .def_prop_ro(
          "instructions", [](const PeakChain& c) { return c.work().instructions; },
          "How many of them one iteration of the loop has.")
      .def_prop_ro(
          "operations", [](const PeakChain& c) { return c.work().operations; },
          "Additions and multiplications of one iteration, with the vector length of this machine\n"
          "(128 bits for SVE and SME where it has neither).")
      .def_prop_ro(
          "instructions_per_cycle",
          [](const PeakChain& c) {
            const double rate = c.instructions_per_cycle();
            return rate > 0 ? std::optional(rate) : std::nullopt;
          },
          "How many a core of this machine starts per cycle at best (execution ports); None where\n"
          "that differs between chips in ways the table does not know.")
      .def_prop_ro(
          "operations_per_cycle",
          [](const PeakChain& c) {
            const nnbt::ChainWork work = c.work();
            const double rate = c.instructions_per_cycle() * static_cast<double>(work.operations) /
                                static_cast<double>(work.instructions);
            return rate > 0 ? std::optional(rate) : std::nullopt;
          },
          "Per core at best: times cores times clock this is the clock-derived peak.")
      .def_prop_ro("available", [](const PeakChain& c) { return c.unusable().empty(); })
      .def_prop_ro(
          "reason", [](const PeakChain& c) { return reason_or_none(c.unusable()); },
          "Why this machine can't run the chain; None when it can.")
      .def_prop_ro(
          "code_offset", [](const PeakChain& c) { return c.code_offset(); },
          "Address of the chain's code within the extension's file, for a disassembler.");

  nb::class_<PeakStep, Step>(m, "PeakStep", "Iterations of a peak chain on every thread.")
      .def_prop_ro("chain", [](const PeakStep& s) { return s.chain(); })
      .def_prop_ro("threads", [](const PeakStep& s) { return s.team().size(); })
      .def_prop_ro(
          "cpus", [](const PeakStep& s) { return s.team().cpus(); },
          "Processor each thread is pinned to; -1 where the system does not pin.")
      .def_prop_ro("iterations", &PeakStep::iterations, "Of the loop, per thread and run.")
      .def_prop_ro("work_ops", &PeakStep::work_ops,
                   "Additions and multiplications of one run, all threads.")
      .def("verify", &PeakStep::verify,
           "None when the sums of all runs so far were those of the closed form, else a sentence:\n"
           "the chain lost work and its rate is not valid.");

  m.def(
      "peak_chains",
      [] {
        const auto rows = nnbt::peak_chains();
        return std::vector<PeakChain>(rows.begin(), rows.end());
      },
      "All chains of this architecture; `reason` tells why this machine can't run one.");
  m.def(
      "make_peak",
      [](std::string_view chain, int threads, std::int64_t iterations,
         const std::vector<int>& cpus) {
        return new PeakStep(nnbt::find_peak_chain(chain), threads, iterations, cpus);
      },
      "chain"_a, "threads"_a = 0, "iterations"_a = 0, nb::kw_only(), "cpus"_a = std::vector<int>{},
      nb::call_guard<nb::gil_scoped_release>(),
      "A Step that runs a chain on so many threads (0: one per allowed processor).\n\n"
      "iterations = 0 takes about 10 ms at 3 GHz. cpus, if there are any, are the processors that\n"
      "the threads are pinned to, in this order. Raises Unsupported for an unknown chain or one\n"
      "that this machine can't run.");
  m.def(
      "core_clock_hz",
      [](int threads, std::string_view under, int repetitions) {
        return nnbt::core_clock_hz({threads, under, repetitions});
      },
      "threads"_a = 1, "under"_a = "", nb::kw_only(), "repetitions"_a = 100,
      nb::call_guard<nb::gil_scoped_release>(),
      "Clock of the slowest of `threads` cores in Hz, from dependent additions, one a cycle.\n\n"
      "under names a peak chain that runs right before each reading, for the clock that wide\n"
      "vectors or tiles leave. Median of the repetitions, 0.3 ms each.");
}

}  // namespace

namespace nnbt::bindings {

void add_ceilings(nb::module_& m) {
  add_stream_tables(m);
  add_stream_step(m);
  add_peak(m);
  m.def("allowed_cpus", nnbt::allowed_cpus,
        "Logical processors this process may use, one of each core first.");
  m.def("allowed_cores", nnbt::allowed_cores,
        "How many cores those are: SMT siblings share one set of execution ports.");
  m.def(
      "cache_bytes",
      [] {
        std::map<int, std::int64_t> caches;
        for (const nnbt::CacheLevel& cache : nnbt::data_caches()) caches[cache.level] = cache.bytes;
        return caches;
      },
      "Bytes of one data or unified cache by level; levels that the system doesn't tell are left\n"
      "out.");
}

}  // namespace nnbt::bindings
