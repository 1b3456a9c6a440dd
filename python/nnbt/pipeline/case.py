"""One planned case -> one immutable result: build, time, verify, judge, result."""

import gc
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nnbt import _native
from nnbt.machine.facts import machine
from nnbt.machine.nvml import GpuState, gpu_state, gpus
from nnbt.peaks import reference
from nnbt.peaks.published import published_ceiling
from nnbt.peaks.stored import Ceilings
from nnbt.pipeline.listener import Listener
from nnbt.pipeline.plan import Planned
from nnbt.results.result import CheckCost, LaunchOverhead, Reason, Result, Verdict
from nnbt.spec.case import Case
from nnbt.spec.cell import Request, Runtime
from nnbt.spec.dtypes import dtype
from nnbt.spec.errors import StepError
from nnbt.spec.metric import METRICS
from nnbt.spec.options import RANDOM_DATA, Options
from nnbt.spec.precision import Precision, effective_bits, measured_precision
from nnbt.spec.workload import After, Answer, Measure, SamplesLike, Step, Workload
from nnbt.timing.slope import Slope, measure_slope
from nnbt.timing.statistics import Summary, summarize
from nnbt.timing.window import OtherWindow, steady_window
from nnbt.verdict.evidence import Evidence
from nnbt.verdict.judge import judge
from nnbt.verdict.times import window_note

CHECK_SHARE = 0.12  # time that a slope may take, as a share of the timed window
SETTLE_SHARE = 0.4
"""Least length of a window as a share of --max-seconds, even if the interval is narrow before."""
_FLOOR_RUNS = 100
_NO_COST = CheckCost(0.0, 0.0)


@dataclass(frozen=True)
class Context:
    """What the cases of one run share; `floors` collects the launch overhead of each engine."""

    options: Options
    measure: Measure
    listener: Listener
    facts: Mapping[str, Any]
    free_bytes: Mapping[str, int]
    clock_resolution_ns: int
    cache_bytes: int | None
    ceilings: Ceilings
    floors: dict[tuple[str, str, int], LaunchOverhead] = field(default_factory=dict)


def run_case(
    context: Context, planned: Planned, runtime: Runtime, *, random_rate: float | None
) -> Result:
    """One result. Refusals are UNSUPPORTED rows, other exceptions ERROR rows.

    `random_rate` is the rate of the same case on random data, if it was measured.
    """
    case = planned.case
    unit = METRICS[case.metric].unit(dtype(case.dtype))
    try:
        with runtime.scope(case):
            long_run = _outlasts_budget(context, planned)
            workload = _build(context, planned)
            timed = _time(context, case, workload, once=long_run)
            verified = _verify(context, case, workload, timed)
            judged = _judge(context, case, workload, timed, verified)
            return _result(context, planned, workload, timed, verified, judged, random_rate)
    except _native.Unsupported as error:
        return Result(case, "UNSUPPORTED", str(error), unit=unit)
    except StepError as error:
        return Result(case, "ERROR", str(error), unit=unit)
    except Exception as error:  # noqa: BLE001  one failed case must not lose the others
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return Result(case, "ERROR", text, unit=unit)
    finally:
        gc.collect()
        runtime.release()


def _build(context: Context, planned: Planned) -> Workload:
    return planned.cell.build(
        Request(planned.case, planned.sizes, context.options, context.measure, context.free_bytes)
    )


def _outlasts_budget(context: Context, planned: Planned) -> bool:
    """Whether one run is predicted to take longer than --max-seconds.

    Predicted for cases with many operations only, from the time of a similar small case.
    """
    case, ops = planned.case, planned.sizes.get("work_ops", 0)
    threshold = planned.cell.predicts_ops.get(case.device)
    if threshold is None or ops < threshold:
        return False
    params: dict[str, int | str] = dict(case.params)
    params |= METRICS[case.metric].smaller(case, case.device)
    small = planned.changed(replace(case, n=int(params.pop("n")), params=params))
    small_ops = small.sizes["work_ops"]
    if small.case.n > case.n or small_ops >= ops:
        return False
    workload = _build(context, small)
    step = workload.step(workload.units)
    step()
    expected_s = min(_once_s(context, step) for _ in range(2)) * ops / small_ops
    if expected_s <= context.options.max_seconds:
        return False
    context.listener.once(case, expected_s)
    return True


def _once_s(context: Context, step: Step) -> float:
    samples = context.measure(step, warmup=0, runs=1)
    if samples.samples_ns[0] < 0:
        raise ValueError(f"The measure function returned a time of {samples.samples_ns[0]} ns")
    return samples.samples_ns[0] * 1e-9


@dataclass(frozen=True)
class _Timed:
    """The window that is reported, and what else was observed while timing."""

    samples: SamplesLike
    summary: Summary
    first_run_s: float
    stop: str
    other_window: OtherWindow | None
    gpu_state: GpuState | None  # right after the timed runs, before clocks and power fall

    @property
    def window_s(self) -> float:
        """Length of the window."""
        return self.samples.window_ns * 1e-9


def _time(context: Context, case: Case, workload: Workload, *, once: bool) -> _Timed:
    """The timed runs: one window, or two if the first one is noisy."""
    options = context.options
    single = once and options.runs is None
    runs, warmup = (1, 0) if single else (options.runs or 0, options.warmup)
    step = workload.step(workload.units)
    first_runs: list[float] = []

    def window() -> SamplesLike:
        samples = context.measure(
            step,
            warmup=warmup,
            runs=runs,
            budget_s=options.max_seconds,
            min_window_s=options.max_seconds * SETTLE_SHARE,
            on_progress=lambda count, elapsed: context.listener.progress(count, elapsed * 1e-9),
        )
        first_runs.append(samples.first_run_ns * 1e-9)
        return samples

    # A workload without units reports on all of its windows together, so it gets only one.
    if runs or not options.checks or workload.no_slope:
        samples, other = window(), None
    else:
        samples, other = steady_window(window)
    return _Timed(
        samples=samples,
        summary=summarize(samples.samples_ns),
        first_run_s=next(filter(None, first_runs), 0.0),
        stop="one run" if single else samples.stop,
        other_window=other,
        gpu_state=_gpu_state(context, case),
    )


def _gpu_state(context: Context, case: Case) -> GpuState | None:
    if case.device == "cpu":
        return None
    uuid = context.facts.get("device_uuid")
    return gpu_state(next((gpu.index for gpu in gpus() if gpu.uuid == uuid), 0))


@dataclass(frozen=True)
class _Verified:
    """What was checked after the timed runs; without checks only `after`."""

    after: After
    answer: Answer | None = None
    slope: Slope | None = None
    slope_missing: str = "--no-checks"
    overhead: LaunchOverhead | None = None
    cost: CheckCost = _NO_COST

    @property
    def bits(self) -> float | None:
        """Correct bits of the output."""
        return effective_bits(self.answer.error) if self.answer else None


def _verify(context: Context, case: Case, workload: Workload, timed: _Timed) -> _Verified:
    """Compares the output of the timed runs with a reference, and measures the slope."""
    if not context.options.checks:
        return _Verified(workload.after())
    started = time.perf_counter()
    answer = workload.check()
    answered = time.perf_counter()
    overhead = _launch_overhead(context, case, workload)
    slope, missing = measure_slope(
        workload,
        lambda step: _once_s(context, step),
        unit_s=timed.summary.median_s / workload.units,
        floor_s=overhead.floor_s,
        budget_s=CHECK_SHARE * timed.window_s,
        best_s=timed.summary.best_s,
    )
    cost = CheckCost(answered - started, time.perf_counter() - answered)
    return _Verified(workload.after(), answer, slope, missing, overhead, cost)


def _launch_overhead(context: Context, case: Case, workload: Workload) -> LaunchOverhead:
    """Time of an empty evaluation, measured once per engine, device and number of threads.

    The tenth percentile, which is what each evaluation costs at least: waking threads on an idle
    machine takes 30 to 150 us in some of them.
    """
    key = (case.engine, case.device, int(case.params.get("cpu_workers", 0)))
    if key not in context.floors:
        problem = ""
        try:
            samples = context.measure(workload.floor, warmup=10, runs=_FLOOR_RUNS)
        except (_native.Unsupported, StepError) as error:
            # An engine may refuse work that small and still run the case.
            problem = str(error)
            samples = context.measure(lambda: None, warmup=10, runs=_FLOOR_RUNS)
        seconds = _native.quantile(samples.samples_ns, 0.1) * 1e-9
        context.floors[key] = LaunchOverhead(seconds, problem)
    return context.floors[key]


@dataclass(frozen=True)
class _Judged:
    """The verdict, the evidence for it, and how the product was computed."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    evidence: Evidence
    precision: Precision


def _judge(
    context: Context, case: Case, workload: Workload, timed: _Timed, verified: _Verified
) -> _Judged:
    """Collects the evidence and judges it."""
    sizes, samples_ns = workload.sizes, timed.samples.samples_ns
    inner = sizes.get("inner", sizes.get("eff_n", case.n))
    random_data = case.params.get("data", "normal") in RANDOM_DATA
    precision = measured_precision(
        workload.precision, workload.mantissa, verified.bits if random_data else None, inner
    )
    state = timed.gpu_state
    clock_hz = state.sm_clock_mhz * 1e6 if state is not None and state.sm_clock_mhz else None
    written = sizes.get("written_bytes", sizes.get("matrix_bytes", 0))
    evidence = Evidence(
        case=case,
        samples_ns=samples_ns,
        summary=timed.summary,
        rate=workload.unit_work * workload.units / timed.summary.median_s,
        window_s=timed.window_s,
        written_bytes=len(samples_ns) * written if "work_bytes" in sizes else 0,
        random_data=random_data,
        units=workload.units,
        mantissa=precision.mantissa,
        inner=inner,
        exact_share=sizes["exact_ops"] / sizes["work_ops"] if "exact_ops" in sizes else 1.0,
        keeps_size=METRICS[case.metric].chain,
        answer=verified.answer,
        slope=verified.slope,
        slope_missing=verified.slope_missing,
        floor_s=verified.overhead.floor_s if verified.overhead else None,
        clock_resolution_ns=context.clock_resolution_ns,
        cache_bytes=context.cache_bytes,
        resident_bytes=workload.resident_bytes or sizes["unit_bytes"] * workload.largest_k,
        processors=machine().logical_cpus,
        array_bytes=workload.array_bytes,
        readings={
            reading.name: reading.value
            for reading in timed.samples.readings
            if math.isfinite(reading.value)
        },
        ceiling=published_ceiling(case, context.facts, precision.name, clock_hz),
        details=verified.after.details,
    )
    return _Judged(*judge(evidence), evidence, precision)


def _result(
    context: Context,
    planned: Planned,
    workload: Workload,
    timed: _Timed,
    verified: _Verified,
    judged: _Judged,
    random_rate: float | None,
) -> Result:
    """The row, with the ceiling and the published result to compare it with."""
    case, summary, evidence = planned.case, timed.summary, judged.evidence
    metric, details, precision = METRICS[case.metric], evidence.details, judged.precision
    slope = verified.slope if verified.slope and verified.slope.doubling is not None else None
    measured = None if planned.cell.ceiling else context.ceilings.known(case, precision.name)
    published = None
    if metric.published_results:
        name = details.device_name or str(context.facts.get("device_name", ""))
        published = reference.beside(case, name)
    notes = [*workload.notes, *verified.after.notes]
    if timed.other_window is not None:
        notes.append(window_note(timed.other_window))
    if measured is not None:
        notes.append(f"ceiling: {measured.by}, measured {measured.age()}")
    if published is not None:
        notes.append(published.note)
    return Result(
        case=case,
        verdict=judged.verdict,
        reasons=judged.reasons,
        median_s=summary.median_s,
        interval_s=summary.interval_s,
        interval_coverage=summary.coverage,
        best_s=summary.best_s,
        rate=evidence.rate,
        best_rate=workload.unit_work * workload.units / summary.best_s,
        unit=metric.unit(dtype(case.dtype)),
        slope_rate=workload.unit_work / slope.unit_s if slope and slope.unit_s > 0 else None,
        overhead_us=slope.overhead_s * 1e6 if slope else None,
        effective_bits=verified.bits,
        precision=precision.label(
            verified.bits if evidence.random_data else None, device=case.device
        ),
        samples_ns=tuple(timed.samples.samples_ns),
        stop=timed.stop,
        warmup_runs=timed.samples.warmup_runs,
        first_run_s=timed.first_run_s,
        window_s=timed.window_s,
        sizes=dict(workload.sizes),
        notes=tuple(notes),
        readings=evidence.readings,
        summary=summary,
        slope=verified.slope,
        slope_unit=workload.unit_name,
        answer=verified.answer,
        launch_overhead=verified.overhead,
        gpu_state=timed.gpu_state,
        other_window=timed.other_window,
        check_cost=verified.cost,
        ceiling=evidence.ceiling,
        measured_ceiling=measured,
        published=published,
        ratio_to_random=evidence.rate / random_rate if random_rate else None,
        details=details,
    )
