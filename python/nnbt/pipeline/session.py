"""Options -> Run: plans, loads the engines, and measures one case after another."""

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from typing import Any

from nnbt import _native
from nnbt.machine.facts import machine
from nnbt.peaks.stored import Ceilings
from nnbt.pipeline.case import Context, run_case
from nnbt.pipeline.listener import Listener
from nnbt.pipeline.matrix import ENGINES
from nnbt.pipeline.memory import check_memory
from nnbt.pipeline.plan import make_plan
from nnbt.results.ceiling import ceiling_rate, described, fit_for_ceiling
from nnbt.results.result import Result, Run
from nnbt.results.sweep import with_knee
from nnbt.spec.case import Case
from nnbt.spec.cell import Load, Runtime
from nnbt.spec.options import RANDOM_DATA, Options
from nnbt.spec.threads import THREADS
from nnbt.spec.workload import Measure
from nnbt.timing.loop import measure as timing_loop


def now() -> str:
    """Date and time with the time zone, to the second."""
    return dt.datetime.now(dt.timezone.utc).astimezone().isoformat(timespec="seconds")


def execute(
    options: Options,
    *,
    measure: Measure | None = None,
    listener: Listener | None = None,
    argv: Sequence[str] = (),
) -> Run:
    """Plans and runs all cases. Raises Unsupported before anything is measured.

    KeyboardInterrupt ends the run early; Listener.finished has been called for each finished case.
    """
    listener = listener or Listener()
    plan = make_plan(options)
    need = max(planned.sizes["resident_bytes"] for planned in plan.planned)
    runtimes = {
        name: ENGINES[name].load(Load(options, plan.device, need))
        for name in dict.fromkeys(case.engine for case in plan.cases)
    }
    here = machine()
    free = {} if here.available_memory_bytes is None else {"cpu": here.available_memory_bytes}
    for runtime in runtimes.values():
        free |= runtime.free_bytes
    check_memory(plan.planned, free)
    context = Context(
        options=options,
        measure=measure or timing_loop,
        listener=listener,
        facts=_facts(here.as_dict(), plan.device, runtimes),
        free_bytes=free,
        clock_resolution_ns=_native.calibrate_clock().resolution_ns,
        cache_bytes=last_cache_bytes(),
        ceilings=Ceilings(here.fingerprint, keep=measure is None),
    )
    run = Run(dict(context.facts), list(argv), now())
    listener.planned(plan)
    for index, planned in enumerate(plan.planned):
        case = planned.case
        listener.started(index, len(plan.planned), case)
        result = run_case(
            context, planned, runtimes[case.engine], random_rate=_random_rate(case, run.results)
        )
        if planned.cell.ceiling and fit_for_ceiling(result):
            context.ceilings.remember(case, ceiling_rate(result), result.unit, described(result))
        run.results.append(result)
        if options.thread_sweep:
            _name_knee(run, plan.cases)
        run.finished = index + 1 == len(plan.planned)
        listener.finished(run.results[-1], run)
    return run


def _name_knee(run: Run, cases: Sequence[Case]) -> None:
    """Adds the knee to the rows of a thread sweep after its last row."""
    done = len(run.results)
    same = cases[done - 1].without(THREADS)
    if done < len(cases) and cases[done].without(THREADS) == same:
        return
    first = done
    while first > 0 and cases[first - 1].without(THREADS) == same:
        first -= 1
    run.results[first:] = with_knee(run.results[first:])


def last_cache_bytes() -> int | None:
    """Bytes of the largest cache level of the CPU; None if unknown."""
    levels: dict[int, int] = _native.cache_bytes()
    return max(levels.values(), default=0) or None


def _random_rate(case: Case, earlier: Sequence[Result]) -> float | None:
    """The rate of the same case on random data, if measured before."""
    if case.params.get("data", "normal") in RANDOM_DATA:
        return None
    same = (other for other in earlier if other.case.without("data") == case.without("data"))
    random = (other.rate for other in same if other.case.params.get("data") in RANDOM_DATA)
    return next(filter(None, random), None)


def _facts(
    machine_facts: Mapping[str, Any], device: str, runtimes: Mapping[str, Runtime]
) -> dict[str, Any]:
    """Facts about machine, device and libraries for the file."""
    facts: dict[str, Any] = {**machine_facts, "device": device}
    for runtime in runtimes.values():
        facts |= runtime.facts
    facts["environment"] = {
        key: value for key, value in os.environ.items() if key.startswith("MLX_")
    }
    return facts
