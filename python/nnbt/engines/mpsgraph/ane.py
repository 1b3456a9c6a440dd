"""Neural Engine counters, decoded on any machine: live ones, or ones that somebody saved.

>>> from nnbt import ane
>>> decoded = ane.decode({10: 778_700_758}, macs=193_273_528_320, wall_ns=20_610_000)
>>> round(decoded.macs_per_cycle_core, 1), decoded.status
(248.2, 'ok')

How to read each number, and what would prove it wrong: docs/interpreting.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnbt import _native
from nnbt.engines.mpsgraph.ane_tables import (
    REASONS,
    REGISTERS,
    STATUSES,
    Reading,
    RegisterInfo,
    explain,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "REASONS",
    "REGISTERS",
    "STATUSES",
    "Decoded",
    "Identity",
    "Reading",
    "Register",
    "RegisterInfo",
    "Share",
    "Window",
    "conv_traffic_bytes",
    "decode",
    "decode_windows",
    "detect_layout",
    "explain",
    "helper_status",
    "parse_registers",
]

_NAMED_REGISTERS = 24
_ALL_REGISTERS = 29
_MAX_COUNTER = 2**64 - 1


@dataclass(frozen=True)
class Register:
    """One register's change over one evaluation, and how it is read."""

    index: int
    label: str
    delta: int | None
    """None for a register that wasn't saved."""
    reading: Reading


@dataclass(frozen=True)
class Share:
    """A register as part of the nominal cycles, under the framework's own name."""

    index: int
    label: str
    of_nominal: float
    """From 0 to 1. An explanation only where the identity `framework_closure` holds."""


@dataclass(frozen=True)
class Identity:
    """One accounting check: two figures that must agree if the registers mean what they say."""

    name: str
    scope: str
    """`numbers` (headline), `breakdown` (stalls, traffic) or `hypothesis` (our own relabelling)."""
    claim: str
    left: float
    right: float
    holds: bool


@dataclass(frozen=True)
class Window:
    """Two snapshots of all registers around `evaluations` runs of one program.

    Times are means per evaluation, in nanoseconds.
    """

    before: Sequence[int]
    after: Sequence[int]
    evaluations: int
    wall_ns: float | None = None
    hw_ns: float | None = None


@dataclass(frozen=True)
class Decoded:
    """What the counters of one evaluation support. A number they don't support is None."""

    status: str
    """A key of `STATUSES`; numbers that rest on cycles are given for `ok` only."""
    layout: str | None
    """Where the DMA registers sit: `dma17`, `dma21`, or None where the data doesn't say."""
    layout_evidence: tuple[str, ...]
    macs_per_cycle_core: float | None
    """Multiply-accumulates / register 10, which is already summed over cores."""
    macs_per_cycle_chip: float | None
    """The same times `cores`."""
    peak_macs_per_cycle_core: float | None
    """256 for FP16; for INT8 256 up to h15 and 512 from h16 on."""
    utilisation: float | None
    """Of that peak, at most 1. None above it: see ABOVE_MAC_CEILING."""
    clock_hz: float | None
    """Register 10 / (time x cores), by hardware time, else by wall time as a lower bound."""
    ops_per_s: float | None
    """2 operations a multiply-accumulate, by wall time."""
    hw_ops_per_s: float | None
    """The same by hardware time."""
    ceiling_ops_per_s: float | None
    """2 x peak x cores x clock_hz."""
    dispatch_ns: float | None
    """Wall time minus hardware time."""
    dma_register: int | None
    """The register taken for memory traffic."""
    dma_bytes: float | None
    """64 x that register, if it lies within the workload's traffic bounds."""
    dma_read_bytes: float | None
    dma_bytes_per_s: float | None
    energy_units: float | None
    """Accumulator of unknown unit; no joules can be had from it."""
    shares: tuple[Share, ...]
    identities: tuple[Identity, ...]
    reasons: tuple[str, ...]
    """Keys of `REASONS`."""
    windows_used: int
    windows_reset: int
    """Windows left out since counters went backwards."""
    windows_shared: int
    """Windows left out since another program used the engine."""
    registers: tuple[Register, ...]
    """Every raw change, whatever the status."""


def conv_traffic_bytes(
    *, input_bytes: int, output_bytes: int, weight_bytes: int, layers: int
) -> tuple[int, int]:
    """Return the least and most bytes that a chain of equal convolutions moves.

    Least: input, output and the shared weights once. Most: every layer reads its input and weights
    and writes its output. Raises ValueError for sizes below zero or no layers.
    """
    if min(input_bytes, output_bytes, weight_bytes) < 0 or layers < 1:
        raise ValueError("sizes can't be negative, and a chain has at least one layer")
    once = input_bytes + output_bytes + weight_bytes
    return once, layers * once


def decode(
    deltas: Sequence[int] | Mapping[int, int],
    *,
    macs: float | None = None,
    wall_ns: float | None = None,
    hw_ns: float | None = None,
    cores: int = 16,
    precision: str = "fp16",
    architecture: str | None = None,
    traffic_bytes: tuple[float, float] | None = None,
    layout: str | None = None,
) -> Decoded:
    """Decode the change of the registers over one evaluation.

    `deltas`: every register in order (24 to 64 of them), or index -> change where only some were
    saved. `macs`: multiply-accumulates of the evaluation. `wall_ns`, `hw_ns`: host time and the
    driver's hardware time. `precision`: `fp16` or `int8`, what the multiplier works on (an INT8
    graph that dequantises before its convolution is `fp16`). `architecture`: the driver's string,
    such as `h16g`. `traffic_bytes`: least and most bytes, as from `conv_traffic_bytes`; without
    them no register passes as memory traffic. `layout`: from `detect_layout`, else detected here.

    Raises ValueError for a change outside 0 to 2**64 - 1, a missing register 10, times or work that
    aren't positive and finite, and names that aren't known. Formulas: docs/interpreting.md.
    """
    context = _context(
        macs=macs,
        wall_ns=wall_ns,
        hw_ns=hw_ns,
        cores=cores,
        precision=precision,
        architecture=architecture,
        traffic_bytes=traffic_bytes,
        layout=layout,
    )
    return _from_native(_native.ane_decode(_registers(deltas), context))


def decode_windows(
    windows: Sequence[Window],
    *,
    macs: float | None = None,
    cores: int = 16,
    precision: str = "fp16",
    architecture: str | None = None,
    traffic_bytes: tuple[float, float] | None = None,
    layout: str | None = None,
) -> Decoded:
    """Decode several windows of one program; three or more show resets and other users.

    The window with the fewest nominal cycles counts. Parameters and errors are those of `decode`.
    """
    context = _context(
        macs=macs,
        wall_ns=None,
        hw_ns=None,
        cores=cores,
        precision=precision,
        architecture=architecture,
        traffic_bytes=traffic_bytes,
        layout=layout,
    )
    native = [
        _native.AneWindow(
            _snapshot(w.before),
            _snapshot(w.after),
            _counter(w.evaluations),
            wall_ns=w.wall_ns,
            hw_ns=w.hw_ns,
        )
        for w in windows
    ]
    return _from_native(_native.ane_decode_windows(native, context))


def detect_layout(
    observations: Sequence[
        tuple[Sequence[int] | Mapping[int, int], float | None, tuple[float, float] | None]
    ],
) -> tuple[str | None, tuple[str, ...]]:
    """Return (layout or None, evidence) from (deltas, macs, traffic_bytes) of several workloads.

    Two workloads of different precision tell a traffic register from a clock.
    """
    native = []
    for deltas, macs, traffic in observations:
        least, most = traffic or (None, None)
        native.append(
            _native.AneObservation(_registers(deltas), macs=macs, min_bytes=least, max_bytes=most)
        )
    layout, evidence = _native.ane_detect_layout(native)
    return layout, tuple(evidence)


def parse_registers(data: bytes) -> tuple[int, ...] | None:
    """Return the registers in the framework's `perfCounterData`; None for an unknown length."""
    registers = _native.ane_parse_registers(data)
    return None if registers is None else tuple(registers)


def helper_status(return_code: int, *, timed_out: bool, has_output: bool) -> str:
    """Return the status (a key of `STATUSES`) of a helper process that ended so.

    `return_code` is that of `subprocess`: negative for a signal.
    """
    return _native.ane_helper_status(return_code, timed_out, has_output)


def _counter(value: int) -> int:
    if not 0 <= value <= _MAX_COUNTER or value != int(value):
        raise ValueError(f"{value} is no 64-bit counter value; a negative change is a reset")
    return int(value)


def _snapshot(values: Sequence[int]) -> list[int]:
    return [_counter(value) for value in values]


def _registers(deltas: Sequence[int] | Mapping[int, int]) -> list[int | None]:
    if not isinstance(deltas, Mapping):
        return list(_snapshot(deltas))
    if any(not 0 <= index < _ALL_REGISTERS for index in deltas):
        raise ValueError(f"register indices go from 0 to {_ALL_REGISTERS - 1}")
    size = max(_NAMED_REGISTERS, *(index + 1 for index in deltas)) if deltas else 0
    return [_counter(deltas[i]) if i in deltas else None for i in range(size)]


def _context(
    *,
    macs: float | None,
    wall_ns: float | None,
    hw_ns: float | None,
    cores: int,
    precision: str,
    architecture: str | None,
    traffic_bytes: tuple[float, float] | None,
    layout: str | None,
) -> _native.AneContext:
    if cores < 1:
        raise ValueError("cores must be at least 1")
    least, most = traffic_bytes or (None, None)
    return _native.AneContext(
        macs=macs,
        wall_ns=wall_ns,
        hw_ns=hw_ns,
        min_bytes=least,
        max_bytes=most,
        cores=cores,
        precision=precision,
        architecture=architecture,
        layout=layout,
    )


def _label(index: int) -> str:
    return REGISTERS[index].label if index < len(REGISTERS) else f"UNKNOWN_{index}"


def _reading(index: int, layout: str | None) -> Reading:
    if index < len(REGISTERS):
        return REGISTERS[index].reading(layout)
    return Reading("unknown", "unknown", "none")


def _from_native(raw: _native.AneDecoded) -> Decoded:
    layout = raw.layout
    return Decoded(
        status=raw.status,
        layout=layout,
        layout_evidence=tuple(raw.layout_evidence),
        macs_per_cycle_core=raw.macs_per_cycle_core,
        macs_per_cycle_chip=raw.macs_per_cycle_chip,
        peak_macs_per_cycle_core=raw.peak_macs_per_cycle_core,
        utilisation=raw.utilisation,
        clock_hz=raw.clock_hz,
        ops_per_s=raw.ops_per_s,
        hw_ops_per_s=raw.hw_ops_per_s,
        ceiling_ops_per_s=raw.ceiling_ops_per_s,
        dispatch_ns=raw.dispatch_ns,
        dma_register=raw.dma_register,
        dma_bytes=raw.dma_bytes,
        dma_read_bytes=raw.dma_read_bytes,
        dma_bytes_per_s=raw.dma_bytes_per_s,
        energy_units=raw.energy_units,
        shares=tuple(Share(index, _label(index), part) for index, part in raw.shares),
        identities=tuple(
            Identity(i.name, i.scope, i.claim, i.left, i.right, i.holds) for i in raw.identities
        ),
        reasons=tuple(raw.reasons),
        windows_used=raw.windows_used,
        windows_reset=raw.windows_reset,
        windows_shared=raw.windows_shared,
        registers=tuple(
            Register(index, _label(index), delta, _reading(index, layout))
            for index, delta in enumerate(raw.deltas)
        ),
    )
