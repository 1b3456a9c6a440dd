"""Scatter: whether run times are those of one steady state."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nnbt import _native
from nnbt.timing.statistics import Summary, relative_half_width

TREND_SAMPLES = 10  # fewest samples for drift and modes
DRIFT_RANK = 0.7
DRIFT_CHANGE = 0.10
INTERVAL_WIDTH = 0.10
MODES_SHARE = 0.2
MODES_DISTANCE = 0.25
MODES_VARIANCE = 0.9


@dataclass(frozen=True)
class Scatter:
    """One way in which run times are not steady, named by the code of its check.

    `amount` is relative: of DRIFT the change from the first fifth of the runs to the last, of
    BIMODAL the distance of the two groups, of WIDE_INTERVAL the half-width of the interval.
    """

    code: Literal["DRIFT", "BIMODAL", "WIDE_INTERVAL"]
    amount: float


def scatter(samples_ns: Sequence[int], summary: Summary) -> Scatter | None:
    """The first of drift, two modes and a wide interval that these samples show, or None."""
    change = drift(samples_ns)
    if change is not None:
        return Scatter("DRIFT", change)
    groups = modes(samples_ns)
    if groups is not None:
        return Scatter("BIMODAL", groups[1] / groups[0] - 1)
    width = wide_interval(summary)
    return None if width is None else Scatter("WIDE_INTERVAL", width)


def drift(samples_ns: Sequence[int]) -> float | None:
    """Relative change from the median of the first fifth to that of the last; None if steady."""
    count = len(samples_ns)
    if count < TREND_SAMPLES:
        return None
    fifth = max(2, count // 5)
    first = _native.median(list(samples_ns[:fifth]))
    last = _native.median(list(samples_ns[-fifth:]))
    change = last / first - 1
    if abs(change) < DRIFT_CHANGE:
        return None
    rank = rank_correlation(samples_ns)
    return change if abs(rank) >= DRIFT_RANK and rank * change >= 0 else None


def rank_correlation(samples: Sequence[int]) -> float:
    """Spearman's rank correlation of the samples with their order; ties share their rank."""
    order = sorted(range(len(samples)), key=samples.__getitem__)
    ranks = [0.0] * len(samples)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and samples[order[end + 1]] == samples[order[start]]:
            end += 1
        for position in range(start, end + 1):
            ranks[order[position]] = (start + end) / 2
        start = end + 1
    middle = (len(samples) - 1) / 2
    across = sum((i - middle) * (r - middle) for i, r in enumerate(ranks))
    along = sum((i - middle) ** 2 for i in range(len(samples)))
    spread = sum((r - middle) ** 2 for r in ranks)
    return across / math.sqrt(along * spread) if spread else 0.0


def modes(samples_ns: Sequence[int]) -> tuple[float, float] | None:
    """(lower, upper) mean in ns of two groups that explain MODES_VARIANCE of the variance, or None.

    The split is the one that explains most (Otsu's criterion). Each group must hold MODES_SHARE of
    the samples, and their means must be MODES_DISTANCE apart.
    """
    count = len(samples_ns)
    if count < TREND_SAMPLES:
        return None
    ordered = sorted(samples_ns)
    total = sum(ordered)
    mean = total / count
    variance = sum((x - mean) ** 2 for x in ordered) / count
    if variance == 0:
        return None
    best = (0.0, 0.0, 0.0)
    below = 0
    for i in range(1, count):
        below += ordered[i - 1]
        if min(i, count - i) < MODES_SHARE * count:
            continue
        low, high = below / i, (total - below) / (count - i)
        best = max(best, (i * (count - i) / count**2 * (high - low) ** 2, low, high))
    between, low, high = best
    if between / variance < MODES_VARIANCE or high < (1 + MODES_DISTANCE) * low:
        return None
    return low, high


def wide_interval(summary: Summary) -> float | None:
    """Relative half-width of the confidence interval if it exceeds INTERVAL_WIDTH, else None."""
    width = relative_half_width(summary.interval_s, summary.median_s)
    return width if width is not None and width > INTERVAL_WIDTH else None
