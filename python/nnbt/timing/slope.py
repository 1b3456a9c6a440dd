"""Slope timing: t = a + b K over K units of work in one evaluation.

`b` is the time of a unit free of the constant cost `a` of an evaluation, and the one portable
proof that a lazy library did the work: work that was merged, cached or skipped does not double
when K doubles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnbt.spec.workload import Step, Workload

NO_TIME = "it would take more than its share of the timed window: raise --max-seconds, or --runs"
NO_MEMORY = "no memory for more than one unit"
LADDER = (1, 2, 4, 8)
LONG_LADDER = (16, 32, 64)
"""Goes on with these while the constant cost still hides the unit."""
DOUBLING = (1.8, 2.2)
ROUNDS = 3
MOST_ROUNDS = 30
RETRY_S = 1.0
"""Seconds for further rounds before a result that does not prove the work is believed."""
RETRY_LEAST = 3
"""So many tries all the same: one of half a second, beside a compiler, made 2 units 1.13 of 1."""
FLOORS_FOR_PROOF = 10.0
"""A doubling tells something once the smaller time, without the constant cost, is so many times
the empty evaluation. (H200, a + b at n = 2048: 38, 65, 115 and 180 us for K = 1, 2, 4 and 8 with
a floor of 22: launching and moving bytes overlap more and more.)"""
OVERHEAD_FLOORS = 10.0
"""The constant cost that may be taken off: at most so many empty evaluations. (H200, n = 4096:
0.2 ms, 9 of them.) Work that was merged looks like a constant cost, but is larger."""
HEADLINE_SHARE = 0.4
"""A timed run that takes less than this share of its units at the slope's rate did not do them.
(H200, 60 rows: 0.98 at least; integer kernels on a CPU 0.5, since larger K hold more
temporaries.)"""
LONGEST_RETRY_S = 4.0
"""Two values of K that do not prove the work get a third, if one run of it takes less."""
TWO_POINT_FLOORS = 50.0
"""With two values of K only, no constant cost can be told from work: the unit must outweigh it."""


@dataclass(frozen=True)
class Slope:
    """The fit over the best time of each K.

    `doubling` is t(K) / t(K / 2) at the largest K, both less the constant cost; None where the
    unit is so short that the evaluation hides it. `unit_s` is b, `overhead_s` a (not below
    zero), both in seconds; `residual` the largest relative distance of a point from the line.
    """

    seconds: Mapping[int, float]
    unit_s: float
    overhead_s: float
    residual: float
    doubling: float | None


def fit(seconds: Mapping[int, float], floor_s: float) -> Slope:
    """Least squares with weights 1/t^2, so that each K counts by its relative error.

    Raises ValueError below two points.
    """
    if len(seconds) < 2:
        raise ValueError("fit: a slope needs at least two values of K")
    # math.fsum: from Python 3.12 on, sum() rounds otherwise than before.
    weights = {k: 1 / t**2 for k, t in seconds.items()}
    total = math.fsum(weights.values())
    mean_k = math.fsum(weights[k] * k for k in seconds) / total
    mean_t = math.fsum(weights[k] * t for k, t in seconds.items()) / total
    b = math.fsum(weights[k] * (k - mean_k) * (t - mean_t) for k, t in seconds.items()) / math.fsum(
        weights[k] * (k - mean_k) ** 2 for k in seconds
    )
    a = mean_t - b * mean_k
    largest = max(seconds)
    doubling = None
    half = seconds.get(largest // 2, 0.0)
    enough = len(seconds) > 2 or half >= TWO_POINT_FLOORS * floor_s
    constant = min(max(a, 0.0), OVERHEAD_FLOORS * floor_s) if len(seconds) > 2 else floor_s
    if enough and half - constant >= FLOORS_FOR_PROOF * floor_s:
        doubling = (seconds[largest] - constant) / (half - constant)
    return Slope(
        seconds=dict(seconds),
        unit_s=b,
        overhead_s=max(0.0, a),
        # Below 1e-9 it is rounding, which differs between machines.
        residual=round(max(abs(a + b * k - t) / t for k, t in seconds.items()), 9),
        doubling=doubling,
    )


def proves_work(slope: Slope) -> bool | None:
    """Whether the work doubled with K; None where that can't be told."""
    if slope.doubling is None:
        return None
    return DOUBLING[0] <= slope.doubling <= DOUBLING[1]


def headline_share(slope: Slope, units: int, run_s: float, floor_s: float) -> float | None:
    """A timed run of `run_s`, less its constant cost, over its units of work at the slope's rate.

    The constant cost is the line's, at most an empty evaluation: that one alone is too much where
    threads wake while the work goes on (110 us for a unit of 111 with a floor of 82: the line says
    25). None where the slope does not tell the time of a unit: too short, or not doubling.
    """
    if slope.doubling is None or slope.doubling < DOUBLING[0] or slope.unit_s <= 0:
        return None
    return (run_s - min(floor_s, slope.overhead_s)) / (units * slope.unit_s)


def ladder_for(unit_s: float, budget_s: float, largest_k: int, rounds: int = ROUNDS) -> list[int]:
    """The K whose `rounds` timings fit into the budget, at least two of them or none."""
    chosen: list[int] = []
    spent = 0.0
    for k in LADDER:
        spent += k * unit_s * (rounds + 1)
        if k > largest_k or spent > budget_s:
            break
        chosen.append(k)
    return chosen if len(chosen) > 1 else []


def measure_slope(
    workload: Workload,
    time_once: Callable[[Step], float],
    *,
    unit_s: float,
    floor_s: float,
    budget_s: float,
    best_s: float = float("inf"),
) -> tuple[Slope | None, str]:
    """(slope, why not). `time_once` gives the seconds of one run of a step; `best_s` is the
    fastest timed run. It is no point of the line: the best of thousands is below the best of a
    few, by half for a millisecond of memory traffic, and the line would bend.

    Rounds go over all K in turn, so that a disturbance meets each alike, and the best time of
    each counts. A result that does not prove the work, or not that of the timed runs, is measured
    on for a second, and RETRY_LEAST times, with a third K where there were two, before it is
    believed: work that was skipped stays skipped, noise does not.
    """
    if workload.no_slope:
        return None, workload.no_slope
    rounds = ROUNDS
    ladder = ladder_for(unit_s, budget_s, workload.largest_k, rounds)
    if not ladder:
        rounds = 1
        ladder = ladder_for(unit_s, budget_s, workload.largest_k, rounds)
    if not ladder:
        return None, NO_TIME if workload.largest_k > 1 else NO_MEMORY
    # Short units are disturbed more, and more rounds of them fit.
    rounds = max(rounds, min(MOST_ROUNDS, int(budget_s / (sum(ladder) * unit_s)) - 1))
    seconds = _best(workload, time_once, ladder, rounds)
    slope = fit(seconds, floor_s)
    for k in LONG_LADDER:
        hidden = slope.doubling is None or slope.overhead_s > seconds[max(seconds)] / 10
        if not hidden or k > workload.largest_k or k * rounds * unit_s > budget_s:
            break
        seconds |= _best(workload, time_once, [k], rounds)
        slope = fit(seconds, floor_s)
    spent, tries = 0.0, 0

    def counted(step: Step) -> float:
        nonlocal spent
        seconds = time_once(step)
        spent += seconds
        return seconds

    def doubtful() -> bool:
        share = headline_share(slope, workload.units, best_s, floor_s)
        return proves_work(slope) is False or (share is not None and share < HEADLINE_SHARE)

    while (spent < RETRY_S or tries < RETRY_LEAST) and doubtful():
        tries += 1
        ladder = list(seconds)
        third = 2 * max(ladder)
        if len(ladder) == 2 and third <= workload.largest_k and third * unit_s < LONGEST_RETRY_S:
            # Two points can't tell a constant cost from merged work: of 17 ms, 2.9 were one.
            ladder.append(third)
        again = _best(workload, counted, ladder, rounds)
        seconds = {k: min(seconds.get(k, again[k]), again[k]) for k in ladder}
        slope = fit(seconds, floor_s)
    return slope, ""


def _best(
    workload: Workload, time_once: Callable[[Step], float], ladder: Sequence[int], rounds: int
) -> dict[int, float]:
    steps = {k: workload.step(k) for k in ladder}
    best = dict.fromkeys(ladder, float("inf"))
    for k in ladder:  # first runs of a K allocate its outputs
        time_once(steps[k])
    for _ in range(rounds):
        for k, step in steps.items():
            best[k] = min(best[k], time_once(step))
    return best
