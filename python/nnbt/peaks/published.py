"""What a device can do at most for a case, from the published figures of data/chips.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nnbt.peaks.chips import chip, cpu

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nnbt.spec.case import Case


@dataclass(frozen=True)
class Ceiling:
    """What the device can do at most, in the base unit of the case, and where that is from."""

    rate: float
    source: str


PEAK_TYPE = {"complex64": "float32", "tfloat32": "tf32", "float8_e4m3": "float8"}
"""Types whose products run on the units of another one; complex64 counts real operations."""


def published_ceiling(
    case: Case, facts: Mapping[str, Any], precision: str, clock_hz: float | None = None
) -> Ceiling | None:
    """The most that the GPU in `facts` can do for this case, in its base unit; None if unknown.

    That is the published peak, or the same units at the clock seen right after the timed runs
    where it is above the published one: GPUs boost. `precision` is how float32 was computed: TF32
    has a peak of its own. CPUs have none here: engine `native` measures their clock and peak.
    """
    # Winograd needs up to 2.25 times fewer products than are counted for 3 x 3 kernels.
    if case.device != "gpu" or int(case.params.get("kernel", 1)) > 1:
        return None
    known = chip(str(facts.get("device_name", "")))
    if known is None:
        return None
    if case.metric == "bandwidth":
        figure = known.memory_bytes_per_s()
        return Ceiling(figure.value, f"{known.name}: {figure.value * 1e-9:,.0f} GB/s published")
    token = "tf32" if precision == "TF32" else PEAK_TYPE.get(case.dtype, case.dtype)
    published = known.ceiling(token)
    if published is None:
        return None
    at_clock = known.ceiling(token, clock_hz=clock_hz) if clock_hz else None
    if at_clock is not None and at_clock.value > published.value:
        words = f"{at_clock.value * 1e-12:,.0f} T{token}, {at_clock.note}"
        return Ceiling(at_clock.value, f"{known.name}: {words}")
    return Ceiling(
        published.value, f"{known.name}: {published.value * 1e-12:,.0f} T{token} published"
    )


def known_processor(facts: Mapping[str, Any]) -> bool:
    """Whether data/chips.toml has a row of the processor in `facts`."""
    name = str(facts.get("cpu") or "")
    return chip(name) is not None or cpu(name) is not None


def published_memory(facts: Mapping[str, Any]) -> Ceiling | None:
    """The published memory bandwidth of the processor in `facts`, of one socket; None if unknown.

    It is no ceiling of a case: a part of a socket, or of a machine shared with others, has less.
    """
    name = str(facts.get("cpu") or "")
    apple, family = chip(name), cpu(name)
    if apple is not None:
        return Ceiling(apple.memory_bytes_per_s().value, f"{apple.name}, all its versions")
    if family is None or family.memory_bytes_per_s is None:
        return None
    figure = family.memory_bytes_per_s
    note = f"; {figure.note}" if figure.note else ""
    return Ceiling(figure.value, f"{family.name}, one socket{note}")
