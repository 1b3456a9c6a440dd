"""A measure function with scripted times, so that tests of everything above it are exact."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STEADY = (1.0, 1.004, 0.998, 1.002, 0.996, 1.001, 0.999, 1.003, 0.997, 1.0, 1.005, 0.995)
"""Run times over their unit: little scatter, no trend, one mode."""


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
    """Runs a step once, so that there is an output to check, and reports scripted times.

    A step of k units takes `floor_ns + unit_ns * k ** power` times the next number of `pattern`
    (`pattern` is for timed series; single runs take the exact time).
    """

    unit_ns: int = 1_000_000
    floor_ns: int = 20_000
    power: float = 1.0
    pattern: Sequence[float] = STEADY
    window_ns: int = 500_000_000
    readings: dict[str, float] = field(default_factory=dict)
    calls: list[tuple[int, int]] = field(default_factory=list)
    """(units, runs) of each call."""

    def __call__(
        self, step: Callable[[], object], *, warmup: int = 2, runs: int = 0, **_: object
    ) -> FakeSamples:
        (step if callable(step) else step.run)()  # native Steps are no callables
        units = units_of(step)
        self.calls.append((units, runs))
        time_ns = self.floor_ns + (self.unit_ns * units**self.power if units else 0)
        count = runs or len(self.pattern)
        factors = [self.pattern[i % len(self.pattern)] for i in range(count)] if count > 1 else [1]
        return FakeSamples(
            samples_ns=[round(time_ns * factor) for factor in factors],
            window_ns=self.window_ns,
            warmup_runs=warmup,
            stop="runs" if runs else "precise",
            readings=[FakeReading(name, value) for name, value in self.readings.items()],
        )


def units_of(step: Callable[[], object]) -> int:
    """The k that a step of nnbt.mlx_steps closes over; 0 for an empty evaluation."""
    if not inspect.isfunction(step):
        return 0 if getattr(step, "iterations", None) == 1 else 1  # a peak chain that only wakes
    captured = inspect.getclosurevars(step).nonlocals
    return int(captured.get("k", captured.get("count", 0)))
