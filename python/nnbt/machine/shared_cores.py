"""Hidden SMT: CPUs that share a core although the system reports them as separate cores.

A hypervisor may give a guest both threads of a core as two cores. Work that fills the execution
ports shows it: two pinned threads of a peak chain then do no more than one. Background load would
look the same, so a second chain is the control: dependent additions leave most ports free, so two
threads of one core do twice the work of one, and two threads that wait for CPU time do not.

Where the host moves the guest's CPUs between hardware threads, no pair stays on one core: two busy
CPUs get a core each, all of them cannot. There all CPUs are used at once: on 16 CPUs of a Xeon
guest no pair shared a core, and all did 7.6 times the work of one CPU, the control 15 times.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from nnbt import _native
from nnbt.machine.chains import CLOCK_CHAIN
from nnbt.spec.workload import Measure

SHARED_GAIN = (0.9, 1.35)
"""Work of two threads of one core over that of one: usually 1.0 to 1.1. Less means that a thread
waited for CPU time: a run of 0.3 ms then waits 3 ms and more."""
OWN_GAIN = (1.7, 2.1)
"""Work of two threads on two cores over that of one: 1.99 to 2.00 on two cores of a Zen 3, even
while other processes kept both busy."""
SAME_CLOCK = 1.05
"""Single threads may differ by this factor: more is another type of core, or background load."""
CONFIRMATIONS = 3
"""Measurements of a pair that must agree: with one, and without the bounds above, 4 of 30 pairs of
separate cores looked shared while nine threads competed for each CPU."""
ROUNDS = 10
LEAST_ROUNDS = 3
RUNS = 8
PAIR_SECONDS = 2.0
MOST_SECONDS = 20.0  # limit for all pairs; each takes 30 ms where the CPUs are separate cores
_TILES = ("amx_", "sme_")
_SHARE = 0.03
"""Of a chain's default iterations (10 ms): short enough to fit between two interruptions."""
CROWD = 4  # fewest CPUs to use all at once; two are a pair
CROWD_PORTS = (0.45, 0.62)
"""Gain of the chain over gain of the control, where two CPUs share each core."""
CROWD_CONTROL = 0.8  # least gain of the control, as a share of the number of CPUs
CROWD_ROUNDS = 4
_CROWD_SHARE = 0.3  # 3 ms per run: waking 16 threads takes 0.1 ms


@dataclass(frozen=True)
class Pair:
    """Two CPUs: work of two threads over that of one, for chain and control.

    `calm` says whether the single threads took the same time, as they do without background load.
    """

    cpus: tuple[int, int]
    chain: str
    gain: float
    control_gain: float
    calm: bool = True

    @property
    def shared(self) -> bool:
        """Whether they share a core: the ports are shared, and no other work took CPU time."""
        return self.calm and _within(self.gain, SHARED_GAIN) and self.controlled

    @property
    def controlled(self) -> bool:
        """Whether the control did what two threads do that never wait for CPU time."""
        return _within(self.control_gain, OWN_GAIN)


@dataclass(frozen=True)
class Crowd:
    """All CPUs at once: work of one thread on each over that of one, for chain and control."""

    cpus: int
    chain: str
    gain: float
    control_gain: float

    @property
    def shared(self) -> bool:
        """Whether each two share a core: the ports are shared, and no other work took CPU time."""
        share = self.gain / self.control_gain
        return self.control_gain >= CROWD_CONTROL * self.cpus and _within(share, CROWD_PORTS)


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= value <= bounds[1]


@dataclass(frozen=True)
class SharedCores:
    """Evidence that `cpus` CPUs share cores: pairs that do, or all of them at once."""

    pairs: tuple[Pair, ...]
    cpus: int
    crowd: Crowd | None = None

    @property
    def cores(self) -> int:
        """Number of cores that the CPUs have."""
        return self.cpus - (len(self.pairs) or self.cpus // 2)

    @property
    def sentence(self) -> str:
        """The evidence, without a full stop."""
        if self.crowd is not None:
            return (
                f"{self.cpus} CPUs share {self.cores} cores, which the system does not report: "
                f"one thread of {self.crowd.chain} on each does {self.crowd.gain:.1f} times the "
                "work of one, dependent additions, which leave the ports free, do "
                f"{self.crowd.control_gain:.1f} times"
            )
        first = self.pairs[0]
        others = f" and {len(self.pairs) - 1} more pairs" if len(self.pairs) > 1 else ""
        return (
            f"CPUs {first.cpus[0]} and {first.cpus[1]}{others} share a core, which the system does "
            f"not report: two threads of {first.chain} do {first.gain:.2f} times the work of one, "
            "two of dependent additions, which leave the ports free, do "
            f"{first.control_gain:.2f} times"
        )


def _pinned(chain: str, share: float, cpus: Sequence[int]) -> Any:
    """A peak step with one thread on each CPU. Raises Unsupported where pinning fails."""
    iterations = max(1, int(_native.make_peak(chain, 1).iterations * share))
    step = _native.make_peak(chain, len(cpus), iterations, cpus=list(cpus))
    if -1 in step.cpus:
        raise _native.Unsupported(f"Threads cannot be pinned to CPUs {tuple(cpus)}.")
    return step


def measure_pair(measure: Measure, chain: str, cpus: tuple[int, int]) -> Pair:
    """Gains of a second thread, from the shortest times of all rounds: other work only adds time.

    Ends early once the chain shows that the ports are not shared. Raises Unsupported where threads
    cannot be pinned to these CPUs.
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
    """Gains of all CPUs over the first one, from the median times of all rounds.

    Raises Unsupported where threads cannot be pinned to these CPUs.
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
    # Not the shortest: those come from moments when the host has idle cores.
    typical = {key: _native.median(samples) for key, samples in times.items()}
    count = len(cpus)
    gain, control = (
        count * typical[name, 1] / typical[name, count] for name in (chain, CLOCK_CHAIN)
    )
    return Crowd(count, chain, gain, control)


def find_shared_cores(measure: Measure, chain: str, threads: int) -> SharedCores | None:
    """Evidence that the first `threads` CPUs share cores; None where there is none.

    The first CPU is tried with each other one; if it has a partner, the others are paired in the
    same numbering, else all CPUs are used at once. Measures nothing where the system itself reports
    threads of one core, or where threads cannot be pinned.
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
    except RuntimeError:  # Unsupported, or no thread could be started
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
    """The chain, or the widest one of float32 vectors in place of one of tiles.

    Several cores may share a tile unit (SME), whose threads then do less than half each.
    """
    if not chain.startswith(_TILES):
        return chain
    rows = [row for row in _native.peak_chains() if row.available and row.dtype == "float32"]
    return [row.name for row in rows if not row.name.startswith(_TILES)][-1]


def _partners(cpus: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(first, other), in the order of common numberings: next CPU, other half, the rest."""
    usual = (1, len(cpus) // 2)
    for i in dict.fromkeys((*usual, *range(1, len(cpus)))):
        yield cpus[0], cpus[i]


def _same_numbering(cpus: Sequence[int], distance: int) -> Iterator[tuple[int, int]]:
    """The other pairs with partners `distance` apart, where each CPU has one partner."""
    left = [i for i in range(len(cpus)) if i not in (0, distance)]
    while left:
        here = left.pop(0)
        if here + distance in left:
            left.remove(here + distance)
            yield cpus[here], cpus[here + distance]
