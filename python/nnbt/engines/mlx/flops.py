"""Builders of flops and flops_graph on one device, engine `mlx`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnbt.engines.mlx.bench import Bench
from nnbt.engines.mlx.data import SAMPLE, Split, sample_indices, share_of, to_numpy
from nnbt.engines.mlx.freivalds import off_sums
from nnbt.spec.comparison import element_errors, relative_error
from nnbt.spec.options import RANDOM_DATA
from nnbt.spec.precision import LEAST_BITS
from nnbt.spec.workload import Answer, Workload

if TYPE_CHECKING:
    from nnbt.spec.cell import Request

_SHORT_CHAIN = 16
"""Steps that no growth matters in, unless n is as small: one number may be 0.01, and 1e-8 in 4."""
_GROWTH_ROWS = 32
SUMS_SPARE = 8.0
"""The worst row or column may be off by so many times what all elements may be on average."""
EXACT_BYTES = 2**24
"""So many bytes of integers are computed again by NumPy: 0.05 s."""
_STRAY = 0.25
"""Relative error that roundings of any type stay below, over thousands of steps."""

EXACT_OPS = ("multiply", "add", "bitwise_xor", "subtract", "bitwise_xor")
BOOL_OPS = ("bitwise_xor", "bitwise_and", "bitwise_xor", "bitwise_and", "bitwise_xor")
"""Element-wise operations of one unit of an exact type, each with the second input."""


def _picks(bench: Bench, seed: int, size: int = SAMPLE) -> list[range]:
    """Rows or columns that are compared one by one: a sample, and the first and the last."""
    edges = [range(0, bench.n, bench.n - 1)] if bench.n > size else []
    return [sample_indices(bench.n, seed, size), *edges]


def _rows(bench: Bench, matrix: Split, picks: list[range]) -> Any:
    return np.concatenate([matrix.rows(bench.mx, pick) for pick in picks])


def _answer(
    bench: Bench,
    output: Split,
    block: Any,
    reference: Any,
    *,
    also: str = "",
    problem: str | None = None,
) -> Answer:
    exact = bool(np.array_equal(block, reference)) if bench.dtype.exact else None
    inexact = exact is None
    worst, typical = element_errors(block, reference) if inexact else (None, 0.0)
    rows, columns = block.shape
    return Answer(
        compared=f"{rows} x {columns} block with {'float64 ' if inexact else ''}NumPy{also}",
        error=relative_error(block, reference) if inexact else None,
        worst=worst,
        typical=typical,
        exact=exact,
        inputs=share_of(bench.mx, bench.input(0)),
        outputs=share_of(bench.mx, output),
        problem=problem,
    )


def _product_answer(bench: Bench, left: Split, columns_of: Columns, output: Split) -> Answer:
    """output = left @ right: a block in float64, and every element by random sums."""
    mx = bench.mx
    rows, columns = _picks(bench, 3), _picks(bench, 4)
    right = np.concatenate([to_numpy(mx, columns_of(pick)) for pick in columns], axis=1)
    block = _rows(bench, output, rows)[:, [i for pick in columns for i in pick]]
    reference = _rows(bench, left, rows) @ right
    rms = float(np.sqrt(np.mean(np.square(np.abs(reference)))))
    problem = None
    if math.isfinite(rms):  # what is not finite has a check of its own
        error, where = off_sums(bench.place, left, columns_of, output, rms)
        if not error <= SUMS_SPARE * 2.0 ** -LEAST_BITS[bench.dtype.mantissa or 24]:
            problem = f"sums over {where} are off by {error:.2g} of their RMS"
    also = ", random sums of every row and column"
    return _answer(bench, output, block, reference, also=also, problem=problem)


def _slice(indices: range) -> slice:
    return slice(indices.start, indices.stop, indices.step)


Multiply = Callable[[Any, Any], Any]
"""multiply(block, stream): the lazy product of a row block with the fixed right side."""
Columns = Callable[[range], Any]
"""columns(indices): these columns of the right side, as one lazy array of MLX."""


def _product(bench: Bench, steps: int = 1) -> tuple[Multiply, Columns]:
    """(multiply, columns(indices)): the product with a fixed random right side.

    Its values have variance 1/n, so that a product keeps the size of its left side on average. A
    long chain grows or shrinks all the same by the largest eigenvalues (790 times in 100 steps at
    n = 96), so for one the right side is divided by the growth seen on a few rows.
    """
    right = bench.data.matrix(bench.n, bench.n, bench.n**-0.5)
    product = _with(bench, right)
    long = steps > _SHORT_CHAIN or (steps > 1 and bench.n <= _SHORT_CHAIN)
    if long and bench.case.params.get("data", "normal") in RANDOM_DATA:
        right = right / _growth(bench, product[0], steps)
        product = _with(bench, right)
    return product


def _growth(bench: Bench, multiply: Multiply, steps: int) -> float:
    """Growth of the RMS of a few rows a step, over so many steps."""
    mx = bench.mx
    z = bench.input(0).blocks[0][:_GROWTH_ROWS]
    logarithm = 0.0
    for step in range(steps):
        z = multiply(z, bench.place.streams[0])
        if step % _SHORT_CHAIN == _SHORT_CHAIN - 1 or step == steps - 1:
            rms = float(mx.sqrt(mx.mean(mx.square(mx.abs(z).astype(mx.float32)))))
            z = z / rms
            logarithm += math.log(rms)
    return math.exp(logarithm / steps)


def _with(bench: Bench, right: Any) -> tuple[Multiply, Columns]:
    mx = bench.mx
    if not bench.dtype.quantized:
        return (
            lambda block, stream: mx.matmul(block, right, stream=stream),
            lambda columns: right[:, _slice(columns)],
        )
    packed, options = _quantize(bench, right)

    def columns_of(columns: range) -> Any:
        rows = [part[_slice(columns)] for part in packed]
        return mx.dequantize(*rows, dtype=mx.float32, **options).T

    def multiply(block: Any, stream: Any) -> Any:
        return mx.quantized_matmul(block, *packed, transpose=True, stream=stream, **options)

    return multiply, columns_of


def _quantize(bench: Bench, weights: Any) -> tuple[list[Any], dict[str, Any]]:
    mx = bench.mx
    options = {
        "group_size": bench.dtype.group_size,
        "bits": bench.dtype.bits,
        "mode": bench.dtype.mode,
    }
    packed = mx.quantize(weights, **options)
    if str(bench.case.params.get("data", "normal")) in ("normal", "uniform", "sparse50"):
        # Few bits change the variance (q2: by a third), which a long chain would amplify.
        restored = mx.dequantize(*packed, dtype=mx.float32, **options)
        gain = mx.sqrt(mx.mean(mx.square(restored)) / mx.mean(mx.square(weights)))
        packed = mx.quantize(weights / gain, **options)
    packed = list(packed)
    mx.eval(packed)
    return packed, options


def flops(request: Request) -> Workload:
    """One matrix product a unit, left sides all different; exact types: the element-wise kernel."""
    bench = Bench.of(request)
    if bench.dtype.exact:
        return _exact_flops(bench)
    place = bench.place
    multiply, columns_of = _product(bench)

    bench.prepare(bench.rotation)

    def graph(units: range) -> list[Any]:
        return [
            multiply(block, stream)
            for unit in units
            for block, stream in zip(bench.input(unit).blocks, place.streams, strict=False)
        ]

    def check() -> Answer:
        left = bench.input(bench.turn - 1)
        return _product_answer(bench, left, columns_of, bench.last_output())

    return bench.workload(graph, check, unit_name="product", notes=_notes(bench))


def flops_graph(request: Request) -> Workload:
    """`graph_steps` products in one evaluation, each of the previous result: z = z @ b."""
    bench = Bench.of(request)
    steps = int(bench.case.params["graph_steps"])
    if bench.dtype.exact:
        return _exact_flops_graph(bench, steps)
    place = bench.place
    bench.prepare(1)
    product = multiply, columns_of = _product(bench, steps)

    def graph(units: range) -> list[Any]:
        # The last step's input is an output too, so that its product can be checked.
        before, last = [], []
        for block, stream in zip(bench.input(0).blocks, place.streams, strict=False):
            z = block
            for step in units:
                if step == units[-1] and len(units) > 1:
                    before.append(z)
                z = multiply(z, stream)
            last.append(z)
        return before + last

    def check() -> Answer:
        output = bench.last_output()
        count = len(output.blocks)
        before = bench.input(0)
        if bench.latest_k > 1:
            before = Split(tuple(bench.outputs)[-2 * count : -count])
        answer = _product_answer(bench, before, columns_of, output)
        return replace(answer, problem=answer.problem or _strayed(bench, *product, before))

    return bench.workload(
        graph,
        check,
        units=steps,
        unit_name="step",
        notes=_notes(bench),
        largest_k=max(steps, 64),
    )


def _strayed(bench: Bench, multiply: Multiply, columns_of: Columns, before: Split) -> str | None:
    """None if `before`, the input of the last step, is what all steps before make of some rows.

    They are multiplied again on their own, which costs 64 rows of n; the first step of that is
    checked in float64. Two ways to the same values differ by rounding only; a step that was left
    out makes them unrelated (error 1.4).
    """
    mx, steps = bench.mx, bench.latest_k - 1
    if not steps or bench.case.params.get("data", "normal") not in RANDOM_DATA:
        return None
    rows, columns = sample_indices(bench.n, 3), sample_indices(bench.n, 4)
    parts = bench.input(0).part(rows)
    start = z = mx.concatenate(parts) if len(parts) > 1 else parts[0]
    error = 0.0
    for step in range(steps):
        z = multiply(z, bench.place.streams[0])
        if step == 0:
            reference = to_numpy(mx, start) @ to_numpy(mx, columns_of(columns))
            error = relative_error(to_numpy(mx, z)[:, _slice(columns)], reference)
    if not error <= _STRAY:
        return f"a step of the chain does not multiply (relative error {error:.2g})"
    error = relative_error(before.rows(mx, rows), to_numpy(mx, z))
    if not error <= _STRAY:
        return f"the chain is not at the values of {steps} steps (relative error {error:.2g})"
    return None


def _notes(bench: Bench) -> list[str]:
    notes = []
    if bench.dtype.ops_per_mac == 8:
        notes.append("complex64: 8 real operations a multiply-add")
    return notes


_EXACT_NOTE = (
    "element-wise integer kernel, since MLX has no integer matrix product: bound by memory, "
    "below the integer peak of the hardware"
)


def _exact_kernel(bench: Bench, z: Any, operand: Any, stream: Any) -> Any:
    for name in BOOL_OPS if bench.dtype.token == "bool" else EXACT_OPS:
        z = getattr(bench.mx, name)(z, operand, stream=stream)
    return z


def exact_reference(z: Any, operand: Any) -> Any:
    """The exact kernel in NumPy, wrapping around like MLX."""
    with np.errstate(over="ignore"):
        for name in BOOL_OPS if z.dtype == np.bool_ else EXACT_OPS:
            z = getattr(np, name)(z, operand)
    return z


def _exact_picks(n: int, most: int) -> list[range]:
    """All rows, or some all over the matrix and the first and last; an odd number apart, but not
    one: of 1,024 of 2,048 in a row, the other half could be anything.
    """
    if most >= n or n <= SAMPLE:
        return [range(n)]
    step = max(3, -(-n // max(SAMPLE, most)) | 1)
    start = int(np.random.default_rng(3).integers(step))
    return [range(start, n, step), range(0, n, n - 1)]


def _exact_answer(bench: Bench, left: Split, right: Split, steps: int) -> Answer:
    """So many kernels computed again: every element, or of large matrices some whole rows."""
    picks = _exact_picks(bench.n, EXACT_BYTES // (bench.n * bench.dtype.itemsize * steps))
    z, operand = (_rows(bench, matrix, picks) for matrix in (left, right))
    for _ in range(steps):
        z = exact_reference(z, operand)
    output = bench.last_output()
    return _answer(bench, output, _rows(bench, output, picks), z)


def _exact_flops(bench: Bench) -> Workload:
    mx, place = bench.mx, bench.place
    bench.prepare(bench.rotation)

    def graph(units: range) -> list[Any]:
        # Each kernel waits for the one before: MLX orders independent ones breadth first, so that
        # K of them would hold K temporaries, which leave the caches (K = 8 took 2.8 times K = 4).
        outputs: list[list[Any]] = [[] for _ in place.streams]
        for unit in units:
            for done, z, operand, stream in zip(
                outputs,
                bench.input(unit).blocks,
                bench.input(unit + 1).blocks,
                place.streams,
                strict=False,
            ):
                left = mx.depends([z], done[-1:])[0] if done else z
                done.append(_exact_kernel(bench, left, operand, stream))
        return [output for unit in zip(*outputs, strict=False) for output in unit]

    def check() -> Answer:
        return _exact_answer(bench, bench.input(bench.turn - 1), bench.input(bench.turn), 1)

    bench.step(graph, bench.rotation)()
    return bench.workload(
        graph, check, unit_name="kernel", keep=bench.rotation, notes=[_EXACT_NOTE]
    )


def _exact_flops_graph(bench: Bench, steps: int) -> Workload:
    place = bench.place
    bench.prepare(2)

    def graph(units: range) -> list[Any]:
        outputs = []
        for first, other, stream in zip(
            bench.input(0).blocks, bench.input(1).blocks, place.streams, strict=False
        ):
            z = first
            for _ in units:
                z = _exact_kernel(bench, z, other, stream)
            outputs.append(z)
        return outputs

    def check() -> Answer:
        return _exact_answer(bench, bench.input(0), bench.input(1), bench.latest_k)

    return bench.workload(
        graph,
        check,
        units=steps,
        unit_name="step",
        notes=[_EXACT_NOTE],
        largest_k=max(steps, 64),
    )
