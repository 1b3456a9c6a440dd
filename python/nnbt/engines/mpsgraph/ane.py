"""Neural Engine counters, decoded on any machine, live or saved.

>>> from nnbt import ane
>>> decoded = ane.decode({10: 778_700_758}, macs=193_273_528_320, wall_ns=20_610_000)
>>> round(decoded.macs_per_cycle_core, 1), decoded.status
(248.2, 'ok')

How to read each number, and what would prove it wrong: docs/interpreting.md.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from nnbt import _native
from nnbt.engines.mpsgraph.ane_tables import REASONS, REGISTERS, STATUSES, RegisterInfo, explain
from nnbt.spec.details import (
    AccountingIdentity,
    CycleShare,
    DecodedCounters,
    RegisterChange,
    RegisterReading,
)

__all__ = [
    "REASONS", "REGISTERS", "STATUSES", "AccountingIdentity", "CycleShare", "DecodedCounters",
    "RegisterChange", "RegisterInfo", "RegisterReading", "Window", "conv_traffic_bytes", "decode",
    "decode_windows", "detect_layout", "explain", "helper_status", "parse_registers",
]  # fmt: skip

_NAMED_REGISTERS = 24
_ALL_REGISTERS = 29
_MAX_COUNTER = 2**64 - 1
_UNKNOWN = RegisterReading("unknown", "unknown", "none")


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


def conv_traffic_bytes(
    *, input_bytes: int, output_bytes: int, weight_bytes: int, layers: int
) -> tuple[int, int]:
    """Return the least and most bytes that a chain of equal convolutions moves.

    Least: input, output and the shared weights once. Most: every layer reads its input and weights
    and writes its output. Raises ValueError for negative sizes or fewer than one layer.
    """
    if min(input_bytes, output_bytes, weight_bytes) < 0 or layers < 1:
        raise ValueError("sizes must not be negative, and a chain has at least one layer")
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
) -> DecodedCounters:
    """Decode the change of the registers over one evaluation.

    `deltas`: every register in order (24 to 64 of them), or index -> change if only some were
    saved. `macs`: multiply-accumulates of the evaluation. `wall_ns`, `hw_ns`: host time and the
    driver's hardware time. `precision`: `fp16` or `int8`, what the multiplier works on (an INT8
    graph that dequantises before its convolution is `fp16`). `architecture`: the driver's string,
    such as `h16g`. `traffic_bytes`: least and most bytes, as from `conv_traffic_bytes`; without
    them no register passes as memory traffic. `layout`: from `detect_layout`, else detected here.

    Raises ValueError for a change outside 0 to 2**64 - 1, a missing register 10, times or work that
    are not positive and finite, and unknown names. Formulas: docs/interpreting.md.
    """
    context = _context(
        cores, traffic_bytes, macs=macs, wall_ns=wall_ns, hw_ns=hw_ns, precision=precision,
        architecture=architecture, layout=layout,
    )  # fmt: skip
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
) -> DecodedCounters:
    """Decode several windows of one program; three or more reveal resets and other programs.

    The window with the fewest nominal cycles counts. Parameters and errors are those of `decode`.
    """
    context = _context(
        cores, traffic_bytes, macs=macs, precision=precision, architecture=architecture,
        layout=layout,
    )  # fmt: skip
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

    Two workloads of different precision distinguish a traffic register from a clock.
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
    """Return the status (a key of `STATUSES`) of a helper process that ended this way.

    `return_code` is negative for a signal, as in `subprocess`.
    """
    return _native.ane_helper_status(return_code, timed_out, has_output)


def _counter(value: int) -> int:
    if not 0 <= value <= _MAX_COUNTER or value != int(value):
        raise ValueError(f"{value} is not a 64-bit counter value (a negative change is a reset)")
    return int(value)


def _snapshot(values: Sequence[int]) -> list[int]:
    return [_counter(value) for value in values]


def _registers(deltas: Sequence[int] | Mapping[int, int]) -> list[int | None]:
    if not isinstance(deltas, Mapping):
        return list(_snapshot(deltas))
    if any(not 0 <= index < _ALL_REGISTERS for index in deltas):
        raise ValueError(f"register indices are 0 to {_ALL_REGISTERS - 1}")
    size = max(_NAMED_REGISTERS, *(index + 1 for index in deltas)) if deltas else 0
    return [_counter(deltas[i]) if i in deltas else None for i in range(size)]


def _context(
    cores: int, traffic_bytes: tuple[float, float] | None, **known: Any
) -> _native.AneContext:
    if cores < 1:
        raise ValueError("cores must be at least 1")
    least, most = traffic_bytes or (None, None)
    return _native.AneContext(cores=cores, min_bytes=least, max_bytes=most, **known)


def _register(index: int, delta: int | None, layout: str | None) -> RegisterChange:
    if index < len(REGISTERS):
        row = REGISTERS[index]
        return RegisterChange(index, row.label, delta, row.reading(layout))
    return RegisterChange(index, f"UNKNOWN_{index}", delta, _UNKNOWN)


def _plain(value: object) -> object:
    """A value as JSON can hold it: tuples for lists, the largest float for infinity."""
    if isinstance(value, list):
        return tuple(value)
    return min(value, sys.float_info.max) if isinstance(value, float) else value


def _copied(cls: type[Any], native: object, **known: object) -> Any:
    """An object of this dataclass from the attributes of the same names, but for `known`."""
    names = [one.name for one in fields(cls) if one.name not in known]
    return cls(**{name: _plain(getattr(native, name)) for name in names}, **known)


def _from_native(native: _native.AneDecoded) -> DecodedCounters:
    registers = tuple(
        _register(index, delta, native.layout) for index, delta in enumerate(native.deltas)
    )
    decoded: DecodedCounters = _copied(
        DecodedCounters,
        native,
        shares=tuple(CycleShare(i, registers[i].label, part) for i, part in native.shares),
        identities=tuple(_copied(AccountingIdentity, one) for one in native.identities),
        registers=registers,
    )
    return decoded
