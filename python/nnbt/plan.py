"""Options -> cases. Everything that can be refused is refused here, before anything is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nnbt._native import Unsupported
from nnbt.devices import DEVICES, default_device
from nnbt.dtypes import dtype
from nnbt.machine import machine
from nnbt.metrics import ENGINES, METRICS, STREAMS, cell, sizes_of
from nnbt.result import Case

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA = {
    "normal": "normal distribution, full mantissa; integers uniform over their whole range",
    "uniform": "uniform in (-1, 1); integers uniform over their whole range",
    "zeros": "all zero: less power, higher clocks, and zero-skipping hardware looks faster",
    "ones": "all one",
    "sparse50": "normal with every second element, at random, zero",
    "nan": "all NaN: what an overflowed chain computes on",
}
RANDOM_DATA = ("normal", "uniform")
TF32_MODES = ("default", "on", "off")
_LARGEST_N = 10**7
_MAX_STEPS = 100_000


@dataclass(frozen=True)
class Options:
    """What the command line and nnbt.run take; the defaults are the documented ones.

    `warmup` runs before timing; `runs` timed runs (None: adaptive within `max_seconds` a case);
    `cpu_workers` MLX streams, one a thread (0: all processors this process may use).
    """

    metrics: tuple[str, ...] = ("bandwidth",)
    device: str = "auto"
    engines: tuple[str, ...] = ("mlx",)
    dtypes: tuple[str, ...] = ("float32",)
    sizes: tuple[int, ...] = (1024, 2048, 4096)
    op: str | None = None
    data: tuple[str, ...] = ("normal",)
    tf32: str = "default"
    graph_steps: int = 4
    warmup: int = 2
    runs: int | None = None
    max_seconds: float = 3.0
    cpu_workers: int = 0
    checks: bool = True


@dataclass(frozen=True)
class Plan:
    """The cases of one run, in order, and what the user should know about the choice."""

    cases: tuple[Case, ...]
    device: str
    notes: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)


def _one_of(option: str, value: str, names: Iterable[str]) -> str:
    if value not in names:
        raise Unsupported(f"Unknown {option} {value!r}: type one of {' '.join(names)}.")
    return value


def _check_numbers(options: Options) -> None:
    limits = (
        ("--warmup", options.warmup, 0, 10**6),
        ("--runs", 1 if options.runs is None else options.runs, 1, 10**7),
        ("--graph-steps", options.graph_steps, 1, _MAX_STEPS),
        ("--cpu-workers", options.cpu_workers, 0, 1024),
    )
    for option, value, low, high in limits:
        if not low <= value <= high:
            raise Unsupported(f"{option} {value} is out of range: type {low} to {high}.")
    if not (math.isfinite(options.max_seconds) and 0 < options.max_seconds <= 86400):
        raise Unsupported(
            f"--max-seconds {options.max_seconds:g} is out of range: type more than 0, at most "
            "86400."
        )
    for n in options.sizes:
        if not 1 <= n <= _LARGEST_N:
            raise Unsupported(f"--sizes {n} is no matrix size: type 1 to {_LARGEST_N}.")
    if not options.sizes:
        raise Unsupported("--sizes needs at least one matrix size: type --sizes 1024.")


def _device(options: Options) -> tuple[str, tuple[str, ...]]:
    if options.device == "auto":
        name, why = default_device()
        return name, (f"device {name} (auto: {why})",)
    name = _one_of("--device", options.device, DEVICES)
    missing = DEVICES[name].missing()
    if missing is not None:
        raise Unsupported(missing)
    return name, ()


def default_op(device: str, *, metal: bool) -> str:
    """The bandwidth operation of a device: copy, but a + b on CUDA as the documented proxy."""
    return "add" if device in ("gpu", "hybrid") and not metal else "copy"


def _params(
    options: Options, metric: str, device: str, data: str, metal: bool
) -> dict[str, int | str]:
    op = options.op or default_op(device, metal=metal)
    values: dict[str, int | str] = {
        "op": _one_of("--op", op, STREAMS),
        "graph_steps": options.graph_steps,
        "cpu_workers": options.cpu_workers or machine().usable_cpus,
        "data": data,
    }
    names = [
        name for name in METRICS[metric].params if not (name == "cpu_workers" and device == "gpu")
    ]
    chosen = {name: values[name] for name in names}
    if options.tf32 != "default":
        chosen["tf32"] = options.tf32
    return chosen


def make_plan(options: Options) -> Plan:
    """The cases that the options ask for. Raises Unsupported with one sentence."""
    import sys

    _check_numbers(options)
    for metric in options.metrics:
        _one_of("--metric", metric, METRICS)
    for engine in options.engines:
        _one_of("--engine", engine, ENGINES)
    for mode in options.data:
        _one_of("--data", mode, DATA)
    _one_of("--tf32", options.tf32, TF32_MODES)
    tokens = tuple(dtype(token).token for token in options.dtypes)
    device, notes = _device(options)
    cases = [
        Case(
            metric,
            device,
            engine,
            token,
            n,
            _params(options, metric, device, data, sys.platform == "darwin"),
        )
        for metric in dict.fromkeys(options.metrics)
        for engine in dict.fromkeys(options.engines)
        for token in dict.fromkeys(tokens)
        for data in dict.fromkeys(options.data)
        for n in dict.fromkeys(options.sizes)
    ]
    for case in cases:
        cell(case)
    return Plan(tuple(cases), device, notes, replace(options, dtypes=tokens))


def check_memory(cases: Iterable[Case], free: dict[str, int]) -> None:
    """Refuses a case whose working set exceeds the free bytes of its device or of the host.

    `free` holds bytes by device name (cpu, gpu). Raises Unsupported with the figures.
    """
    for case in cases:
        need = sizes_of(case)["resident_bytes"]
        # The host makes random inputs and holds the samples that are compared.
        for device in {"cpu": ("cpu",), "gpu": ("gpu",)}.get(case.device, ("cpu", "gpu")):
            if device in free and need > free[device]:
                largest = int(case.n * math.sqrt(free[device] / need))
                raise Unsupported(
                    f"{case.metric} of {case.dtype} at n = {case.n} needs {need / 2**30:,.1f} GiB "
                    f"and {device} has {free[device] / 2**30:,.1f} GiB free: type --sizes "
                    f"{max(1, largest * 9 // 10)} or less."
                )
