"""METRICS: what can be measured, and how its work is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnbt.spec import conv, formulas

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nnbt.spec.case import Case
    from nnbt.spec.dtypes import DType


def _smaller_matrix(case: Case, device: str) -> dict[str, int]:
    del case
    return {"n": 256 if device == "cpu" else 4096}


@dataclass(frozen=True)
class Metric:
    """One row of METRICS. `sizes(case)` is the arithmetic of a case, before allocation.

    `rate_unit` replaces the unit of the type; `smaller(case, device)` gives `n` and parameters of a
    short case of the same kind that predicts how long it takes; `chain` says that the output should
    keep the size of the input; `published_results` that there are some to compare with.
    """

    name: str
    explain: str
    formulas: Mapping[str, str]
    params: tuple[str, ...]
    work: str
    sizes: Callable[[Case], dict[str, int]]
    rate_unit: str = ""
    chain: bool = False
    smaller: Callable[[Case, str], dict[str, int]] = _smaller_matrix
    default_sizes: tuple[int, ...] = (1024, 2048, 4096)
    published_results: bool = False

    def unit(self, kind: DType) -> str:
        """Base unit of the rate."""
        if self.rate_unit:
            return self.rate_unit
        return "B/s" if self.work == "work_bytes" else kind.family.unit


_FLOPS_FORMULAS = {
    "float*, bfloat16": "2 n^3 operations a product",
    "complex64": "8 n^3 real operations a product: 4 multiplications, 4 additions each",
    "int*, uint*, bool": "5 n^2 operations of an element-wise kernel: multiply, add, xor, "
    "subtract, xor; for bool: xor, and, xor, and, xor",
    "q*, mxfp*, nvfp4": "2 eff_n^3 operations a product of float32 activations and weights",
}
_CEILING_FORMULAS = {
    "native, kernel": "additions and multiplications that the issued instructions do",
    "library": "2 n^3 operations a product, complex64 8 n^3, also for integers",
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
                "read, write": "n^2 x bytes of an element",
                "scale": "as copy",
                "triad": "as add: a[i] + s b[i]",
                "bus GB/s": "with the reads that ordinary stores cause: they bring what they write "
                "into the cache first (write-allocate)",
                "moved GB/s": "of a copy in the convention of bcopy: each byte counts once",
                "hybrid": "CPU copy and GPU operation in one window; the aggregate is all bytes "
                "over the wall time they share",
            },
            ("op", "cpu_workers", "data"),
            "work_bytes",
            formulas.bandwidth_sizes,
        ),
        Metric(
            "flops",
            "throughput of one n x n matrix product in one evaluation",
            _FLOPS_FORMULAS | _CEILING_FORMULAS,
            ("cpu_workers", "data"),
            "work_ops",
            formulas.flops_sizes,
        ),
        Metric(
            "flops_graph",
            "throughput of --graph-steps products z = z b in one lazy evaluation",
            {kind: f"--graph-steps x {text}" for kind, text in _FLOPS_FORMULAS.items()},
            ("graph_steps", "cpu_workers", "data"),
            "work_ops",
            formulas.flops_sizes,
            chain=True,
        ),
        Metric(
            "conv",
            "throughput of a chain of 2-D convolutions with n x n images",
            {
                "all types": "2 B n^2 C C K^2 operations a layer, products with padding included "
                "(as published tables count)",
                "exact": "the same without products with padding: n K becomes the taps that meet "
                "the image, 3 n - 2 for K = 3",
            },
            ("batch", "channels", "layers", "kernel", "weights", "enqueue", "data"),
            "work_ops",
            conv.conv_sizes,
            rate_unit="OP/s",
            chain=True,
            smaller=conv.smaller,
            default_sizes=(256,),
            published_results=True,
        ),
    )
}
