"""Builder of bandwidth on one device, engine `mlx`: copy or add, proven to have moved its bytes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnbt.mlx_data import Split, sample_indices, share_of, to_numpy
from nnbt.workload import Answer, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnbt.bench import Bench

_HOST_COMPARE_BYTES = {"cpu": 2**30, "gpu": 2**24}


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
