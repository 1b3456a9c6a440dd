"""Checks of the timed runs: their number, their noise, the clock, and what their time includes.

Each check returns its sentence if it fails, else None.
"""

from nnbt.timing import scatter
from nnbt.timing.scatter import Scatter
from nnbt.timing.statistics import MIN_SAMPLES
from nnbt.timing.window import OtherWindow
from nnbt.verdict.evidence import Evidence

FLOOR_SHARE = 0.05
CLOCK_TICKS = 1000
FAULTS_PER_MIB = 1.0
LEAST_FAULTS = 1000  # any process has fewer than this (4 MiB), whatever it does


def page_faults(e: Evidence) -> str | None:
    faults = e.readings.get("minor_faults")
    if faults is None or not e.written_bytes or e.case.device != "cpu":
        return None
    rate = faults / (e.written_bytes / 2**20)
    if rate <= FAULTS_PER_MIB or faults < LEAST_FAULTS:
        return None
    return (
        f"There were {rate:.0f} page faults per MiB written: the time includes mapping fresh "
        "memory, not only moving bytes."
    )


def launch_bound(e: Evidence) -> str | None:
    if e.floor_s is None or e.floor_s <= FLOOR_SHARE * e.summary.median_s:
        return None
    share = e.floor_s / e.summary.median_s
    part = f"{share:.{0 if share >= 0.1 else 1}%} of" if share < 1 else "not less than"
    told = e.slope is not None and e.slope.doubling is not None
    advice = "use the slope, which excludes it, or a larger size" if told else "use a larger size"
    return (
        f"Launch overhead is {part} the median run (an empty evaluation takes "
        f"{e.floor_s * 1e6:.0f} us): {advice}."
    )


def coarse_clock(e: Evidence) -> str | None:
    if e.summary.median_s * 1e9 >= CLOCK_TICKS * e.clock_resolution_ns:
        return None
    return (
        f"A run is shorter than {CLOCK_TICKS} ticks of the clock ({e.clock_resolution_ns} ns): "
        "use a larger size."
    )


def drift(e: Evidence) -> str | None:
    change = scatter.drift(e.samples_ns)
    if change is None:
        return None
    word, cause = ("slower", "throttling") if change > 0 else ("faster", "still warming up")
    return (
        f"Runs became {abs(change):.0%} {word} from the first fifth to the last ({cause}): the "
        "median is that of neither state."
    )


def wide_interval(e: Evidence) -> str | None:
    width = scatter.wide_interval(e.summary)
    if width is None:
        return None
    return (
        f"The 95 % confidence interval of the median is ±{width:.0%}: measure again when the "
        "machine is idle."
    )


def bimodal(e: Evidence) -> str | None:
    groups = scatter.modes(e.samples_ns)
    if groups is None:
        return None
    return (
        f"Run times form two groups, around {groups[0] * 1e-6:.3g} and {groups[1] * 1e-6:.3g} ms: "
        "the median describes at most one of them."
    )


def few_samples(e: Evidence) -> str | None:
    if e.summary.count >= MIN_SAMPLES:
        return None
    runs = "run is" if e.summary.count == 1 else "runs are"
    return f"{e.summary.count} {runs} too few for a confidence interval."


def window_note(other: OtherWindow) -> str:
    """The note of a row that was timed in two windows."""
    if other.which == "first":
        return f"measured twice, this is the second window; the first: {_noise(other.scatter)}"
    return f"measured twice, noisy both times; the second window: {_noise(other.scatter)}"


def _noise(found: Scatter | None) -> str:
    if found is None:
        return "too short to tell"
    amount = f"{abs(found.amount):.0%}"
    if found.code == "DRIFT":
        return f"runs became {amount} {'slower' if found.amount > 0 else 'faster'}"
    if found.code == "BIMODAL":
        return f"two groups of run times, {amount} apart"
    return f"interval of the median ±{amount}"
