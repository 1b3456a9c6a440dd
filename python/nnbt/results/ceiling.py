"""Which results are ceilings: what their rate is, and what reached it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nnbt.results.result import Result

UNFIT = {"ABOVE_CEILING", "CACHE_RESIDENT", "BACKGROUND_LOAD", "UNCHECKED", "WIDE_INTERVAL"}
"""Codes of reasons that make a result no ceiling, whatever its verdict."""
GPU_LEAST_BYTES = 2**27
"""Smaller arrays than this may stay in the cache of a large GPU."""


def ceiling_rate(row: Result) -> float:
    """What a result shows to be possible: its fastest run, on a GPU also its slope.

    A slope is free of launching, which on a CPU is within the noise.
    """
    best = row.best_rate or row.rate or 0.0
    return max(best, row.slope_rate or 0.0) if row.case.device == "gpu" else best


def described(row: Result) -> str:
    """What reached the rate, such as `native triad, nontemporal stores`."""
    params = row.case.params
    what = str(params.get("chain") or params.get("op") or "")
    stores = params.get("stores")
    more = f", {stores} stores" if stores in ("ordinary", "nontemporal") else ""
    return f"{row.case.engine} {what}{more}".strip()


def fit_for_ceiling(row: Result) -> bool:
    """Whether other rates may be set against the rate of this result."""
    if row.rate is None or row.verdict in (None, "INVALID") or row.details.not_a_ceiling:
        return False
    if any(reason.code in UNFIT for reason in row.reasons):
        return False
    small = row.sizes.get("matrix_bytes", GPU_LEAST_BYTES) < GPU_LEAST_BYTES
    return not (row.case.device == "gpu" and small)
