"""METRICS: what can be measured, and how its work is counted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nnbt.spec import conv, formulas
from nnbt.spec.case import Case
from nnbt.spec.dtypes import DType


@dataclass(frozen=True)
class Metric:
    """One row of METRICS. `sizes(case)` is the arithmetic of a case, before allocation.

    `rate_unit` replaces the unit of the dtype. `smaller(case, device)` returns `n` and parameters
    of a similar, short case that predicts the time of this one. With `chain`, outputs should have
    about the RMS of inputs. With `published_results`, there are published results to compare with.
    """

    name: str
    explain: str
    formulas: Mapping[str, str]
    params: tuple[str, ...]
    work: str
    sizes: Callable[[Case], dict[str, int]]
    rate_unit: str = ""
    chain: bool = False
    smaller: Callable[[Case, str], dict[str, int]] = lambda _, device: {
        "n": 256 if device == "cpu" else 4096
    }
    default_sizes: tuple[int, ...] = (1024, 2048, 4096)
    published_results: bool = False

    def unit(self, dtype: DType) -> str:
        """Base unit of the rate."""
        if self.rate_unit:
            return self.rate_unit
        return "B/s" if self.work == "work_bytes" else dtype.family.unit


_FLOPS_FORMULAS = {
    "float*, bfloat16": "2 n^3 operations per product",
    "complex64": "8 n^3 real operations per product: n^3 x (4 multiplications, 4 additions)",
    "int*, uint*, bool": "5 n^2 operations of an element-wise kernel: multiply, add, xor, "
    "subtract, xor; for bool: xor, and, xor, and, xor",
    "q*, mxfp*, nvfp4": "2 eff_n^3 operations per product of float32 activations and weights",
}
_CEILING_FORMULAS = {
    "native, kernel": "additions and multiplications of the issued instructions",
    "library": "2 n^3 operations per product, complex64 8 n^3, also for integers",
}

# fmt: off
METRICS: dict[str, Metric] = {
    row.name: row
    for row in (
        Metric("bandwidth", "memory bandwidth of an n x n copy (or a + b)",
            {
                "copy": "2 n^2 x bytes per element: reads a, writes c",
                "add": "3 n^2 x bytes per element: reads a and b, writes c",
                "read, write": "n^2 x bytes per element",
                "scale": "same as copy",
                "triad": "same as add: a[i] + s b[i]",
                "bus GB/s": "includes write-allocate: an ordinary store first reads the cache line "
                "that it overwrites",
                "moved GB/s": "bytes copied per second (convention of bcopy): each byte counts "
                "once",
                "hybrid": "CPU copy and GPU operation at the same time: all bytes over the wall "
                "time of the shared window",
            }, ("op", "cpu_workers", "data"), "work_bytes", formulas.bandwidth_sizes),
        Metric("flops", "throughput of one n x n matrix product in one evaluation",
            _FLOPS_FORMULAS | _CEILING_FORMULAS, ("cpu_workers", "data"), "work_ops",
            formulas.flops_sizes),
        Metric("flops_graph", "throughput of --graph-steps products z = z b in one lazy evaluation",
            {kind: f"--graph-steps x {text}" for kind, text in _FLOPS_FORMULAS.items()},
            ("graph_steps", "cpu_workers", "data"), "work_ops", formulas.flops_sizes, chain=True),
        Metric("conv", "throughput of a chain of 2-D convolutions with n x n images",
            {
                "all dtypes": "2 B n^2 C^2 K^2 operations per layer, including products with "
                "padding (as in published tables)",
                "exact": "the same without products with padding: n K becomes the number of taps "
                "inside the image, 3 n - 2 for K = 3",
            }, ("batch", "channels", "layers", "kernel", "weights", "enqueue", "data"), "work_ops",
            conv.conv_sizes, rate_unit="OP/s", chain=True, smaller=conv.smaller,
            default_sizes=(256,), published_results=True),
    )
}
# fmt: on
