"""The clock that the chip itself counted, from the stamps of chip_clock.cu."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WORDS = 4  # per block: cycles and nanoseconds at its start, cycles and nanoseconds at its end
LEAST_NS = 100_000
"""Shortest block: the nanosecond counter of some chips has steps of 1 us, 1 % of this."""


class ChipClock(NamedTuple):
    """Clock in Hz, seconds from the first block's start to the last one's end, and launches."""

    hz: float
    span_s: float
    launches: int


def chip_clock(launches: Sequence[NDArray[np.uint64]]) -> ChipClock | None:
    """Median over all blocks of cycles per second, from stamps (blocks, WORDS) of each launch.

    None where a block wrote no stamps or ran for less than LEAST_NS.
    """
    stamps = np.concatenate([np.empty((0, WORDS), np.uint64), *launches])
    cycles, ns = (stamps[:, 2 + i].astype(np.int64) - stamps[:, i].astype(np.int64) for i in (0, 1))
    if not stamps.size or not stamps.all() or cycles.min() <= 0 or ns.min() < LEAST_NS:
        return None
    span_ns = int(stamps[:, 3].max()) - int(stamps[:, 1].min())
    return ChipClock(float(np.median(cycles / (ns * 1e-9))), span_ns * 1e-9, len(launches))
