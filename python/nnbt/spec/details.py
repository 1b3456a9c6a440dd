"""Details: what an engine adds to a result beside its time, one typed field a concept.

A field that an engine does not fill is None. Checks, columns and the ladder read these fields, so
they live below the engines that fill them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ClockPeak:
    """Units x operations per cycle x the clock counted under load, in operations per second."""

    rate: float
    source: str


@dataclass(frozen=True)
class VendorLibrary:
    """The library behind a product, as far as it identifies itself."""

    name: str
    version: str = ""
    kernels: str = ""  # CPU architecture whose kernels a BLAS chose, such as `Haswell`
    algorithm: str = ""  # the fastest algorithm of cuBLASLt

    @property
    def label(self) -> str:
        """Such as `openblas 0.3.31, SkylakeX kernels`."""
        named = f"{self.name} {self.version}".rstrip()
        kernels = f"{self.kernels} kernels" if self.kernels else ""
        return ", ".join(filter(None, (named, kernels, self.algorithm)))


@dataclass(frozen=True)
class SideRates:
    """One device of a shared window; rates in bytes per second, `slowdown` is solo over shared."""

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
class RegisterReading:
    """What a register of the Neural Engine is believed to count."""

    meaning: str
    unit: str
    confidence: str  # `none`, `low`, `medium` or `high`


@dataclass(frozen=True)
class RegisterChange:
    """Change of one register over one evaluation."""

    index: int
    label: str  # the framework's own name
    delta: int | None  # None for a register that was not saved
    reading: RegisterReading


@dataclass(frozen=True)
class CycleShare:
    """A register as a share of the nominal cycles, from 0 to 1, under the framework's own name.

    It explains the time only where the identity `framework_closure` holds.
    """

    index: int
    label: str
    of_nominal: float


@dataclass(frozen=True)
class AccountingIdentity:
    """Two figures that must agree if the registers mean what they are believed to mean."""

    name: str
    scope: str
    """`numbers` (headline), `breakdown` (stalls, traffic) or `hypothesis` (our own relabelling)."""
    claim: str
    left: float
    right: float
    holds: bool


@dataclass(frozen=True)
class DecodedCounters:
    """What the counters of one evaluation support. A number that they do not support is None."""

    status: str  # a key of `ane.STATUSES`; numbers that rest on cycles are given for `ok` only
    layout: str | None = None
    """Where the DMA registers are: `dma17`, `dma21`, or None where the data does not say."""
    layout_evidence: tuple[str, ...] = ()
    macs_per_cycle_core: float | None = None
    """Multiply-accumulates / register 10, which is already summed over cores."""
    macs_per_cycle_chip: float | None = None  # the same times `cores`
    peak_macs_per_cycle_core: float | None = None
    """256 for FP16; for INT8 256 up to h15 and 512 from h16 on."""
    utilisation: float | None = None
    """Share of that peak, at most 1. None above it: see ABOVE_MAC_CEILING."""
    clock_hz: float | None = None
    """Register 10 / (hardware time x cores); from wall time it is a lower bound."""
    ops_per_s: float | None = None  # 2 operations per multiply-accumulate, by wall time
    hw_ops_per_s: float | None = None  # the same by hardware time
    ceiling_ops_per_s: float | None = None  # 2 x peak x cores x clock_hz
    dispatch_ns: float | None = None  # wall time minus hardware time
    dma_register: int | None = None  # the register taken for memory traffic
    dma_bytes: float | None = None
    """64 x that register, if it lies within the traffic bounds of the work."""
    dma_read_bytes: float | None = None
    dma_bytes_per_s: float | None = None
    energy_units: float | None = None  # accumulator of unknown unit; it gives no joules
    shares: tuple[CycleShare, ...] = ()
    identities: tuple[AccountingIdentity, ...] = ()
    reasons: tuple[str, ...] = ()  # keys of `ane.REASONS`
    windows_used: int = 0
    windows_reset: int = 0  # windows left out because counters went backwards
    windows_shared: int = 0  # windows left out because another program used the engine
    registers: tuple[RegisterChange, ...] = ()  # every raw change, whatever the status


@dataclass(frozen=True)
class EvaluationWork:
    """What one evaluation of a chain does, as its counters are judged."""

    macs: int  # multiply-accumulates by the usual count, products with padding included
    traffic_bytes: tuple[int, int]  # least and most bytes moved to and from memory
    precision: str  # what the multipliers work on: `fp16` or `int8`


@dataclass(frozen=True)
class Counters:
    """Hardware counters of the Neural Engine for one evaluation."""

    status: str  # a key of `ane.STATUSES`
    sentence: str = ""  # what the status means, and what to do about it
    detail: str = ""
    helper: str = ""  # the executable that read them: `signed` or `shipped`
    wall_s: float | None = None  # median time of one evaluation by the host's clock
    hw_s: float | None = None  # the same by the driver
    decoded: DecodedCounters | None = None  # None where there were no registers
    work: EvaluationWork | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the helper process returned, unchanged."""


@dataclass(frozen=True)
class RailEnergy:
    """Energy of one power rail: in the window, its mean power there, and of one run."""

    rail: str
    energy_j: float | None
    power_w: float | None
    run_energy_j: float | None


@dataclass(frozen=True)
class Power:
    """Energy from IOReport around the timed runs."""

    status: str  # `ok`, or why there are no energies: docs/power.md
    detail: str = ""
    window_s: float | None = None
    rails: tuple[RailEnergy, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the helper process returned, unchanged."""

    def rail(self, name: str) -> RailEnergy | None:
        """The rail of this name, if it was measured."""
        return next((one for one in self.rails if one.rail == name), None)


@dataclass(frozen=True)
class Details:
    """What engines add to a result."""

    shared_window: SharedWindow | None = None  # engine mlx on device hybrid
    fits_in: str | None = None  # engine native: the cache level that holds all arrays, or `memory`
    core_clock_hz: float | None = None  # engine native: clock of the cores under a peak chain
    chip_clock_hz: float | None = None
    """Engine kernel: clock of the GPU, counted by the kernel itself."""
    clock_peak: ClockPeak | None = None  # engines native and kernel: the peak at that clock
    ops_per_clock: int | None = None
    """Engine kernel: operations of the whole GPU per clock cycle, for this dtype."""
    not_a_ceiling: str = ""  # engine kernel: why the rate is not a ceiling of this chip
    library: VendorLibrary | None = None  # engine library
    compile_s: float | None = None  # engine mpsgraph: time to compile or load the chain
    device_name: str = ""  # engine mpsgraph: the device that the chain was compiled for
    relative_error: float | None = None  # engine mpsgraph: of the compared outputs
    placement: Placement | None = None  # engine mpsgraph on device ane
    counters: Counters | None = None  # engine mpsgraph on device ane
    power: Power | None = None  # engine mpsgraph on device ane
