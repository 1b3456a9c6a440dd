"""Engines `mlx` and `mlx-compiled`: MLX, one evaluation of a lazy graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnbt.machine.mlx_runtime import load_mlx
from nnbt.spec.cell import Cell, Engine
from nnbt.spec.conv import MLX_DTYPES
from nnbt.spec.formulas import hybrid_sizes

if TYPE_CHECKING:
    from nnbt.spec.cell import Request
    from nnbt.spec.dtypes import FamilyName
    from nnbt.spec.workload import Workload

_DENSE: tuple[FamilyName, ...] = ("inexact", "exact")
_ALL: tuple[FamilyName, ...] = (*_DENSE, "quantized")
_OPS = ("copy", "add")
_ONE_DEVICE = ("cpu", "gpu")
_PREDICTS = {"cpu": 2e9, "gpu": 2e13}
"""Operations from which a small case is timed first: about a second of a slow device."""


# NumPy and the builders are imported once a case is built: the tables serve --help and info too.
def _bandwidth(request: Request) -> Workload:
    from nnbt.engines.mlx.bandwidth import bandwidth

    return bandwidth(request)


def _hybrid(request: Request) -> Workload:
    from nnbt.engines.mlx.hybrid import bandwidth

    return bandwidth(request)


def _flops(request: Request) -> Workload:
    from nnbt.engines.mlx.flops import flops

    return flops(request)


def _flops_graph(request: Request) -> Workload:
    from nnbt.engines.mlx.flops import flops_graph

    return flops_graph(request)


def _conv(request: Request) -> Workload:
    from nnbt.engines.mlx.conv import conv

    return conv(request)


_BOTH = (
    Cell("bandwidth", _ONE_DEVICE, _bandwidth, _DENSE, ops=_OPS),
    Cell("flops", _ONE_DEVICE, _flops, _ALL, predicts_ops=_PREDICTS),
    Cell("flops_graph", _ONE_DEVICE, _flops_graph, _ALL, predicts_ops=_PREDICTS),
)
_EAGER = (
    Cell("bandwidth", ("hybrid",), _hybrid, _DENSE, ops=_OPS, sizes=hybrid_sizes),
    Cell("conv", _ONE_DEVICE, _conv, dtypes=MLX_DTYPES, predicts_ops=_PREDICTS),
)
ENGINES = (
    Engine("mlx", "MLX, one evaluation of a lazy graph", (*_BOTH, *_EAGER), load_mlx),
    Engine("mlx-compiled", "the same graph under mx.compile", _BOTH, load_mlx),
)
