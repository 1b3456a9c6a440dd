"""CHIPS: published peaks of known devices, read from data/chips.toml.

Base units throughout: FLOP/s and OP/s, B/s, Hz, bytes. An unknown name gives None, never a guess.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "CONFIDENCES",
    "Chip",
    "Cpu",
    "Engine",
    "Figure",
    "Isa",
    "Peak",
    "Source",
    "chip",
    "chips",
    "cpu",
    "cpu_peaks",
    "cpus",
    "isas",
    "read_data",
    "sources",
]

CONFIDENCES = ("high", "medium", "low")

_ENGINES = ("gpu", "ane", "cpu_matrix", "cpu_vector")


@dataclass(frozen=True)
class Source:
    """Where a figure stands."""

    title: str
    url: str


@dataclass(frozen=True)
class Figure:
    """One published figure in its base unit."""

    value: float
    unit: str
    source: str
    """A key of `sources()`."""
    confidence: str
    """One of CONFIDENCES."""
    note: str = ""


@dataclass(frozen=True)
class Peak:
    """Dense peak of one type of operand."""

    dtype: str
    """float64, float32, tf32, bfloat16, float16, float8, float4 or int8."""
    unit: str
    """FLOP/s, or OP/s for integers."""
    per_s: float | None
    """As published, for all units of the largest version."""
    per_clock: float | None
    """Operations a unit (SM or core) and clock."""
    clock_hz: float | None
    """The clock of `per_s`."""
    source: str
    confidence: str
    note: str = ""


@dataclass(frozen=True)
class Engine:
    """A part of a chip with peaks of its own: `gpu`, `ane`, `cpu_vector` or `cpu_matrix`."""

    name: str
    units: int | None
    """SMs, GPU cores or Neural Engine cores of the largest version."""
    peaks: tuple[Peak, ...]
    architecture: str = ""

    def peak(self, dtype: str) -> Peak | None:
        """Return the row for this type; None where nothing is published."""
        return next((p for p in self.peaks if p.dtype == dtype), None)

    def peak_at(self, clock_hz: float, dtype: str, units: int | None = None) -> float | None:
        """Return operations a second at a measured clock: units x per_clock x clock.

        `units` replaces the largest version's count. None where a factor isn't known.
        """
        row = self.peak(dtype)
        count = self.units if units is None else units
        if row is None or row.per_clock is None or count is None:
            return None
        return row.per_clock * count * clock_hz


@dataclass(frozen=True)
class Chip:
    """A GPU, or an Apple chip with all its engines."""

    id: str
    vendor: str
    name: str
    match: str
    unless: str
    memory: tuple[tuple[int | None, Figure], ...]
    """(GPU cores of the version or None, bandwidth in B/s)."""
    cache_bytes: Figure | None
    """Last cache before memory: L2, or Apple's system level cache."""
    engines: Mapping[str, Engine]

    def memory_bytes_per_s(self, gpu_cores: int | None = None) -> Figure:
        """Return the bandwidth; where versions differ and the cores aren't known, the highest."""
        for cores, figure in self.memory:
            if cores is not None and cores == gpu_cores:
                return figure
        return max((figure for _, figure in self.memory), key=lambda figure: figure.value)

    def peak(self, engine: str, dtype: str) -> Peak | None:
        """Return the engine's row for this type; None without such an engine or row."""
        found = self.engines.get(engine)
        return None if found is None else found.peak(dtype)

    def peak_at(
        self, clock_hz: float, dtype: str, *, engine: str = "gpu", units: int | None = None
    ) -> float | None:
        """Return the engine's operations a second at a measured clock; None where not known."""
        found = self.engines.get(engine)
        return None if found is None else found.peak_at(clock_hz, dtype, units)

    def ceiling(
        self,
        dtype: str,
        *,
        engine: str = "gpu",
        clock_hz: float | None = None,
        units: int | None = None,
    ) -> Figure | None:
        """Return what the engine can do at most: at the measured clock, else as published.

        A published peak holds at its own clock: a GPU that boosts beyond it is faster.
        """
        row = self.peak(engine, dtype)
        if row is None:
            return None
        if clock_hz is not None:
            value = self.peak_at(clock_hz, dtype, engine=engine, units=units)
            if value is not None:
                note = f"{row.per_clock:g} a unit and clock at {clock_hz / 1e9:.2f} GHz"
                return Figure(value, row.unit, row.source, row.confidence, note)
        if row.per_s is None:
            return None
        return Figure(row.per_s, row.unit, row.source, row.confidence, row.note)


@dataclass(frozen=True)
class Isa:
    """What an instruction set can do a core and cycle, at most."""

    id: str
    flags: tuple[str, ...]
    """All needed, by their names in /proc/cpuinfo."""
    peaks: tuple[Peak, ...]


@dataclass(frozen=True)
class Cpu:
    """A family of CPUs: memory of one socket, and peaks below its instruction set's."""

    id: str
    name: str
    match: str
    memory_bytes_per_s: Figure | None
    peaks: tuple[Peak, ...]


def read_data(name: str) -> dict[str, Any]:
    """Return a TOML file of the package's data directory."""
    text = files("nnbt").joinpath("data").joinpath(name).read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    return data


def chip(name: str | None) -> Chip | None:
    """Return the chip that the system calls `name` (`NVIDIA H200`, `Apple M4 Pro`); else None.

    Parts of a GPU (MIG, vGPU), laptop versions and virtual devices are unknown, since their peaks
    aren't those of the full chip.
    """
    return next((row for row in chips() if name and _matches(name, row.match, row.unless)), None)


def cpu(name: str | None) -> Cpu | None:
    """Return the family of the CPU that the system calls `name`; None for one not in the table."""
    return next((row for row in cpus() if name and _matches(name, row.match, "")), None)


def cpu_peaks(flags: Iterable[str], name: str | None = None) -> dict[str, Peak]:
    """Return, by type, the most operations a core and cycle that a CPU with these flags can do.

    A family found by `name` replaces the vector rows: AMX rows stay, as no family narrows them.
    """
    present = set(flags)
    best: dict[str, Peak] = {}
    for isa in isas():
        if present.issuperset(isa.flags):
            for peak in isa.peaks:
                known = best.get(peak.dtype)
                if known is None or (peak.per_clock or 0) > (known.per_clock or 0):
                    best[peak.dtype] = peak
    family = cpu(name)
    best.update({peak.dtype: peak for peak in family.peaks} if family else {})
    return best


@cache
def sources() -> dict[str, Source]:
    """Return every source that a figure can name."""
    return {key: Source(row["title"], row["url"]) for key, row in _data()["sources"].items()}


@cache
def chips() -> tuple[Chip, ...]:
    """Return all rows, in the order of the file."""
    rows: dict[str, dict[str, Any]] = {}
    for row in _data()["chip"]:
        parent = rows.get(row.get("like", ""), {})
        inherited = {key: parent[key] for key in _ENGINES if key in parent}
        rows[row["id"]] = inherited | row | {"from": parent}
    return tuple(_chip(row) for row in rows.values())


@cache
def isas() -> tuple[Isa, ...]:
    """Return the instruction sets, the strongest first."""
    return tuple(Isa(r["id"], tuple(r["flags"]), _peaks(r["peaks"], r)) for r in _data()["isa"])


@cache
def cpus() -> tuple[Cpu, ...]:
    """Return the CPU families."""
    return tuple(
        Cpu(
            row["id"],
            row["name"],
            row["match"],
            next((_bandwidth(memory, row) for memory in row.get("memory", ())), None),
            _peaks(row.get("peaks", ()), row),
        )
        for row in _data()["cpu"]
    )


@cache
def _data() -> dict[str, Any]:
    return read_data("chips.toml")


def _matches(name: str, match: str, unless: str) -> bool:
    if unless and re.search(unless, name, re.IGNORECASE):
        return False
    return re.search(match, " ".join(name.split()), re.IGNORECASE) is not None


def _chip(row: dict[str, Any]) -> Chip:
    refused = [_data()["unless"][row["vendor"]], row.get("unless", "")]
    cache_row = row.get("cache_bytes")
    return Chip(
        id=row["id"],
        vendor=row["vendor"],
        name=row["name"],
        match=row["match"],
        unless="|".join(pattern for pattern in refused if pattern),
        memory=tuple((m.get("gpu_cores"), _bandwidth(m, row)) for m in row["memory"]),
        cache_bytes=None if cache_row is None else _figure(cache_row["value"], "B", cache_row, row),
        engines={
            name: _engine(name, row[name], row["from"] or row) for name in _ENGINES if name in row
        },
    )


def _engine(name: str, engine: dict[str, Any], row: dict[str, Any]) -> Engine:
    return Engine(
        name=name,
        units=engine.get("units"),
        peaks=_peaks(engine["peaks"], row, engine.get("clock_hz")),
        architecture=engine.get("architecture", ""),
    )


def _peaks(
    peaks: Iterable[dict[str, Any]], row: dict[str, Any], clock_hz: float | None = None
) -> tuple[Peak, ...]:
    return tuple(
        Peak(
            dtype=peak["dtype"],
            unit="OP/s" if peak["dtype"].startswith("int") else "FLOP/s",
            per_s=peak.get("per_s"),
            per_clock=peak.get("per_clock"),
            clock_hz=peak.get("clock_hz", clock_hz),
            source=peak.get("source", row["source"]),
            confidence=peak.get("confidence", row["confidence"]),
            note=peak.get("note", ""),
        )
        for peak in peaks
    )


def _bandwidth(memory: dict[str, Any], row: dict[str, Any]) -> Figure:
    return _figure(memory["bytes_per_s"], "B/s", memory, row)


def _figure(value: float, unit: str, own: dict[str, Any], row: dict[str, Any]) -> Figure:
    return Figure(
        value=value,
        unit=unit,
        source=own.get("source", row["source"]),
        confidence=own.get("confidence", row["confidence"]),
        note=own.get("note", ""),
    )
