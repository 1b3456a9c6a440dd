"""Engine `mpsgraph`: convolutions through Apple's MPSGraph, on GPU and Neural Engine."""

from nnbt.spec.case import Case
from nnbt.spec.cell import Cell, Engine, Request
from nnbt.spec.conv import ANE_DTYPES, GPU_DTYPES
from nnbt.spec.options import Options
from nnbt.spec.workload import Workload


def _conv(request: Request) -> Workload:
    from nnbt.engines.mpsgraph.conv import conv

    return conv(request)


def _refusal(case: Case, options: Options) -> str | None:
    from nnbt.engines.mpsgraph.conv import refusal

    return refusal(case, options)


ENGINE = Engine(
    "mpsgraph",
    "Apple's MPSGraph, on GPU and Neural Engine",
    tuple(
        Cell(
            "conv",
            (device,),
            _conv,
            dtypes=dtypes,
            refusal=_refusal,
            takes=("--save-package", "--load-package"),
        )
        for device, dtypes in (("gpu", GPU_DTYPES), ("ane", ANE_DTYPES))
    ),
)
