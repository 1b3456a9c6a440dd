"""Published ceilings of a case, from the figures of data/chips.toml."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nnbt.peaks.chips import chip, cpu
from nnbt.spec.case import Case
from nnbt.spec.precision import unit_dtype

PEAK_TYPE = {"tfloat32": "tf32", "float8_e4m3": "float8"}
"""Names in data/chips.toml of dtypes that it calls otherwise."""


@dataclass(frozen=True)
class Ceiling:
    """The most that the device can do, in the base unit of the case, and where that is from."""

    rate: float
    source: str


def published_ceiling(
    case: Case, facts: Mapping[str, Any], precision: str, clock_hz: float | None = None
) -> Ceiling | None:
    """The most that the GPU in `facts` can do for this case, in its base unit; None if unknown.

    This is the published peak, or that of the same units at the clock right after the timed runs if
    it is higher: GPUs boost. `precision` is how a float32 product was computed, since TF32 has a
    peak of its own. CPUs have none here: engines measure their clock and peak.
    """
    # Winograd needs up to 2.25 times fewer products than are counted for 3 x 3 kernels.
    if case.device != "gpu" or int(case.params.get("kernel", 1)) > 1:
        return None
    known = chip(str(facts.get("device_name", "")))
    if known is None:
        return None
    if case.metric == "bandwidth":
        rate = known.memory.bytes_per_s
        return Ceiling(rate, f"{known.name}: {rate * 1e-9:,.0f} GB/s published")
    computed = unit_dtype(case.dtype, precision)
    if computed is None:
        return None
    token = PEAK_TYPE.get(computed, computed)
    peak = known.peaks.get(token)
    if peak is None or peak.per_s is None:
        return None
    at_clock = known.peak_at(clock_hz, token) if clock_hz else None
    if clock_hz and at_clock is not None and at_clock > peak.per_s:
        how = f"{peak.per_clock:g} per unit and clock at {clock_hz / 1e9:.2f} GHz"
        return Ceiling(at_clock, f"{known.name}: {at_clock * 1e-12:,.0f} T{token}, {how}")
    return Ceiling(peak.per_s, f"{known.name}: {peak.per_s * 1e-12:,.0f} T{token} published")


def known_processor(facts: Mapping[str, Any]) -> bool:
    """Whether data/chips.toml has a row of the CPU in `facts`."""
    name = str(facts.get("cpu") or "")
    return chip(name) is not None or cpu(name) is not None


def published_memory(facts: Mapping[str, Any]) -> Ceiling | None:
    """The published memory bandwidth of the CPU in `facts`, of one socket; None if unknown.

    It is not a ceiling of a case: a part of a socket, or of a machine shared with others, has less.
    """
    name = str(facts.get("cpu") or "")
    apple, family = chip(name), cpu(name)
    known = apple or family
    if known is None:
        return None
    part = "" if apple else ", one socket"
    note = f"; {known.memory.note}" if known.memory.note else ""
    return Ceiling(known.memory.bytes_per_s, f"{known.name}{part}{note}")
