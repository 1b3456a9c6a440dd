"""Published convolution results to set ours beside, each with its caveat, from data/."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from nnbt.peaks.chips import chip, read_data
from nnbt.spec.case import Case

_VARIANTS = {"float16": "fp16", "int8": "int8", "qdq": "qdq"}


@dataclass(frozen=True)
class Shape:
    """A chain of equal square convolutions: input [batch, channels, size, size]."""

    batch: int
    channels: int
    size: int
    kernel: int
    layers: int

    @property
    def ops(self) -> int:
        """Two operations per multiply-add, borders counted in full."""
        pixels = self.batch * self.size**2
        return 2 * pixels * self.channels**2 * self.kernel**2 * self.layers

    def distance(self, other: Shape) -> float:
        """Sum over the dimensions of how many doublings apart the two are."""
        mine = (self.batch, self.channels, self.size, self.kernel, self.layers)
        theirs = (other.batch, other.channels, other.size, other.kernel, other.layers)
        return sum(abs(math.log2(a / b)) for a, b in zip(mine, theirs, strict=True))


@dataclass(frozen=True)
class Reference:
    """One published row."""

    model: str
    chip: str  # a chip's id in chips.toml; empty where it isn't listed
    device: str  # `gpu` or `ane`
    variant: str  # `fp16`, `int8` or `qdq`
    shape: Shape
    latency_ns: float
    ops_per_s: float  # as printed; it agrees with shape and latency within their rounding
    source: str
    url: str
    caveat: str
    valid: bool  # whether the row may serve as a ceiling for dense data
    confidence: str


@cache
def references() -> tuple[Reference, ...]:
    """Return every published row."""
    data = read_data("reference_results.toml")
    shapes = {name: Shape(**row) for name, row in data["shapes"].items()}
    return tuple(
        Reference(
            model=row["model"],
            chip=row.get("chip", ""),
            device=row["device"],
            variant=row["variant"],
            shape=shapes[row["shape"]],
            latency_ns=row["ms"] * 1e6,
            ops_per_s=row["tops"] * 1e12,
            source=data["sources"][row["source"]]["title"],
            url=data["sources"][row["source"]]["url"],
            caveat=data["caveats"][row["caveat"]],
            valid=row["valid"],
            confidence=row["confidence"],
        )
        for row in data["result"]
    )


def nearest(
    shape: Shape, *, device: str, variant: str, chip: str | None = None, valid_only: bool = False
) -> Reference | None:
    """Return the row of the same device and variant whose shape is closest; None without one.

    `chip` (an id of chips.toml) keeps other chips out. Of rows equally close the first counts.
    Raises ValueError for a shape with a dimension below 1.
    """
    if min(shape.batch, shape.channels, shape.size, shape.kernel, shape.layers) < 1:
        raise ValueError("every dimension of a shape is at least 1")
    rows = [
        row
        for row in references()
        if row.device == device
        and row.variant == variant
        and (chip is None or row.chip == chip)
        and (row.valid or not valid_only)
    ]
    return min(rows, key=lambda row: row.shape.distance(shape), default=None)


@dataclass(frozen=True)
class PublishedResult:
    """A published result to set beside a row; `rate` is in operations per second."""

    model: str
    rate: float
    latency_s: float
    valid: bool
    url: str
    note: str


def beside(case: Case, device_name: str) -> PublishedResult | None:
    """The published row nearest to a case of `conv`; None without one.

    Rows of the same chip come first.
    """
    variant = _VARIANTS.get(case.dtype)
    if variant is None:
        return None
    numbers = {name: int(case.params[name]) for name in ("batch", "channels", "kernel", "layers")}
    shape = Shape(size=case.n, **numbers)
    here = chip(device_name)
    row = None
    if here is not None:
        row = nearest(shape, device=case.device, variant=variant, chip=here.id)
    row = row or nearest(shape, device=case.device, variant=variant)
    if row is None:
        return None
    other = row.shape
    note = (
        f"nearest published: {row.model}, {row.device} {row.variant}, C={other.channels} "
        f"n={other.size} K={other.kernel} L={other.layers}: {row.ops_per_s * 1e-12:.4g} TOPS "
        f"({row.source}). {row.caveat}"
    )
    return PublishedResult(
        row.model, row.ops_per_s, row.latency_ns * 1e-9, row.valid, row.url, note
    )
