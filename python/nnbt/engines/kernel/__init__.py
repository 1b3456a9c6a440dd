"""Engine `kernel`: what a GPU can do, by kernels that use one of its units each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnbt.machine.mlx_runtime import load_mlx
from nnbt.spec.cell import Cell, Engine
from nnbt.spec.formulas import no_sizes

if TYPE_CHECKING:
    from nnbt.spec.case import Case
    from nnbt.spec.cell import Request
    from nnbt.spec.options import Options
    from nnbt.spec.workload import Workload

OPS = ("read", "write", "copy", "add", "triad", "bulk_read", "bulk_copy")
DTYPES = ("float32", "tfloat32", "float16", "bfloat16", "int8", "float8_e4m3")
"""What the units of a GPU multiply."""


# NumPy and the kernels are imported once they are needed: the table serves --help and info too.
def _bandwidth(request: Request) -> Workload:
    from nnbt.engines.kernel.steps import bandwidth

    return bandwidth(request)


def _flops(request: Request) -> Workload:
    from nnbt.engines.kernel.steps import flops

    return flops(request)


def _default_sizes(case: Case) -> tuple[int, ...]:
    from nnbt.engines.kernel.steps import default_sizes

    return default_sizes(case)


def _bandwidth_cases(case: Case, options: Options) -> list[Case]:
    from nnbt.engines.kernel.steps import bandwidth_cases

    return bandwidth_cases(case, options)


def _flops_cases(case: Case, options: Options) -> list[Case]:
    from nnbt.engines.kernel.steps import flops_cases

    return flops_cases(case, options)


ENGINE = Engine(
    "kernel",
    "own kernels on the GPU, through mx.fast.cuda_kernel or metal_kernel",
    (
        Cell(
            "bandwidth",
            ("gpu",),
            _bandwidth,
            ("inexact", "exact"),
            ops=OPS,
            params=("op",),
            default_sizes=_default_sizes,
            expand=_bandwidth_cases,
            explain="memory bandwidth of loops that do nothing else (STREAM)",
            ceiling=True,
        ),
        Cell(
            "flops",
            ("gpu",),
            _flops,
            dtypes=DTYPES,
            params=(),
            sizes=no_sizes,
            sized=False,
            expand=_flops_cases,
            explain="most operations that one instruction, on registers alone, does",
            ceiling=True,
        ),
    ),
    load_mlx,
)
