"""One case -> one result: builds, times, checks and judges it."""

from __future__ import annotations

import gc
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from nnbt import _native
from nnbt.engines.mpsgraph.helper import HelperError
from nnbt.machine.facts import GpuState, gpu_state, gpus, machine
from nnbt.peaks.published import published_ceiling
from nnbt.pipeline.matrix import METRICS, cell, sizes_of
from nnbt.pipeline.plan import RANDOM_DATA, Options, Plan
from nnbt.results.result import Result, Run
from nnbt.spec.case import Case
from nnbt.spec.dtypes import dtype
from nnbt.spec.precision import (
    PrecisionName,
    effective_bits,
    measured_precision,
    mlx_precision,
    tf32_enabled,
)
from nnbt.timing.slope import Slope, measure_slope
from nnbt.timing.statistics import summarize
from nnbt.timing.window import OtherWindow, steady_window
from nnbt.verdict.evidence import Counters, Evidence, Identity, Placement
from nnbt.verdict.judge import judge
from nnbt.verdict.times import window_note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nnbt.peaks.stored import Ceilings
    from nnbt.spec.workload import Answer, Measure, SamplesLike, Workload
    from nnbt.spec.workload import Run as Step

CHECK_SHARE = 0.12
"""Share of a case's own measuring time that its slope may take."""
SETTLE_SHARE = 0.4
"""Share of --max-seconds that timing lasts at least, however narrow the interval is before."""
_PREDICT_OPS = {"cpu": 2e9, "gpu": 2e13}
_ROTATION = 8
_MOST_ROTATION = 64
_ROTATION_BYTES = 2**26


class Listener:
    """What happens during a run, for progress display; every method may be overridden."""

    def planned(self, plan: Plan) -> None:
        """Before the first case."""

    def started(self, index: int, count: int, case: Case, expected_s: float | None) -> None:
        """Before a case is timed; `expected_s` is the predicted time of the timed runs."""

    def progress(self, runs: int, elapsed_s: float) -> None:
        """Between timed runs, at most every 50 ms."""

    def once(self, case: Case, expected_s: float) -> None:
        """When one run is predicted to outlast the budget of its case."""

    def finished(self, result: Result, run: Run) -> None:
        """After each case; `run` holds all results so far."""


@dataclass
class Session:
    """What the cases of one run share."""

    options: Options
    measure: Measure
    listener: Listener
    mx: Any
    free: dict[str, int]
    clock_resolution_ns: int
    cache_bytes: int | None
    facts: Mapping[str, Any]
    floors: dict[tuple[str, int], float]
    ceilings: Ceilings


def run_case(session: Session, case: Case) -> Result:
    """One result; Unsupported and out-of-memory become rows, bugs propagate."""
    kind = dtype(case.dtype)
    unit = METRICS[case.metric].unit(kind)
    try:
        return _Runner(session, case, unit).run()
    except _native.Unsupported as error:
        return Result(case, "UNSUPPORTED", str(error), unit=unit)
    except HelperError as error:
        return Result(case, "ERROR", str(error), unit=unit)
    except Exception as error:  # noqa: BLE001  one failed case must not lose the others
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return Result(case, "ERROR", text, unit=unit)
    finally:
        gc.collect()
        session.mx.clear_cache()


def _clock_hz(state: GpuState | None) -> float | None:
    return state.sm_clock_mhz * 1e6 if state is not None and state.sm_clock_mhz else None


def _typed(details: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of Evidence that a builder reports at its end."""
    found: dict[str, Any] = {"overlap": details.get("hybrid", {}).get("overlap")}
    if placement := details.get("placement"):
        found["placement"] = Placement(placement["verdict"], tuple(placement["evidence"]))
    if decoded := details.get("pmu", {}).get("decoded"):
        found["counters"] = Counters(
            tuple(
                Identity(**{name: row[name] for name in Identity.__dataclass_fields__})
                for row in decoded.get("identities", ())
            ),
            *(decoded.get(f"windows_{kind}", 0) for kind in ("used", "shared", "reset")),
        )
    return found


class _Runner:
    def __init__(self, session: Session, case: Case, unit: str) -> None:
        self.session = session
        self.case = case
        self.unit = unit
        self.mx = session.mx
        self.options = session.options
        self.floor_problem = ""
        self.other_window: OtherWindow | None = None
        self.first_run_s = 0.0

    def run(self) -> Result:
        from nnbt.engines.mlx.data import Placement

        workers = int(self.case.params.get("cpu_workers", 1))
        self.here = cell(self.case)
        if not self.here.mlx:
            workers = 1
        on_cpu = self.case.device == "cpu" or not self.here.mlx
        self.place = Placement(self.mx, "cpu" if on_cpu else "gpu", workers)
        with self.mx.stream(self.place.default):
            once = self._predict()
            workload = self._build(self.case)
            samples = self._time(workload, once)
            return self._judge(workload, samples, once)

    def _build(self, case: Case) -> Workload:
        from nnbt.engines.mlx.bench import Bench

        sizes = sizes_of(case)
        room = min(self.session.free.values(), default=2**33) // 2
        unit = max(1, sizes["unit_bytes"])
        rotation = min(_MOST_ROTATION, max(_ROTATION, _ROTATION_BYTES // unit))
        rotation = max(1, min(rotation, room // unit))
        bench = Bench(
            self.mx,
            case,
            self.place,
            sizes,
            rotation,
            self.session.measure,
            self._precision(),
            self.options,
        )
        return cell(case).build(bench)

    def _precision(self) -> PrecisionName:
        """How MLX computes a product of this dtype here, before anything was measured."""
        if self.case.metric == "bandwidth":
            return ""
        facts = self.session.facts
        return mlx_precision(self.case.dtype, self.case.device, facts, tf32=tf32_enabled())

    def _predict(self) -> float | None:
        """Predicted seconds of one run if it outlasts the case's budget, else None.

        Only for much work, from a small case of the same kind and the ratio of operations.
        """
        ops = sizes_of(self.case).get("work_ops", 0)
        if ops < _PREDICT_OPS[self.place.device] or not self.here.mlx:
            return None
        params: dict[str, int | str] = dict(self.case.params)
        params |= METRICS[self.case.metric].smaller(self.case, self.place.device)
        small = replace(self.case, n=int(params.pop("n")), params=params)
        if small.n > self.case.n or sizes_of(small)["work_ops"] >= ops:
            return None
        workload = self._build(small)
        step = workload.step(workload.units)
        step()
        seconds = min(self._once(step) for _ in range(2))
        expected = seconds * ops / sizes_of(small)["work_ops"]
        if expected <= self.options.max_seconds:
            return None
        self.session.listener.once(self.case, expected)
        return expected

    def _once(self, step: Step) -> float:
        samples = self.session.measure(step, warmup=0, runs=1)
        if samples.samples_ns[0] < 0:
            raise ValueError(f"The measure function gave a time of {samples.samples_ns[0]} ns")
        return samples.samples_ns[0] * 1e-9

    def _time(self, workload: Workload, once: float | None) -> SamplesLike:
        options = self.options
        runs, warmup = options.runs or 0, options.warmup
        if once is not None and options.runs is None:
            runs, warmup = 1, 0
        step = workload.step(workload.units)

        def window() -> SamplesLike:
            samples = self.session.measure(
                step,
                warmup=warmup,
                runs=runs,
                budget_s=options.max_seconds,
                min_window_s=options.max_seconds * SETTLE_SHARE,
                on_progress=lambda count, elapsed: self.session.listener.progress(
                    count, elapsed * 1e-9
                ),
            )
            self.first_run_s = self.first_run_s or samples.first_run_ns * 1e-9
            return samples

        # Where a window has no units, what its sides leave behind is of all windows together.
        if runs or not options.checks or workload.no_slope:
            return window()
        samples, self.other_window = steady_window(window)
        return samples

    def _floor(self, workload: Workload) -> float:
        """Seconds of a Step that does next to nothing, measured once a process.

        The tenth percentile: waking threads on an idle machine takes 30 to 150 us, and what an
        evaluation costs at least is what must not be taken for work.
        """
        own = workload.floor
        where = self.place.device if own is None else f"{self.case.engine} {self.case.device}"
        threads = int(self.case.params.get("cpu_workers", 0))
        key = (where, len(self.place.streams) if own is None else threads)
        if key not in self.session.floors:
            step = own or self._empty_evaluation()
            try:
                samples = self.session.measure(step, warmup=10, runs=100)
            except (_native.Unsupported, HelperError) as error:
                # An engine may refuse what is that small, and still do the work.
                self.floor_problem = str(error)
                samples = self.session.measure(self._empty_evaluation(), warmup=10, runs=100)
            self.session.floors[key] = _native.quantile(samples.samples_ns, 0.1) * 1e-9
        return self.session.floors[key]

    def _empty_evaluation(self) -> Step:
        mx = self.mx
        tiny = mx.zeros((1,))
        mx.eval(tiny)

        def step() -> None:
            mx.eval([mx.add(tiny, tiny, stream=stream) for stream in self.place.streams])

        return step

    def _slope(
        self, workload: Workload, unit_s: float, window_s: float, best_s: float
    ) -> tuple[Slope | None, str]:
        if not self.options.checks:
            return None, "--no-checks"
        return measure_slope(
            workload,
            self._once,
            unit_s=unit_s,
            floor_s=self._floor(workload),
            budget_s=CHECK_SHARE * window_s,
            best_s=best_s,
        )

    def _judge(self, workload: Workload, samples: SamplesLike, once: float | None) -> Result:
        summary = summarize(samples.samples_ns)
        window_s = samples.window_ns * 1e-9
        work = workload.unit_work * workload.units
        state = self._gpu_state()
        started = time.perf_counter()
        answer = workload.check() if self.options.checks else None
        answered = time.perf_counter()
        unit_s = summary.median_s / workload.units
        slope, missing = self._slope(workload, unit_s, window_s, summary.best_s)
        check_s = time.perf_counter() - started
        sizes = workload.sizes
        readings = {reading.name: reading.value for reading in samples.readings}
        inner = sizes.get("inner", sizes.get("eff_n", self.case.n))
        random_data = self.case.params.get("data", "normal") in RANDOM_DATA
        bits = effective_bits(answer.error) if answer else None
        told_bits = bits if random_data else None
        precision = measured_precision(workload.precision, workload.mantissa, told_bits, inner)
        ceiling = published_ceiling(self.case, self.session.facts, precision.name, _clock_hz(state))
        evidence = Evidence(
            case=self.case,
            samples_ns=samples.samples_ns,
            summary=summary,
            rate=work / summary.median_s,
            window_s=window_s,
            written_bytes=self._written(workload, len(samples.samples_ns)),
            random_data=random_data,
            keeps_size=METRICS[self.case.metric].chain,
            units=workload.units,
            mantissa=precision.mantissa,
            inner=inner,
            exact_share=sizes["exact_ops"] / sizes["work_ops"] if "exact_ops" in sizes else 1.0,
            answer=answer,
            slope=slope,
            slope_missing=missing,
            floor_s=self._floor(workload) if self.options.checks else None,
            clock_resolution_ns=self.session.clock_resolution_ns,
            cache_bytes=self.session.cache_bytes,
            resident_bytes=workload.resident_bytes or sizes["unit_bytes"] * workload.largest_k,
            processors=machine().logical_cpus,
            array_bytes=workload.array_bytes,
            readings=readings,
            ceiling=ceiling,
        )
        more_notes, details = workload.after() if workload.after else ((), {})
        details |= self._details(workload, slope, answer, summary)
        device_name = str(details.get("device_name") or self.session.facts.get("device_name", ""))
        published, found = METRICS[self.case.metric].beside(self.case, device_name)
        details |= found
        if state is not None:
            details["gpu_state"] = asdict(state)
        if self.other_window is not None:
            details["other_window"] = asdict(self.other_window)
            more_notes = (*more_notes, window_note(self.other_window))
        details["cost"] = {"answer_s": answered - started, "slope_s": check_s + started - answered}
        if ceiling is not None:
            details["ceiling"] = asdict(ceiling)
        measured = self.session.ceilings.known(self.case, precision.name)
        if measured is not None:
            details["measured_ceiling"] = asdict(measured)
            more_notes = (*more_notes, f"ceiling: {measured.by}, measured {measured.age()}")
        verdict, reasons = judge(replace(evidence, **_typed(details)))
        told = slope if slope is not None and slope.doubling is not None else None
        return Result(
            case=self.case,
            verdict=verdict,
            reasons=reasons,
            median_s=summary.median_s,
            interval_s=summary.interval_s,
            coverage=summary.coverage,
            best_s=summary.best_s,
            rate=evidence.rate,
            best_rate=work / summary.best_s,
            unit=self.unit,
            slope_rate=workload.unit_work / told.unit_s if told and told.unit_s > 0 else None,
            overhead_us=told.overhead_s * 1e6 if told else None,
            effective_bits=bits,
            precision=precision.label(told_bits, device=self.case.device),
            samples_ns=tuple(samples.samples_ns),
            stop="one run" if once is not None and self.options.runs is None else samples.stop,
            warmup_runs=samples.warmup_runs,
            first_run_s=self.first_run_s,
            window_s=window_s,
            check_s=check_s,
            sizes=dict(sizes),
            notes=(*workload.notes, *more_notes, *published),
            readings=readings,
            details=details,
        )

    def _gpu_state(self) -> GpuState | None:
        """Clock, power and throttling right after the timed runs, while they still hold."""
        if self.case.device == "cpu":
            return None
        uuid = self.session.facts.get("device_uuid")
        index = next((gpu.index for gpu in gpus() if gpu.uuid == uuid), 0)
        return gpu_state(index)

    def _written(self, workload: Workload, runs: int) -> int:
        if self.case.metric != "bandwidth":
            return 0
        return runs * workload.sizes.get("written_bytes", workload.sizes["matrix_bytes"])

    def _details(
        self, workload: Workload, slope: Slope | None, answer: Answer | None, summary: Any
    ) -> dict[str, Any]:
        details: dict[str, Any] = {}
        details["statistics"] = {
            "p5_s": summary.p5_s,
            "p95_s": summary.p95_s,
            "mad_s": summary.mad_s,
        }
        if slope is not None:
            details["slope"] = {**asdict(slope), "unit": workload.unit_name}
        if answer is not None:
            details["answer"] = asdict(answer)
        if self.options.checks:
            details["floor_s"] = self._floor(workload)
            if self.floor_problem:
                details["floor_problem"] = self.floor_problem
        return details
