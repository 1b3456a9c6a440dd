"""Bytes and operations of one run of a case: the arithmetic of METRICS, before allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnbt.spec.dtypes import DType, dtype

if TYPE_CHECKING:
    from nnbt.spec.case import Case

STREAMS = {
    "copy": 2,
    "add": 3,
    "read": 1,
    "write": 1,
    "scale": 2,
    "triad": 3,
    "bulk_read": 1,
    "bulk_copy": 2,
}
"""Matrices read or written by one run of each bandwidth operation."""
EXACT_OPS_PER_ELEMENT = 5
_MAKING = 2
"""Matrices' worth of memory that random inputs need beside them while they are made."""


def bandwidth_sizes(case: Case) -> dict[str, int]:
    """Of a bandwidth operation on n x n matrices."""
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


def hybrid_sizes(case: Case) -> dict[str, int]:
    """Of a CPU copy (2 matrices) and a GPU operation, each over a source of its own."""
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


def flops_sizes(case: Case) -> dict[str, int]:
    """Of products by MLX, or of its element-wise kernel for exact types."""
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


def product_sizes(case: Case) -> dict[str, int]:
    """Of a matrix product for every type, exact ones too."""
    kind = dtype(case.dtype)
    matrix = case.n * case.n * kind.itemsize
    return {
        "n": case.n,
        "matrix_bytes": matrix,
        "work_ops": max(2, kind.ops_per_mac) * case.n**3,
        "resident_bytes": (3 + _MAKING) * matrix,
        "unit_bytes": 2 * matrix,
    }


def no_sizes(case: Case) -> dict[str, int]:
    """Of chains of instructions, whose operands never leave the registers."""
    del case
    return {"work_ops": 0, "resident_bytes": 0, "unit_bytes": 0}
