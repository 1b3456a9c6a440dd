"""Builder of bandwidth on one device, engine `mlx`: copy or add, proven to have moved its bytes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from nnbt.engines.mlx.bench import Bench
from nnbt.engines.mlx.data import Split, on_host, share_of
from nnbt.spec.workload import Answer, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from nnbt.spec.cell import Request

_GPU_COMPARE_BYTES = 2**24
"""Larger outputs of a GPU are compared there: to bring them to the host takes longer than a run."""
_BYTES_AT_ONCE = 2**22
"""Compared in pieces that stay in a cache: with temporaries of 8 MiB and more, 512 MiB took 0.75 s
for 0.2, most of it page faults."""


@dataclass(frozen=True)
class BandwidthOp:
    """One row of OPS; `build` makes the output of `operands` inputs."""

    name: str
    explain: str
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
    "copy": BandwidthOp("copy", "c = copy of a: reads 1 matrix, writes 1", 1, _copy),
    "add": BandwidthOp("add", "c = a + b: reads 2 matrices, writes 1", 2, _add),
}


def bandwidth(request: Request) -> Workload:
    """Copy or add of n x n matrices; unit k works on other buffers than unit k - 1."""
    return on_bench(Bench.of(request))


def on_bench(bench: Bench) -> Workload:
    """The same on a bench that is there."""
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
    """Leaves buffers full of 90 (or True) in MLX's cache, for the next outputs to be placed in."""
    mx = bench.mx
    value = True if bench.dtype.token == "bool" else 90
    bench.outputs.clear()
    for block in bench.input(0).blocks:
        mx.eval(mx.full(block.shape, value, dtype=block.dtype))


def _check_bandwidth(bench: Bench, op: BandwidthOp, run: Callable[[], object]) -> Answer:
    mx = bench.mx
    _poison(bench)
    run()
    output = bench.last_output()
    inputs = [
        bench.input(op.unit_of(bench.turn - 1, i, bench.rotation)) for i in range(op.operands)
    ]
    again: Sequence[Any] = ()
    if bench.place.device == "cpu" or output.nbytes <= _GPU_COMPARE_BYTES:
        spread, compared = 1, "every byte with NumPy"
    else:
        # The second run goes to buffers of its own: bytes that the first did not write differ.
        spread = -(-output.nbytes // _GPU_COMPARE_BYTES)
        compared = f"one row in {spread} with NumPy, every byte with a second run"
        again = [
            op.build(mx, [matrix.blocks[i] for matrix in inputs], stream)
            for i, stream in enumerate(bench.place.streams[: len(output.blocks)])
        ]
    equal = all(
        _same(mx, block, [matrix.blocks[i] for matrix in inputs], spread, bench.place.device)
        for i, block in enumerate(output.blocks)
    ) and all(
        bool(mx.array_equal(first.view(mx.uint8), second.view(mx.uint8)))
        for first, second in zip(output.blocks, again, strict=False)
    )
    del again
    read = share_of(mx, inputs[0])
    # A copy that was compared whole holds what its input holds.
    written = read if equal and op.operands == spread == 1 else share_of(mx, output)
    size = output.nbytes
    del output
    return Answer(
        compared=compared,
        exact=equal,
        distinct=_frees(bench, size),
        inputs=read,
        outputs=written,
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


def _same(mx: Any, output: Any, inputs: Sequence[Any], spread: int, device: str) -> bool:
    """Whether one row in `spread` is, bit for bit, the copy or the sum of its inputs."""
    if any(output.shape != matrix.shape for matrix in inputs):
        return False
    rows = int(output.shape[0])
    at_once = max(1, _BYTES_AT_ONCE * rows // output.nbytes) * spread
    on_cpu = device == "cpu"
    arrays = [_bits(mx, matrix) if on_cpu else matrix for matrix in (output, *inputs)]
    for first in range(0, rows, at_once):
        part = slice(first, first + at_once, spread)
        got, *operands = (
            array[part] if on_cpu else _bits(mx, on_host(mx, array[part])) for array in arrays
        )
        bfloat16 = output.dtype == mx.bfloat16
        expected = operands[0] if len(operands) == 1 else _sum(*operands, bfloat16=bfloat16)
        if not np.array_equal(_words(got), _words(expected)):
            return False
    return True


def _words(array: NDArray[Any]) -> NDArray[Any]:
    """The bits as whole numbers: comparing these takes a tenth of comparing `tobytes()`."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint64 if flat.nbytes % 8 == 0 else np.uint8)


def _bits(mx: Any, array: Any) -> NDArray[Any]:
    """The array in NumPy, without a copy on the CPU; bfloat16, which NumPy lacks, as uint16."""
    return np.asarray(array.view(mx.uint16) if array.dtype == mx.bfloat16 else array)


def _sum(left: NDArray[Any], right: NDArray[Any], *, bfloat16: bool) -> NDArray[Any]:
    """left + right rounded to nearest even in their own type; integers wrap around."""
    if bfloat16:
        left, right = (bits.view(ml_dtypes.bfloat16) for bits in (left, right))
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.asarray(left + right)
    return total.view(np.uint16) if bfloat16 else total
