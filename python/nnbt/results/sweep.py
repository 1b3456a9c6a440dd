"""The sweep over threads: how a rate grows with them, and the knee where it stops growing.

Thread counts are an axis of cases like sizes; what is here chooses them and reads the rates.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from nnbt.timing.statistics import relative_half_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnbt.results.result import Result
    from nnbt.spec.case import Case

THREADS = "cpu_workers"
"""The parameter of a case that the sweep goes over."""
KNEE_SHARE = 0.95
"""The knee is the fewest threads whose rate is at least this share of the best of the sweep."""
_DETAIL = "thread_sweep"


def thread_counts(most: int, cores: int) -> tuple[int, ...]:
    """1, 2, 4, ... up to `most`, with `most` itself and the number of cores where that is less.

    From there on threads share the execution ports of a core with another one.
    """
    powers = {2**i for i in range(most.bit_length())}
    return tuple(sorted({*powers, most, min(max(cores, 1), most)}))


def threads_text(count: int) -> str:
    """1 thread, 2 threads."""
    return f"{count} thread" if count == 1 else f"{count} threads"


@dataclass(frozen=True)
class Knee:
    """What a sweep says: `rate_share` is what the knee reaches of the best rate.

    `doubt` says why another run may find another knee; empty where nothing speaks for that.
    """

    knee_threads: int
    best_threads: int
    best_rate: float
    rate_share: float
    doubt: str

    @property
    def sentence(self) -> str:
        """The knee in words."""
        what = threads_text(self.knee_threads)
        if self.knee_threads == self.best_threads == 1:
            text = f"knee: {what}, the best of the sweep"
        elif self.knee_threads == self.best_threads:
            text = f"knee: {what}, the best of the sweep: fewer don't reach {KNEE_SHARE:.0%} of it"
        else:
            text = (
                f"knee: {what}, the fewest that reach {KNEE_SHARE:.0%} of the best rate "
                f"({self.rate_share:.0%} of that of {self.best_threads} threads)"
            )
        return f"{text}; not certain: {self.doubt}" if self.doubt else text


def knee(rows: Sequence[Result]) -> Knee | None:
    """The knee of rows that differ in their threads; None with fewer than two rates."""
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
    """Why the rates of a sweep may not show its knee; empty for nothing."""
    if any(not row.rate or row.verdict == "INVALID" for row in rows):
        return "not all thread counts have a rate"
    if any("BACKGROUND_LOAD" in {reason.code for reason in row.reasons} for row in rows):
        return "other work took processors meanwhile"
    if not all(_known(row) for row in rows):
        return f"not all medians are known to {1 - KNEE_SHARE:.0%}"
    return ""


def _known(row: Result) -> bool:
    """Whether the median is known as well as the knee asks for."""
    width = relative_half_width(row.interval_s, row.median_s)
    return width is not None and width <= 1 - KNEE_SHARE


def mark_knee(results: list[Result], following: Case | None) -> None:
    """Names the knee in the rows of the sweep that ends with the last result, in place.

    `following` is the next case of the run: while it belongs to the same sweep nothing is known.
    """
    same = results[-1].case.without(THREADS)
    if following is not None and following.without(THREADS) == same:
        return
    first = len(results)
    while first > 0 and results[first - 1].case.without(THREADS) == same:
        first -= 1
    found = knee(results[first:])
    if found is None:
        return
    for i in range(first, len(results)):
        row = results[i]
        here = row.case.params[THREADS] == found.knee_threads
        results[i] = replace(
            row,
            details={**row.details, _DETAIL: asdict(found)},
            notes=(*row.notes, found.sentence) if here else row.notes,
        )
