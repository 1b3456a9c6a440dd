"""Builders of flops and flops_graph for exact dtypes, engine `mlx`: an element-wise kernel.

MLX has no matrix product of integers.
"""

from typing import Any

import numpy as np

from nnbt.engines.mlx.data import SAMPLE, Split
from nnbt.engines.mlx.flops import block_answer, rows_of
from nnbt.engines.mlx.setup import Inputs, Setup
from nnbt.spec.cell import Request
from nnbt.spec.workload import Answer, Workload

_NOTE = (
    "element-wise integer kernel, since MLX has no integer matrix product: limited by memory "
    "bandwidth, below the integer peak of the hardware"
)
OPS = ("multiply", "add", "bitwise_xor", "subtract", "bitwise_xor")
BOOL_OPS = ("bitwise_xor", "bitwise_and", "bitwise_xor", "bitwise_and", "bitwise_xor")
"""Element-wise operations of one unit, each with the second input."""
_CHECKED_BYTES = 2**24  # bytes of integers that NumPy computes again: 0.05 s


def _kernel(setup: Setup, z: Any, operand: Any, stream: Any) -> Any:
    for name in BOOL_OPS if setup.dtype.token == "bool" else OPS:
        z = getattr(setup.mx, name)(z, operand, stream=stream)
    return z


def reference(z: Any, operand: Any) -> Any:
    """The kernel in NumPy; integers wrap around as in MLX."""
    with np.errstate(over="ignore"):
        for name in BOOL_OPS if z.dtype == np.bool_ else OPS:
            z = getattr(np, name)(z, operand)
    return z


def _picks(n: int, most: int) -> list[range]:
    """All rows; of large matrices evenly spaced rows, and the first and the last.

    The distance is odd and not 1: of 1,024 rows in succession, the other half of 2,048 would never
    be compared.
    """
    if most >= n or n <= SAMPLE:
        return [range(n)]
    step = max(3, -(-n // max(SAMPLE, most)) | 1)
    start = int(np.random.default_rng(3).integers(step))
    return [range(start, n, step), range(0, n, n - 1)]


def _answer(setup: Setup, left: Split, right: Split, steps: int) -> Answer:
    """All elements, or of large matrices some whole rows, against `steps` kernels in NumPy."""
    picks = _picks(setup.n, _CHECKED_BYTES // (setup.n * setup.dtype.itemsize * steps))
    z, operand = (rows_of(setup, matrix, picks) for matrix in (left, right))
    for _ in range(steps):
        z = reference(z, operand)
    output = setup.last_output()
    return block_answer(setup, output, rows_of(setup, output, picks), z)


def flops(request: Request) -> Workload:
    """One kernel per unit, all with different inputs."""
    setup = Setup(request)
    mx, place = setup.mx, setup.place
    setup.prepare(setup.rotation)

    def graph(units: range, inputs: Inputs) -> list[Any]:
        # Each kernel waits for the one before: MLX orders independent ones breadth first, so that
        # K of them would have K temporaries, which do not fit in caches (K = 8 took 2.8 times as
        # long as K = 4).
        outputs: list[list[Any]] = [[] for _ in place.streams]
        for unit in units:
            for done, z, operand, stream in zip(
                outputs, inputs(unit).blocks, inputs(unit + 1).blocks, place.streams, strict=False
            ):
                left = mx.depends([z], done[-1:])[0] if done else z
                done.append(_kernel(setup, left, operand, stream))
        return [output for unit in zip(*outputs, strict=False) for output in unit]

    def check() -> Answer:
        return _answer(setup, setup.input(setup.turn - 1), setup.input(setup.turn), 1)

    setup.step(graph, setup.rotation)()
    return setup.workload(graph, check, unit_name="kernel", keep=setup.rotation, notes=[_NOTE])


def flops_graph(request: Request) -> Workload:
    """`graph_steps` kernels in one evaluation, each on the output of the one before."""
    setup = Setup(request)
    steps = int(setup.case.params["graph_steps"])
    setup.prepare(2)

    def graph(units: range, inputs: Inputs) -> list[Any]:
        outputs = []
        for first, other, stream in zip(
            inputs(0).blocks, inputs(1).blocks, setup.place.streams, strict=False
        ):
            z = first
            for _ in units:
                z = _kernel(setup, z, other, stream)
            outputs.append(z)
        return outputs

    def check() -> Answer:
        return _answer(setup, setup.input(0), setup.input(1), setup.latest_k)

    return setup.workload(graph, check, units=steps, unit_name="step", notes=[_NOTE])
