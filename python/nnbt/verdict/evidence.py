"""Evidence: everything that a verdict is based on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nnbt.peaks.published import Ceiling
from nnbt.spec.case import Case
from nnbt.spec.details import Details
from nnbt.spec.workload import NO_DETAILS, Answer
from nnbt.timing.slope import Slope
from nnbt.timing.statistics import Summary


@dataclass(frozen=True)
class Evidence:
    """Everything that a verdict is based on. None: unknown, or not measured."""

    case: Case
    samples_ns: Sequence[int]
    summary: Summary
    rate: float  # in the base unit of the case, from the median
    units: int = 1  # units of work of one timed run
    window_s: float = 0.0
    written_bytes: int = 0  # by all timed runs together
    random_data: bool = True
    keeps_size: bool = False
    """Whether the outputs of the workload should have the RMS of its inputs, as in a chain."""
    mantissa: int | None = None  # bits of the type that was computed in; None for exact types
    inner: int = 1  # products in one sum
    exact_share: float = 1.0  # share of the counted operations that are not on padding
    answer: Answer | None = None
    slope: Slope | None = None
    slope_missing: str = ""
    floor_s: float | None = None  # launch overhead: time of an empty evaluation
    clock_resolution_ns: int = 1
    cache_bytes: int | None = None  # Last-level cache of the CPU
    resident_bytes: int = 0  # working set
    processors: int | None = None  # CPUs of the machine
    array_bytes: int | None = None
    """Of each array, for workloads that follow STREAM's rule on their size."""
    readings: Mapping[str, float] = field(default_factory=dict)
    ceiling: Ceiling | None = None
    details: Details = NO_DETAILS  # what the engine found out beside the times
