"""CHIPS: published peaks of known devices, read from data/chips.toml.

Base units throughout: FLOP/s and OP/s, B/s, Hz. An unknown name gives None, never a guess.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Peak:
    """Dense peak of one dtype."""

    per_s: float | None  # as published, for all units of the largest version
    per_clock: float | None  # operations per unit (SM or GPU core) and clock
    clock_hz: float | None  # the clock of `per_s`


@dataclass(frozen=True)
class Memory:
    """Published memory bandwidth; the highest where versions differ, which `note` says."""

    bytes_per_s: float
    note: str


@dataclass(frozen=True)
class Chip:
    """A GPU, or an Apple chip by its GPU."""

    id: str
    vendor: str
    name: str
    match: str
    unless: str
    memory: Memory
    units: int | None  # SMs or GPU cores of the largest version
    peaks: Mapping[str, Peak]  # by dtype: float64, float32, tf32, bfloat16, float16, float8 or int8

    def peak_at(self, clock_hz: float, dtype: str) -> float | None:
        """Units x operations per clock x clock; None where a factor is not known."""
        peak = self.peaks.get(dtype)
        if peak is None or peak.per_clock is None or self.units is None:
            return None
        return peak.per_clock * self.units * clock_hz

    def ceiling(self, dtype: str, clock_hz: float | None = None) -> float | None:
        """Operations per second at most: at the measured clock if possible, else as published.

        A published peak holds at its own clock: a GPU that boosts beyond it is faster.
        """
        peak = self.peaks.get(dtype)
        at_clock = self.peak_at(clock_hz, dtype) if clock_hz is not None else None
        if at_clock is not None:
            return at_clock
        return peak.per_s if peak is not None else None


@dataclass(frozen=True)
class Cpu:
    """A family of CPUs, with the memory of one socket."""

    id: str
    name: str
    match: str
    memory: Memory


def read_data(name: str) -> dict[str, Any]:
    """A TOML file of the package's data directory."""
    text = files("nnbt").joinpath("data").joinpath(name).read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    return data


def chip(name: str | None) -> Chip | None:
    """The chip that the system calls `name` (`NVIDIA H200`, `Apple M4 Pro`), or None.

    Parts of a GPU (MIG, vGPU), laptop versions and virtual devices are unknown: their peaks are not
    those of the full chip.
    """
    return next((row for row in chips() if name and _matches(name, row.match, row.unless)), None)


def cpu(name: str | None) -> Cpu | None:
    """The family of the CPU that the system calls `name`, or None if it is not in the table."""
    return next((row for row in cpus() if name and _matches(name, row.match, "")), None)


@cache
def chips() -> tuple[Chip, ...]:
    """All rows, in the order of the file."""
    data = read_data("chips.toml")
    rows: dict[str, dict[str, Any]] = {}
    for row in data["chip"]:
        parent = rows.get(row.get("like", ""), {})
        shared = {key: parent[key] for key in ("units", "clock_hz", "peaks") if key in parent}
        rows[row["id"]] = shared | row
    return tuple(_chip(row, data["unless"][row["vendor"]]) for row in rows.values())


@cache
def cpus() -> tuple[Cpu, ...]:
    """The CPU families, in the order of the file."""
    return tuple(
        Cpu(row["id"], row["name"], row["match"], _memory(row))
        for row in read_data("chips.toml")["cpu"]
    )


def _matches(name: str, match: str, unless: str) -> bool:
    if unless and re.search(unless, name, re.IGNORECASE):
        return False
    return re.search(match, " ".join(name.split()), re.IGNORECASE) is not None


def _chip(row: dict[str, Any], unless: str) -> Chip:
    return Chip(
        id=row["id"],
        vendor=row["vendor"],
        name=row["name"],
        match=row["match"],
        unless="|".join(pattern for pattern in (unless, row.get("unless")) if pattern),
        memory=_memory(row),
        units=row.get("units"),
        peaks={
            peak["dtype"]: Peak(
                peak.get("per_s"), peak.get("per_clock"), peak.get("clock_hz", row.get("clock_hz"))
            )
            for peak in row["peaks"]
        },
    )


def _memory(row: dict[str, Any]) -> Memory:
    memory = row["memory"]
    return Memory(memory["bytes_per_s"], memory.get("note", ""))
