"""Which results are ceilings, their rate, and what reached it."""

from nnbt.results.result import Result

UNFIT = {"ABOVE_CEILING", "CACHE_RESIDENT", "BACKGROUND_LOAD", "UNCHECKED", "WIDE_INTERVAL"}
"""A result with one of these reasons is not a ceiling, whatever its verdict."""
GPU_LEAST_BYTES = 2**27  # smaller arrays may stay in the cache of a large GPU


def ceiling_rate(row: Result) -> float:
    """The rate of the fastest run, or on a GPU of the slope if that is higher.

    The slope has no launch overhead, which on a CPU is within the noise.
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
    """Whether the rate of this result is a ceiling of other rates."""
    if row.rate is None or row.verdict in (None, "INVALID") or row.details.not_a_ceiling:
        return False
    if any(reason.code in UNFIT for reason in row.reasons):
        return False
    small = row.sizes.get("matrix_bytes", GPU_LEAST_BYTES) < GPU_LEAST_BYTES
    return not (row.case.device == "gpu" and small)
