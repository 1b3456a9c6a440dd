"""Options -> cases. Everything that can be refused is refused here, before anything is measured."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from nnbt._native import Unsupported
from nnbt.machine.devices import DEVICES, default_device
from nnbt.machine.facts import machine
from nnbt.pipeline.matrix import ENGINES, cell_of, cells, engines_with
from nnbt.spec.case import Case
from nnbt.spec.cell import Cell
from nnbt.spec.dtypes import dtype
from nnbt.spec.errors import Refusal
from nnbt.spec.metric import METRICS
from nnbt.spec.options import Options, check, one_of, params_of, spelled


@dataclass(frozen=True)
class Planned:
    """A case with the cell that measures it and the bytes and operations of one run."""

    case: Case
    cell: Cell
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, case: Case, cell: Cell) -> Planned:
        """With the sizes that the cell or the metric gives."""
        return cls(case, cell, (cell.sizes or METRICS[case.metric].sizes)(case))

    def changed(self, case: Case) -> Planned:
        """Another case of the same cell."""
        return Planned.of(case, self.cell)


@dataclass(frozen=True)
class Plan:
    """The cases of one run, in order, and what the user should know about the choice."""

    planned: tuple[Planned, ...]
    device: str
    notes: tuple[str, ...] = ()

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases alone."""
        return tuple(planned.case for planned in self.planned)


def _devices(options: Options) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(names, notes) of the devices that the options ask for, here or not."""
    if options.device == "auto":
        name, why = default_device()
        if name in options.without:
            name, why = "cpu", "no other device is left"
        return (name,), (f"device {name} (auto: {why})",)
    if options.device == "all":
        there = [
            device
            for metric in options.metrics
            for engine in options.engines
            for item in cells(metric, engine)
            for device in item.devices
        ]
        names = tuple(name for name in dict.fromkeys(there) if name not in options.without)
        if not names:
            given = spelled("device", "all"), spelled("device", "cpu")
            raise Refusal(f"{given[0]} leaves no device", f"use {given[1]}")
        return names, ()
    name = one_of("device", options.device, ("auto", *DEVICES))
    if name in options.without:
        given = spelled("device", name), spelled("gpu", False)
        raise Refusal(f"{given[0]} and {given[1]} exclude each other", "use only one of them")
    return (name,), ()


def default_op(device: str, *, metal: bool) -> str:
    """The bandwidth operation of a device: copy, but a + b on CUDA as the documented proxy."""
    return "add" if device in ("gpu", "hybrid") and not metal else "copy"


def _usable(case: Case, options: Options) -> Cell:
    """The cell of a case. Raises Unsupported if it cannot be run here."""
    asks = any(item.refusal for item in cells(case.metric, case.engine))
    missing = None if asks else DEVICES[case.device].missing()
    if missing is not None:
        raise missing
    found = cell_of(case)
    files = {"--save-package": options.save_package, "--load-package": options.load_package}
    for option, value in files.items():
        if value is not None and option not in found.takes:
            makers = engines_with(case.metric, "takes", option)
            raise Refusal(
                f"Engine {case.engine} cannot save or load packages",
                f"omit {option}, or use {spelled('engine', *makers)} on a machine that has it",
            )
    return found


def _sweep(options: Options, metric: str) -> Iterator[dict[str, int | str]]:
    """All combinations of the metric's own parameters, defaults where nothing is named."""
    own = params_of(metric)
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
    engines = engines_with(metric, "ops", op)
    instead = f", or {spelled('engine', *engines)} for {op}" if engines else ""
    asked = spelled("op", op) if engines else spelled("op")
    problem = f"{asked} needs another engine" if engines else f"Unknown {asked} {op!r}"
    raise Refusal(problem, f"use one of {' '.join(found.ops)}{instead}")


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


def _sizes(options: Options, bare: Case, found: Cell) -> tuple[int, ...]:
    """The n to measure. Raises Unsupported for --ladder-sizes without caches to sweep."""
    if options.ladder_sizes:
        if found.cache_sizes is None:
            raise Refusal(
                f"{spelled('ladder_sizes')} measures the caches of a CPU with engine native; "
                f"{bare.metric} by {bare.engine} cannot use it",
                f"use {spelled('sizes')}, or {spelled('metric', 'bandwidth')} "
                f"{spelled('engine', 'native')}",
            )
        return found.cache_sizes(bare)
    if not found.sized:
        return (0,)
    if options.sizes:
        return options.sizes
    if found.default_sizes is not None:
        return found.default_sizes(bare)
    return METRICS[bare.metric].default_sizes


def _expanded(options: Options, case: Case, found: Cell) -> list[Case]:
    """The cases that this one expands to. Raises Unsupported if it has no threads to sweep."""
    cases = [case] if found.expand is None else found.expand(case, options)
    if not options.thread_sweep:
        return cases
    if found.thread_sweep is None:
        raise Refusal(
            f"{spelled('thread_sweep')} varies the pinned threads of engine native; "
            f"{case.metric} by {case.engine} on {case.device} has none",
            f"use {spelled('engine', 'native')} {spelled('device', 'cpu')} with "
            f"{spelled('metric', 'bandwidth', 'flops')}, or omit {spelled('thread_sweep')}",
        )
    return [swept for single in cases for swept in found.thread_sweep(single)]


def _cases(
    options: Options, bare: Case, found: Cell, data: str, own: Mapping[str, int | str]
) -> list[Planned]:
    """What the options ask of one metric, device, engine and dtype. Raises Unsupported."""
    params = _params(options, bare, found, data, own)
    cases = [
        case
        for n in dict.fromkeys(_sizes(options, bare, found))
        for case in _expanded(options, replace(bare, n=n, params=params), found)
    ]
    for case in cases:
        refused = found.refusal(case, options) if found.refusal else None
        if refused is not None:
            raise Unsupported(refused)
    return [Planned.of(case, found) for case in cases]


def _without_effect(options: Options, bare: Case, found: Cell) -> list[str]:
    """Sentences about options that were given and have no effect in this cell."""
    about = f"{bare.metric} by {bare.engine}"
    notes = []
    if options.sizes and not found.sized:
        notes.append(f"{about} ignores {spelled('sizes')}: it has no matrix")
    if options.op is not None and not found.ops:
        notes.append(f"{about} ignores {spelled('op')}: it has only one operation")
    if options.data != Options().data and found.params is not None:
        notes.append(f"{about} ignores {spelled('data')}: it makes its own data")
    return notes


def check_options(options: Options) -> tuple[str, ...]:
    """The names of the dtypes. Raises Refusal for values that an option cannot have."""
    check(options)
    for name, values, known in (
        ("metric", options.metrics, METRICS),
        ("engine", options.engines, ENGINES),
    ):
        for value in values:
            one_of(name, value, known)
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
    planned: list[Planned] = []
    left_out: dict[str, str] = {}
    remarks: dict[str, None] = {}
    for bare, data, own in asked:
        try:
            found = _usable(bare, options)
            # Engines that make their own data give the same cases for each --data.
            planned += [
                item for item in _cases(options, bare, found, data, own) if item not in planned
            ]
            remarks |= dict.fromkeys(_without_effect(options, bare, found))
        except Unsupported as error:
            left_out[str(error)] = f"left out: {error}"
            if not options.lenient:
                raise
    if not planned:
        raise Unsupported(next(iter(left_out)))
    device = next((item.case.device for item in planned if item.case.device != "cpu"), "cpu")
    notes += (*left_out.values(), *remarks)
    return Plan(tuple(planned), device, notes)
