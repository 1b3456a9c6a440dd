"""METRICS: what can be measured, by which engine, and how its work is counted.

A combination is supported exactly when its cell is in the table; refusals are made from it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nnbt import conv
from nnbt._native import Unsupported
from nnbt.dtypes import DType, Kind, dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nnbt.plan import Options
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
    """One cell of METRICS: `builder` is module:function, imported when the case is built.

    `dtypes` narrows `kinds` down to these types. `needs` is module:function of what is asked
    (with case and options) for a sentence if the engine can't run here (empty: it runs wherever
    its device is). `takes` names
    the file options that it understands; `mlx` whether MLX does the work.
    """

    builder: str
    devices: tuple[str, ...]
    kinds: frozenset[Kind]
    dtypes: tuple[str, ...] = ()
    needs: str = ""
    takes: tuple[str, ...] = ()
    mlx: bool = True

    def build(self, bench: Any) -> Workload:
        """Allocates the inputs of a case."""
        built: Workload = _function(self.builder)(bench)
        return built

    def refusal(self, case: Case, options: Options) -> str | None:
        """None where the engine can run this case here, else the sentence that says why not."""
        reason: str | None = _function(self.needs)(case, options) if self.needs else None
        return reason

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
    if here[0].dtypes:
        raise Unsupported(_other_dtypes(metric, case, here[0]))
    raise Unsupported(
        f"{metric.name} does not measure {kind.token} ({kind.kind} types have no such "
        f"operation): type --dtype with one of the {' or '.join(sorted(here[0].kinds))} types, "
        "for example float32 or uint8."
    )


def _other_dtypes(metric: Metric, case: Case, here: Cell) -> str:
    others = ""
    for engine, cells in metric.cells.items():
        devices = [name for item in cells if case.dtype in item.dtypes for name in item.devices]
        if devices:
            others += f", or --engine {engine} --device {' or '.join(devices)}"
    return (
        f"{metric.name} by {case.engine} on {case.device} has no {case.dtype}: type "
        f"one of {' '.join(here.dtypes)}{others}."
    )
