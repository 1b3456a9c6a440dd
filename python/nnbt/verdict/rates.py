"""Checks of the rate: that there is one, and that the device is capable of it.

Each function returns the sentence if its check fails, else None.
"""

import math

from nnbt.verdict.evidence import Evidence

CEILING_SUSPECT = 1.02
CEILING_INVALID = 1.20
CACHE_FACTOR = 4  # STREAM's rule: each array at least 4 times the last-level cache


def no_rate(e: Evidence) -> str | None:
    if not (math.isfinite(e.rate) and e.rate > 0):
        return f"The rate is {e.rate:g}: no work or no time was counted."
    if e.ceiling is not None and not (math.isfinite(e.ceiling.rate) and e.ceiling.rate > 0):
        return f"The ceiling is {e.ceiling.rate:g} ({e.ceiling.source}), which is not a rate."
    return None


def above_ceiling(e: Evidence) -> str | None:
    return _above(e, CEILING_SUSPECT, CEILING_INVALID)


def impossible_rate(e: Evidence) -> str | None:
    return _above(e, CEILING_INVALID, math.inf)


def _above(e: Evidence, low: float, high: float) -> str | None:
    if e.ceiling is None or no_rate(e) is not None:
        return None
    share = e.rate / e.ceiling.rate
    if not low < share <= high:
        return None
    return f"The rate is {share:.0%} of the ceiling ({e.ceiling.source})."


def slope_above_ceiling(e: Evidence) -> str | None:
    if e.ceiling is None or e.slope is None or e.slope.doubling is None or no_rate(e) is not None:
        return None
    if e.slope.unit_s <= 0:
        return None
    share = e.rate * e.summary.median_s / (e.units * e.slope.unit_s) / e.ceiling.rate
    if share <= CEILING_SUSPECT:
        return None
    return (
        f"The slope rate is {share:.0%} of the ceiling ({e.ceiling.source}): its few runs were "
        "distorted. The rate from the median does not depend on them."
    )


def cache_resident(e: Evidence) -> str | None:
    if e.case.metric != "bandwidth" or e.cache_bytes is None or e.case.device != "cpu":
        return None
    what, size = "The working set is", e.resident_bytes
    if e.array_bytes is not None:
        what, size = "Each array is", e.array_bytes
    if size >= CACHE_FACTOR * e.cache_bytes:
        return None
    return (
        f"{what} {_size(size)}, less than {CACHE_FACTOR} times the last-level cache "
        f"({_size(e.cache_bytes)}): part of the traffic does not reach memory."
    )


def _size(bytes_: int) -> str:
    return f"{bytes_ / 2**20:,.0f} MiB" if bytes_ >= 2**20 else f"{bytes_ / 2**10:,.0f} KiB"
