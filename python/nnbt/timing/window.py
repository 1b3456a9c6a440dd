"""A second window of timed runs where the first one scattered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnbt.timing.statistics import summarize
from nnbt.verdict.checks.timing import MIN_SAMPLES, scatter

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnbt.spec.workload import SamplesLike


@dataclass(frozen=True)
class OtherWindow:
    """Timed runs that are no part of the result, and how they scattered.

    `which` is "first" where the second window is the result, and "second" where both scattered.
    """

    which: str
    scatter: str
    median_s: float
    window_s: float
    samples_ns: tuple[int, ...]

    @property
    def note(self) -> str:
        """That there was another window, for the row."""
        words = self.scatter.partition(":")[0].rstrip(".")
        if self.which == "first":
            return f"timed twice, this is the second window; the first: {words}"
        return f"timed twice, and both windows scatter; the second: {words}"


def steady_window(
    window: Callable[[], SamplesLike],
) -> tuple[SamplesLike, OtherWindow | None]:
    """The runs to report and, where there was another window, what that was.

    On a shared machine one window in fifteen scatters because of what else runs there. The second
    is reported only where it does not scatter: chosen by that alone, never by its rate. What
    scatters twice is the case's own, and the first window stays.
    """
    first = window()
    trouble = scatter(first.samples_ns, summarize(first.samples_ns))
    if trouble is None:
        return first, None
    try:
        second = window()
    except Exception:  # noqa: BLE001  the first window is a result all the same
        return first, None
    again = scatter(second.samples_ns, summarize(second.samples_ns))
    if again is None and len(second.samples_ns) >= min(MIN_SAMPLES, len(first.samples_ns)):
        return second, _other("first", trouble, first)
    again = again or "It is too short to tell."
    return first, _other("second", again, second)


def _other(which: str, sentence: str, samples: SamplesLike) -> OtherWindow:
    return OtherWindow(
        which,
        sentence,
        summarize(samples.samples_ns).median_s,
        samples.window_ns * 1e-9,
        tuple(samples.samples_ns),
    )
