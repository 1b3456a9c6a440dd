"""METRICS: what can be measured, by which engine, and how its work is counted.

A combination is supported exactly when its cell is in the table; refusals are made from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnbt import _native
from nnbt._native import Unsupported
from nnbt.machine.chains import CLOCK_CHAIN
from nnbt.spec import conv
from nnbt.spec import formulas as sizes
from nnbt.spec.cell import Cell, Metric, Param
from nnbt.spec.dtypes import Kind, dtype

if TYPE_CHECKING:
    from nnbt.spec.case import Case

ALL: frozenset[Kind] = frozenset({"inexact", "exact", "quantized"})
DENSE: frozenset[Kind] = frozenset({"inexact", "exact"})
MLX_OPS = ("copy", "add")
STREAM_OPS = tuple(row.name for row in _native.stream_kernels())
KERNEL_OPS = ("read", "write", "copy", "add", "triad", "bulk_read", "bulk_copy")
CHAIN_DTYPES = tuple(
    dict.fromkeys(row.dtype for row in _native.peak_chains() if row.name != CLOCK_CHAIN)
)
MATRIX_DTYPES = ("float32", "tfloat32", "float16", "bfloat16", "int8", "float8_e4m3")
"""What the matrix units and the libraries of GPUs multiply."""
BLAS_DTYPES = ("float32", "float64", "complex64")

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
_PEAK = "most operations that one instruction, on registers alone, does"
_STREAM = "memory bandwidth of loops that do nothing else (STREAM)"

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
            sizes.bandwidth_sizes,
            {
                "mlx": (
                    Cell(
                        "nnbt.engines.mlx.bandwidth:bandwidth", ("cpu", "gpu"), DENSE, ops=MLX_OPS
                    ),
                    Cell(
                        "nnbt.engines.mlx.hybrid:bandwidth",
                        ("hybrid",),
                        DENSE,
                        ops=MLX_OPS,
                        sizes=sizes.hybrid_sizes,
                    ),
                ),
                "mlx-compiled": (
                    Cell(
                        "nnbt.engines.mlx.bandwidth:bandwidth", ("cpu", "gpu"), DENSE, ops=MLX_OPS
                    ),
                ),
                "native": (
                    Cell(
                        "nnbt.engines.native.steps:bandwidth",
                        ("cpu",),
                        DENSE,
                        mlx=False,
                        ops=STREAM_OPS,
                        params=("op", "cpu_workers"),
                        default_sizes="nnbt.engines.native.steps:default_sizes",
                        ladder_sizes="nnbt.engines.native.steps:ladder_sizes",
                        expand="nnbt.engines.native.steps:bandwidth_cases",
                        thread_sweep="nnbt.engines.native.steps:thread_cases",
                        explain=_STREAM,
                        ceiling=True,
                    ),
                ),
                "kernel": (
                    Cell(
                        "nnbt.engines.kernel.steps:bandwidth",
                        ("gpu",),
                        DENSE,
                        ops=KERNEL_OPS,
                        params=("op",),
                        default_sizes="nnbt.engines.kernel.steps:default_sizes",
                        expand="nnbt.engines.kernel.steps:bandwidth_cases",
                        explain=_STREAM,
                        ceiling=True,
                    ),
                ),
            },
        ),
        Metric(
            "flops",
            "throughput of one n x n matrix product in one evaluation",
            _FLOPS_FORMULAS | _CEILING_FORMULAS,
            ("cpu_workers", "data"),
            "work_ops",
            sizes.flops_sizes,
            {
                "mlx": (Cell("nnbt.engines.mlx.flops:flops", ("cpu", "gpu"), ALL),),
                "mlx-compiled": (Cell("nnbt.engines.mlx.flops:flops", ("cpu", "gpu"), ALL),),
                "native": (
                    Cell(
                        "nnbt.engines.native.steps:flops",
                        ("cpu",),
                        frozenset(),
                        CHAIN_DTYPES,
                        mlx=False,
                        params=("cpu_workers",),
                        sizes=sizes.no_sizes,
                        sized=False,
                        expand="nnbt.engines.native.steps:flops_cases",
                        thread_sweep="nnbt.engines.native.steps:thread_cases",
                        explain=_PEAK,
                        ceiling=True,
                    ),
                ),
                "kernel": (
                    Cell(
                        "nnbt.engines.kernel.steps:flops",
                        ("gpu",),
                        frozenset(),
                        MATRIX_DTYPES,
                        params=(),
                        sizes=sizes.no_sizes,
                        sized=False,
                        expand="nnbt.engines.kernel.steps:flops_cases",
                        explain=_PEAK,
                        ceiling=True,
                    ),
                ),
                "library": tuple(
                    Cell(
                        f"nnbt.engines.library.steps:{builder}",
                        (device,),
                        frozenset(),
                        dtypes,
                        mlx=False,
                        params=params,
                        sizes=sizes.product_sizes,
                        explain="n x n matrix product by the vendor's own library",
                    )
                    for device, builder, dtypes, params in (
                        ("cpu", "blas", BLAS_DTYPES, ("cpu_workers",)),
                        ("gpu", "cublaslt", MATRIX_DTYPES, ()),
                    )
                ),
            },
        ),
        Metric(
            "flops_graph",
            "throughput of --graph-steps products z = z b in one lazy evaluation",
            {kind: f"--graph-steps x {text}" for kind, text in _FLOPS_FORMULAS.items()},
            ("graph_steps", "cpu_workers", "data"),
            "work_ops",
            sizes.flops_sizes,
            {
                engine: (Cell("nnbt.engines.mlx.flops:flops_graph", ("cpu", "gpu"), ALL),)
                for engine in ("mlx", "mlx-compiled")
            },
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
            {
                "mlx": (
                    Cell(
                        "nnbt.engines.mlx.conv:conv", ("cpu", "gpu"), frozenset(), conv.MLX_DTYPES
                    ),
                ),
                "mpsgraph": tuple(
                    Cell(
                        "nnbt.engines.mpsgraph.conv:conv",
                        (device,),
                        frozenset(),
                        dtypes,
                        "nnbt.engines.mpsgraph.conv:refusal",
                        ("--save-package", "--load-package"),
                        mlx=False,
                    )
                    for device, dtypes in (("gpu", conv.GPU_DTYPES), ("ane", conv.ANE_DTYPES))
                ),
            },
            own={
                "batch": Param(1, "images (B)"),
                "channels": Param(128, "input and output channels of a layer (C)"),
                "layers": Param(20, "chained convolutions (L)", high=10_000),
                "kernel": Param(3, "height and width of the kernel (K)", high=127),
                "weights": Param(
                    "own", "weights of each layer, or one for all", names=conv.WEIGHTS
                ),
                "enqueue": Param(1, "submissions in flight at once", high=1000),
            },
            rate_unit="OP/s",
            chain=True,
            smaller=conv.smaller,
            default_sizes=(256,),
            spelled={"--sizes": "--size", "--runs": "--iterations"},
            published="nnbt.peaks.reference:beside",
        ),
    )
}
ENGINES = tuple(dict.fromkeys(name for row in METRICS.values() for name in row.cells))
ENGINE_WORDS = {
    "mlx": "MLX, one evaluation of a lazy graph",
    "mlx-compiled": "the same graph under mx.compile",
    "native": "own loops on the CPU: STREAM, and chains of one instruction on registers",
    "kernel": "own kernels on the GPU, through mx.fast.cuda_kernel or metal_kernel",
    "library": "the vendor's matrix product: NumPy's BLAS on the CPU, cuBLASLt on an NVIDIA GPU",
    "mpsgraph": "Apple's MPSGraph, on GPU and Neural Engine",
}
"""What each engine is. Rates of native and kernel are ceilings of the others."""


def sizes_of(case: Case) -> dict[str, int]:
    """Bytes and operations of one run of the case, from its formulas."""
    return (cell(case).sizes or METRICS[case.metric].sizes)(case)


def explained(case: Case) -> str:
    """What the case measures, in words; empty for a metric that is not in the table."""
    metric = METRICS.get(case.metric)
    if metric is None:
        return ""
    here = [item for item in metric.cells.get(case.engine, ()) if case.device in item.devices]
    return next((item.explain for item in here if item.explain), metric.explain)


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
        engines = [
            engine
            for engine, cells in metric.cells.items()
            if any(case.device in item.devices for item in cells)
        ]
        instead = f"--metric {' or '.join(others) or 'another'}"
        if engines:
            instead = f"--engine {' or '.join(engines)}"
        raise Unsupported(
            f"--engine {case.engine} does not measure {metric.name} on {case.device}: type "
            f"--device {' or '.join(devices)}, or {instead}."
        )
    for item in here:
        if item.measures(kind):
            if kind.token == "float64" and case.device != "cpu":
                raise Unsupported(
                    "float64 runs on the CPU only (MLX has no float64 on a GPU): type "
                    "--device cpu, or --dtype float32."
                )
            return item
    if here[0].dtypes or kind.kind == "tensor":
        raise Unsupported(_other_dtypes(metric, case, here[0]))
    raise Unsupported(
        f"{metric.name} does not measure {kind.token} ({kind.kind} types have no such "
        "operation): type --dtype with a floating-point or integer type, such as float32 or uint8."
    )


def _other_dtypes(metric: Metric, case: Case, here: Cell) -> str:
    others = ""
    for engine, cells in metric.cells.items():
        devices = [
            name for item in cells if item.measures(dtype(case.dtype)) for name in item.devices
        ]
        if devices:
            others += f", or --engine {engine} --device {' or '.join(devices)}"
    return (
        f"{metric.name} by {case.engine} on {case.device} has no {case.dtype}: type --dtype "
        f"{' or '.join(here.dtypes) or 'float32'}{others}."
    )
