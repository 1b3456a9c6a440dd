"""METRICS: what can be measured, by which engine, and how its work is counted.

A combination is supported exactly when its cell is in the table; refusals are made from it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nnbt._native import Unsupported
from nnbt.dtypes import DType, Kind, dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nnbt.result import Case
    from nnbt.workload import Workload

ALL: frozenset[Kind] = frozenset({"inexact", "exact", "quantized"})
DENSE: frozenset[Kind] = frozenset({"inexact", "exact"})
STREAMS = {"copy": 2, "add": 3}
"""Matrices read or written by one run of each bandwidth operation."""
EXACT_OPS_PER_ELEMENT = 5
_MAKING = 2
"""Matrices' worth of memory that random inputs need beside them while they are made."""


@dataclass(frozen=True)
class Cell:
    """One cell of METRICS: `builder` is module:function, imported when the case is built."""

    builder: str
    devices: tuple[str, ...]
    kinds: frozenset[Kind]

    def build(self, bench: Any) -> Workload:
        """Allocates the inputs of a case."""
        module, function = self.builder.split(":")
        built: Workload = getattr(importlib.import_module(module), function)(bench)
        return built


@dataclass(frozen=True)
class Metric:
    """One row of METRICS. `sizes(case)` is the pure arithmetic of a case, before allocation."""

    name: str
    explain: str
    formulas: Mapping[str, str]
    params: tuple[str, ...]
    work: str
    sizes: Callable[[Case], dict[str, int]]
    cells: Mapping[str, tuple[Cell, ...]]

    def unit(self, kind: DType) -> str:
        """Base unit of the rate."""
        return "B/s" if self.work == "work_bytes" else kind.family.unit


def _bandwidth_sizes(case: Case) -> dict[str, int]:
    kind = dtype(case.dtype)
    matrix = case.n * case.n * kind.itemsize
    streams = STREAMS[str(case.params["op"])]
    work = streams * matrix
    return {
        "n": case.n,
        "matrix_bytes": matrix,
        "io_bytes": work,
        "work_bytes": work,
        "resident_bytes": work + _MAKING * matrix,
        "unit_bytes": 2 * matrix,
    }


def _hybrid_sizes(case: Case) -> dict[str, int]:
    # CPU copy (2 matrices) and GPU operation, each over a source of its own.
    kind = dtype(case.dtype)
    matrix = case.n * case.n * kind.itemsize
    gpu = STREAMS[str(case.params["op"])] * matrix
    return {
        "n": case.n,
        "matrix_bytes": 2 * matrix,
        "io_bytes": 2 * matrix + gpu,
        "work_bytes": 2 * matrix + gpu,
        "cpu_io_bytes": 2 * matrix,
        "gpu_io_bytes": gpu,
        "resident_bytes": 2 * matrix + gpu + _MAKING * matrix,
        "unit_bytes": 2 * matrix,
    }


def effective_n(n: int, kind: DType) -> int:
    """`n` rounded up to a multiple of what MLX packs together (quantised types only)."""
    step = max(64, kind.group_size) if kind.kind == "quantized" else 1
    return -(-n // step) * step


def _flops_sizes(case: Case) -> dict[str, int]:
    kind = dtype(case.dtype)
    n = effective_n(case.n, kind)
    elements = n * n
    matrix = elements * kind.itemsize
    units = int(case.params.get("graph_steps", 1))
    ops = EXACT_OPS_PER_ELEMENT * elements if kind.kind == "exact" else kind.ops_per_mac * n**3
    sizes = {
        "n": case.n,
        "matrix_bytes": matrix,
        "work_ops": units * ops,
        "resident_bytes": (3 + _MAKING) * matrix,
        "unit_bytes": 2 * matrix,
    }
    if kind.kind == "quantized":
        groups = elements // kind.group_size
        sizes["eff_n"] = n
        sizes["act_bytes"] = matrix
        sizes["weight_bytes"] = elements * kind.bits // 8 + groups * (
            kind.scale_bytes + kind.bias_bytes
        )
    return sizes


_FLOPS_FORMULAS = {
    "float*, bfloat16": "2 n^3 operations a product",
    "complex64": "8 n^3 real operations a product: 4 multiplications, 4 additions each",
    "int*, uint*, bool": "5 n^2 operations of an element-wise kernel: multiply, add, xor, "
    "subtract, xor; for bool: xor, and, xor, and, xor",
    "q*, mxfp*, nvfp4": "2 eff_n^3 operations a product of float32 activations and weights",
}

METRICS: dict[str, Metric] = {
    row.name: row
    for row in (
        Metric(
            "bandwidth",
            "memory bandwidth of an n x n copy (or a + b)",
            {
                "copy": "2 n^2 x bytes of an element: a read, c written",
                "add": "3 n^2 x bytes of an element: a and b read, c written",
                "hybrid": "CPU copy and GPU operation in one window; the aggregate is all bytes "
                "over the wall time they share",
            },
            ("op", "cpu_workers", "data"),
            "work_bytes",
            _bandwidth_sizes,
            {
                "mlx": (
                    Cell("nnbt.mlx_bandwidth:bandwidth", ("cpu", "gpu"), DENSE),
                    Cell("nnbt.hybrid:bandwidth", ("hybrid",), DENSE),
                )
            },
        ),
        Metric(
            "flops",
            "throughput of one n x n matrix product in one evaluation",
            _FLOPS_FORMULAS,
            ("cpu_workers", "data"),
            "work_ops",
            _flops_sizes,
            {"mlx": (Cell("nnbt.mlx_flops:flops", ("cpu", "gpu"), ALL),)},
        ),
        Metric(
            "flops_graph",
            "throughput of --graph-steps products z = z b in one lazy evaluation",
            {kind: f"--graph-steps x {text}" for kind, text in _FLOPS_FORMULAS.items()},
            ("graph_steps", "cpu_workers", "data"),
            "work_ops",
            _flops_sizes,
            {"mlx": (Cell("nnbt.mlx_flops:flops_graph", ("cpu", "gpu"), ALL),)},
        ),
    )
}
ENGINES = tuple(dict.fromkeys(name for row in METRICS.values() for name in row.cells))


def sizes_of(case: Case) -> dict[str, int]:
    """Bytes and operations of one run of the case, from its formulas."""
    return _hybrid_sizes(case) if case.device == "hybrid" else METRICS[case.metric].sizes(case)


def cell(case: Case) -> Cell:
    """The cell of a case. Raises Unsupported with a sentence made from the table."""
    metric = METRICS[case.metric]
    kind = dtype(case.dtype)
    if case.engine not in metric.cells:
        raise Unsupported(
            f"{metric.name} has no engine {case.engine!r}: type --engine "
            f"{' or '.join(metric.cells)}."
        )
    here = [item for item in metric.cells[case.engine] if case.device in item.devices]
    if not here:
        devices = dict.fromkeys(name for item in metric.cells[case.engine] for name in item.devices)
        others = [
            row.name
            for row in METRICS.values()
            if any(case.device in item.devices for item in row.cells.get(case.engine, ()))
        ]
        raise Unsupported(
            f"--device {case.device} does not measure {metric.name}: type --device "
            f"{' or '.join(devices)}, or --metric {' or '.join(others) or 'another'}."
        )
    for item in here:
        if kind.kind in item.kinds:
            if kind.token == "float64" and case.device != "cpu":
                raise Unsupported(
                    "float64 runs on the CPU only (MLX has no float64 on a GPU): type "
                    "--device cpu, or --dtype float32."
                )
            return item
    raise Unsupported(
        f"{metric.name} does not measure {kind.token} ({kind.kind} types have no such "
        f"operation): type --dtype with one of the {' or '.join(sorted(here[0].kinds))} types, "
        "for example float32 or uint8."
    )
