"""Builder of bandwidth on one device, engine `mlx`: copy or add, with every byte compared."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from nnbt.engines.mlx.data import Place, Split, on_host, share_of
from nnbt.engines.mlx.setup import Inputs, Setup
from nnbt.spec.cell import Request
from nnbt.spec.formulas import arrays
from nnbt.spec.workload import Answer, Workload

_GPU_COMPARE_BYTES = 2**24
"""Larger outputs of a GPU are compared there: copying them to the host takes longer than a run."""
_BYTES_AT_ONCE = 2**22
"""Outputs are compared in pieces that fit in a cache: with temporaries of 8 MiB and more, 512 MiB
took 0.75 s instead of 0.2 s, mostly because of page faults."""


@dataclass(frozen=True)
class BandwidthOp:
    """One row of OPS; `build` makes the lazy output."""

    name: str
    explain: str
    build: Callable[[Any, list[Any], Any], Any]

    @cached_property
    def operands(self) -> int:
        """Number of inputs."""
        return arrays(self.name) - 1

    def inputs(self, inputs: Inputs, unit: int, rotation: int) -> list[Split]:
        """The inputs of a unit: half the rotation apart, so that none is in a cache because the
        unit before has used it."""
        return [inputs(unit + i * max(1, rotation // 2)) for i in range(self.operands)]


def _copy(mx: Any, blocks: list[Any], stream: Any) -> Any:
    with mx.stream(stream):
        return mx.array(blocks[0])


def _add(mx: Any, blocks: list[Any], stream: Any) -> Any:
    # For bool, MLX's add is a logical or.
    return mx.add(blocks[0], blocks[1], stream=stream)


OPS = {
    "copy": BandwidthOp("copy", "copy: c = a (one read, one write)", _copy),
    "add": BandwidthOp("add", "add: c = a + b (two reads, one write)", _add),
}


def bandwidth(request: Request) -> Workload:
    """Copy or add of n x n matrices; unit k uses other buffers than unit k - 1."""
    return of_setup(Setup(request))


def of_setup(setup: Setup) -> Workload:
    """The same with an existing setup."""
    place = setup.place
    op = OPS[str(setup.case.params["op"])]
    setup.prepare(max(setup.rotation, op.operands))

    def graph(units: range, inputs: Inputs) -> list[Any]:
        return [
            output
            for unit in units
            for output in _outputs(op, place, op.inputs(inputs, unit, setup.rotation))
        ]

    def check() -> Answer:
        return _check_bandwidth(setup, op, setup.step(graph, 1))

    setup.step(graph, setup.rotation)()  # maps every output buffer before the first timed run
    return setup.workload(graph, check, unit_name="pass", keep=setup.rotation, notes=[op.explain])


def _outputs(op: BandwidthOp, place: Place, inputs: list[Split]) -> list[Any]:
    """The lazy output of a unit, one block per stream."""
    rows = zip(*(matrix.blocks for matrix in inputs), strict=True)
    return [
        op.build(place.mx, list(blocks), stream)
        for blocks, stream in zip(rows, place.streams, strict=False)
    ]


def _poison(setup: Setup) -> None:
    """Leaves buffers filled with 90 (or True) in MLX's cache; the next outputs reuse them."""
    mx = setup.mx
    value = True if setup.dtype.token == "bool" else 90
    setup.outputs.clear()
    for block in setup.input(0).blocks:
        mx.eval(mx.full(block.shape, value, dtype=block.dtype))


def _check_bandwidth(setup: Setup, op: BandwidthOp, run: Callable[[], object]) -> Answer:
    mx = setup.mx
    _poison(setup)
    run()
    output = setup.last_output()
    inputs = op.inputs(setup.input, setup.turn - 1, setup.rotation)
    again: Sequence[Any] = ()
    if setup.place.device == "cpu" or output.nbytes <= _GPU_COMPARE_BYTES:
        spread, compared = 1, "every byte with NumPy"
    else:
        # The second run has other output buffers, so bytes that the first did not write differ.
        spread = -(-output.nbytes // _GPU_COMPARE_BYTES)
        compared = f"one row in {spread} with NumPy, every byte with a second run"
        again = _outputs(op, setup.place, inputs)
    equal = all(
        _same(mx, block, [matrix.blocks[i] for matrix in inputs], spread, setup.place.device)
        for i, block in enumerate(output.blocks)
    ) and all(
        bool(mx.array_equal(first.view(mx.uint8), second.view(mx.uint8)))
        for first, second in zip(output.blocks, again, strict=False)
    )
    del again
    read = share_of(mx, inputs[0])
    # A copy of which every byte was compared contains what its input contains.
    written = read if equal and op.operands == spread == 1 else share_of(mx, output)
    size = output.nbytes
    del output
    return Answer(
        compared=compared, exact=equal, distinct=_frees(setup, size), inputs=read, outputs=written
    )


def _frees(setup: Setup, size: int) -> bool:
    """Whether dropping the outputs frees at least their size: they had buffers of their own.

    CUDA frees memory in stream order, so this polls for up to half a second.
    """
    mx = setup.mx
    mx.synchronize()
    before = mx.get_active_memory()
    setup.outputs.clear()
    for _ in range(50):
        mx.synchronize()
        if before - mx.get_active_memory() >= size:
            return True
        time.sleep(0.01)
    return False


def _same(mx: Any, output: Any, inputs: Sequence[Any], spread: int, device: str) -> bool:
    """Whether one row in `spread` equals the copy or the sum of the inputs, bit for bit."""
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
    """The bits as integers: comparing these takes a tenth of the time of `tobytes()`."""
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
