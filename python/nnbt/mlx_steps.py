"""Builders of engine `mlx`: bandwidth, flops and flops_graph on one device."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnbt.dtypes import DType, dtype
from nnbt.mlx_data import Data, Placement, Split, sample_indices, share_of, to_numpy
from nnbt.workload import Answer, Measure, Run, Workload, element_errors, relative_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnbt.result import Case

Graph = Callable[[range], "list[Any]"]
"""graph(units): the lazy outputs of these units of work, the blocks of the last one at the end."""

EXACT_OPS = ("multiply", "add", "bitwise_xor", "subtract", "bitwise_xor")
BOOL_OPS = ("bitwise_xor", "bitwise_and", "bitwise_xor", "bitwise_and", "bitwise_xor")
"""Element-wise operations of one unit of an exact type, each with the second input."""

_HOST_COMPARE_BYTES = {"cpu": 2**30, "gpu": 2**24}


@dataclass
class Bench:
    """What the builders of one case share: where it runs and what the latest run left behind.

    Units of work take turns over `rotation` different inputs, across runs as well, so that
    every K of a slope has the same working set and no sub-graph is repeated in an evaluation.
    """

    mx: Any
    case: Case
    place: Placement
    sizes: Mapping[str, int]
    rotation: int
    measure: Measure
    precision: str = ""

    def __post_init__(self) -> None:
        self.dtype: DType = dtype(self.case.dtype)
        self.data = Data(self.place, self.dtype, str(self.case.params.get("data", "normal")), 1)
        self.turn = 0
        self.latest_k = 0
        self.outputs: deque[Any] = deque()
        self._inputs: list[Split] = []

    @property
    def n(self) -> int:
        """Effective matrix size."""
        return self.sizes.get("eff_n", self.case.n)

    def prepare(self, count: int) -> None:
        """Makes `count` different inputs."""
        while len(self._inputs) < count:
            index = len(self._inputs)
            self._inputs.append(
                self.data.variation(self._inputs[0], index)
                if index
                else self.data.split(self.n, self.n)
            )

    def input(self, unit: int) -> Split:
        """The input of a unit of work."""
        return self._inputs[unit % len(self._inputs)]

    def step(self, graph: Graph, k: int, *, keep: int = 1) -> Run:
        """The Step that builds and evaluates k units and keeps the outputs of the last `keep`.

        The oldest outputs are dropped before new ones are made, so that these get their buffers.
        """
        evaluate = self.mx.eval
        outputs = self.outputs
        kept = max(keep, k) * len(self.place.row_ranges(self.n))

        def run() -> None:
            lazy = graph(range(self.turn, self.turn + k))
            while outputs and len(outputs) + len(lazy) > kept:
                outputs.popleft()
            evaluate(lazy)
            outputs.extend(lazy)
            self.turn += k
            self.latest_k = k

        return run

    def last_output(self) -> Split:
        """The output of the last unit of the latest run."""
        blocks = len(self.place.row_ranges(self.n))
        return Split(tuple(self.outputs)[-blocks:])

    def workload(
        self,
        graph: Graph,
        check: Callable[[], Answer],
        *,
        units: int = 1,
        unit_name: str,
        largest_k: int | None = None,
        keep: int = 1,
        notes: Sequence[str] = (),
    ) -> Workload:
        """The Workload of this graph; a run does `units` units of the work that `sizes` names."""
        sizes = self.sizes
        return Workload(
            step=lambda k: self.step(graph, k, keep=keep),
            units=units,
            unit_work=sizes.get("work_bytes", sizes.get("work_ops", 0)) // units,
            largest_k=self.rotation if largest_k is None else largest_k,
            check=check,
            unit_name=unit_name,
            sizes=sizes,
            mantissa=self.dtype.mantissa,
            precision=self.precision,
            notes=tuple(notes),
        )


# --- bandwidth ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class BandwidthOp:
    """One row of OPS: `streams` matrices are read or written a run; `build` makes the output."""

    name: str
    explain: str
    streams: int
    operands: int
    build: Callable[[Any, list[Any], Any], Any]

    def unit_of(self, unit: int, operand: int, rotation: int) -> int:
        """Which input an operand of a unit is: half the rotation apart, so that no unit finds
        what the one before it left in a cache."""
        return unit + operand * max(1, rotation // 2)


def _copy(mx: Any, blocks: list[Any], stream: Any) -> Any:
    with mx.stream(stream):
        return mx.array(blocks[0])


def _add(mx: Any, blocks: list[Any], stream: Any) -> Any:
    # For bool, MLX's add is a logical or.
    return mx.add(blocks[0], blocks[1], stream=stream)


OPS = {
    "copy": BandwidthOp("copy", "c = copy of a: reads 1 matrix, writes 1", 2, 1, _copy),
    "add": BandwidthOp("add", "c = a + b: reads 2 matrices, writes 1", 3, 2, _add),
}


def bandwidth(bench: Bench) -> Workload:
    """Copy or add of n x n matrices; unit k works on other buffers than unit k - 1."""
    mx, place = bench.mx, bench.place
    op = OPS[str(bench.case.params["op"])]
    bench.prepare(max(bench.rotation, op.operands))

    def operand(unit: int, index: int) -> Split:
        return bench.input(op.unit_of(unit, index, bench.rotation))

    def graph(units: range) -> list[Any]:
        return [
            op.build(mx, [operand(unit, i).blocks[block] for i in range(op.operands)], stream)
            for unit in units
            for block, stream in enumerate(place.streams[: len(bench.input(unit).blocks)])
        ]

    def check() -> Answer:
        return _check_bandwidth(bench, op, bench.step(graph, 1))

    bench.step(graph, bench.rotation)()  # every output buffer is mapped before the first timed run
    return bench.workload(
        graph, check, unit_name="pass", keep=bench.rotation, notes=[f"op {op.explain}"]
    )


def _poison(bench: Bench) -> None:
    """Leaves buffers full of 90 in MLX's cache, for the next outputs to be placed in."""
    mx = bench.mx
    bench.outputs.clear()
    for block in bench.input(0).blocks:
        mx.eval(mx.full(block.shape, 90, dtype=block.dtype))


def _check_bandwidth(bench: Bench, op: BandwidthOp, run: Callable[[], object]) -> Answer:
    mx = bench.mx
    _poison(bench)
    run()
    output = bench.last_output()
    inputs = [
        bench.input(op.unit_of(bench.turn - 1, i, bench.rotation)) for i in range(op.operands)
    ]
    limit = _HOST_COMPARE_BYTES["cpu" if bench.place.device == "cpu" else "gpu"]
    if output.nbytes <= limit:
        rows, compared = range(output.row_count), "every byte with NumPy"
    else:
        rows = sample_indices(output.row_count, 2)
        compared = f"{len(rows)} rows with NumPy, every byte with a second run"
    equal = all(
        _same(bench, op, output, inputs, rows[first : first + 1024])
        for first in range(0, len(rows), 1024)
    )
    if output.nbytes > limit:
        again = [
            op.build(mx, [matrix.blocks[i] for matrix in inputs], stream)
            for i, stream in enumerate(bench.place.streams[: len(output.blocks)])
        ]
        equal = equal and all(
            bool(mx.array_equal(_raw(mx, a), _raw(mx, b)))
            for a, b in zip(output.blocks, again, strict=True)
        )
        del again
    shares = share_of(mx, inputs[0]), share_of(mx, output)
    size = output.nbytes
    del output
    return Answer(
        compared=compared,
        exact=equal,
        distinct=_frees(bench, size),
        inputs=shares[0],
        outputs=shares[1],
    )


def _frees(bench: Bench, size: int) -> bool:
    """Whether dropping the outputs gives back at least their size: they had buffers of their own.

    CUDA gives memory back when its stream gets there, so it is asked for up to half a second.
    """
    mx = bench.mx
    mx.synchronize()
    before = mx.get_active_memory()
    bench.outputs.clear()
    for _ in range(50):
        mx.synchronize()
        if before - mx.get_active_memory() >= size:
            return True
        time.sleep(0.01)
    return False


def _raw(mx: Any, array: Any) -> Any:
    """The bytes of an array, so that NaN equals itself."""
    return array.view(mx.uint8)


def _same(bench: Bench, op: BandwidthOp, output: Split, inputs: list[Split], rows: range) -> bool:
    mx = bench.mx
    got = output.rows(mx, rows)
    operands = [matrix.rows(mx, rows) for matrix in inputs]
    if op.operands == 1:
        return bool(np.array_equal(got, operands[0], equal_nan=got.dtype.kind in "fc"))
    if bench.dtype.kind == "inexact":
        # A sum in double, rounded once more: correct for each type of at most half its mantissa.
        with mx.stream(mx.default_stream(mx.cpu)):
            narrow = {"float64": mx.float64, "complex64": mx.complex64}.get(bench.dtype.token)
            total = operands[0] + operands[1]
            if narrow is None:
                kind = getattr(mx, bench.dtype.token)
                total = to_numpy(mx, mx.array(total.astype(np.float32)).astype(kind))
            elif narrow == mx.complex64:
                total = total.astype(np.complex64).astype(np.complex128)
        return bool(np.array_equal(got, total, equal_nan=True))
    with np.errstate(over="ignore"):
        return bool(np.array_equal(got, operands[0] + operands[1]))


# --- flops and flops_graph ---------------------------------------------------------------------


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
    start = bench.input(0)

    def graph(units: range) -> list[Any]:
        outputs = []
        for block, stream in zip(start.blocks, place.streams, strict=False):
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
    start, operand = bench.input(0), bench.input(1)

    def graph(units: range) -> list[Any]:
        outputs = []
        for first, other, stream in zip(start.blocks, operand.blocks, place.streams, strict=False):
            z = first
            for _ in units:
                z = _exact_kernel(bench, z, other, stream)
            outputs.append(z)
        return outputs

    def check() -> Answer:
        rows, columns = sample_indices(bench.n, 3), sample_indices(bench.n, 4)
        z, other = (matrix.rows(bench.mx, rows)[:, columns] for matrix in (start, operand))
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
