"""Checks of what else ran: background load on the CPUs, and both sides of a hybrid run.

Each function returns the sentence if its check fails, else None.
"""

from nnbt.verdict.evidence import Evidence

STEAL_SHARE = 0.10
OTHER_SHARE = 0.25
SWITCHES_PER_SECOND = 20
BUSY_SHARE = 0.95
SHORT_WINDOW_S = 0.5
"""In shorter windows the ticks (10 ms per CPU) that CPU time is counted in look like background
load: in 11 % of rows of 0.15 s on an idle host."""
TICKS_S = 0.02  # possible error of CPU time, per CPU: one tick at each end
OVERLAP_LEAST = 0.9


def background_load(e: Evidence) -> str | None:
    if e.window_s <= 0 or e.case.device == "gpu":
        return None
    unsure = TICKS_S * (e.processors or 1) if e.window_s < SHORT_WINDOW_S else 0.0

    def per_second(name: str, less: float = 0.0) -> float:
        return max(0.0, e.readings.get(name, 0.0) - less) / e.window_s

    steal, other = per_second("steal_time", unsure), per_second("other_cpu_time", unsure)
    if steal > STEAL_SHARE:
        return f"The hypervisor took {steal:.2f} CPUs for other guests during the window."
    if other <= OTHER_SHARE:
        return None
    switches = per_second("involuntary_switches")
    used = f"Other processes used {other:.2f} CPUs during the window"
    if switches > SWITCHES_PER_SECOND:
        return f"{used} and interrupted this one {switches:.0f} times per second."
    own = per_second("user_time") + per_second("system_time")
    if e.processors is not None and own + other > BUSY_SHARE * e.processors:
        return f"{used}, and all {e.processors} were busy."
    return None


def too_short_for_background_load(e: Evidence) -> bool:
    """Whether the window is too short to detect background load."""
    short = e.window_s < SHORT_WINDOW_S and e.case.device != "gpu"
    return short and background_load(e) is None


def little_overlap(e: Evidence) -> str | None:
    shared = e.details.shared_window
    if shared is None or shared.overlap >= OVERLAP_LEAST:
        return None
    return f"CPU and GPU were busy at the same time in only {shared.overlap:.0%} of the window."
