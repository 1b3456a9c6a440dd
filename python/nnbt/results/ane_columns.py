"""Columns of rows of the Neural Engine: where they ran, its counters, its energy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnbt.results.column import Column, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnbt.results.result import Result
    from nnbt.spec.details import Counters, DecodedCounters, RailEnergy


def _placement(row: Result) -> Value:
    return row.details.placement.verdict if row.details.placement is not None else None


def _scaled(value: float | None, scale: float) -> Value:
    return value * scale if value is not None else None


def _counters(read: Callable[[Counters], float | None], scale: float) -> Callable[[Result], Value]:
    def value(row: Result) -> Value:
        counters = row.details.counters
        return _scaled(read(counters), scale) if counters is not None else None

    return value


def _decoded(
    read: Callable[[DecodedCounters], float | None], scale: float = 1.0
) -> Callable[[Result], Value]:
    return _counters(lambda c: read(c.decoded) if c.decoded is not None else None, scale)


def _rail(read: Callable[[RailEnergy], float | None], scale: float) -> Callable[[Result], Value]:
    """Energy or power of the Neural Engine's rail."""

    def value(row: Result) -> Value:
        rail = row.details.power.rail("ANE") if row.details.power is not None else None
        return _scaled(read(rail), scale) if rail is not None else None

    return value


def _status(row: Result) -> Value:
    return row.details.counters.status if row.details.counters is not None else None


_HW = "rate of one evaluation by the driver's hardware time"
ANE_COLUMNS = (
    Column("placement", "placement", "where a chain ran", _placement, 4, text=True),
    Column("pmu", "counters", "status of the ANE's counters", _status, 3, text=True),
    Column(
        "ane_wall_ms",
        "ANE wall ms",
        "median time of one evaluation without MPSGraph, by the host's clock",
        _counters(lambda c: c.wall_s, 1e3),
        6,
    ),
    Column("ane_hw_ms", "ANE hw ms", "the same by the driver", _counters(lambda c: c.hw_s, 1e3), 5),
    Column("hw_gops", "hw GOPS", _HW, _decoded(lambda d: d.hw_ops_per_s, 1e-9), 4),
    Column("hw_tops", "hw TOPS", _HW, _decoded(lambda d: d.hw_ops_per_s, 1e-12), 4),
    Column(
        "macs_per_cycle_core",
        "MACs/cyc/core",
        "multiply-accumulates per nominal cycle and core",
        _decoded(lambda d: d.macs_per_cycle_core),
        3,
    ),
    Column(
        "pct_of_lanes",
        "% lanes",
        "share of the multiply-accumulates that a core can do per cycle",
        _decoded(lambda d: d.utilisation, 100),
        3,
    ),
    Column(
        "ane_clock_ghz",
        "ANE GHz",
        "clock of the ANE: nominal cycles / (time x cores)",
        _decoded(lambda d: d.clock_hz, 1e-9),
        5,
    ),
    Column(
        "dma_gb_per_s",
        "DMA GB/s",
        "memory traffic of the ANE over hardware time",
        _decoded(lambda d: d.dma_bytes_per_s, 1e-9),
        4,
    ),
    Column(
        "ane_mj",
        "ANE mJ",
        "energy of the ANE per run (IOReport)",
        _rail(lambda r: r.run_energy_j, 1e3),
        4,
    ),
    Column("ane_w", "ANE W", "power of the ANE (IOReport)", _rail(lambda r: r.power_w, 1.0), 6),
)
