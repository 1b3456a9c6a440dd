"""Checks of the work: whether a rate is one of the work that it names.

Each function returns the sentence if its check does not pass, else None.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nnbt.timing.slope import DOUBLING, HEADLINE_SHARE, headline_share
from nnbt.verdict.checks.timing import noisy_neighbour, too_short_for_neighbours

if TYPE_CHECKING:
    from nnbt.verdict.evidence import Evidence

UNCLEAR_DOUBLING = 1.4
BENT_RESIDUAL = 0.5
MEDIAN_RATIO = 1.8
"""Of 692 rows on two processors that nothing disturbed the largest was 1.75."""


def work_not_done(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None:
        return None
    if e.slope.doubling >= DOUBLING[0] or slope_unclear(e):
        return None
    largest = max(e.slope.seconds)
    return (
        f"{largest} units of work took {e.slope.doubling:.2f} times as long as {largest // 2}: "
        "work was merged, cached or skipped, so the rate is not a rate of this work."
    )


def slope_unclear(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None:
        return None
    short = too_short_for_neighbours(e)
    if not short and noisy_neighbour(e) is None:
        return None
    if not UNCLEAR_DOUBLING < e.slope.doubling < DOUBLING[0]:
        return None
    if short:
        meanwhile = f"in {e.window_s * 1e3:.0f} ms, too short to see whether other processes ran"
        advice = "take a larger size or more --max-seconds"
    else:
        meanwhile, advice = "while other processes ran", "try again when idle"
    return (
        f"Doubling the work took {e.slope.doubling:.2f} times as long {meanwhile}: "
        f"that neither proves nor disproves the work; {advice}."
    )


def headline_off_slope(e: Evidence) -> str | None:
    if e.slope is None:
        return None
    # Beside others the fastest of thousands is a moment without them, and no K of a slope has one:
    # 0.09 of three true rows of 2,220, at a load of 10 on two processors.
    neighbours = too_short_for_neighbours(e) or noisy_neighbour(e) is not None
    which, seconds = ("median", e.summary.median_s) if neighbours else ("fastest", e.summary.best_s)
    share = headline_share(e.slope, e.units, seconds, e.floor_s or 0.0)
    disturbed = neighbours or superlinear(e) is not None
    if share is None or share >= HEADLINE_SHARE / (2 if disturbed else 1):
        return None
    return (
        f"The {which} timed run took {max(0.0, share):.2g} times what the slope says of its "
        f"{e.units} units of work: the timed runs did less of it, or the slope was disturbed."
    )


def median_off_slope(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None or e.slope.unit_s <= 0:
        return None
    expected = e.slope.overhead_s + e.units * e.slope.unit_s
    if e.summary.median_s <= MEDIAN_RATIO * expected:
        return None
    return (
        f"The median run took {e.summary.median_s / expected:.2g} times what the slope says of it "
        f"({e.summary.median_s * 1e3:.3g} for {expected * 1e3:.3g} ms): the machine was slower in "
        "most of the timed runs than it can be."
    )


def slope_bent(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None or e.slope.residual <= BENT_RESIDUAL:
        return None
    times = ", ".join(f"{float(f'{t * 1e6:.3g}'):,g}" for t in e.slope.seconds.values())
    return (
        f"Times of {', '.join(map(str, e.slope.seconds))} units of work ({times} us) are up to "
        f"{e.slope.residual:.0%} off a straight line: neither rate holds for both ends."
    )


def superlinear(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None or e.slope.doubling <= DOUBLING[1]:
        return None
    largest = max(e.slope.seconds)
    return (
        f"{largest} units of work took {e.slope.doubling:.2f} times as long as {largest // 2}: "
        "the machine slows down under longer work, so neither rate holds for both."
    )


def slope_unknown(e: Evidence) -> str | None:
    if e.slope is None:
        why = e.slope_missing or "it was switched off"
        return f"The slope check was not run ({why})."
    if e.slope.doubling is None and len(e.slope.seconds) == 2:
        return (
            "The slope check can't tell: two values of K fit into its time, and of two no constant "
            "cost can be told; raise --max-seconds."
        )
    if e.slope.doubling is None:
        return "The slope check can't tell: the work is too short beside an empty evaluation."
    return None


def no_rate(e: Evidence) -> str | None:
    if not (math.isfinite(e.rate) and e.rate > 0):
        return f"The rate came out as {e.rate:g}: work or time were not counted."
    if e.ceiling is not None and not (math.isfinite(e.ceiling.rate) and e.ceiling.rate > 0):
        return f"The ceiling of the device is {e.ceiling.rate:g} ({e.ceiling.source}): no rate."
    return None


def alias(e: Evidence) -> str | None:
    if e.answer is None or e.answer.distinct is not False:
        return None
    return "The output shares the buffer of its input: nothing was copied."


def above_ceiling(e: Evidence, low: float, high: float) -> str | None:
    if e.ceiling is None or no_rate(e) is not None:
        return None
    share = e.rate / e.ceiling.rate
    if not low < share <= high:
        return None
    return f"The rate is {share:.0%} of what the device can do ({e.ceiling.source})."


def slope_above_ceiling(e: Evidence, most: float) -> str | None:
    if e.ceiling is None or e.slope is None or e.slope.doubling is None or no_rate(e) is not None:
        return None
    if e.slope.unit_s <= 0:
        return None
    share = e.rate * e.summary.median_s / (e.units * e.slope.unit_s) / e.ceiling.rate
    if share <= most:
        return None
    return (
        f"The slope rate is {share:.0%} of what the device can do ({e.ceiling.source}): its few "
        "runs were disturbed. The rate of the median does not depend on it."
    )


def placed(e: Evidence, verdicts: tuple[str, ...]) -> str | None:
    placement = e.details.placement
    if placement is None or placement.verdict not in verdicts:
        return None
    return f"Placement is {placement.verdict}: {'; '.join(placement.evidence)}."


def cache_resident(e: Evidence) -> str | None:
    if e.case.metric != "bandwidth" or e.cache_bytes is None or e.case.device != "cpu":
        return None
    what, size = "All buffers together are", e.resident_bytes
    if e.array_bytes is not None:
        what, size = "Each array is", e.array_bytes
    if size >= 4 * e.cache_bytes:
        return None
    return (
        f"{what} {_size(size)}, less than 4 times the last cache ({_size(e.cache_bytes)}): part of "
        "the traffic never reaches memory."
    )


def _size(bytes_: int) -> str:
    return f"{bytes_ / 2**20:,.0f} MiB" if bytes_ >= 2**20 else f"{bytes_ / 2**10:,.0f} KiB"
