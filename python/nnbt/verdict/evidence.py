"""Evidence: all that a verdict is made from, and what it says about precision."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nnbt.spec.workload import NO_DETAILS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnbt.peaks.published import Ceiling
    from nnbt.spec.case import Case
    from nnbt.spec.details import Details
    from nnbt.spec.workload import Answer
    from nnbt.timing.slope import Slope
    from nnbt.timing.statistics import Summary

ROUNDING_BITS = 1.2
"""-log2 of the relative RMS error of values rounded to p bits is p + 1.2 (normal distribution)."""

LEAST_BITS = {53: 40.0, 24: 8.5, 11: 7.5, 8: 5.0}
"""By bits of the type's mantissa: fewer correct bits than this are a wrong answer."""


@dataclass(frozen=True)
class Evidence:
    """All that a verdict is made from. None: not known, or not run."""

    case: Case
    samples_ns: Sequence[int]
    summary: Summary
    rate: float
    units: int = 1
    window_s: float = 0.0
    written_bytes: int = 0
    random_data: bool = True
    mantissa: int | None = None
    inner: int = 1
    keeps_size: bool = False
    exact_share: float = 1.0
    """Of the counted operations, what is left without those on padding."""
    answer: Answer | None = None
    slope: Slope | None = None
    slope_missing: str = ""
    floor_s: float | None = None
    clock_resolution_ns: int = 1
    cache_bytes: int | None = None
    resident_bytes: int = 0
    processors: int | None = None
    array_bytes: int | None = None
    readings: Mapping[str, float] = field(default_factory=dict)
    ceiling: Ceiling | None = None
    details: Details = NO_DETAILS


def effective_bits(error: float | None) -> float | None:
    """Correct bits of values with this relative RMS error; None for none, infinity for 0."""
    if error is None or math.isnan(error) or error < 0:
        return None
    return math.inf if error == 0 else max(0.0, -math.log2(error) - ROUNDING_BITS)


def expected_bits(mantissa: int, inner: int) -> float:
    """Bits that survive a sum of `inner` products in this type: the error walks as sqrt(inner).

    16-bit types are summed in float32, so their output rounding is what is left.
    """
    summed = 53 if mantissa > 24 else 24
    return min(float(mantissa), summed - 0.5 * math.log2(max(1, inner)))
