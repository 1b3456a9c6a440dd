"""Engines `mlx` and `mlx-compiled`: MLX, one evaluation of a lazy graph."""

from nnbt.machine.mlx_runtime import load_mlx
from nnbt.spec.cell import Cell, Engine, Request
from nnbt.spec.conv import MLX_DTYPES
from nnbt.spec.dtypes import FamilyName, dtype
from nnbt.spec.formulas import hybrid_sizes
from nnbt.spec.workload import Workload

_PRODUCTS: tuple[FamilyName, ...] = ("inexact", "quantized")
_DENSE: tuple[FamilyName, ...] = ("inexact", "exact")
_OPS = ("copy", "add")
_ONE_DEVICE = ("cpu", "gpu")
_PREDICTS = {"cpu": 2e9, "gpu": 2e13}
"""Operations from which a small case is timed first: about a second on a slow device."""


def _build(request: Request) -> Workload:
    """Imports NumPy and the builders with the first case: --help and info do not need them."""
    from nnbt.engines.mlx import bandwidth, conv, flops, hybrid, integers

    case = request.case
    exact = dtype(case.dtype).exact
    builders = {
        "bandwidth": hybrid.bandwidth if case.device == "hybrid" else bandwidth.bandwidth,
        "flops": integers.flops if exact else flops.flops,
        "flops_graph": integers.flops_graph if exact else flops.flops_graph,
        "conv": conv.conv,
    }
    return builders[case.metric](request)


_BOTH = (
    Cell("bandwidth", _ONE_DEVICE, _build, _DENSE, ops=_OPS),
    Cell("flops", _ONE_DEVICE, _build, (*_PRODUCTS, "exact"), predicts_ops=_PREDICTS),
    Cell("flops_graph", _ONE_DEVICE, _build, (*_PRODUCTS, "exact"), predicts_ops=_PREDICTS),
)
_EAGER = (
    Cell("bandwidth", ("hybrid",), _build, _DENSE, ops=_OPS, sizes=hybrid_sizes),
    Cell("conv", _ONE_DEVICE, _build, dtypes=MLX_DTYPES, predicts_ops=_PREDICTS),
)
ENGINES = (
    Engine("mlx", "MLX, one evaluation of a lazy graph", (*_BOTH, *_EAGER), load_mlx),
    Engine("mlx-compiled", "the same graph under mx.compile", _BOTH, load_mlx),
)
