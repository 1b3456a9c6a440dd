"""What `nnbt info` prints: facts about this machine, and the tables in words."""

import textwrap
from collections.abc import Callable, Iterable

from nnbt import _native
from nnbt.machine import mlx as _mlx
from nnbt.machine.devices import DEVICES, Device
from nnbt.machine.facts import machine
from nnbt.spec.errors import Refusal, Unsupported


def _lines(rows: Iterable[tuple[str, str]], indent: str = "  ") -> str:
    pairs = list(rows)
    width = max((len(name) for name, _ in pairs), default=0) + 2
    out = []
    for name, text in pairs:
        out += textwrap.wrap(
            text,
            width=100,
            initial_indent=f"{indent}{name:<{width}}",
            subsequent_indent=indent + " " * width,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [f"{indent}{name}"]
    return "\n".join(out)


_PROOF = (
    ("Linux", "tests and measurements with and without an NVIDIA GPU (H200, CUDA 13)"),
    (
        "Apple",
        "compiles and links for macOS and iOS, agrees with Apple's declarations, and runs against "
        "mock frameworks, all on Linux; nothing has run on Apple hardware yet "
        "(docs/first-mac-run.md)",
    ),
)
"""What has been tested, and where."""


def _gib(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 2**30:.1f} GiB"


def overview() -> str:
    """Machine, libraries and devices, without importing MLX."""
    from importlib.metadata import version

    here = machine()
    versions = _mlx.versions()
    clock = _native.calibrate_clock()
    cpus = f"{here.usable_cpus} of {here.logical_cpus} CPUs usable"
    hardware = [
        ("CPU", f"{here.cpu or 'unknown'}, {cpus}"),
        ("memory", f"{_gib(here.available_memory_bytes)} free of {_gib(here.total_memory_bytes)}"),
        *(("gpu", str(gpu.name)) for gpu in here.gpus),
        ("system", f"{here.system}, kernel {here.kernel}, Python {here.python}"),
        ("clock", f"resolution {clock.resolution_ns} ns, one reading {clock.cost_ns:.0f} ns"),
        ("fingerprint", here.fingerprint),
    ]
    libraries = [(name, found) for name, found in versions.items()] or [("mlx", "not installed")]
    devices = [(name, _state(device)) for name, device in DEVICES.items()]
    sections = [
        f"nnbt {version('nn-backend-test')}",
        "machine\n" + _lines(hardware),
        "libraries\n" + _lines(libraries),
        "devices\n" + _lines(devices),
        "proof\n" + _lines(_PROOF),
        f"more: nnbt info ane; nnbt info --explain ({', '.join(TOPICS)})",
    ]
    return "\n\n".join(sections)


def about(subject: str) -> str:
    """More about one device. Raises Refusal for one that has no page of its own."""
    if subject != "ane":
        raise Refusal(f"info has no topic {subject!r}", "use nnbt info, or nnbt info ane")
    from nnbt.engines.mpsgraph.helper import HelperError
    from nnbt.engines.mpsgraph.info import sections

    try:
        found = sections()
    except HelperError as error:
        raise Unsupported(f"The helper process did not answer: {error}") from error
    return "\n\n".join(f"{heading}\n{_lines(rows)}" for heading, rows in found)


def _state(device: Device) -> str:
    missing = device.missing()
    if missing is None:
        return f"ready: {device.explain}"
    if device.needs:
        return f"needs device {device.needs}"
    remedy = device.remedy()
    return f"{missing.problem}. {f'To change that: {remedy}' if remedy else 'Nothing to install.'}"


def _formulas() -> str:
    from nnbt.spec.metric import METRICS

    parts = []
    for metric in METRICS.values():
        rows = [(kind, text) for kind, text in metric.formulas.items()]
        parts.append(f"{metric.name}: {metric.explain}\n{_lines(rows)}")
    units = "GB = 1e9 bytes, MiB = 2^20 bytes; rate = work / median run time."
    return "\n".join([*parts, units])


def _checks() -> str:
    from nnbt.verdict.checks import CHECKS

    parts = []
    for check in CHECKS:
        rows = [
            ("looks at", check.looks_at),
            ("passes if", check.threshold),
            ("hazard", check.hazard),
        ]
        parts.append(f"{check.code} ({check.severity})\n{_lines(rows)}")
    return "\n".join(parts)


def _columns() -> str:
    from nnbt.results.columns import COLUMNS, CSV_COLUMNS

    shown = {column.header: column for column in COLUMNS if column.rank is not None}
    return (
        "In CSV:\n"
        + _lines((column.key, column.explain) for column in CSV_COLUMNS)
        + "\nOn a terminal, if any row has a value:\n"
        + _lines((column.header, column.explain) for column in shown.values())
    )


def _dtypes() -> str:
    from nnbt.spec.dtypes import DTYPES

    return _lines((row.token, f"{row.family.short}; {row.explain}") for row in DTYPES.values())


def _devices() -> str:
    from nnbt.pipeline.matrix import engines_of
    from nnbt.spec.metric import METRICS

    rows = []
    for name, device in DEVICES.items():
        metrics = [
            f"{metric} ({engine})"
            for metric in METRICS
            for engine, cells in engines_of(metric).items()
            if any(name in cell.devices for cell in cells)
        ]
        rows.append((name, f"{device.explain}; measures {', '.join(metrics)}"))
    return _lines(rows)


def _engines() -> str:
    from nnbt.pipeline.matrix import ENGINES

    return _lines((name, engine.explain) for name, engine in ENGINES.items())


def _ladder() -> str:
    from nnbt.ladder.causes import CAUSES
    from nnbt.ladder.rungs import LARGE_LOSS, RUNGS

    parts = [
        _lines((row.label, row.explain) for row in RUNGS.values()),
        f"causes of a rung below {LARGE_LOSS:.0%} of the one above:",
        _lines((row.code, f"{row.explain}; what you can do: {row.advice}") for row in CAUSES),
    ]
    return "\n".join(parts)


def _data() -> str:
    from nnbt.spec.options import DATA

    return _lines(DATA.items())


def _probes() -> str:
    return _lines(_native.probes())


TOPICS: dict[str, Callable[[], str]] = {
    "formulas": _formulas,
    "checks": _checks,
    "columns": _columns,
    "dtypes": _dtypes,
    "devices": _devices,
    "engines": _engines,
    "ladder": _ladder,
    "data": _data,
    "probes": _probes,
}


def explain(topic: str) -> str:
    """The table of this topic in words, or all of them. Raises Refusal for another name."""
    if topic == "all":
        return "\n\n".join(f"{name.upper()}\n{make()}" for name, make in TOPICS.items())
    if topic not in TOPICS:
        raise Refusal(f"Unknown topic {topic!r}", f"use nnbt info --explain {' or '.join(TOPICS)}")
    return TOPICS[topic]()
