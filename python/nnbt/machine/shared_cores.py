"""Hidden SMT: processors that the system shows as cores of their own and that share one.

A guest may be given the two threads of a core as two cores, without a word in its topology. Work
that fills the execution ports tells: two pinned threads of a peak chain then do no more than one.
A busy neighbour would look the same, so a second chain is the control: additions that wait for one
another leave most ports free, so that two threads of one core do twice the work of one, and two
threads that lack time do not.

Where the host moves the guest's processors from one hardware thread to another, no pair is a core
for long: two busy processors get a core each, all of them do not. There the crowd tells: on 16
processors of a Xeon guest no pair shared, and all did 7.6 times the work of one, 15 times of the
control.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from nnbt import _native

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnbt.spec.workload import Measure

CLOCK_CHAIN = "dependent_add"
"""The chain that measures the clock: its operations wait for each other, so it is no peak."""
SHARED_GAIN = (0.9, 1.35)
"""Two threads of one core do between so many times the work of one (1.0 to 1.1 as a rule). Less is
a thread that lacked time: a run of 0.3 ms waits 3 ms and more for its turn."""
OWN_GAIN = (1.7, 2.1)
"""Two threads with ports of their own do between so many times the work of one (1.99 to 2.00 on
two cores of a Zen 3, while other processes kept both of them busy)."""
SAME_CLOCK = 1.05
"""Threads alone may differ by this factor: more is another kind of core, or disturbance."""
CONFIRMATIONS = 3
"""A claim needs as many measurements of the same pair: without the bounds above and with one, 4 of
30 pairs of whole cores looked shared while nine threads wanted each processor."""
ROUNDS = 10
LEAST_ROUNDS = 3
RUNS = 8
PAIR_SECONDS = 2.0
MOST_SECONDS = 20.0
"""All pairs may take so long; 30 ms each where the processors are cores of their own."""
_TILES = ("amx_", "sme_")
_SHARE = 0.03
"""Of the iterations that take about 10 ms: short enough to fall between two interruptions."""
CROWD = 4
"""So many processors are one at least; of two the pair tells."""
CROWD_PORTS = (0.45, 0.62)
"""All threads of a chain that fills the ports do so much of what the control does."""
CROWD_CONTROL = 0.8
"""The control does at least so much of the work of as many cores."""
CROWD_ROUNDS = 4
_CROWD_SHARE = 0.3
"""3 ms a run: waking 16 threads takes 0.1."""


@dataclass(frozen=True)
class Pair:
    """Two processors: work of two threads over that of one, for chain and control.

    `calm` says whether the single threads agree with each other, as undisturbed ones do.
    """

    cpus: tuple[int, int]
    chain: str
    gain: float
    control_gain: float
    calm: bool = True

    @property
    def shared(self) -> bool:
        """Whether they share a core: the ports are shared, and nothing else took their time."""
        return self.calm and _within(self.gain, SHARED_GAIN) and self.controlled

    @property
    def controlled(self) -> bool:
        """Whether the control did what two threads with time of their own do."""
        return _within(self.control_gain, OWN_GAIN)


@dataclass(frozen=True)
class Crowd:
    """All processors at once: work of a thread on each over that of one, for chain and control."""

    cpus: int
    chain: str
    gain: float
    control_gain: float

    @property
    def shared(self) -> bool:
        """Whether two of them share a core: the ports are shared, and nothing else took time."""
        share = self.gain / self.control_gain
        return self.control_gain >= CROWD_CONTROL * self.cpus and _within(share, CROWD_PORTS)


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= value <= bounds[1]


@dataclass(frozen=True)
class SharedCores:
    """What was found among so many processors: pairs that share a core, or a crowd that does."""

    pairs: tuple[Pair, ...]
    cpus: int
    crowd: Crowd | None = None

    @property
    def cores(self) -> int:
        """Cores that the processors are."""
        return self.cpus - (len(self.pairs) or self.cpus // 2)

    @property
    def sentence(self) -> str:
        """The evidence in words."""
        if self.crowd is not None:
            return (
                f"{self.cpus} CPUs at once get {self.cores} cores, which the system doesn't show: "
                f"one thread of {self.crowd.chain} on each does {self.crowd.gain:.1f} times the "
                "work of one alone, and one of additions that leave the ports free "
                f"{self.crowd.control_gain:.1f} times"
            )
        first = self.pairs[0]
        others = f", and {len(self.pairs) - 1} more pairs" if len(self.pairs) > 1 else ""
        return (
            f"CPUs {first.cpus[0]} and {first.cpus[1]}{others} share a core, which the system "
            f"doesn't show: pinned to them, two threads of {first.chain} do {first.gain:.2f} times "
            f"the work of one, and two of additions that leave the ports free "
            f"{first.control_gain:.2f} times"
        )


def _pinned(chain: str, share: float, cpus: Sequence[int]) -> Any:
    """A peak step with one thread on each. Raises Unsupported where they can't be pinned."""
    iterations = max(1, int(_native.make_peak(chain, 1).iterations * share))
    step = _native.make_peak(chain, len(cpus), iterations, cpus=list(cpus))
    if -1 in step.cpus:
        raise _native.Unsupported(f"Threads can't be pinned to CPUs {tuple(cpus)} here.")
    return step


def measure_pair(measure: Measure, chain: str, cpus: tuple[int, int]) -> Pair:
    """Gains of a second thread, from the shortest times of all rounds.

    Disturbance only ever adds time. Ends early once the chain shows that the ports are not shared.
    Raises Unsupported where threads can't be pinned to these processors.
    """
    steps: dict[tuple[str, tuple[int, ...]], Any] = {}
    for name in (chain, CLOCK_CHAIN):
        for where in (cpus[:1], cpus[1:], cpus):
            steps[name, where] = _pinned(name, _SHARE, where)
    best = dict.fromkeys(steps, math.inf)

    def gain(name: str) -> float:
        return 2 * max(best[name, cpus[:1]], best[name, cpus[1:]]) / best[name, cpus]

    def calm(name: str) -> bool:
        alone = (best[name, cpus[:1]], best[name, cpus[1:]])
        return max(alone) <= SAME_CLOCK * min(alone)

    end = time.monotonic() + PAIR_SECONDS
    for turn in range(ROUNDS):
        for key, step in steps.items():
            best[key] = min(best[key], *measure(step, warmup=1, runs=RUNS).samples_ns)
        if turn + 1 >= LEAST_ROUNDS and (gain(chain) >= OWN_GAIN[0] or time.monotonic() > end):
            break
    return Pair(cpus, chain, gain(chain), gain(CLOCK_CHAIN), calm(chain) and calm(CLOCK_CHAIN))


def measure_crowd(measure: Measure, chain: str, cpus: Sequence[int]) -> Crowd:
    """Gains of all processors over the first one, from the median times of all rounds.

    Raises Unsupported where threads can't be pinned to these processors.
    """
    steps = {
        (name, len(where)): _pinned(name, _CROWD_SHARE, where)
        for name in (chain, CLOCK_CHAIN)
        for where in (cpus[:1], cpus)
    }
    times: dict[tuple[str, int], list[int]] = {key: [] for key in steps}
    for _ in range(CROWD_ROUNDS):
        for key, step in steps.items():
            times[key] += measure(step, warmup=1, runs=RUNS).samples_ns
    # The shortest times of all are those of moments with cores to spare.
    typical = {key: _native.median(samples) for key, samples in times.items()}
    count = len(cpus)
    gain, control = (
        count * typical[name, 1] / typical[name, count] for name in (chain, CLOCK_CHAIN)
    )
    return Crowd(count, chain, gain, control)


def find_shared_cores(measure: Measure, chain: str, threads: int) -> SharedCores | None:
    """What shows that the first `threads` processors share cores; None where nothing does.

    The first processor is tried with all others; if it has a partner, the rest in the same
    numbering, and if not, all processors at once. Nothing is looked for where the system's own
    topology shows threads of one core, or where threads can't be pinned.
    """
    chain = port_chain(chain)
    cpus = list(_native.allowed_cpus())[:threads]
    if len(cpus) < 2 or _native.allowed_cores() < len(_native.allowed_cpus()):
        return None

    end = time.monotonic() + MOST_SECONDS

    def shared(pairs: Iterator[tuple[int, int]]) -> Iterator[Pair]:
        for pair in takewhile(lambda _: time.monotonic() < end, pairs):
            for _ in range(CONFIRMATIONS):
                found = measure_pair(measure, chain, pair)
                if not found.shared:
                    break
            else:
                yield found

    try:
        first = next(shared(_partners(cpus)), None)
        if first is None:
            return _find_crowd(measure, chain, cpus)
        distance = cpus.index(first.cpus[1])
        return SharedCores((first, *shared(_same_numbering(cpus, distance))), len(cpus))
    except RuntimeError:  # Unsupported, or no room for another thread
        return None


def _find_crowd(measure: Measure, chain: str, cpus: Sequence[int]) -> SharedCores | None:
    if len(cpus) < CROWD:
        return None
    for _ in range(CONFIRMATIONS):
        crowd = measure_crowd(measure, chain, cpus)
        if not crowd.shared:
            return None
    return SharedCores((), len(cpus), crowd)


def port_chain(chain: str) -> str:
    """The chain, or in place of one of tiles the widest of float32 vectors.

    A tile unit may serve several cores (SME), and threads that share one do less than half each.
    """
    if not chain.startswith(_TILES):
        return chain
    rows = [row for row in _native.peak_chains() if row.available and row.dtype == "float32"]
    return [row.name for row in rows if not row.name.startswith(_TILES)][-1]


def _partners(cpus: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(first, other), the usual numberings first: neighbours, or halves of all processors."""
    usual = (1, len(cpus) // 2)
    for i in dict.fromkeys((*usual, *range(1, len(cpus)))):
        yield cpus[0], cpus[i]


def _same_numbering(cpus: Sequence[int], distance: int) -> Iterator[tuple[int, int]]:
    """The other pairs where partners are so far apart and each processor has one."""
    left = [i for i in range(len(cpus)) if i not in (0, distance)]
    while left:
        here = left.pop(0)
        if here + distance in left:
            left.remove(here + distance)
            yield cpus[here], cpus[here + distance]
