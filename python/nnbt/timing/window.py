"""Windows of timed runs: a second one where the first is noisy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from nnbt.spec.workload import SamplesLike
from nnbt.timing.scatter import Scatter, scatter
from nnbt.timing.statistics import MIN_SAMPLES, summarize


@dataclass(frozen=True)
class OtherWindow:
    """Timed runs that are not part of the result, and how they scattered.

    `which` is "first" where the second window is the result, and "second" where both are noisy.
    `scatter` is None where a second window is too short to tell.
    """

    which: Literal["first", "second"]
    scatter: Scatter | None
    median_s: float
    window_s: float
    samples_ns: tuple[int, ...]


def steady_window(window: Callable[[], SamplesLike]) -> tuple[SamplesLike, OtherWindow | None]:
    """The runs to report and, where there was another window, that one.

    On a shared machine one window in fifteen is noisy because of background load. The second
    window is reported only where it is steady: chosen by that alone, never by its rate. Noise in
    both belongs to the case, so then the first window is reported.
    """
    first = window()
    noise = scatter(first.samples_ns, summarize(first.samples_ns))
    if noise is None:
        return first, None
    try:
        second = window()
    except Exception:  # noqa: BLE001  the first window is a result all the same
        return first, None
    again = scatter(second.samples_ns, summarize(second.samples_ns))
    if again is None and len(second.samples_ns) >= min(MIN_SAMPLES, len(first.samples_ns)):
        return second, _other("first", noise, first)
    return first, _other("second", again, second)


def _other(
    which: Literal["first", "second"], noise: Scatter | None, samples: SamplesLike
) -> OtherWindow:
    return OtherWindow(
        which,
        noise,
        summarize(samples.samples_ns).median_s,
        samples.window_ns * 1e-9,
        tuple(samples.samples_ns),
    )
