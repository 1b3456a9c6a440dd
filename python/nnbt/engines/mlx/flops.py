"""Builders of flops and flops_graph, engine `mlx`: matrix products, alone and as a chain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nnbt.engines.mlx.data import SAMPLE, Split, sample_indices, share_of, to_numpy
from nnbt.engines.mlx.freivalds import off_sums
from nnbt.engines.mlx.setup import Inputs, Setup
from nnbt.spec.cell import Request
from nnbt.spec.comparison import element_errors, relative_error
from nnbt.spec.options import RANDOM_DATA
from nnbt.spec.precision import LEAST_BITS
from nnbt.spec.workload import Answer, Workload

_SHORT_CHAIN = 16
"""Growth is negligible in chains of at most this many steps, unless n is as small: a matrix of one
number may be 0.01, which makes 1e-8 in 4 steps."""
_GROWTH_ROWS = 32
SUMS_SPARE = 8.0
"""The error of the worst row or column may be this many times the limit of the mean error."""
_STRAY = 0.25
"""Rounding errors are below this relative error with any dtype, over thousands of steps."""


def _picks(setup: Setup, seed: int, size: int = SAMPLE) -> list[range]:
    """Rows or columns whose elements are compared: a sample, and the first and the last."""
    edges = [range(0, setup.n, setup.n - 1)] if setup.n > size else []
    return [sample_indices(setup.n, seed, size), *edges]


def rows_of(setup: Setup, matrix: Split, picks: list[range]) -> Any:
    """The rows of all ranges as one NumPy array."""
    return np.concatenate([matrix.rows(setup.mx, pick) for pick in picks])


def block_answer(
    setup: Setup,
    output: Split,
    block: Any,
    reference: Any,
    *,
    also: str = "",
    problem: str | None = None,
) -> Answer:
    """The Answer of a block of the output: equality for exact dtypes, errors for others."""
    exact = bool(np.array_equal(block, reference)) if setup.dtype.exact else None
    inexact = exact is None
    worst, typical = element_errors(block, reference) if inexact else (None, 0.0)
    rows, columns = block.shape
    return Answer(
        compared=f"{rows} x {columns} block with {'float64 ' if inexact else ''}NumPy{also}",
        error=relative_error(block, reference) if inexact else None,
        worst=worst,
        typical=typical,
        exact=exact,
        inputs=share_of(setup.mx, setup.input(0)),
        outputs=share_of(setup.mx, output),
        problem=problem,
    )


def _product_answer(setup: Setup, left: Split, columns_of: Columns, output: Split) -> Answer:
    """output = left @ right: a block compared with float64, every element by random sums."""
    mx = setup.mx
    rows, columns = _picks(setup, 3), _picks(setup, 4)
    right = np.concatenate([to_numpy(mx, columns_of(pick)) for pick in columns], axis=1)
    block = rows_of(setup, output, rows)[:, [i for pick in columns for i in pick]]
    reference = rows_of(setup, left, rows) @ right
    rms = float(np.sqrt(np.mean(np.square(np.abs(reference)))))
    problem = None
    if math.isfinite(rms):  # other values have a check of their own
        error, where = off_sums(setup.place, left, columns_of, output, rms)
        if not error <= SUMS_SPARE * 2.0 ** -LEAST_BITS[setup.dtype.mantissa or 24]:
            problem = f"sums over {where} are off by {error:.2g} of their RMS"
    also = ", random sums of every row and column"
    return block_answer(setup, output, block, reference, also=also, problem=problem)


def _slice(indices: range) -> slice:
    return slice(indices.start, indices.stop, indices.step)


Multiply = Callable[[Any, Any], Any]
"""multiply(block, stream): the lazy product of a row block and the fixed right side."""
Columns = Callable[[range], Any]
"""columns(indices): these columns of the right side, as one lazy array."""


def _product(setup: Setup, steps: int = 1) -> tuple[Multiply, Columns]:
    """(multiply, columns): the product with a fixed random right side.

    Its values have variance 1/n, so that a product keeps the RMS of its left side on average. A
    long chain still grows or shrinks by the largest eigenvalues (790 times in 100 steps at n = 96),
    so its right side is divided by the growth of a few rows.
    """
    right = setup.data.matrix(setup.n, setup.n, setup.n**-0.5)
    product = _with(setup, right)
    long = steps > _SHORT_CHAIN or (steps > 1 and setup.n <= _SHORT_CHAIN)
    if long and setup.case.params.get("data", "normal") in RANDOM_DATA:
        right = right / _growth(setup, product[0], steps)
        product = _with(setup, right)
    return product


def _growth(setup: Setup, multiply: Multiply, steps: int) -> float:
    """Factor per step by which the RMS of a few rows grows."""
    mx = setup.mx
    z = setup.input(0).blocks[0][:_GROWTH_ROWS]
    logarithm = 0.0
    for step in range(steps):
        z = multiply(z, setup.place.streams[0])
        if step % _SHORT_CHAIN == _SHORT_CHAIN - 1 or step == steps - 1:
            rms = float(mx.sqrt(mx.mean(mx.square(mx.abs(z).astype(mx.float32)))))
            z = z / rms
            logarithm += math.log(rms)
    return math.exp(logarithm / steps)


def _with(setup: Setup, right: Any) -> tuple[Multiply, Columns]:
    mx = setup.mx
    if not setup.dtype.quantized:
        return (
            lambda block, stream: mx.matmul(block, right, stream=stream),
            lambda columns: right[:, _slice(columns)],
        )
    packed, options = _quantize(setup, right)

    def columns_of(columns: range) -> Any:
        rows = [part[_slice(columns)] for part in packed]
        return mx.dequantize(*rows, dtype=mx.float32, **options).T

    def multiply(block: Any, stream: Any) -> Any:
        return mx.quantized_matmul(block, *packed, transpose=True, stream=stream, **options)

    return multiply, columns_of


def _quantize(setup: Setup, weights: Any) -> tuple[list[Any], dict[str, Any]]:
    mx = setup.mx
    options = {
        "group_size": setup.dtype.group_size,
        "bits": setup.dtype.bits,
        "mode": setup.dtype.mode,
    }
    packed = mx.quantize(weights, **options)
    if setup.case.params.get("data", "normal") in (*RANDOM_DATA, "sparse50"):
        # Few bits change the variance (q2: by a third), which a long chain amplifies.
        restored = mx.dequantize(*packed, dtype=mx.float32, **options)
        gain = mx.sqrt(mx.mean(mx.square(restored)) / mx.mean(mx.square(weights)))
        packed = mx.quantize(weights / gain, **options)
    packed = list(packed)
    mx.eval(packed)
    return packed, options


def flops(request: Request) -> Workload:
    """One matrix product per unit, all with different left sides."""
    setup = Setup(request)
    place = setup.place
    multiply, columns_of = _product(setup)

    setup.prepare(setup.rotation)

    def graph(units: range, inputs: Inputs) -> list[Any]:
        return [
            multiply(block, stream)
            for unit in units
            for block, stream in zip(inputs(unit).blocks, place.streams, strict=False)
        ]

    def check() -> Answer:
        left = setup.input(setup.turn - 1)
        return _product_answer(setup, left, columns_of, setup.last_output())

    return setup.workload(graph, check, unit_name="product", notes=_notes(setup))


def flops_graph(request: Request) -> Workload:
    """`graph_steps` products in one evaluation, each of the previous output: z = z @ b."""
    setup = Setup(request)
    steps = int(setup.case.params["graph_steps"])
    place = setup.place
    setup.prepare(1)
    product = multiply, columns_of = _product(setup, steps)

    def graph(units: range, inputs: Inputs) -> list[Any]:
        # The input of the last step is an output too, so that its product can be checked.
        before, last = [], []
        for block, stream in zip(inputs(0).blocks, place.streams, strict=False):
            z = block
            for step in units:
                if step == units[-1] and len(units) > 1:
                    before.append(z)
                z = multiply(z, stream)
            last.append(z)
        return before + last

    def check() -> Answer:
        output = setup.last_output()
        count = len(output.blocks)
        before = setup.input(0)
        if setup.latest_k > 1:
            before = Split(tuple(setup.outputs)[-2 * count : -count])
        answer = _product_answer(setup, before, columns_of, output)
        return replace(answer, problem=answer.problem or _strayed(setup, *product, before))

    return setup.workload(graph, check, units=steps, unit_name="step", notes=_notes(setup))


def _strayed(setup: Setup, multiply: Multiply, columns_of: Columns, before: Split) -> str | None:
    """None if `before`, the input of the last step, is the product of all steps before it.

    A sample of its rows is multiplied again, and the first of these products compared with
    float64. Without a skipped step, both differ by rounding only; a skipped step makes them
    unrelated (error 1.4).
    """
    mx, steps = setup.mx, setup.latest_k - 1
    if not steps or setup.case.params.get("data", "normal") not in RANDOM_DATA:
        return None
    rows, columns = sample_indices(setup.n, 3), sample_indices(setup.n, 4)
    parts = setup.input(0).part(rows)
    start = z = mx.concatenate(parts) if len(parts) > 1 else parts[0]
    error = 0.0
    for step in range(steps):
        z = multiply(z, setup.place.streams[0])
        if step == 0:
            reference = to_numpy(mx, start) @ to_numpy(mx, columns_of(columns))
            error = relative_error(to_numpy(mx, z)[:, _slice(columns)], reference)
    if not error <= _STRAY:
        return f"a step of the chain does not multiply (relative error {error:.2g})"
    error = relative_error(before.rows(mx, rows), to_numpy(mx, z))
    if not error <= _STRAY:
        return f"the chain is not the product of {steps} steps (relative error {error:.2g})"
    return None


def _notes(setup: Setup) -> list[str]:
    per_mac = setup.dtype.ops_per_mac
    return [f"complex64: {per_mac} real operations per multiply-add"] if per_mac == 8 else []
