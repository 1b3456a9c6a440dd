"""Cases -> results: builds, times, checks and judges one after the other."""

from __future__ import annotations

import datetime as dt
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nnbt import _native
from nnbt.engines.mpsgraph import remote
from nnbt.machine import mlx as _mlx
from nnbt.machine.facts import machine
from nnbt.peaks.stored import Ceilings
from nnbt.pipeline.case import Listener, Session, run_case
from nnbt.pipeline.matrix import sizes_of
from nnbt.pipeline.memory import check_memory
from nnbt.pipeline.plan import RANDOM_DATA, Options, Plan, make_plan
from nnbt.results.result import Result, Run
from nnbt.results.sweep import mark_knee

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnbt.spec.workload import Measure


def now() -> str:
    """The time of day with its zone, to the second."""
    return dt.datetime.now(dt.timezone.utc).astimezone().isoformat(timespec="seconds")


def free_memory(mx: Any, device: str) -> dict[str, int]:
    """Free bytes by device name, as far as the system tells."""
    free = {}
    host = machine().available_memory_bytes
    if host is not None:
        free["cpu"] = host
    if device != "cpu":
        info = mx.device_info(mx.gpu)
        room = info.get("free_memory") or info.get("max_recommended_working_set_size")
        if room:
            free["gpu"] = int(room)
    return free


def execute(
    options: Options,
    *,
    measure: Measure | None = None,
    listener: Listener | None = None,
    argv: Sequence[str] = (),
) -> Run:
    """Plans and runs all cases. Raises Unsupported before anything is measured.

    KeyboardInterrupt ends the run early: it propagates after Listener.finished has seen every
    finished case.
    """
    listener = listener or Listener()
    plan = make_plan(options)
    set_tf32(options.tf32)
    mx = _mlx.core()
    free = free_memory(mx, plan.device)
    check_memory(plan.cases, free)
    facts = describe_machine(mx, plan.device)
    session = Session(
        options,
        measure or remote.measure,
        listener,
        mx,
        free,
        _native.calibrate_clock().resolution_ns,
        last_cache_bytes(),
        facts,
        {},
        Ceilings(machine().fingerprint, keep=measure is None),
    )
    run = Run(facts, list(argv), now())
    listener.planned(plan)
    _set_cache_limit(session, plan)
    for index, case in enumerate(plan.cases):
        listener.started(index, len(plan.cases), case, None)
        result = with_ratio_to_random(run_case(session, case), run.results)
        session.ceilings.remember(result)
        run.results.append(result)
        if options.thread_sweep:
            mark_knee(run.results, plan.cases[index + 1] if index + 1 < len(plan.cases) else None)
        run.finished = index + 1 == len(plan.cases)
        listener.finished(run.results[-1], run)
    return run


def with_ratio_to_random(result: Result, earlier: Sequence[Result]) -> Result:
    """The result with its rate over that of the same case on random data, if that was measured."""
    if result.rate is None or result.case.params.get("data", "normal") in RANDOM_DATA:
        return result
    for other in earlier:
        same = other.case.without("data") == result.case.without("data")
        if same and other.rate and other.case.params.get("data") in RANDOM_DATA:
            ratio = result.rate / other.rate
            return replace(result, details={**result.details, "ratio_to_random": ratio})
    return result


def set_tf32(mode: str) -> None:
    """Sets MLX's TF32 switch; it is read once per process, when MLX first multiplies."""
    if mode == "default":
        return
    value = {"on": "1", "off": "0"}[mode]
    if "mlx.core" in sys.modules and os.environ.get("MLX_ENABLE_TF32", "1") != value:
        raise _native.Unsupported(
            f"MLX is already loaded and reads its TF32 switch once: set MLX_ENABLE_TF32={value} "
            "before Python starts, or measure in a process of its own."
        )
    os.environ["MLX_ENABLE_TF32"] = value


def last_cache_bytes() -> int | None:
    """Bytes of the largest cache level of the processor; None where the system does not tell."""
    levels: dict[int, int] = _native.cache_bytes()
    return max(levels.values(), default=0) or None


def describe_machine(mx: Any, device: str) -> dict[str, Any]:
    """Facts about machine, device and libraries that belong to a result."""
    facts: dict[str, Any] = machine().as_dict()
    info = mx.device_info(mx.gpu if device != "cpu" else mx.cpu)
    facts["device"] = device
    facts["device_name"] = str(info.get("device_name", ""))
    facts["device_uuid"] = info.get("uuid")
    if device != "cpu":
        facts["device_info"] = {
            key: value for key, value in info.items() if key not in ("uuid", "free_memory")
        }
    facts["mlx"] = mx.__version__
    facts["backend"] = _mlx.backend()
    facts["environment"] = {
        key: value for key, value in os.environ.items() if key.startswith("MLX_")
    }
    return facts


def _set_cache_limit(session: Session, plan: Plan) -> None:
    # MLX's CPU allocator keeps 32 MiB by default and gives the rest back to the system: outputs
    # above that fault in every page on every run (4.5 instead of 18 GB/s).
    room = max(session.free.values(), default=2**33)
    need = max((sizes_of(case)["resident_bytes"] for case in plan.cases), default=0)
    session.mx.set_cache_limit(min(room // 2, max(2**31, 20 * need)))
