"""A measure function with scripted times, so that tests of everything above it are exact."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

STEADY = (1.0, 1.004, 0.998, 1.002, 0.996, 1.001, 0.999, 1.003, 0.997, 1.0, 1.005, 0.995)
"""Run times over their unit: little scatter, no trend, one mode."""
FLOOR = (10, 100)
"""(warmup, runs) with which the runner times an evaluation of next to nothing."""


@dataclass(frozen=True)
class FakeReading:
    name: str
    value: float
    unit: str = ""


@dataclass(frozen=True)
class FakeSamples:
    samples_ns: list[int]
    window_ns: int
    warmup_runs: int
    stop: str
    readings: list[FakeReading]
    first_run_ns: int = 2_000_000


@dataclass
class FakeMeasure:
    """Runs a step once where a series is timed, so that there is an output to check.

    The times are scripted: a step of k units takes `floor_ns + unit_ns * k ** power` times the next
    number of `pattern` (which is for series; single runs take the exact time).
    """

    unit_ns: int = 1_000_000
    floor_ns: int = 20_000
    power: float = 1.0
    pattern: Sequence[float] = STEADY
    window_ns: int = 500_000_000
    readings: dict[str, float] = field(default_factory=dict)
    calls: list[tuple[int, int]] = field(default_factory=list)
    """(units, runs) of each call."""

    def __call__(self, step: Any, *, warmup: int = 2, runs: int = 0, **more: object) -> FakeSamples:
        units = 0 if (warmup, runs) == FLOOR else units_of(step)
        if units and (runs != 1 or "budget_s" in more):  # not for single runs of a slope
            getattr(step, "run", step)()
        self.calls.append((units, runs))
        time_ns = self.floor_ns + (self.unit_ns * units**self.power if units else 0)
        count = runs or len(self.pattern)
        factors = [self.pattern[i % len(self.pattern)] for i in range(count)] if count > 1 else [1]
        return FakeSamples(
            samples_ns=[round(time_ns * factor) for factor in factors], window_ns=self.window_ns,
            warmup_runs=warmup, stop="runs" if runs else "precise",
            readings=[FakeReading(name, value) for name, value in self.readings.items()],
        )  # fmt: skip


def units_of(step: Any) -> int:
    """The units of work of a step: the number that it closes over, 1 for a native Step."""
    if not inspect.isfunction(step):
        return 1
    inside = inspect.getclosurevars(step).nonlocals
    counts = [inside[name] for name in ("k", "count") if name in inside]
    nested = [units_of(value) for value in inside.values() if inspect.isfunction(value)]
    return int(counts[0]) if counts else max(nested, default=1)
