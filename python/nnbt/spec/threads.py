"""Thread counts as an axis of cases, and the knee where a rate stops growing with them."""

from __future__ import annotations

from dataclasses import dataclass

THREADS = "cpu_workers"
"""The parameter of a case that the sweep goes over."""
KNEE_SHARE = 0.95
"""The knee is the fewest threads whose rate is at least this share of the best of the sweep."""


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
