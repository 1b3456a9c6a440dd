"""Details: what an engine adds to a result beside its time, one typed field a concept.

A field that an engine does not fill is None. Checks, columns and the ladder read these fields, so
they live below the engines that fill them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ClockPeak:
    """Units x operations a cycle x the clock counted under load, in operations a second."""

    rate: float
    source: str


@dataclass(frozen=True)
class VendorLibrary:
    """The library behind a product, as far as it identifies itself."""

    name: str
    version: str = ""
    kernels: str = ""
    """CPU architecture whose kernels a BLAS chose, such as `Haswell`."""
    algorithm: str = ""
    """The fastest algorithm of cuBLASLt."""

    @property
    def label(self) -> str:
        """Such as `openblas 0.3.31, SkylakeX kernels`."""
        named = f"{self.name} {self.version}".rstrip()
        kernels = f"{self.kernels} kernels" if self.kernels else ""
        return ", ".join(filter(None, (named, kernels, self.algorithm)))


@dataclass(frozen=True)
class SideRates:
    """One device of a shared window; rates in bytes a second, `slowdown` is solo over shared."""

    solo_rate: float
    overlap_rate: float
    slowdown: float | None
    repetitions: int


@dataclass(frozen=True)
class SharedWindow:
    """CPU and GPU at the same time; `overlap` is the share of the window with both busy."""

    overlap: float
    cpu: SideRates
    gpu: SideRates


@dataclass(frozen=True)
class Placement:
    """Where a chain for the Neural Engine ran, and what shows it."""

    verdict: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Details:
    """What engines add to a result."""

    shared_window: SharedWindow | None = None
    """Engine mlx on device hybrid."""
    fits_in: str | None = None
    """Engine native: the cache level that holds all arrays, or `memory`."""
    core_clock_hz: float | None = None
    """Engine native: clock of the cores under a peak chain."""
    chip_clock_hz: float | None = None
    """Engine kernel: clock of the GPU, counted by the kernel itself."""
    clock_peak: ClockPeak | None = None
    """Engines native and kernel: the peak at that clock."""
    ops_per_clock: int | None = None
    """Engine kernel: operations of the whole GPU per clock cycle, for this dtype."""
    not_a_ceiling: str = ""
    """Engine kernel: why the rate is no ceiling of this chip."""
    library: VendorLibrary | None = None
    """Engine library."""
    compile_s: float | None = None
    """Engine mpsgraph: time to compile or load the chain."""
    device_name: str = ""
    """Engine mpsgraph: the device that the chain was compiled for."""
    relative_error: float | None = None
    """Engine mpsgraph: of the compared outputs."""
    placement: Placement | None = None
    """Engine mpsgraph on device ane."""
    counters: Mapping[str, Any] | None = None
    """Engine mpsgraph on device ane: hardware counters, raw and decoded."""
    power: Mapping[str, Any] | None = None
    """Engine mpsgraph: energy and clocks from IOReport."""
