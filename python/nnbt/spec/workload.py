"""Workload: what an engine builds, to be timed and checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from nnbt.spec.details import Details
from nnbt.spec.precision import PrecisionName

Step = Callable[[], object]
"""A callable without arguments that blocks until its work is done; it can run repeatedly."""


class SamplesLike(Protocol):
    """What a measure function returns; nnbt._native.Samples is one."""

    samples_ns: list[int]
    first_run_ns: int
    warmup_runs: int
    window_ns: int
    stop: str
    readings: list[Any]


Measure = Callable[..., SamplesLike]  # the timing loop, with the parameters of nnbt.measure

NO_DETAILS = Details()


@dataclass(frozen=True)
class DataShare:
    """What an array contains: shares of a sample of its elements, from 0 to 1.

    `all_finite` is about every element. `rms` is None where it was not computed.
    """

    finite: float
    zero: float
    denormal: float
    rms: float | None
    all_finite: bool


@dataclass(frozen=True)
class Answer:
    """The output of the timed step compared with a reference; `compared` says how.

    `error` is the RMS of output minus reference over the RMS of the reference, on a sampled block
    (None where the values must be equal); `worst` is the largest error of an element over the same
    RMS, `typical` the median one. `exact` is whether all compared elements are equal (None where
    rounding is allowed), `distinct` whether the output has a buffer of its own (None: not tested).
    `problem` is what a Step that checks itself found wrong.
    """

    compared: str
    error: float | None = None
    worst: float | None = None
    typical: float | None = 0.0
    exact: bool | None = None
    distinct: bool | None = None
    inputs: DataShare | None = None
    outputs: DataShare | None = None
    problem: str | None = None


@dataclass(frozen=True)
class After:
    """What a workload adds to the result once it has been timed and checked."""

    notes: tuple[str, ...] = ()
    details: Details = NO_DETAILS


@dataclass(frozen=True)
class Workload:
    """Allocated and evaluated inputs, and the steps that use them.

    `step(k)` does k units of work in one evaluation; a timed run is `step(units)`. `unit_work` is
    the operations or bytes of one unit, `largest_k` the largest k whose buffers fit in memory. The
    time of `floor`, an empty evaluation, is the launch overhead. `check` compares the output of the
    latest run with a reference. `no_slope` says why there can be no slope. `after` ends the
    workload and returns more notes and details. `resident_bytes` is the working set of the slope
    where it does not grow with k; `array_bytes` the size of each array where STREAM's rule applies
    (each at least 4 times the last cache).
    """

    step: Callable[[int], Step]
    units: int
    unit_work: int
    largest_k: int
    floor: Any
    check: Callable[[], Answer]
    unit_name: str
    sizes: Mapping[str, int]
    mantissa: int | None = None
    precision: PrecisionName = ""
    notes: tuple[str, ...] = ()
    no_slope: str = ""
    after: Callable[[], After] = After
    resident_bytes: int | None = None
    array_bytes: int | None = None


def self_checked(compared: str, problem: str | None) -> Answer:
    """The Answer of a Step that checks itself; `problem` is None if the output is right."""
    return Answer(compared=compared, exact=problem is None, problem=problem)
