"""A second window of timed runs where the first one scattered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnbt.checks.timing import scatter
from nnbt.stats import summarize

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnbt.workload import SamplesLike


@dataclass(frozen=True)
class FirstWindow:
    """Timed runs that are no part of the result, and the sentence that says why."""

    scatter: str
    median_s: float
    first_run_s: float
    window_s: float
    samples_ns: tuple[int, ...]


def steady_window(
    window: Callable[[], SamplesLike],
) -> tuple[SamplesLike, FirstWindow | None]:
    """The runs to report and, if those are of a second window, what the first one was.

    On a shared machine one window in fifteen scatters because of what else runs there. The second
    is reported only where it does not scatter: chosen by that alone, never by its rate. What
    scatters twice is the case's own, and the first window stays.
    """
    first = window()
    summary = summarize(first.samples_ns)
    sentence = scatter(first.samples_ns, summary)
    if sentence is None:
        return first, None
    second = window()
    if scatter(second.samples_ns, summarize(second.samples_ns)) is not None:
        return first, None
    left_out = FirstWindow(
        sentence,
        summary.median_s,
        first.first_run_ns * 1e-9,
        first.window_ns * 1e-9,
        tuple(first.samples_ns),
    )
    return second, left_out
