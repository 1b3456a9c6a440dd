"""Options -> cases. Everything that can be refused is refused here, before anything is measured."""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nnbt._native import Unsupported
from nnbt.machine.devices import DEVICES, default_device
from nnbt.machine.facts import machine
from nnbt.pipeline.matrix import ENGINES, METRICS, cell
from nnbt.spec.case import Case
from nnbt.spec.dtypes import dtype

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from nnbt.spec.cell import Cell, Param

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
    `ladder_sizes` takes arrays from the first cache to beyond the last; `cpu_workers` MLX streams,
    one a thread (0: all processors this process may use); `thread_sweep` takes 1, 2, 4, ... up to
    so many threads of engine native. `params` holds values of what only one
    metric has. Device `all` stands for all that the engines have, less those in `without`. With
    `lenient`, cases that can't be run are left out with a note, as long as one is left. `counters`
    allows those of the Neural Engine; packages are folders, for engines that make them.
    """

    metrics: tuple[str, ...] = ("bandwidth",)
    device: str = "auto"
    engines: tuple[str, ...] = ("mlx",)
    dtypes: tuple[str, ...] = ("float32",)
    sizes: tuple[int, ...] | None = None
    ladder_sizes: bool = False
    op: str | None = None
    data: tuple[str, ...] = ("normal",)
    tf32: str = "default"
    graph_steps: int = 4
    warmup: int = 2
    runs: int | None = None
    max_seconds: float = 3.0
    cpu_workers: int = 0
    thread_sweep: bool = False
    checks: bool = True
    params: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    lenient: bool = False
    counters: bool = True
    save_package: str | None = None
    load_package: str | None = None


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
    spelled = METRICS[options.metrics[0]].option if options.metrics else str
    limits = (
        ("--warmup", options.warmup, 0, 10**6),
        (spelled("--runs"), 1 if options.runs is None else options.runs, 1, 10**7),
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
    option = spelled("--sizes")
    for n in options.sizes or ():
        if not 1 <= n <= _LARGEST_N:
            raise Unsupported(f"{option} {n} is out of range: type 1 to {_LARGEST_N}.")
    if options.sizes and options.ladder_sizes:
        raise Unsupported("--sizes and --ladder-sizes both name the sizes: type one of them.")
    if options.sizes == ():
        raise Unsupported(f"{option} needs at least one size: type {option} 1024.")
    known = {name: None for metric in options.metrics for name in METRICS[metric].own}
    for name in options.params:
        if name not in known:
            there = f"type one of {' '.join(known)}" if known else "type none"
            raise Unsupported(f"{' '.join(options.metrics)} has no parameter {name!r}: {there}.")
    for metric in options.metrics:
        for name, param in METRICS[metric].own.items():
            for named in options.params.get(name, ()):
                _check_param(name, named, param)


def _check_param(name: str, value: int | str, param: Param) -> None:
    if param.names:
        _one_of(f"--{name}", str(value), param.names)
    elif not (isinstance(value, int) and param.low <= value <= param.high):
        raise Unsupported(f"--{name} {value} is out of range: type {param.low} to {param.high}.")


def _devices(options: Options) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(names, notes) of the devices that the options ask for, here or not."""
    if options.device == "auto":
        name, why = default_device()
        if name in options.without:
            name, why = "cpu", "no other is left"
        return (name,), (f"device {name} (auto: {why})",)
    if options.device == "all":
        there = [
            device
            for metric in options.metrics
            for engine in options.engines
            for item in METRICS[metric].cells.get(engine, ())
            for device in item.devices
        ]
        names = tuple(name for name in dict.fromkeys(there) if name not in options.without)
        if not names:
            raise Unsupported("--device all leaves no device: name one, for example --device cpu.")
        return names, ()
    name = _one_of("--device", options.device, ("auto", *DEVICES))
    if name in options.without:
        raise Unsupported(f"--device {name} and --no-{name} exclude each other: type one of them.")
    return (name,), ()


def default_op(device: str, *, metal: bool) -> str:
    """The bandwidth operation of a device: copy, but a + b on CUDA as the documented proxy."""
    return "add" if device in ("gpu", "hybrid") and not metal else "copy"


def _usable(case: Case, options: Options) -> Cell:
    """The cell of a case. Raises Unsupported with one sentence if it can't be run here."""
    cells = METRICS[case.metric].cells.get(case.engine, ())
    asks = any(item.needs for item in cells)
    missing = None if asks else DEVICES[case.device].missing()
    if missing is not None:
        raise missing
    found = cell(case)
    files = {"--save-package": options.save_package, "--load-package": options.load_package}
    for option, value in files.items():
        if value is not None and option not in found.takes:
            makers = [
                engine
                for engine, there in METRICS[case.metric].cells.items()
                if any(option in item.takes for item in there)
            ]
            raise Unsupported(
                f"Engine {case.engine} has no packages: leave {option} out, or type --engine "
                f"{' or '.join(makers)} on a machine that has it."
            )
    return found


def _sweep(options: Options, metric: str) -> Iterator[dict[str, int | str]]:
    """All combinations of the metric's own parameters, defaults where nothing is named."""
    own = METRICS[metric].own
    values = [options.params.get(name) or (param.default,) for name, param in own.items()]
    for chosen in itertools.product(*values):
        yield dict(zip(own, chosen, strict=True))


def _op(options: Options, metric: str, device: str, found: Cell) -> str:
    """The bandwidth operation; empty for cells without one."""
    if not found.ops:
        return ""
    op = options.op or default_op(device, metal=sys.platform == "darwin")
    if op in found.ops:
        return op
    engines = [
        engine
        for engine, cells in METRICS[metric].cells.items()
        if any(op in item.ops for item in cells)
    ]
    instead = f", or --engine {' or '.join(engines)} for {op}" if engines else ""
    raise Unsupported(f"Unknown --op {op!r}: type one of {' '.join(found.ops)}{instead}.")


def _params(
    options: Options, bare: Case, found: Cell, data: str, own: Mapping[str, int | str]
) -> dict[str, int | str]:
    metric, device = bare.metric, bare.device
    values: dict[str, int | str] = {
        "op": _op(options, metric, device, found),
        "graph_steps": options.graph_steps,
        "cpu_workers": options.cpu_workers or machine().usable_cpus,
        "data": data,
        **own,
    }
    params = METRICS[metric].params if found.params is None else found.params
    names = [name for name in params if not (name == "cpu_workers" and device == "gpu")]
    chosen = {name: values[name] for name in names}
    if options.tf32 != "default" and found.params is None:
        chosen["tf32"] = options.tf32
    return chosen


def _cases(options: Options, bare: Case, data: str, own: Mapping[str, int | str]) -> list[Case]:
    """What the options ask of one metric, device, engine and dtype. Raises Unsupported."""
    found = _usable(bare, options)
    params = _params(options, bare, found, data, own)
    sizes = options.sizes if found.sized else None
    cases = [
        case
        for n in dict.fromkeys(sizes or found.sizes_for(bare, METRICS[bare.metric], options))
        for case in found.cases(replace(bare, n=n, params=params), options)
    ]
    for case in cases:
        refused = found.refusal(case, options)
        if refused is not None:
            raise Unsupported(refused)
    return cases


def _without_effect(options: Options, bare: Case) -> list[str]:
    """Sentences about options that were typed and count for nothing in this cell."""
    found = cell(bare)
    about = f"{bare.metric} by {bare.engine}"
    notes = []
    if options.sizes and not found.sized:
        notes.append(f"{about} has no matrix: --sizes does not count for it")
    if options.op is not None and not found.ops:
        notes.append(f"{about} has no operation to choose: --op does not count for it")
    if options.data != Options.data and found.params is not None:
        notes.append(f"{about} has data of its own: --data does not count for it")
    return notes


def check_options(options: Options) -> tuple[str, ...]:
    """The names of the dtypes. Raises Unsupported with one sentence for what can't be typed."""
    for option, names in (
        ("--metric", options.metrics),
        ("--engine", options.engines),
        ("--dtype", options.dtypes),
        ("--data", options.data),
    ):
        if not names:
            raise Unsupported(f"{option} needs at least one name: type {option} and one.")
    for metric in options.metrics:
        _one_of("--metric", metric, METRICS)
    _check_numbers(options)
    for engine in options.engines:
        _one_of("--engine", engine, ENGINES)
    for mode in options.data:
        _one_of("--data", mode, DATA)
    _one_of("--tf32", options.tf32, TF32_MODES)
    return tuple(dtype(token).token for token in options.dtypes)


def make_plan(options: Options) -> Plan:
    """The cases that the options ask for. Raises Unsupported with one sentence."""
    tokens = check_options(options)
    devices, notes = _devices(options)
    asked = [
        (Case(metric, device, engine, token, 1), data, own)
        for metric in dict.fromkeys(options.metrics)
        for device in devices
        for engine in dict.fromkeys(options.engines)
        for own in _sweep(options, metric)
        for token in dict.fromkeys(tokens)
        for data in dict.fromkeys(options.data)
    ]
    cases: list[Case] = []
    left_out: dict[str, str] = {}
    remarks: dict[str, None] = {}
    for bare, data, own in asked:
        try:
            # Engines with data of their own give the same cases for each --data.
            cases += [case for case in _cases(options, bare, data, own) if case not in cases]
            remarks |= dict.fromkeys(_without_effect(options, bare))
        except Unsupported as error:
            left_out[str(error)] = f"left out: {error}"
            if not options.lenient:
                raise
    if not cases:
        raise Unsupported(next(iter(left_out)))
    device = next((case.device for case in cases if case.device != "cpu"), "cpu")
    notes += (*left_out.values(), *remarks)
    return Plan(tuple(cases), device, notes, replace(options, dtypes=tokens))
