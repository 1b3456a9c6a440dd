"""The knee of a thread sweep, from its rows."""

from collections.abc import Sequence
from dataclasses import replace

from nnbt.results.result import Result
from nnbt.spec.threads import KNEE_SHARE, THREADS, Knee
from nnbt.timing.statistics import relative_half_width


def knee(rows: Sequence[Result]) -> Knee | None:
    """The knee of rows that differ in their number of threads; None with fewer than two rates."""
    rated = sorted(
        (row for row in rows if row.rate and row.verdict != "INVALID"),
        key=lambda row: int(row.case.params[THREADS]),
    )
    if len(rated) < 2:
        return None
    best = max(rated, key=lambda row: row.rate or 0.0)
    top = best.rate or 0.0
    at = next(i for i, row in enumerate(rated) if (row.rate or 0.0) >= KNEE_SHARE * top)
    return Knee(
        int(rated[at].case.params[THREADS]),
        int(best.case.params[THREADS]),
        top,
        (rated[at].rate or 0.0) / top,
        _doubt(rows),
    )


def _doubt(rows: Sequence[Result]) -> str:
    """Why the rates of a sweep may not show its knee; empty without such a reason."""
    if any(not row.rate or row.verdict == "INVALID" for row in rows):
        return "not all thread counts have a rate"
    if any(row.has("BACKGROUND_LOAD") for row in rows):
        return "other processes used CPU time"
    if not all(_known(row) for row in rows):
        return f"not all medians are known to {1 - KNEE_SHARE:.0%}"
    return ""


def _known(row: Result) -> bool:
    """Whether the interval of the median is narrow enough for the knee."""
    width = relative_half_width(row.interval_s, row.median_s)
    return width is not None and width <= 1 - KNEE_SHARE


def with_knee(rows: Sequence[Result]) -> list[Result]:
    """The rows of a complete sweep with its knee; unchanged if fewer than two have a rate."""
    found = knee(rows)
    if found is None:
        return list(rows)
    return [
        replace(
            row,
            sweep=found,
            notes=(*row.notes, found.sentence)
            if row.case.params[THREADS] == found.knee_threads
            else row.notes,
        )
        for row in rows
    ]
