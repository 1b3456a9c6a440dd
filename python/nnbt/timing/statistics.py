"""Statistics of run times; the arithmetic is native (cpp/measure/stats.cpp)."""

from collections.abc import Sequence
from dataclasses import dataclass

from nnbt import _native

MIN_SAMPLES = 5  # with fewer there is no confidence interval


@dataclass(frozen=True)
class Summary:
    """Statistics of samples in seconds.

    `interval_s` holds the median with at least 95 % probability whatever the distribution
    (`coverage` says exactly how much; 93.75 % for five samples); None below MIN_SAMPLES.
    """

    count: int
    median_s: float
    best_s: float
    p5_s: float
    p95_s: float
    mad_s: float
    interval_s: tuple[float, float] | None
    coverage: float | None


def summarize(samples_ns: Sequence[int]) -> Summary:
    """Statistics of at least one sample. Raises ValueError for none."""
    samples = list(samples_ns)
    if not samples:
        raise ValueError("summarize: no samples")
    interval = _native.median_interval(samples)
    return Summary(
        count=len(samples),
        median_s=_native.median(samples) * 1e-9,
        best_s=min(samples) * 1e-9,
        p5_s=_native.quantile(samples, 0.05) * 1e-9,
        p95_s=_native.quantile(samples, 0.95) * 1e-9,
        mad_s=_native.median_absolute_deviation(samples) * 1e-9,
        interval_s=(interval[0] * 1e-9, interval[1] * 1e-9) if interval else None,
        coverage=interval[2] if interval else None,
    )


def relative_half_width(
    interval_s: tuple[float, float] | None, median_s: float | None
) -> float | None:
    """Half the width of the confidence interval over the median; None without an interval."""
    if interval_s is None or not median_s:
        return None
    return (interval_s[1] - interval_s[0]) / 2 / median_s
