"""METRICS: what can be measured, by which engine, and how its work is counted.

A combination is supported exactly when its cell is in the table; refusals are made from it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nnbt import _native, conv
from nnbt._native import Unsupported
from nnbt.dtypes import DType, Kind, dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nnbt.plan import Options
    from nnbt.result import Case
    from nnbt.workload import Workload

ALL: frozenset[Kind] = frozenset({"inexact", "exact", "quantized"})
DENSE: frozenset[Kind] = frozenset({"inexact", "exact"})
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
MLX_OPS = ("copy", "add")
STREAM_OPS = tuple(row.name for row in _native.stream_kernels())
KERNEL_OPS = ("read", "write", "copy", "add", "triad", "bulk_read", "bulk_copy")
CLOCK_CHAIN = "dependent_add"
"""The chain that measures the clock: its operations wait for each other, so it is no peak."""
CHAIN_DTYPES = tuple(
    dict.fromkeys(row.dtype for row in _native.peak_chains() if row.name != CLOCK_CHAIN)
)
MATRIX_DTYPES = ("float32", "tfloat32", "float16", "bfloat16", "int8", "float8_e4m3")
"""What the matrix units and the libraries of GPUs multiply."""
BLAS_DTYPES = ("float32", "float64", "complex64")
EXACT_OPS_PER_ELEMENT = 5
_MAKING = 2
"""Matrices' worth of memory that random inputs need beside them while they are made."""


@dataclass(frozen=True)
class Cell:
    """One cell of METRICS: `builder` is module:function, imported when the case is built.

    `dtypes` narrows `kinds` down to these types. `needs` is module:function of what is asked
    (with case and options) for a sentence if the engine can't run here (empty: it runs wherever
    its device is). `takes` names the file options that it understands; `mlx` whether MLX does the
    work. `ops` are its bandwidth operations. `params`, `sizes` and `explain` replace those of the
    metric; `default_sizes` and `ladder_sizes` are module:function(case); without `sized` there is
    no matrix, and n is 0. `expand` is module:function(case, options) -> the cases that one of the command line stands
    for. Results of a `ceiling` cell are what other engines' rates are set against.
    """

    builder: str
    devices: tuple[str, ...]
    kinds: frozenset[Kind]
    dtypes: tuple[str, ...] = ()
    needs: str = ""
    takes: tuple[str, ...] = ()
    mlx: bool = True
    ops: tuple[str, ...] = ()
    params: tuple[str, ...] | None = None
    sizes: Callable[[Case], dict[str, int]] | None = None
    default_sizes: str = ""
    ladder_sizes: str = ""
    sized: bool = True
    expand: str = ""
    explain: str = ""
    ceiling: bool = False

    def build(self, bench: Any) -> Workload:
        """Allocates the inputs of a case."""
        built: Workload = _function(self.builder)(bench)
        return built

    def refusal(self, case: Case, options: Options) -> str | None:
        """None where the engine can run this case here, else the sentence that says why not."""
        reason: str | None = _function(self.needs)(case, options) if self.needs else None
        return reason

    def cases(self, case: Case, options: Options) -> list[Case]:
        """The cases that this one stands for."""
        cases: list[Case] = _function(self.expand)(case, options) if self.expand else [case]
        return cases

    def sizes_for(self, case: Case, metric: Metric, options: Options) -> tuple[int, ...]:
        """The n that are measured where none is named. Raises Unsupported for no such ladder."""
        if options.ladder_sizes:
            if not self.ladder_sizes:
                raise Unsupported(
                    f"--ladder-sizes goes through the caches of a processor, and {metric.name} by "
                    f"{case.engine} has none: type --sizes, or --metric bandwidth --engine native."
                )
            return _function(self.ladder_sizes)(case)  # type: ignore[no-any-return]
        if not self.sized:
            return (0,)
        sizes: tuple[int, ...] = metric.default_sizes
        return _function(self.default_sizes)(case) if self.default_sizes else sizes

    def measures(self, kind: DType) -> bool:
        """Whether this type is in the cell."""
        return kind.token in self.dtypes if self.dtypes else kind.kind in self.kinds


def _function(name: str) -> Callable[..., Any]:
    module, function = name.split(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


@dataclass(frozen=True)
class Param:
    """A parameter of a metric: its default, and the numbers or names that it may be."""

    default: int | str
    explain: str
    low: int = 1
    high: int = 2**20
    names: tuple[str, ...] = ()


def _smaller_matrix(case: Case, device: str) -> dict[str, int]:
    del case
    return {"n": 256 if device == "cpu" else 4096}


@dataclass(frozen=True)
class Metric:
    """One row of METRICS. `sizes(case)` is the pure arithmetic of a case, before allocation.

    `own` holds the parameters that no other metric has; `rate_unit` replaces the unit of the
    type; `smaller(case, device)` gives `n` and parameters of a short case of the same kind that
    predicts how long it takes; `chain` says that the output should keep the size of the input;
    `spelled` how its own command spells options of the main one; `published` is module:function
    that finds a published result.
    """

    name: str
    explain: str
    formulas: Mapping[str, str]
    params: tuple[str, ...]
    work: str
    sizes: Callable[[Case], dict[str, int]]
    cells: Mapping[str, tuple[Cell, ...]]
    own: Mapping[str, Param] = field(default_factory=dict)
    rate_unit: str = ""
    chain: bool = False
    smaller: Callable[[Case, str], dict[str, int]] = _smaller_matrix
    default_sizes: tuple[int, ...] = (1024, 2048, 4096)
    spelled: Mapping[str, str] = field(default_factory=dict)
    published: str = ""

    def option(self, name: str) -> str:
        """An option of the main command as this metric's command spells it."""
        return self.spelled.get(name, name)

    def beside(self, case: Case, device_name: str) -> tuple[tuple[str, ...], dict[str, object]]:
        """(notes, details) of a published result to set beside this one; empty without one."""
        if not self.published:
            return (), {}
        found: tuple[tuple[str, ...], dict[str, object]]
        found = _function(self.published)(case, device_name)
        return found

    def unit(self, kind: DType) -> str:
        """Base unit of the rate."""
        if self.rate_unit:
            return self.rate_unit
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


def _product_sizes(case: Case) -> dict[str, int]:
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


def _no_sizes(case: Case) -> dict[str, int]:
    """Of chains of instructions, whose operands never leave the registers."""
    del case
    return {"work_ops": 0, "resident_bytes": 0, "unit_bytes": 0}


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
            _bandwidth_sizes,
            {
                "mlx": (
                    Cell("nnbt.mlx_bandwidth:bandwidth", ("cpu", "gpu"), DENSE, ops=MLX_OPS),
                    Cell(
                        "nnbt.hybrid:bandwidth",
                        ("hybrid",),
                        DENSE,
                        ops=MLX_OPS,
                        sizes=_hybrid_sizes,
                    ),
                ),
                "mlx-compiled": (
                    Cell("nnbt.mlx_bandwidth:bandwidth", ("cpu", "gpu"), DENSE, ops=MLX_OPS),
                ),
                "native": (
                    Cell(
                        "nnbt.native_steps:bandwidth",
                        ("cpu",),
                        DENSE,
                        mlx=False,
                        ops=STREAM_OPS,
                        params=("op", "cpu_workers"),
                        default_sizes="nnbt.native_steps:default_sizes",
                        ladder_sizes="nnbt.native_steps:ladder_sizes",
                        expand="nnbt.native_steps:bandwidth_cases",
                        explain=_STREAM,
                        ceiling=True,
                    ),
                ),
                "kernel": (
                    Cell(
                        "nnbt.kernel_steps:bandwidth",
                        ("gpu",),
                        DENSE,
                        ops=KERNEL_OPS,
                        params=("op",),
                        default_sizes="nnbt.kernel_steps:default_sizes",
                        expand="nnbt.kernel_steps:bandwidth_cases",
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
            _flops_sizes,
            {
                "mlx": (Cell("nnbt.mlx_flops:flops", ("cpu", "gpu"), ALL),),
                "mlx-compiled": (Cell("nnbt.mlx_flops:flops", ("cpu", "gpu"), ALL),),
                "native": (
                    Cell(
                        "nnbt.native_steps:flops",
                        ("cpu",),
                        frozenset(),
                        CHAIN_DTYPES,
                        mlx=False,
                        params=("cpu_workers",),
                        sizes=_no_sizes,
                        sized=False,
                        expand="nnbt.native_steps:flops_cases",
                        explain=_PEAK,
                        ceiling=True,
                    ),
                ),
                "kernel": (
                    Cell(
                        "nnbt.kernel_steps:flops",
                        ("gpu",),
                        frozenset(),
                        MATRIX_DTYPES,
                        params=(),
                        sizes=_no_sizes,
                        sized=False,
                        expand="nnbt.kernel_steps:flops_cases",
                        explain=_PEAK,
                        ceiling=True,
                    ),
                ),
                "library": tuple(
                    Cell(
                        f"nnbt.library_steps:{builder}",
                        (device,),
                        frozenset(),
                        dtypes,
                        mlx=False,
                        params=params,
                        sizes=_product_sizes,
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
            _flops_sizes,
            {
                engine: (Cell("nnbt.mlx_flops:flops_graph", ("cpu", "gpu"), ALL),)
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
                "mlx": (Cell("nnbt.mlx_conv:conv", ("cpu", "gpu"), frozenset(), conv.MLX_DTYPES),),
                "mpsgraph": tuple(
                    Cell(
                        "nnbt.mps_conv:conv",
                        (device,),
                        frozenset(),
                        dtypes,
                        "nnbt.mps_conv:refusal",
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
            published="nnbt.reference:beside",
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
            f"--device {case.device} does not measure {metric.name}: type --device "
            f"{' or '.join(devices)}, or {instead}."
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
        f"operation): type --dtype with one of the {' or '.join(sorted(here[0].kinds))} types, "
        "for example float32 or uint8."
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
