"""Builders of flops and flops_graph on one device, engine `mlx`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnbt.mlx_data import Split, sample_indices, share_of, to_numpy
from nnbt.workload import Answer, Workload, element_errors, relative_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnbt.bench import Bench

EXACT_OPS = ("multiply", "add", "bitwise_xor", "subtract", "bitwise_xor")
BOOL_OPS = ("bitwise_xor", "bitwise_and", "bitwise_xor", "bitwise_and", "bitwise_xor")
"""Element-wise operations of one unit of an exact type, each with the second input."""


def _answer(bench: Bench, output: Split, reference: Any, rows: range, columns: range) -> Answer:
    block = output.rows(bench.mx, rows)[:, columns]
    exact = bool(np.array_equal(block, reference)) if bench.dtype.kind == "exact" else None
    inexact = exact is None
    worst, typical = element_errors(block, reference) if inexact else (None, 0.0)
    return Answer(
        compared=f"{len(rows)} x {len(columns)} block with {'float64 ' if inexact else ''}NumPy",
        error=relative_error(block, reference) if inexact else None,
        worst=worst,
        typical=typical,
        exact=exact,
        inputs=share_of(bench.mx, bench.input(0)),
        outputs=share_of(bench.mx, output),
    )


def _slice(indices: range) -> slice:
    return slice(indices.start, indices.stop, indices.step)


def _product(bench: Bench) -> tuple[Callable[[Any, Any], Any], Callable[[range], Any]]:
    """(multiply(block, stream), columns(indices)): the product with a fixed random right side.

    Its values have variance 1/n, so that a product keeps the size of its left side.
    """
    mx, n = bench.mx, bench.n
    right = bench.data.matrix(n, n, n**-0.5)
    if bench.dtype.kind != "quantized":
        return (
            lambda block, stream: mx.matmul(block, right, stream=stream),
            lambda columns: to_numpy(mx, right[:, _slice(columns)]),
        )
    packed, options = _quantize(bench, right)

    def columns_of(columns: range) -> Any:
        rows = [part[_slice(columns)] for part in packed]
        return to_numpy(mx, mx.dequantize(*rows, dtype=mx.float32, **options)).T

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
        gain = mx.sqrt(mx.mean(mx.square(restored)) * bench.n)
        packed = mx.quantize(weights / gain, **options)
    packed = list(packed)
    mx.eval(packed)
    return packed, options


def flops(bench: Bench) -> Workload:
    """One matrix product a unit, left sides all different; exact types: the element-wise kernel."""
    if bench.dtype.kind == "exact":
        return _exact_flops(bench)
    mx, place = bench.mx, bench.place
    multiply, columns_of = _product(bench)

    bench.prepare(bench.rotation)

    def graph(units: range) -> list[Any]:
        return [
            multiply(block, stream)
            for unit in units
            for block, stream in zip(bench.input(unit).blocks, place.streams, strict=False)
        ]

    def check() -> Answer:
        rows, columns = sample_indices(bench.n, 3), sample_indices(bench.n, 4)
        reference = bench.input(bench.turn - 1).rows(mx, rows) @ columns_of(columns)
        return _answer(bench, bench.last_output(), reference, rows, columns)

    return bench.workload(graph, check, unit_name="product", notes=_notes(bench))


def flops_graph(bench: Bench) -> Workload:
    """`graph_steps` products in one evaluation, each of the previous result: z = z @ b."""
    steps = int(bench.case.params["graph_steps"])
    if bench.dtype.kind == "exact":
        return _exact_flops_graph(bench, steps)
    mx, place = bench.mx, bench.place
    multiply, columns_of = _product(bench)
    bench.prepare(1)

    def graph(units: range) -> list[Any]:
        outputs = []
        for block, stream in zip(bench.input(0).blocks, place.streams, strict=False):
            z = block
            for _ in units:
                z = multiply(z, stream)
            outputs.append(z)
        return outputs

    def check() -> Answer:
        rows, columns = sample_indices(bench.n, 3), sample_indices(bench.n, 4)
        output = bench.last_output()
        before = graph(range(bench.latest_k - 1))
        mx.eval(before)
        reference = Split(tuple(before)).rows(mx, rows) @ columns_of(columns)
        return _answer(bench, output, reference, rows, columns)

    return bench.workload(
        graph,
        check,
        units=steps,
        unit_name="step",
        notes=_notes(bench),
        largest_k=max(steps, 64),
    )


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


def _exact_flops(bench: Bench) -> Workload:
    place = bench.place
    bench.prepare(bench.rotation)

    def graph(units: range) -> list[Any]:
        return [
            _exact_kernel(bench, z, operand, stream)
            for unit in units
            for z, operand, stream in zip(
                bench.input(unit).blocks, bench.input(unit + 1).blocks, place.streams, strict=False
            )
        ]

    def check() -> Answer:
        rows, columns = sample_indices(bench.n, 3), sample_indices(bench.n, 4)
        z, operand = (
            bench.input(unit).rows(bench.mx, rows)[:, columns]
            for unit in (bench.turn - 1, bench.turn)
        )
        return _answer(bench, bench.last_output(), exact_reference(z, operand), rows, columns)

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
        rows, columns = sample_indices(bench.n, 3), sample_indices(bench.n, 4)
        z, other = (matrix.rows(bench.mx, rows)[:, columns] for matrix in map(bench.input, (0, 1)))
        for _ in range(bench.latest_k):
            z = exact_reference(z, other)
        return _answer(bench, bench.last_output(), z, rows, columns)

    return bench.workload(
        graph,
        check,
        units=steps,
        unit_name="step",
        notes=[_EXACT_NOTE],
        largest_k=max(steps, 64),
    )
