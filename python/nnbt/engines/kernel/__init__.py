"""Engine `kernel`: GPU ceilings, by kernels that keep one unit of the chip busy."""

from nnbt.machine.mlx_runtime import load_mlx
from nnbt.spec.case import Case
from nnbt.spec.cell import Cell, Engine, Request
from nnbt.spec.formulas import no_sizes
from nnbt.spec.options import Options
from nnbt.spec.workload import Workload

OPS = ("read", "write", "copy", "add", "triad", "bulk_read", "bulk_copy")
DTYPES = ("float32", "tfloat32", "float16", "bfloat16", "int8", "float8_e4m3")
"""What the units of a GPU multiply."""


# NumPy and the kernels are imported with the first case: --help and info do not need them.
def _build(request: Request) -> Workload:
    from nnbt.engines.kernel.steps import bandwidth, flops

    return bandwidth(request) if request.case.metric == "bandwidth" else flops(request)


def _default_sizes(case: Case) -> tuple[int, ...]:
    from nnbt.engines.kernel.steps import default_sizes

    return default_sizes(case)


def _cases(case: Case, options: Options) -> list[Case]:
    from nnbt.engines.kernel.steps import cases

    return cases(case, options)


# fmt: off
ENGINE = Engine(
    "kernel",
    "nnbt's own GPU kernels, through mx.fast.cuda_kernel or metal_kernel",
    (
        Cell("bandwidth", ("gpu",), _build, ("inexact", "exact"), ops=OPS, params=("op",),
            default_sizes=_default_sizes, expand=_cases,
            explain="memory bandwidth ceiling: loops that only read and write (STREAM)",
            ceiling=True),
        Cell("flops", ("gpu",), _build, dtypes=DTYPES, params=(), sizes=no_sizes, sized=False,
            expand=_cases, explain="compute ceiling: one instruction on registers only",
            ceiling=True),
    ),
    load_mlx,
)
# fmt: on
