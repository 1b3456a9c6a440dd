"""Columns of rows of the Neural Engine: where they ran, its counters, its energy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nnbt.results.column import Column, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnbt.results.result import Result


def _placement(row: Result) -> Value:
    return row.details.placement.verdict if row.details.placement is not None else None


def _pmu(*names: str, scale: float = 1.0) -> Callable[[Result], Value]:
    """A number of the Neural Engine's counters; None where they don't support it."""

    def value(row: Result) -> Value:
        found: object = row.details.counters
        for name in names:
            found = found.get(name) if isinstance(found, Mapping) else None
        if isinstance(found, str):
            return found
        return found * scale if isinstance(found, int | float) else None

    return value


def _rail(name: str, scale: float) -> Callable[[Result], Value]:
    """Energy or power of the Neural Engine's rail."""

    def value(row: Result) -> Value:
        found = (row.details.power or {}).get(name, {}).get("ANE")
        return found * scale if found is not None else None

    return value


_HW = "rate of one evaluation by the driver's hardware time"
ANE_COLUMNS = (
    Column("placement", "placement", "where an ANE chain ran", _placement, 4, text=True),
    Column("pmu", "counters", "status of the ANE's counters", _pmu("status"), 3, text=True),
    Column(
        "ane_wall_ms",
        "ANE wall ms",
        "median time of one evaluation without MPSGraph, by the host's clock",
        _pmu("wall_s", scale=1e3),
        6,
    ),
    Column("ane_hw_ms", "ANE hw ms", "the same by the driver", _pmu("hw_s", scale=1e3), 5),
    Column("hw_gops", "hw GOPS", _HW, _pmu("decoded", "hw_ops_per_s", scale=1e-9), 4),
    Column("hw_tops", "hw TOPS", _HW, _pmu("decoded", "hw_ops_per_s", scale=1e-12), 4),
    Column(
        "macs_per_cycle_core",
        "MACs/cyc/core",
        "multiply-accumulates a nominal cycle and core",
        _pmu("decoded", "macs_per_cycle_core"),
        3,
    ),
    Column(
        "pct_of_lanes",
        "% lanes",
        "of the multiply-accumulates that a core can do in a cycle",
        _pmu("decoded", "utilisation", scale=100),
        3,
    ),
    Column(
        "ane_clock_ghz",
        "ANE GHz",
        "clock of the ANE: nominal cycles over time and cores",
        _pmu("decoded", "clock_hz", scale=1e-9),
        5,
    ),
    Column(
        "dma_gb_per_s",
        "DMA GB/s",
        "memory traffic of the ANE over hardware time",
        _pmu("decoded", "dma_bytes_per_s", scale=1e-9),
        4,
    ),
    Column("ane_mj", "ANE mJ", "energy of the ANE a run (IOReport)", _rail("run_energy_j", 1e3), 4),
    Column("ane_w", "ANE W", "power of the ANE (IOReport)", _rail("power_w", 1.0), 6),
)
