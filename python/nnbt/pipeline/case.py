"""One planned case -> one immutable result: build, time, verify, judge."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nnbt import _native
from nnbt.machine.facts import machine
from nnbt.machine.nvml import GpuState, gpu_state, gpus
from nnbt.peaks import reference
from nnbt.peaks.published import published_ceiling
from nnbt.results.result import CheckCost, LaunchOverhead, Result
from nnbt.spec.cell import Request
from nnbt.spec.dtypes import dtype
from nnbt.spec.errors import StepError
from nnbt.spec.metric import METRICS
from nnbt.spec.options import RANDOM_DATA
from nnbt.spec.precision import effective_bits, measured_precision
from nnbt.timing.slope import Slope, measure_slope
from nnbt.timing.statistics import Summary, summarize
from nnbt.timing.window import OtherWindow, steady_window
from nnbt.verdict.evidence import Evidence
from nnbt.verdict.judge import judge
from nnbt.verdict.times import window_note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nnbt.peaks.stored import Ceilings
    from nnbt.pipeline.listener import Listener
    from nnbt.pipeline.plan import Planned
    from nnbt.spec.case import Case
    from nnbt.spec.cell import Runtime
    from nnbt.spec.options import Options
    from nnbt.spec.workload import Answer, Measure, SamplesLike, Step, Workload

CHECK_SHARE = 0.12
"""Share of a case's own measuring time that its slope may take."""
SETTLE_SHARE = 0.4
"""Share of --max-seconds that timing lasts at least, however narrow the interval is before."""
_FLOOR_RUNS = 100


@dataclass(frozen=True)
class Session:
    """What the cases of one run share; `floors` fills with the launch overhead of each engine."""

    options: Options
    measure: Measure
    listener: Listener
    facts: Mapping[str, Any]
    free_bytes: Mapping[str, int]
    clock_resolution_ns: int
    cache_bytes: int | None
    ceilings: Ceilings
    floors: dict[tuple[str, str, int], LaunchOverhead] = field(default_factory=dict)


@dataclass(frozen=True)
class _Timed:
    """The window that is reported, and what else was timed."""

    samples: SamplesLike
    summary: Summary
    first_run_s: float
    stop: str
    other_window: OtherWindow | None
    gpu_state: GpuState | None
    """Right after the timed runs, while it still holds."""


@dataclass(frozen=True)
class _Verified:
    """What the checks after timing gave; without --no-checks nothing is None for lack of asking."""

    answer: Answer | None
    slope: Slope | None
    slope_missing: str
    overhead: LaunchOverhead | None
    cost: CheckCost


def run_case(
    session: Session, planned: Planned, runtime: Runtime, *, random_rate: float | None
) -> Result:
    """One result; Unsupported and out-of-memory become rows, bugs propagate as ERROR rows.

    `random_rate` is the rate of the same case on random data, where there is one.
    """
    case = planned.case
    unit = METRICS[case.metric].unit(dtype(case.dtype))
    try:
        with runtime.scope(case):
            once = _predicted_s(session, planned)
            workload = _build(session, planned)
            timed = _time(session, case, workload, once=once is not None)
            verified = _verify(session, case, workload, timed)
            return _judge(session, planned, workload, timed, verified, random_rate)
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


def _build(session: Session, planned: Planned) -> Workload:
    return planned.cell.build(
        Request(planned.case, planned.sizes, session.options, session.measure, session.free_bytes)
    )


def _predicted_s(session: Session, planned: Planned) -> float | None:
    """Predicted seconds of one run if it outlasts the case's budget, else None.

    Only for much work, from a small case of the same kind and the ratio of operations.
    """
    case, ops = planned.case, planned.sizes.get("work_ops", 0)
    threshold = planned.cell.predicts_ops.get(case.device)
    if threshold is None or ops < threshold:
        return None
    params: dict[str, int | str] = dict(case.params)
    params |= METRICS[case.metric].smaller(case, case.device)
    small = planned.changed(replace(case, n=int(params.pop("n")), params=params))
    small_ops = small.sizes["work_ops"]
    if small.case.n > case.n or small_ops >= ops:
        return None
    workload = _build(session, small)
    step = workload.step(workload.units)
    step()
    seconds = min(_once_s(session, step) for _ in range(2))
    expected = seconds * ops / small_ops
    if expected <= session.options.max_seconds:
        return None
    session.listener.once(case, expected)
    return expected


def _once_s(session: Session, step: Step) -> float:
    samples = session.measure(step, warmup=0, runs=1)
    if samples.samples_ns[0] < 0:
        raise ValueError(f"The measure function gave a time of {samples.samples_ns[0]} ns")
    return samples.samples_ns[0] * 1e-9


def _time(session: Session, case: Case, workload: Workload, *, once: bool) -> _Timed:
    """The timed runs: one window, or two where the first one scatters."""
    options = session.options
    single = once and options.runs is None
    runs, warmup = (1, 0) if single else (options.runs or 0, options.warmup)
    step = workload.step(workload.units)
    first_runs: list[float] = []

    def window() -> SamplesLike:
        samples = session.measure(
            step,
            warmup=warmup,
            runs=runs,
            budget_s=options.max_seconds,
            min_window_s=options.max_seconds * SETTLE_SHARE,
            on_progress=lambda count, elapsed: session.listener.progress(count, elapsed * 1e-9),
        )
        first_runs.append(samples.first_run_ns * 1e-9)
        return samples

    # Where a window has no units, what its sides leave behind is of all windows together.
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
        gpu_state=_gpu_state(session, case),
    )


def _gpu_state(session: Session, case: Case) -> GpuState | None:
    if case.device == "cpu":
        return None
    uuid = session.facts.get("device_uuid")
    return gpu_state(next((gpu.index for gpu in gpus() if gpu.uuid == uuid), 0))


def _launch_overhead(session: Session, case: Case, workload: Workload) -> LaunchOverhead:
    """Time of a Step that does next to nothing, measured once an engine, device and thread count.

    The tenth percentile: waking threads on an idle machine takes 30 to 150 us, and what an
    evaluation costs at least is what must not be taken for work.
    """
    key = (case.engine, case.device, int(case.params.get("cpu_workers", 0)))
    if key not in session.floors:
        problem = ""
        try:
            samples = session.measure(workload.floor, warmup=10, runs=_FLOOR_RUNS)
        except (_native.Unsupported, StepError) as error:
            # An engine may refuse what is that small, and still do the work.
            problem = str(error)
            samples = session.measure(_nothing, warmup=10, runs=_FLOOR_RUNS)
        seconds = _native.quantile(samples.samples_ns, 0.1) * 1e-9
        session.floors[key] = LaunchOverhead(seconds, problem)
    return session.floors[key]


def _nothing() -> None:
    pass


def _verify(session: Session, case: Case, workload: Workload, timed: _Timed) -> _Verified:
    """The answer of the timed runs against a reference, and the slope over units of work."""
    if not session.options.checks:
        return _Verified(None, None, "--no-checks", None, CheckCost(0.0, 0.0))
    started = time.perf_counter()
    answer = workload.check()
    answered = time.perf_counter()
    overhead = _launch_overhead(session, case, workload)
    slope, missing = measure_slope(
        workload,
        lambda step: _once_s(session, step),
        unit_s=timed.summary.median_s / workload.units,
        floor_s=overhead.floor_s,
        budget_s=CHECK_SHARE * timed.samples.window_ns * 1e-9,
        best_s=timed.summary.best_s,
    )
    cost = CheckCost(answered - started, time.perf_counter() - answered)
    return _Verified(answer, slope, missing, overhead, cost)


def _judge(
    session: Session,
    planned: Planned,
    workload: Workload,
    timed: _Timed,
    verified: _Verified,
    random_rate: float | None,
) -> Result:
    case, summary, sizes = planned.case, timed.summary, workload.sizes
    metric = METRICS[case.metric]
    work, answer = workload.unit_work * workload.units, verified.answer
    rate, window_s = work / summary.median_s, timed.samples.window_ns * 1e-9
    readings = {reading.name: reading.value for reading in timed.samples.readings}
    after = workload.after()
    inner = sizes.get("inner", sizes.get("eff_n", case.n))
    random_data = case.params.get("data", "normal") in RANDOM_DATA
    bits = effective_bits(answer.error) if answer else None
    told_bits = bits if random_data else None
    precision = measured_precision(workload.precision, workload.mantissa, told_bits, inner)
    ceiling = published_ceiling(case, session.facts, precision.name, _clock_hz(timed.gpu_state))
    verdict, reasons = judge(
        Evidence(
            case=case,
            samples_ns=timed.samples.samples_ns,
            summary=summary,
            rate=rate,
            window_s=window_s,
            written_bytes=_written_bytes(workload, len(timed.samples.samples_ns)),
            random_data=random_data,
            units=workload.units,
            mantissa=precision.mantissa,
            inner=inner,
            exact_share=sizes["exact_ops"] / sizes["work_ops"] if "exact_ops" in sizes else 1.0,
            keeps_size=metric.chain,
            answer=answer,
            slope=verified.slope,
            slope_missing=verified.slope_missing,
            floor_s=verified.overhead.floor_s if verified.overhead else None,
            clock_resolution_ns=session.clock_resolution_ns,
            cache_bytes=session.cache_bytes,
            resident_bytes=workload.resident_bytes or sizes["unit_bytes"] * workload.largest_k,
            processors=machine().logical_cpus,
            array_bytes=workload.array_bytes,
            readings=readings,
            ceiling=ceiling,
            details=after.details,
        )
    )
    measured = None if planned.cell.ceiling else session.ceilings.known(case, precision.name)
    published = None
    if metric.published_results:
        name = after.details.device_name or str(session.facts.get("device_name", ""))
        published = reference.beside(case, name)
    notes = [*workload.notes, *after.notes]
    if timed.other_window is not None:
        notes.append(window_note(timed.other_window))
    if measured is not None:
        notes.append(f"ceiling: {measured.by}, measured {measured.age()}")
    if published is not None:
        notes.append(published.note)
    slope = verified.slope
    told = slope if slope is not None and slope.doubling is not None else None
    return Result(
        case=case,
        verdict=verdict,
        reasons=reasons,
        median_s=summary.median_s,
        interval_s=summary.interval_s,
        interval_coverage=summary.coverage,
        best_s=summary.best_s,
        rate=rate,
        best_rate=work / summary.best_s,
        unit=metric.unit(dtype(case.dtype)),
        slope_rate=workload.unit_work / told.unit_s if told and told.unit_s > 0 else None,
        overhead_us=told.overhead_s * 1e6 if told else None,
        effective_bits=bits,
        precision=precision.label(told_bits, device=case.device),
        samples_ns=tuple(timed.samples.samples_ns),
        stop=timed.stop,
        warmup_runs=timed.samples.warmup_runs,
        first_run_s=timed.first_run_s,
        window_s=window_s,
        sizes=dict(sizes),
        notes=tuple(notes),
        readings=readings,
        summary=summary,
        slope=slope,
        slope_unit=workload.unit_name,
        answer=answer,
        launch_overhead=verified.overhead,
        gpu_state=timed.gpu_state,
        other_window=timed.other_window,
        check_cost=verified.cost,
        ceiling=ceiling,
        measured_ceiling=measured,
        published=published,
        ratio_to_random=rate / random_rate if random_rate else None,
        details=after.details,
    )


def _clock_hz(state: GpuState | None) -> float | None:
    return state.sm_clock_mhz * 1e6 if state is not None and state.sm_clock_mhz else None


def _written_bytes(workload: Workload, runs: int) -> int:
    """Bytes that the timed runs wrote, where bytes are the work."""
    if "work_bytes" not in workload.sizes:
        return 0
    return runs * workload.sizes.get("written_bytes", workload.sizes["matrix_bytes"])
