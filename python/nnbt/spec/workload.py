"""Workload: what an engine hands over to be timed and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from nnbt.spec.details import Details
from nnbt.spec.precision import PrecisionName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Step = Callable[[], object]
"""A callable without arguments that blocks until its work is done, and can be run again."""


class SamplesLike(Protocol):
    """What a measure function returns; nnbt._native.Samples is one."""

    samples_ns: list[int]
    first_run_ns: int
    warmup_runs: int
    window_ns: int
    stop: str
    readings: list[Any]


Measure = Callable[..., SamplesLike]
"""The timing loop, with the parameters of nnbt.measure."""

NO_DETAILS = Details()


@dataclass(frozen=True)
class DataShare:
    """What arrays hold: shares of their elements from 0 to 1, sampled; `all_finite` of them all.

    `rms` is None where nobody computed it.
    """

    finite: float
    zero: float
    denormal: float
    rms: float | None
    all_finite: bool


@dataclass(frozen=True)
class Answer:
    """The output of the timed step against a reference.

    `error` is the RMS of output minus reference over the RMS of the reference on a sampled
    block (None where equality is what counts), `worst` the largest error of one element over the
    same RMS, `typical` the median one, `exact` whether all compared elements are equal (None
    where rounding is allowed),
    `distinct` whether the output has a buffer of its own (None where it must not be asked).
    `problem` is what a Step that checks itself found wrong, as a sentence.
    `compared` says in words what was compared with what.
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
    """What a workload tells once it has been timed and checked."""

    notes: tuple[str, ...] = ()
    details: Details = NO_DETAILS


@dataclass(frozen=True)
class Workload:
    """Allocated and evaluated inputs, with the steps over them.

    `step(k)` does k units of work in one evaluation; a timed run is `step(units)`. `unit_work` is
    the operations or bytes of one unit, `largest_k` the largest k whose buffers fit in memory.
    `floor` does next to nothing: its time is the launch overhead. `check` compares what the latest
    run left behind with a reference. `no_slope` says why there can be no slope. `after` ends the
    workload and gives further notes and details. `resident_bytes` is the working set of the slope
    where it does not grow with k; `array_bytes` the size of each array where STREAM's rule holds
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
    """The Answer of a Step that checks itself and gives a sentence, or None for all is right."""
    return Answer(compared=compared, exact=problem is None, problem=problem)


def relative_error(output: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """RMS of the difference over the RMS of the reference; NaN if either holds a NaN."""
    import numpy as np

    def rms(values: NDArray[np.float64]) -> float:
        return float(np.sqrt(np.mean(np.square(np.abs(values)))))

    with np.errstate(over="ignore", invalid="ignore"):  # NaN data is a case, not an accident
        scale = rms(reference)
        difference = rms(output - reference)
    if scale == 0:
        return 0.0 if difference == 0 else float("inf")
    return difference / scale


def element_errors(
    output: NDArray[np.float64], reference: NDArray[np.float64]
) -> tuple[float, float]:
    """(largest, median) difference of one element over the RMS of the reference."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        scale = float(np.sqrt(np.mean(np.square(np.abs(reference)))))
        differences = np.abs(output - reference)
    largest, middle = float(np.max(differences)), float(np.median(differences))
    if scale == 0:
        return (0.0 if largest == 0 else float("inf")), 0.0
    return largest / scale, middle / scale


def data_share(values: NDArray[np.generic], *, tiny: float, all_finite: bool) -> DataShare:
    """Shares of finite, zero and denormal elements (0 < |x| < tiny) in a sample."""
    import numpy as np

    magnitude = np.abs(values.astype(np.complex128 if values.dtype.kind == "c" else np.float64))
    finite = np.isfinite(magnitude)
    zero = magnitude == 0
    denormal = (magnitude > 0) & (magnitude < tiny)
    clean = magnitude[finite]
    with np.errstate(over="ignore"):
        rms = float(np.sqrt(np.mean(np.square(clean)))) if clean.size else float("nan")
    return DataShare(
        finite=float(np.mean(finite)),
        zero=float(np.mean(zero)),
        denormal=float(np.mean(denormal)),
        rms=rms,
        all_finite=all_finite and bool(finite.all()),
    )
