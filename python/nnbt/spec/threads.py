"""Thread counts of a sweep, and the knee from which more threads no longer help."""

from dataclasses import dataclass

THREADS = "cpu_workers"  # the parameter of a case that a thread sweep varies
KNEE_SHARE = 0.95
"""The knee is the fewest threads whose rate is at least this share of the best of the sweep."""


def thread_counts(most: int, cores: int) -> tuple[int, ...]:
    """1, 2, 4, ... up to `most`, including `most` and, if less, the number of cores.

    With more threads than cores, two threads share the execution ports of a core.
    """
    powers = {2**i for i in range(most.bit_length())}
    return tuple(sorted({*powers, most, min(max(cores, 1), most)}))


def threads_text(count: int) -> str:
    """1 thread, 2 threads."""
    return f"{count} thread" if count == 1 else f"{count} threads"


@dataclass(frozen=True)
class Knee:
    """Result of a thread sweep: `rate_share` is the rate at the knee over the best rate.

    `doubt` says why another sweep may find another knee; empty without such a reason.
    """

    knee_threads: int
    best_threads: int
    best_rate: float
    rate_share: float
    doubt: str

    @property
    def sentence(self) -> str:
        """The knee in one sentence."""
        what = threads_text(self.knee_threads)
        if self.knee_threads == self.best_threads == 1:
            text = f"knee: {what}, the best rate of the sweep"
        elif self.knee_threads == self.best_threads:
            text = (
                f"knee: {what}, the best rate: fewer threads reach less than {KNEE_SHARE:.0%} of it"
            )
        else:
            text = (
                f"knee: {what}, the fewest that reach {KNEE_SHARE:.0%} of the best rate "
                f"({self.rate_share:.0%} of the rate of {self.best_threads} threads)"
            )
        return f"{text}; uncertain: {self.doubt}" if self.doubt else text
