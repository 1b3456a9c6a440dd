"""Checks of the timed runs: scatter, drift, the clock, and who else was there.

Each function returns the sentence if its check does not pass, else None.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nnbt import _native

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnbt.timing.statistics import Summary
    from nnbt.verdict.evidence import Evidence

FLOOR_SHARE = 0.05
CLOCK_TICKS = 1000
FAULTS_PER_MIB = 1.0
LEAST_FAULTS = 1000
"""Fewer than this (4 MiB) happen in any process, whatever is measured."""
MIN_SAMPLES = 5
DRIFT_SAMPLES = 10
DRIFT_RANK = 0.7
DRIFT_CHANGE = 0.10
INTERVAL_WIDTH = 0.10
MODES_SHARE = 0.2
MODES_DISTANCE = 0.25
MODES_VARIANCE = 0.9
OVERLAP_LEAST = 0.9
STEAL_SHARE = 0.10
OTHER_SHARE = 0.25
SWITCHES_PER_SECOND = 20
BUSY_SHARE = 0.95
NOISE_SECONDS = 0.5
"""In shorter windows the ticks (10 ms a processor) that time is counted in look like neighbours:
11 % of rows of 0.15 s on an idle host."""
TICKS_S = 0.02
"""What they may be off by, a processor: one tick at each end."""


def too_short_for_neighbours(e: Evidence) -> bool:
    """Whether a neighbour may have gone unseen in so short a window."""
    short = e.window_s < NOISE_SECONDS and e.case.device != "gpu"
    return short and noisy_neighbour(e) is None


def page_faults(e: Evidence) -> str | None:
    faults = e.readings.get("minor_faults")
    if faults is None or not e.written_bytes or e.case.device != "cpu":
        return None
    rate = faults / (e.written_bytes / 2**20)
    if rate <= FAULTS_PER_MIB or faults < LEAST_FAULTS:
        return None
    return (
        f"{rate:.0f} page faults a MiB written: the time includes the kernel mapping fresh memory, "
        "not only moving bytes."
    )


def latency_bound(e: Evidence) -> str | None:
    if e.floor_s is None or e.floor_s <= FLOOR_SHARE * e.summary.median_s:
        return None
    told = e.slope is not None and e.slope.doubling is not None
    share = e.floor_s / e.summary.median_s
    part = f"{share:.{0 if share >= 0.1 else 1}%} of" if share < 1 else "no less than"
    return (
        f"An empty evaluation takes {e.floor_s * 1e6:.0f} us, {part} this one: the rate is that of "
        "launching; "
        + ("the slope rate is free of it, or " if told else "")
        + "take a larger size."
    )


def coarse_clock(e: Evidence) -> str | None:
    if e.summary.median_s * 1e9 >= CLOCK_TICKS * e.clock_resolution_ns:
        return None
    return (
        f"A run is shorter than {CLOCK_TICKS} ticks of the clock ({e.clock_resolution_ns} ns): "
        "take a larger size."
    )


def rank_correlation(samples: Sequence[int]) -> float:
    """Spearman's rank correlation of the samples with their order; ties share their rank."""
    order = sorted(range(len(samples)), key=samples.__getitem__)
    ranks = [0.0] * len(samples)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and samples[order[end + 1]] == samples[order[start]]:
            end += 1
        for position in range(start, end + 1):
            ranks[order[position]] = (start + end) / 2
        start = end + 1
    middle = (len(samples) - 1) / 2
    across = sum((i - middle) * (r - middle) for i, r in enumerate(ranks))
    along = sum((i - middle) ** 2 for i in range(len(samples)))
    spread = sum((r - middle) ** 2 for r in ranks)
    return across / math.sqrt(along * spread) if spread else 0.0


def drift(samples_ns: Sequence[int]) -> str | None:
    count = len(samples_ns)
    if count < DRIFT_SAMPLES:
        return None
    fifth = max(2, count // 5)
    first = _native.median(list(samples_ns[:fifth]))
    last = _native.median(list(samples_ns[-fifth:]))
    change = last / first - 1
    if abs(change) < DRIFT_CHANGE:
        return None
    rank = rank_correlation(samples_ns)
    if abs(rank) < DRIFT_RANK or rank * change < 0:
        return None
    word = "slower" if change > 0 else "faster"
    cause = "it throttles or heats up" if change > 0 else "it was still warming up"
    return f"Runs became {abs(change):.0%} {word} from the first fifth to the last: {cause}."


def wide_interval(summary: Summary) -> str | None:
    if summary.interval_s is None:
        return None
    low, high = summary.interval_s
    width = (high - low) / 2 / summary.median_s
    if width <= INTERVAL_WIDTH:
        return None
    return f"The median is known to ±{width:.0%} only: run times scatter; try again when idle."


def modes(samples: Sequence[int]) -> tuple[float, float] | None:
    """(lower, upper) mean of two groups that explain MODES_VARIANCE of the variance, or None.

    The split is the one that explains most (Otsu's criterion); each group must hold MODES_SHARE
    of the samples and their means be MODES_DISTANCE apart.
    """
    ordered = sorted(samples)
    count = len(ordered)
    total = sum(ordered)
    mean = total / count
    variance = sum((x - mean) ** 2 for x in ordered) / count
    if variance == 0:
        return None
    best = (0.0, 0.0, 0.0)
    below = 0
    for i in range(1, count):
        below += ordered[i - 1]
        if min(i, count - i) < MODES_SHARE * count:
            continue
        low, high = below / i, (total - below) / (count - i)
        best = max(best, (i * (count - i) / count**2 * (high - low) ** 2, low, high))
    between, low, high = best
    if between / variance < MODES_VARIANCE or high < (1 + MODES_DISTANCE) * low:
        return None
    return low, high


def two_modes(samples_ns: Sequence[int]) -> str | None:
    if len(samples_ns) < DRIFT_SAMPLES:
        return None
    found = modes(samples_ns)
    if found is None:
        return None
    return (
        f"Run times fall into two groups, around {found[0] * 1e-6:.3g} and {found[1] * 1e-6:.3g} "
        "ms: the median belongs to one of them."
    )


def scatter(samples_ns: Sequence[int], summary: Summary) -> str | None:
    """What says that run times are not those of one steady state, as a sentence, or None."""
    return drift(samples_ns) or two_modes(samples_ns) or wide_interval(summary)


def noisy_neighbour(e: Evidence) -> str | None:
    if e.window_s <= 0 or e.case.device == "gpu":
        return None
    unsure = TICKS_S * (e.processors or 1) if e.window_s < NOISE_SECONDS else 0.0

    def each_second(name: str, less: float = 0.0) -> float:
        return max(0.0, e.readings.get(name, 0.0) - less) / e.window_s

    steal, other = each_second("steal_time", unsure), each_second("other_cpu_time", unsure)
    if steal > STEAL_SHARE:
        return f"The host gave {steal:.0%} of a processor's time to other guests meanwhile."
    if other <= OTHER_SHARE:
        return None
    switches = each_second("involuntary_switches")
    used = f"Other processes used {other:.0%} of a processor meanwhile"
    if switches > SWITCHES_PER_SECOND:
        return f"{used} and interrupted this one {switches:.0f} times a second."
    own = each_second("user_time") + each_second("system_time")
    if e.processors is not None and own + other > BUSY_SHARE * e.processors:
        return f"{used}, when all {e.processors} were busy."
    return None


def little_overlap(e: Evidence) -> str | None:
    if e.details.shared_window is None:
        return None
    share = e.details.shared_window.overlap
    if share >= OVERLAP_LEAST:
        return None
    return f"CPU and GPU were busy together in {share:.0%} of the window only."


def few_samples(e: Evidence) -> str | None:
    if e.summary.count >= MIN_SAMPLES:
        return None
    runs = "run" if e.summary.count == 1 else "runs"
    return f"{e.summary.count} {runs}: too few to say how far the number scatters."
