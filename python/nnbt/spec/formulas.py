"""Bytes and operations of one run of a case: the arithmetic of METRICS, before allocation."""

from nnbt import _native
from nnbt.spec.case import Case
from nnbt.spec.dtypes import DType, dtype

EXACT_OPS_PER_ELEMENT = 5
_MAKING = 2  # matrices' worth of memory that making random inputs takes in addition
_ARRAYS = {row.name: row.reads + row.writes for row in _native.stream_kernels()}


def arrays(op: str) -> int:
    """Arrays that one run of a bandwidth operation reads or writes; `a + b` has 3."""
    return _ARRAYS[op.removeprefix("bulk_")]


def bandwidth_sizes(case: Case) -> dict[str, int]:
    """Of a bandwidth operation on n x n matrices."""
    matrix = case.n * case.n * dtype(case.dtype).itemsize
    work = arrays(str(case.params["op"])) * matrix
    return {
        "n": case.n,
        "matrix_bytes": matrix,
        "io_bytes": work,
        "work_bytes": work,
        "resident_bytes": work + _MAKING * matrix,
        "unit_bytes": 2 * matrix,
    }


def hybrid_sizes(case: Case) -> dict[str, int]:
    """Of a CPU copy (2 matrices) and a GPU operation, each on inputs of its own."""
    gpu = bandwidth_sizes(case)
    copy = 2 * gpu["matrix_bytes"]
    work = copy + gpu["work_bytes"]
    return {
        "n": case.n,
        "matrix_bytes": copy,
        "io_bytes": work,
        "work_bytes": work,
        "cpu_io_bytes": copy,
        "gpu_io_bytes": gpu["work_bytes"],
        "resident_bytes": copy + gpu["resident_bytes"],
        "unit_bytes": copy,
    }


def effective_n(n: int, row: DType) -> int:
    """`n` rounded up to a multiple of what MLX packs together (quantised dtypes only)."""
    step = max(64, row.group_size) if row.quantized else 1
    return -(-n // step) * step


def _matrix_sizes(n: int, row: DType, work_ops: int) -> dict[str, int]:
    """Of products of n x n matrices."""
    matrix = n * n * row.itemsize
    return {
        "n": n,
        "matrix_bytes": matrix,
        "work_ops": work_ops,
        "resident_bytes": (3 + _MAKING) * matrix,
        "unit_bytes": 2 * matrix,
    }


def flops_sizes(case: Case) -> dict[str, int]:
    """Of products by MLX, or of its element-wise kernel for exact dtypes."""
    row = dtype(case.dtype)
    n = effective_n(case.n, row)
    ops = EXACT_OPS_PER_ELEMENT * n**2 if row.exact else row.ops_per_mac * n**3
    sizes = _matrix_sizes(n, row, int(case.params.get("graph_steps", 1)) * ops)
    if not row.quantized:
        return sizes
    return sizes | {
        "n": case.n,
        "eff_n": n,
        "act_bytes": sizes["matrix_bytes"],
        "weight_bytes": n * n * row.bits // 8 + n * n // row.group_size * row.group_bytes,
    }


def product_sizes(case: Case) -> dict[str, int]:
    """Of a matrix product of any dtype, exact ones too."""
    row = dtype(case.dtype)
    return _matrix_sizes(case.n, row, max(2, row.ops_per_mac) * case.n**3)


def no_sizes(case: Case) -> dict[str, int]:
    """Of chains of instructions, whose operands stay in registers."""
    del case
    return {"work_ops": 0, "resident_bytes": 0, "unit_bytes": 0}
