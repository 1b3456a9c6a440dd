"""Codes of reasons that were renamed: files of schema 1 hold the old ones."""

from __future__ import annotations

RENAMED = {
    "SLOPE_UNCLEAR": "SLOPE_DISAGREES",
    "MEDIAN_OFF_SLOPE": "SLOPE_DISAGREES",
    "SLOPE_BENT": "SLOPE_DISAGREES",
    "SUPERLINEAR": "SLOPE_DISAGREES",
    "LATENCY_BOUND": "LAUNCH_BOUND",
    "TWO_MODES": "BIMODAL",
    "NOISY_NEIGHBOUR": "BACKGROUND_LOAD",
    "COUNTERS_DO_NOT_CLOSE": "COUNTERS_INCONSISTENT",
    "STALLS_DO_NOT_CLOSE": "STALLS_INCONSISTENT",
}
"""New code by old one. Several codes of one row may become the same."""
