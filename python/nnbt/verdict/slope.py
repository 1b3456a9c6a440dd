"""Checks of slope timing: whether the stated work was done, in all runs alike.

Each function returns the sentence if its check fails, else None.
"""

from nnbt.timing.slope import DOUBLING, HEADLINE_SHARE, headline_share
from nnbt.verdict.background import background_load, too_short_for_background_load
from nnbt.verdict.evidence import Evidence

UNCLEAR_DOUBLING = 1.4
BENT_RESIDUAL = 0.5
MEDIAN_RATIO = 1.8  # the largest of 692 rows on two CPUs without background load was 1.75


def work_not_done(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None:
        return None
    if e.slope.doubling >= DOUBLING[0] or unclear(e):
        return None
    largest = max(e.slope.seconds)
    return (
        f"{largest} units of work took {e.slope.doubling:.2f} times as long as {largest // 2}: "
        "work was merged, cached or skipped, so this is not the rate of the stated work."
    )


def headline_off_slope(e: Evidence) -> str | None:
    if e.slope is None:
        return None
    # Under background load the fastest of thousands of runs is a moment without it, and no K of a
    # slope has one: 0.09 in three correct rows of 2,220, at a load of 10 on two CPUs.
    loaded = too_short_for_background_load(e) or background_load(e) is not None
    which, seconds = ("median", e.summary.median_s) if loaded else ("fastest", e.summary.best_s)
    share = headline_share(e.slope, e.units, seconds, e.floor_s or 0.0)
    lenient = loaded or superlinear(e) is not None
    if share is None or share >= HEADLINE_SHARE / (2 if lenient else 1):
        return None
    return (
        f"The {which} run took {max(0.0, share):.2g} times what the slope predicts for its "
        f"{e.units} units of work: the timed runs did less of it, or the slope is distorted."
    )


def slope_disagrees(e: Evidence) -> str | None:
    """Names everything that holds of `DISAGREEMENTS`, in that order."""
    found = [sentence for test in DISAGREEMENTS.values() if (sentence := test(e)) is not None]
    return f"Slope and timed runs disagree: {'; '.join(found)}." if found else None


def unclear(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None:
        return None
    short = too_short_for_background_load(e)
    if not short and background_load(e) is None:
        return None
    if not UNCLEAR_DOUBLING < e.slope.doubling < DOUBLING[0]:
        return None
    if short:
        when = f"in {e.window_s * 1e3:.0f} ms, too short to detect background load"
        advice = "use a larger size or a longer --max-seconds"
    else:
        when, advice = "under background load", "measure again when the machine is idle"
    return (
        f"doubling the work took {e.slope.doubling:.2f} times as long {when}, which does not show "
        f"whether the work was done ({advice})"
    )


def median_off_slope(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None or e.slope.unit_s <= 0:
        return None
    expected = e.slope.overhead_s + e.units * e.slope.unit_s
    if e.summary.median_s <= MEDIAN_RATIO * expected:
        return None
    return (
        f"the median run took {e.summary.median_s / expected:.2g} times what the slope predicts "
        f"({e.summary.median_s * 1e3:.3g} instead of {expected * 1e3:.3g} ms), so the machine was "
        "slow for most of the window"
    )


def bent(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None or e.slope.residual <= BENT_RESIDUAL:
        return None
    times = ", ".join(f"{float(f'{t * 1e6:.3g}'):,g}" for t in e.slope.seconds.values())
    return (
        f"the times of {', '.join(map(str, e.slope.seconds))} units of work ({times} us) are up to "
        f"{e.slope.residual:.0%} off a straight line"
    )


def superlinear(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None or e.slope.doubling <= DOUBLING[1]:
        return None
    largest = max(e.slope.seconds)
    return (
        f"{largest} units of work took {e.slope.doubling:.2f} times as long as {largest // 2}, so "
        "longer work is slower"
    )


DISAGREEMENTS = {
    "unclear": unclear,
    "median": median_off_slope,
    "bent": bent,
    "superlinear": superlinear,
}


def slope_unknown(e: Evidence) -> str | None:
    if e.slope is None:
        return f"No slope was measured ({e.slope_missing or 'it was switched off'})."
    if e.slope.doubling is not None:
        return None
    if len(e.slope.seconds) == 2:
        return (
            "The slope cannot tell whether the work was done: two values of K are too few to "
            "separate work from the fixed cost; use a longer --max-seconds."
        )
    return (
        "The slope cannot tell whether the work was done: the work is too short compared with the "
        "launch overhead."
    )
