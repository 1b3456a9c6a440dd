#include "measure/measure.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "measure/clock.h"
#include "measure/probe.h"
#include "measure/stats.h"
#include "measure/step.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using nnbt::Samples;
using nnbt::Step;
using Progress = nb::typed<nb::callable, void(std::int64_t, std::int64_t)>;

class PythonStep final : public Step {
 public:
  explicit PythonStep(PyObject* callable) : callable_(callable) {}

  void run() override {
    PyObject* result = PyObject_CallNoArgs(callable_);
    if (result == nullptr) throw nb::python_error();
    Py_DECREF(result);
  }

 private:
  PyObject* callable_;
};

// A garbage collection during a run would count as time of the step.
class GarbageCollectionOff {
 public:
  GarbageCollectionOff() : was_on_(PyGC_Disable() == 1) {}
  ~GarbageCollectionOff() {
    if (was_on_) PyGC_Enable();
  }
  GarbageCollectionOff(const GarbageCollectionOff&) = delete;
  GarbageCollectionOff& operator=(const GarbageCollectionOff&) = delete;

 private:
  bool was_on_;
};

Samples measure_step(const nb::object& step, const nnbt::MeasureOptions& options,
                     const std::optional<Progress>& on_progress) {
  const std::vector<std::unique_ptr<nnbt::Probe>> probes = nnbt::make_probes();
  const auto poll = [&on_progress](std::int64_t runs, std::int64_t elapsed_ns) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (on_progress) (*on_progress)(runs, elapsed_ns);
  };
  const GarbageCollectionOff off;
  if (Step* native = nullptr; nb::try_cast<Step*>(step, native) && native != nullptr) {
    // If a run had to reacquire the GIL, the time slice of another thread (5 ms) would count as its
    // time.
    const auto locked_poll = [&poll](std::int64_t runs, std::int64_t elapsed_ns) {
      const nb::gil_scoped_acquire acquire;
      poll(runs, elapsed_ns);
    };
    const nb::gil_scoped_release release;
    return nnbt::measure(*native, options, probes, locked_poll);
  }
  if (PyCallable_Check(step.ptr()) == 0) {
    throw nb::type_error("measure: step must be a callable without arguments, or a native Step");
  }
  // A callable that is not written in Python may never release the GIL, so other threads, such as
  // one that draws progress, get their turn here.
  const auto yielding_poll = [&poll](std::int64_t runs, std::int64_t elapsed_ns) {
    {
      const nb::gil_scoped_release release;
    }
    poll(runs, elapsed_ns);
  };
  PythonStep python(step.ptr());
  return nnbt::measure(python, options, probes, yielding_poll);
}

std::span<const std::int64_t> as_span(const std::vector<std::int64_t>& samples) { return samples; }

}  // namespace

namespace nnbt::bindings {

void add_measure(nb::module_& m) {
  nb::class_<Step>(m, "Step", "One blocking unit of native work that can be repeated.")
      .def(
          "run",
          [](Step& step) {
            nb::gil_scoped_release release;
            step.run();
          },
          "Runs the work once, without the GIL.");

  m.def(
      "empty_step", []() -> std::unique_ptr<Step> { return std::make_unique<nnbt::EmptyStep>(); },
      "A native step that does nothing: its time is the cost of the loop and the clock.");

  nb::class_<nnbt::Reading>(m, "Reading",
                            "What a probe measured over the window of the timed runs.")
      .def_ro("name", &nnbt::Reading::name)
      .def_ro("unit", &nnbt::Reading::unit)
      .def_ro("value", &nnbt::Reading::value);

  nb::class_<Samples>(m, "Samples", "Run times of one step, and how they were measured.")
      .def_ro("samples_ns", &Samples::samples_ns, "Nanoseconds of each timed run, in order.")
      .def_ro("first_run_ns", &Samples::first_run_ns,
              "Nanoseconds of the very first run, with compilation, allocation and cold caches.")
      .def_ro("warmup_runs", &Samples::warmup_runs)
      .def_ro("window_ns", &Samples::window_ns,
              "From the start of the first timed run to the end of the last.")
      .def_ro("settled", &Samples::settled,
              "Whether warm-up ended because run times stopped falling.")
      .def_prop_ro(
          "stop", [](const Samples& samples) { return nnbt::stop_name(samples.stop); },
          "Why timing ended: runs, precise, budget or max_runs.")
      .def_ro("readings", &Samples::readings);

  nb::class_<nnbt::ClockInfo>(m, "ClockInfo", "Measured properties of the clock.")
      .def_ro("resolution_ns", &nnbt::ClockInfo::resolution_ns)
      .def_ro("cost_ns", &nnbt::ClockInfo::cost_ns);

  m.def(
      "calibrate_clock", [] { return nnbt::calibrate_clock(); },
      "Measures the resolution and cost of the clock (about 1 ms).");

  m.def(
      "measure",
      [](const nb::object& step, std::int64_t warmup, std::int64_t runs, std::int64_t min_runs,
         std::int64_t max_runs, double budget_s, double min_window_s, double relative_interval,
         const std::optional<Progress>& on_progress) {
        return measure_step(
            step, {warmup, runs, min_runs, max_runs, budget_s, min_window_s, relative_interval},
            on_progress);
      },
      "step"_a.none(), nb::kw_only(), "warmup"_a = 2, "runs"_a = 0, "min_runs"_a = 5,
      "max_runs"_a = 1'000'000, "budget_s"_a = 3.0, "min_window_s"_a = 0.0,
      "relative_interval"_a = 0.01, "on_progress"_a = nb::none(),
      "Runs and times a callable without arguments or a native Step.\n\n"
      "runs > 0 takes exactly that many samples; runs = 0 continues until the half-width of the\n"
      "95 % interval of the median, relative to it, is at most relative_interval, or budget_s\n"
      "seconds have passed.\n"
      "on_progress(timed_runs, elapsed_ns) is called between runs, at most every 50 ms.");

  m.def(
      "median", [](const std::vector<std::int64_t>& s) { return nnbt::median(as_span(s)); },
      "samples_ns"_a, "Median in nanoseconds; NaN if there are no samples.");
  m.def(
      "quantile",
      [](const std::vector<std::int64_t>& s, double q) { return nnbt::quantile(as_span(s), q); },
      "samples_ns"_a, "q"_a, "Linear-interpolation quantile (NumPy's default) in nanoseconds.");
  m.def(
      "median_absolute_deviation",
      [](const std::vector<std::int64_t>& s) {
        return nnbt::median_absolute_deviation(as_span(s));
      },
      "samples_ns"_a, "Median absolute deviation, unscaled, in nanoseconds.");
  m.def(
      "median_interval",
      [](const std::vector<std::int64_t>& s,
         double confidence) -> std::optional<std::tuple<double, double, double>> {
        const auto interval = nnbt::median_interval(as_span(s), confidence);
        if (!interval) return std::nullopt;
        return std::tuple{interval->low_ns, interval->high_ns, interval->coverage};
      },
      "samples_ns"_a, "confidence"_a = 0.95,
      "(low_ns, high_ns, coverage) from order statistics; None below 5 samples.");

  m.def(
      "probes",
      [] {
        std::vector<std::tuple<std::string, std::string>> rows;
        for (const nnbt::ProbeRow& row : nnbt::probe_table()) {
          rows.emplace_back(std::string(row.name), std::string(row.description));
        }
        return rows;
      },
      "(name, description) of each probe of this platform.");
}

}  // namespace nnbt::bindings
