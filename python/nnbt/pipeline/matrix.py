"""ENGINES: all engines, and which cell measures a case."""

from typing import Literal

from nnbt.engines import kernel, library, mlx, mpsgraph, native
from nnbt.spec.case import Case
from nnbt.spec.cell import Cell, Engine
from nnbt.spec.dtypes import dtype
from nnbt.spec.errors import Refusal
from nnbt.spec.metric import METRICS
from nnbt.spec.options import spelled

ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (*mlx.ENGINES, native.ENGINE, kernel.ENGINE, library.ENGINE, mpsgraph.ENGINE)
}


def cells(metric: str, engine: str) -> tuple[Cell, ...]:
    """What an engine measures of a metric; empty if it does not."""
    return tuple(cell for cell in ENGINES[engine].cells if cell.metric == metric)


def engines_of(metric: str) -> dict[str, tuple[Cell, ...]]:
    """The engines that measure a metric, with their cells of it."""
    found = {name: cells(metric, name) for name in ENGINES}
    return {name: there for name, there in found.items() if there}


def engines_with(metric: str, kind: Literal["devices", "ops", "takes"], value: str) -> list[str]:
    """The engines with a cell of a metric that has this device, operation or file option."""
    found = engines_of(metric).items()
    return [name for name, there in found if any(value in getattr(cell, kind) for cell in there)]


def explained(case: Case) -> str:
    """What the case measures, in words; empty for an unknown metric."""
    metric = METRICS.get(case.metric)
    if metric is None:
        return ""
    there = cells(case.metric, case.engine) if case.engine in ENGINES else ()
    here = (cell.explain for cell in there if case.device in cell.devices)
    return next(filter(None, here), metric.explain)


def cell_of(case: Case) -> Cell:
    """The cell that measures a case. Raises Refusal, made from the tables."""
    metric, kind = METRICS[case.metric], dtype(case.dtype)
    engines = engines_of(metric.name)
    if case.engine not in engines:
        raise Refusal(
            f"Engine {case.engine!r} does not measure {metric.name}",
            f"use {spelled('engine', *engines)}",
        )
    here = [cell for cell in engines[case.engine] if case.device in cell.devices]
    if not here:
        raise _other_devices(case)
    for cell in here:
        if cell.measures(kind):
            if kind.cpu_only and case.device != "cpu":
                instead = f"use {spelled('device', 'cpu')}, or {spelled('dtype', 'float32')}"
                raise Refusal(f"{kind.token} runs on the CPU only", instead)
            return cell
    if here[0].dtypes or kind.family.name == "tensor":
        raise _other_dtypes(case, here[0])
    raise Refusal(
        f"{metric.name} does not support {kind.token}, a {kind.family.name} dtype",
        f"use a floating-point or integer dtype, such as {spelled('dtype', 'float32', 'uint8')}",
    )


def _other_devices(case: Case) -> Refusal:
    engines = engines_of(case.metric)
    devices = dict.fromkeys(name for cell in engines[case.engine] for name in cell.devices)
    here = engines_with(case.metric, "devices", case.device)
    if here:
        instead = spelled("engine", *here)
    else:
        metrics = dict.fromkeys(
            cell.metric for cell in ENGINES[case.engine].cells if case.device in cell.devices
        )
        instead = spelled("metric", *(metrics or ("another",)))
    return Refusal(
        f"{spelled('engine', case.engine)} does not measure {case.metric} on {case.device}",
        f"use {spelled('device', *devices)}, or {instead}",
    )


def _other_dtypes(case: Case, here: Cell) -> Refusal:
    others = ""
    for engine, there in engines_of(case.metric).items():
        devices = [
            name for cell in there if cell.measures(dtype(case.dtype)) for name in cell.devices
        ]
        if devices:
            others += f", or {spelled('engine', engine)} {spelled('device', *devices)}"
    return Refusal(
        f"{case.metric} by {case.engine} on {case.device} does not support {case.dtype}",
        f"use {spelled('dtype', *(here.dtypes or ('float32',)))}{others}",
    )
