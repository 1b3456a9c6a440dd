"""Slope timing: t = a + b K over K units of work in one evaluation.

`b` is the time of a unit without the fixed cost `a` of an evaluation. It is the one portable proof
that a lazy library did the work: work that was merged, cached or skipped does not double with K.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nnbt.spec.workload import Step, Workload

NO_TIME = "it needs more than its share of the timed window: raise --max-seconds or --runs"
NO_MEMORY = "there is no memory for more than one unit"
K_VALUES = (1, 2, 4, 8)
MORE_K_VALUES = (16, 32, 64)  # added while the fixed cost still hides the unit
DOUBLING = (1.8, 2.2)  # t(K) / t(K / 2) of work that was done, without the fixed cost
ROUNDS = 3
MOST_ROUNDS = 30
RETRY_S = 1.0  # seconds of further rounds before a result that does not prove the work is accepted
RETRY_LEAST = 3
"""Fewest retries: in a single one next to a compiler, 2 units of 0.5 s took 1.13 of 1."""
FLOORS_FOR_PROOF = 10.0
"""A doubling is evidence once the smaller time, without the fixed cost, is at least this multiple
of the launch overhead. (H200, a + b at n = 2048: 38, 65, 115 and 180 us for K = 1, 2, 4 and 8 with
a launch overhead of 22: launching and moving bytes overlap more and more.)"""
OVERHEAD_FLOORS = 10.0
"""Largest fixed cost that may be subtracted, in empty evaluations. (H200, n = 4096: 0.2 ms, 9 of
them.) Merged work looks like a fixed cost, but is larger."""
HEADLINE_SHARE = 0.4
"""A timed run that takes less than this share of the time the slope predicts skipped work.
(H200, 60 rows: at least 0.98; integer kernels on a CPU 0.5, since larger K hold more
temporaries.)"""
LONGEST_RETRY_S = 4.0
"""Two values of K that do not prove the work get a third, if one run of it takes less."""
TWO_POINT_FLOORS = 50.0
"""Two values of K cannot tell a fixed cost from work: the unit must be at least this
multiple of the launch overhead."""


@dataclass(frozen=True)
class Slope:
    """The fit over the best time of each K.

    `doubling` is t(K) / t(K / 2) at the largest K, both without the fixed cost; None where the
    unit is so short that the launch overhead hides it. `unit_s` is b, `overhead_s` is a (not below
    zero), both in seconds; `residual` is the largest relative distance of a point from the line.
    """

    seconds: Mapping[int, float]
    unit_s: float
    overhead_s: float
    residual: float
    doubling: float | None


def fit(seconds: Mapping[int, float], floor_s: float) -> Slope:
    """Least squares with weights 1/t^2, so that relative errors count.

    Raises ValueError for fewer than two points.
    """
    if len(seconds) < 2:
        raise ValueError("fit: a slope needs at least two values of K")
    # math.fsum: sum() rounds differently from Python 3.12 on.
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
    fixed = min(max(a, 0.0), OVERHEAD_FLOORS * floor_s) if len(seconds) > 2 else floor_s
    if enough and half - fixed >= FLOORS_FOR_PROOF * floor_s:
        doubling = (seconds[largest] - fixed) / (half - fixed)
    return Slope(
        seconds=dict(seconds),
        unit_s=b,
        overhead_s=max(0.0, a),
        # Less than 1e-9 is rounding, which differs between machines.
        residual=round(max(abs(a + b * k - t) / t for k, t in seconds.items()), 9),
        doubling=doubling,
    )


def proves_work(slope: Slope) -> bool | None:
    """Whether the work doubled with K; None where the times cannot tell."""
    if slope.doubling is None:
        return None
    return DOUBLING[0] <= slope.doubling <= DOUBLING[1]


def headline_share(slope: Slope, units: int, run_s: float, floor_s: float) -> float | None:
    """Time of a timed run, without its fixed cost, over the time that the slope predicts for it.

    The fixed cost is that of the line, at most one empty evaluation: the latter alone is too much
    where threads wake up while the work goes on (110 us for a unit of 111 us with a launch overhead
    of 82: the line says 25). None where the slope does not give the time of a unit: the unit is too
    short, or does not double.
    """
    if slope.doubling is None or slope.doubling < DOUBLING[0] or slope.unit_s <= 0:
        return None
    return (run_s - min(floor_s, slope.overhead_s)) / (units * slope.unit_s)


def choose_k(unit_s: float, budget_s: float, largest_k: int, rounds: int = ROUNDS) -> list[int]:
    """The values of K whose `rounds` timings fit in the budget: at least two of them, or none."""
    chosen: list[int] = []
    spent = 0.0
    for k in K_VALUES:
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
    """(slope, why there is none). `time_once` times one run of a step, in seconds; `best_s` is the
    fastest timed run. It is not used as a point of the line: the best of thousands is below the
    best of a few, by half for a millisecond of memory traffic.

    Each round times every K, so that background load affects them alike, and the best time of each
    counts. A result that does not prove the work, or disagrees with the timed runs, is accepted
    only after another second of rounds, at least RETRY_LEAST, with a third K where there were two:
    skipped work stays skipped, noise does not.
    """
    if workload.no_slope:
        return None, workload.no_slope
    rounds = ROUNDS
    ks = choose_k(unit_s, budget_s, workload.largest_k, rounds)
    if not ks:
        rounds = 1
        ks = choose_k(unit_s, budget_s, workload.largest_k, rounds)
    if not ks:
        return None, NO_TIME if workload.largest_k > 1 else NO_MEMORY
    # Short units are noisier, and more rounds of them fit.
    rounds = max(rounds, min(MOST_ROUNDS, int(budget_s / (sum(ks) * unit_s)) - 1))
    seconds = _best(workload, time_once, ks, rounds)
    slope = fit(seconds, floor_s)
    for k in MORE_K_VALUES:
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
        ks = list(seconds)
        third = 2 * max(ks)
        if len(ks) == 2 and third <= workload.largest_k and third * unit_s < LONGEST_RETRY_S:
            # Two points cannot tell a fixed cost (2.9 of 17 ms were one) from merged work.
            ks.append(third)
        again = _best(workload, counted, ks, rounds)
        seconds = {k: min(seconds.get(k, again[k]), again[k]) for k in ks}
        slope = fit(seconds, floor_s)
    return slope, ""


def _best(
    workload: Workload, time_once: Callable[[Step], float], ks: Sequence[int], rounds: int
) -> dict[int, float]:
    steps = {k: workload.step(k) for k in ks}
    best = dict.fromkeys(ks, float("inf"))
    for k in ks:  # the first run of a K allocates its outputs
        time_once(steps[k])
    for _ in range(rounds):
        for k, step in steps.items():
            best[k] = min(best[k], time_once(step))
    return best
