"""Bandwidth kernels: they only read and write arrays."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from nnbt.engines.kernel.sources import text
from nnbt.engines.kernel.sources.rows import Kernel, Launch, MlxArray, Prepared, Work
from nnbt.spec.formulas import arrays

Wrong = Callable[[ModuleType, Launch, MlxArray, list[MlxArray]], str | None]

SCALAR = 0.5
"""Factor of the triad: a power of two, so that a + SCALAR * b rounds once, fused or not."""

_WORD = 4
_VECTOR = 16
_MULTIPLIER = 2654435761  # of `write` in stream.cu


def _geometry(row: Kernel, params: Mapping[str, Any]) -> tuple[Launch, int]:
    """The launch, and the words of an array rounded down to whole pieces."""
    if row.name.startswith("bulk"):
        piece, stages = params["piece_bytes"], params["stages"]
        pieces = params["array_bytes"] // piece
        template = [("PIECES", pieces), ("PIECE_BYTES", piece), ("STAGES", stages)]
        shared, blocks = piece * stages, params["blocks"]
    else:
        piece = params["unroll"] * params["threads"] * _VECTOR
        pieces = params["array_bytes"] // piece
        blocks = params["blocks"] or pieces
        template = [("UNROLL", params["unroll"])]
        if row.language == "cuda":
            template += [("CHUNKS", pieces if params["blocks"] else 0), ("CACHE", params["cache"])]
        shared = 0
    if pieces < 1:
        raise ValueError(f"{row.name} moves at least {piece} bytes; array_bytes is less")
    words = pieces * piece // _WORD
    reads_only = row.name.endswith("read")
    launch = Launch(
        blocks=min(blocks, pieces),
        threads=params["threads"],
        template=template,
        output_shape=(min(blocks, pieces),) if reads_only else (words,),
        output_dtype="uint32" if reads_only or row.name == "write" else "float32",
        shared_memory=shared,
    )
    return launch, words


def prepare_stream(row: Kernel, mx: ModuleType, params: Mapping[str, Any]) -> Prepared:
    """Random float32 inputs of `array_bytes` each, other ones for every launch."""
    launch, words = _geometry(row, params)
    keys = iter(range(params["seed"] * 1000, params["seed"] * 1000 + 1000))

    def operand() -> MlxArray:
        if row.name == "write":
            return mx.array([next(keys) * _MULTIPLIER % 2**32], dtype=mx.uint32)
        return mx.random.uniform(-1, 1, (words,), key=mx.random.key(next(keys)), stream=mx.gpu)

    inputs = [[operand() for _ in row.inputs] for _ in range(params["launches"])]
    moved = float(words * _WORD * arrays(row.name))
    expect = _WRONG[row.name]

    def wrong(output: MlxArray, index: int) -> str | None:
        return expect(mx, launch, output, inputs[index])

    ops = {"add": 1, "triad": 2}.get(row.name, 0) * float(words)
    return Prepared(launch, inputs, Work(ops, moved), wrong)


def _differs(mx: ModuleType, output: MlxArray, expected: Callable[[slice], MlxArray]) -> str | None:
    # In pieces: the booleans of all elements would take another quarter of the array.
    pieces = 16
    for i in range(pieces):
        part = slice(i * output.size // pieces, (i + 1) * output.size // pieces)
        same = mx.array_equal(output[part], expected(part), stream=mx.gpu)
        if not same.item():
            return f"words {part.start} to {part.stop} of the output are wrong"
    return None


def _wrong_copy(mx: ModuleType, _: Launch, output: MlxArray, inputs: list[MlxArray]) -> str | None:
    return _differs(mx, output, lambda part: inputs[0][part])


def _wrong_sum(scalar: float) -> Wrong:
    def wrong(mx: ModuleType, _: Launch, output: MlxArray, inputs: list[MlxArray]) -> str | None:
        def expected(part: slice) -> MlxArray:
            scaled = mx.multiply(inputs[1][part], scalar, stream=mx.gpu)
            return mx.add(inputs[0][part], scaled, stream=mx.gpu)

        return _differs(mx, output, expected)

    return wrong


def _wrong_write(mx: ModuleType, _: Launch, output: MlxArray, inputs: list[MlxArray]) -> str | None:
    multiplier = mx.array(_MULTIPLIER, dtype=mx.uint32)

    def expected(part: slice) -> MlxArray:
        index = mx.arange(part.start, part.stop, dtype=mx.uint32, stream=mx.gpu)
        return mx.add(mx.multiply(index, multiplier, stream=mx.gpu), inputs[0], stream=mx.gpu)

    return _differs(mx, output, expected)


def _wrong_read(
    _: ModuleType, launch: Launch, output: MlxArray, inputs: list[MlxArray]
) -> str | None:
    sums = np.array(output)
    template = dict(launch.template)
    pieces = template.get("PIECES") or template["CHUNKS"] or launch.blocks
    words = inputs[0].size // pieces
    for block in sorted({0, launch.blocks // 3, launch.blocks - 1}):
        total = 0
        for piece in range(block, pieces, launch.blocks):
            values = np.array(inputs[0][piece * words : (piece + 1) * words])
            total += int(values.view(np.uint32).sum(dtype=np.uint64))
        if total % 2**32 != int(sums[block]):
            return f"the sum of block {block} is {sums[block]} instead of {total % 2**32}"
    return None


_WRONG: dict[str, Wrong] = {
    "read": _wrong_read,
    "bulk_read": _wrong_read,
    "write": _wrong_write,
    "copy": _wrong_copy,
    "bulk_copy": _wrong_copy,
    "add": _wrong_sum(1.0),
    "triad": _wrong_sum(SCALAR),
}

_GIB = 2**30
_STREAMING, _STREAMING_STORES = 1, 3  # of Cache in stream.cu
# The best of a sweep on an H200: copy 4,284 GB/s (unroll 4: 4,130), triad 4,425 (4,357).
_CUDA = {
    "read": {"unroll": 16, "threads": 512, "cache": _STREAMING},
    "write": {"unroll": 4, "threads": 512, "cache": _STREAMING},
    "copy": {"unroll": 1, "threads": 256, "cache": _STREAMING},
    "add": {"unroll": 1, "threads": 1024, "cache": _STREAMING_STORES},
    "triad": {"unroll": 1, "threads": 1024, "cache": _STREAMING_STORES},
}
_BULK = {"array_bytes": 2 * _GIB, "piece_bytes": 2**14, "stages": 6, "blocks_per_multiprocessor": 2}
_METAL = {"array_bytes": _GIB // 4, "unroll": 4, "threads": 256}
_TEMPLATE = "<UNROLL, CHUNKS, CACHE>"
_METAL_INDEX = (
    "threadgroup_position_in_grid.x, thread_position_in_threadgroup.x, threads_per_threadgroup.x"
)


def _cuda(name: str, inputs: tuple[str, ...], body: str) -> Kernel:
    return Kernel(
        name, "bandwidth", "float32", "cuda", text("stream.cu"), body, inputs, prepare_stream,
        {"array_bytes": 2 * _GIB, **_CUDA[name]}, minimum=(8, 0),
    )  # fmt: skip


def _bulk(name: str, threads: int, body: str) -> Kernel:
    return Kernel(
        name, "bandwidth", "float32", "cuda", text("stream.cu", "bulk.cu"), body, ("a",),
        prepare_stream, {**_BULK, "threads": threads}, minimum=(9, 0),
    )  # fmt: skip


def _metal(name: str, inputs: tuple[str, ...], body: str) -> Kernel:
    return Kernel(
        name, "bandwidth", "float32", "metal", text("stream.metal"), body, inputs, prepare_stream,
        _METAL,
    )  # fmt: skip


STREAMS = (
    _cuda("read", ("a",), f"nnbt::read{_TEMPLATE}(a, out);"),
    _cuda("write", ("seed",), f"nnbt::write{_TEMPLATE}(seed, out);"),
    _cuda("copy", ("a",), f"nnbt::copy{_TEMPLATE}(a, out);"),
    _cuda("add", ("a", "b"), f"nnbt::triad{_TEMPLATE}(a, b, out, 1.0f);"),
    _cuda("triad", ("a", "b"), f"nnbt::triad{_TEMPLATE}(a, b, out, {SCALAR}f);"),
    _bulk("bulk_read", 256, "nnbt::bulk_read<PIECES, PIECE_BYTES, STAGES>(a, out);"),
    _bulk("bulk_copy", 32, "nnbt::bulk_copy<PIECES, PIECE_BYTES, STAGES>(a, out);"),
    _metal("copy", ("a",), f"nnbt_copy<UNROLL>(a, out, {_METAL_INDEX});"),
    _metal("add", ("a", "b"), f"nnbt_triad<UNROLL>(a, b, out, 1.0f, {_METAL_INDEX});"),
    _metal("triad", ("a", "b"), f"nnbt_triad<UNROLL>(a, b, out, {SCALAR}f, {_METAL_INDEX});"),
)
