"""Arithmetic kernels: FMA lanes and matrix units on operands in registers or shared memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnbt.engines.kernel.sources import text
from nnbt.engines.kernel.sources.instructions import (
    MATRIX_INSTRUCTIONS,
    TCGEN05_WITHOUT_INT8,
    mma_sync,
    tcgen05,
    wgmma,
)
from nnbt.engines.kernel.sources.rows import Kernel, Launch, MlxArray, Prepared, Work
from nnbt.spec.formats import FORMATS, exact_operands, pack_words

WARPGROUPS = 2
_FMAS_A_PASS = 128
_CHAINS = 16
TCGEN05_BYTES = (128 + 256) * 128
"""Tiles of A and B; with barriers it is more than the 48 KiB that static arrays may take."""
_RELATIVE_ERROR = 0.01  # of float32 sums of thousands of real products


@dataclass(frozen=True)
class Bounds:
    """Parameters of exact_operands for a dtype."""

    magnitude: int
    growth: int
    limit: float  # the accumulator represents all integers up to this magnitude


# Hopper accumulates e4m3 products with about 14 bits (arXiv:2412.19437, section 3.3.2); int8 sums
# have 32 bits.
BOUNDS = {
    "float32": Bounds(1023, 255, 2**24),
    "float16": Bounds(511, 255, 2**24),
    "bfloat16": Bounds(255, 255, 2**24),
    "tfloat32": Bounds(511, 255, 2**24),
    "float8_e4m3": Bounds(15, 1, 2**14),
    "int8": Bounds(127, 127, 2**31),
}


@dataclass(frozen=True)
class Tile:
    """Product of a group of threads in one pass: rows x depth by depth x columns."""

    rows: int
    columns: int
    groups: int  # groups per block, each with its own rows
    shared_columns: bool  # whether all groups of a block use the same columns


TILES = {
    "wgmma": Tile(64, 256, WARPGROUPS, shared_columns=True),
    "wgmma_registers": Tile(64, 256, WARPGROUPS, shared_columns=True),
    "tcgen05": Tile(128, 256, 1, shared_columns=True),
    "mma_sync": Tile(32, 32, 8, shared_columns=False),
    "simdgroup": Tile(16, 32, 8, shared_columns=False),
}


def _operands(
    row: Kernel, tile: Tile, depth: int, passes: int, *, data: str, seed: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Values of A (groups, rows, depth), B (1 or groups, columns, depth) and the expected sums."""
    if data == "normal":
        number_format = FORMATS[row.dtype]
        rng = np.random.default_rng(seed)

        def rounded(*shape: int) -> NDArray[Any]:
            return number_format.decode(number_format.encode(rng.standard_normal(shape)))

        a = rounded(tile.groups, tile.rows, depth)
        b = rounded(1 if tile.shared_columns else tile.groups, tile.columns, depth)
        return a, b, passes * (a @ b.swapaxes(1, 2))
    bounds = BOUNDS[row.dtype]
    rows, count = (
        (tile.rows, tile.groups) if not tile.shared_columns else (tile.rows * tile.groups, 1)
    )
    sets = [
        exact_operands(
            rows,
            tile.columns,
            depth,
            magnitude=bounds.magnitude,
            growth=bounds.growth,
            seed=seed * 100 + i,
        )
        for i in range(count)
    ]
    peak = max(one.peak for one in sets) + passes * bounds.growth
    if row.dtype != "int8" and peak > bounds.limit:
        raise ValueError(
            f"{passes} passes add up to {peak:.3g}, but {row.dtype} sums are exact only up to "
            f"{bounds.limit:.3g}: use fewer iterations"
        )
    a = np.stack([one.left for one in sets]).reshape(tile.groups, tile.rows, depth)
    b = np.stack([one.right for one in sets])
    product = np.stack([one.product for one in sets]).reshape(tile.groups, tile.rows, tile.columns)
    return a, b, passes * product


def prepare_matrix(row: Kernel, mx: ModuleType, params: Mapping[str, Any]) -> Prepared:
    """Operands as bits of the dtype in 4-byte words; `data` is 'exact' or 'normal'."""
    tile, data = TILES[row.name], params["data"]
    metal = row.language == "metal"
    depth = 16 if metal else 128 * 8 // FORMATS[row.dtype].bits
    passes = params["iterations"] * params["passes"]
    if data not in ("exact", "normal"):
        raise ValueError(f"data is 'exact' or 'normal', not {data!r}")
    if data == "normal" and row.dtype in ("int8", "float8_e4m3"):
        raise ValueError(f"{row.dtype} sums of normal values cannot be checked: use data='exact'")
    iterations = mx.array([params["iterations"]], dtype=mx.int32)
    inputs, expected = [], []
    for launch in range(params["launches"]):
        seed = params["seed"] * 1000 + launch
        a, b, sums = _operands(row, tile, depth, passes, data=data, seed=seed)
        expected.append(sums)
        if metal:
            kind = np.dtype(row.dtype)
            operands = [mx.array(a.astype(kind)), mx.array(b.astype(kind))]
        else:
            encode = FORMATS[row.dtype].encode
            operands = [mx.array(pack_words(encode(values))) for values in (a, b)]
        inputs.append([*operands, iterations])
    blocks = params["blocks"]
    launch_shape = Launch(
        blocks=blocks,
        threads=tile.groups * (128 if tile.shared_columns else 32),
        template=[("PASSES", params["passes"])],
        output_shape=(blocks, tile.groups, tile.rows, tile.columns),
        output_dtype="int32" if row.dtype == "int8" else "float32",
        shared_memory=TCGEN05_BYTES if row.name == "tcgen05" else 0,
    )
    products = float(blocks * tile.groups * tile.rows * tile.columns * depth * passes)
    wrong = _wrong_sums(expected, 0.0 if data == "exact" else _RELATIVE_ERROR)
    return Prepared(launch_shape, inputs, Work(2 * products, 0.0), wrong)


def _wrong_sums(
    expected: Sequence[NDArray[Any]], tolerance: float
) -> Callable[[MlxArray, int], str | None]:
    """Compares the sums of every block with those expected of the launch's operands."""

    def wrong(output: MlxArray, index: int) -> str | None:
        sums, truth = np.array(output).astype(np.float64), expected[index]
        scale = float(np.abs(truth).max())
        error = np.abs(sums - truth)
        if np.isfinite(sums).all() and float(error.max()) <= tolerance * scale:
            return None
        bad = ~(error <= tolerance * scale)
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        known = error[np.isfinite(error)]
        size = f" (by up to {known.max():.6g}, largest {scale:.6g})" if known.size else ""
        return (
            f"{bad.mean():.1%} of the sums are wrong{size}; first at {at}: {sums[at]:.9g} instead "
            f"of {truth[at[1:]]:.9g}"
        )

    return wrong


def prepare_fma(row: Kernel, mx: ModuleType, params: Mapping[str, Any]) -> Prepared:
    """Random integers: p up to `p_max`, q and r differ by one, so that sums stay exact.

    The four pairs of a pass change a sum by p0 - p1 + p2 - p3 or, where that is zero, by
    -p0 - p1 + p2 - p3, so that a lost pair shows, and a lost pass.
    """
    threads, blocks = params["threads"], params["blocks"]
    passes = params["iterations"] * params["passes"]
    p_max, q_max, limit = params["p_max"], params["q_max"], params["limit"]
    if q_max + p_max * (q_max + 1) + 2 * p_max * passes > limit:
        raise ValueError(f"{passes} passes add up to more than {limit}: use fewer iterations")
    kind = np.dtype(row.dtype)
    iterations = mx.array([params["iterations"]], dtype=mx.int32)
    inputs, expected = [], []
    for launch in range(params["launches"]):
        rng = np.random.default_rng(params["seed"] * 1000 + launch)
        sizes = rng.integers(1, p_max + 1, (threads, 4))
        changes = sizes * np.array((1, -1, 1, -1))
        changes[changes.sum(axis=1) == 0, 0] *= -1
        p = sizes * rng.choice((-1, 1), (threads, 4))
        q = rng.integers(-q_max, q_max + 1, (threads, 4))
        r = q - changes // p
        growth = changes.sum(axis=1, keepdims=True)
        start = rng.integers(0, q_max + 1, (threads, _CHAINS)) * np.sign(growth)
        sums = start + passes * growth
        expected.append(sums.astype(np.float64))
        operands = (p, q, r, start)
        inputs.append([*(mx.array(values.astype(kind)) for values in operands), iterations])
    shape = (blocks, threads, _CHAINS)
    launch_shape = Launch(blocks, threads, [("PASSES", params["passes"])], shape, row.dtype)
    work = Work(2.0 * _FMAS_A_PASS * blocks * threads * passes, 0.0)
    return Prepared(launch_shape, inputs, work, _wrong_sums(expected, 0.0))


def _defaults(iterations: int, *, passes: int, blocks: int) -> dict[str, Any]:
    """Parameters of a matrix kernel; `blocks` per multiprocessor."""
    return {"iterations": iterations, "passes": passes, "data": "exact",
            "blocks_per_multiprocessor": blocks}  # fmt: skip


def _wgmma(dtype: str, *, a_in_registers: bool) -> Kernel:
    row = MATRIX_INSTRUCTIONS[dtype]
    operand = "RegisterOperand" if a_in_registers else "SharedOperand"
    body = (
        f"nnbt::wgmma_passes<{row.cuda_accumulator}, nnbt::{operand}, {WARPGROUPS}, PASSES>"
        "(a, b, iterations, out, clocks);"
    )
    return Kernel(
        "wgmma_registers" if a_in_registers else "wgmma", "flops", dtype, "cuda",
        wgmma(row, a_in_registers=a_in_registers)
        + text("chip_clock.cu", "core_matrices.cu", "wgmma.cu"), body,
        ("a", "b", "iterations"), prepare_matrix,
        # 10 ms, so that filling shared memory and storing sums take a negligible share.
        _defaults(512 if dtype == "float8_e4m3" else 1024, passes=16, blocks=1),
        minimum=(9, 0), maximum=(9, 0), clocks=True,
    )  # fmt: skip


def _tcgen05(dtype: str) -> Kernel:
    row = MATRIX_INSTRUCTIONS[dtype]
    body = (
        f"nnbt::tcgen05_passes<{row.sums}, {row.element}, PASSES>(a, b, iterations, out, clocks);"
    )
    return Kernel(
        "tcgen05", "flops", dtype, "cuda",
        tcgen05(row)
        + text("tensor_memory.cu", "chip_clock.cu", "core_matrices.cu", "tcgen05.cu"), body,
        ("a", "b", "iterations"), prepare_matrix,
        # 9 ms; 2 ms where longer sums would not be exact.
        _defaults(512 if dtype == "float8_e4m3" else 2048, passes=16, blocks=1),
        minimum=(10, 0), maximum=(11, 0),
        missing=(TCGEN05_WITHOUT_INT8,) if dtype == "int8" else (), clocks=True,
    )  # fmt: skip


def _mma_sync(dtype: str) -> Kernel:
    row = MATRIX_INSTRUCTIONS[dtype]
    body = f"nnbt::mma_sync_passes<{row.cuda_accumulator}, PASSES>(a, b, iterations, out, clocks);"
    return Kernel(
        "mma_sync", "flops", dtype, "cuda", mma_sync(row) + text("chip_clock.cu", "mma_sync.cu"),
        body, ("a", "b", "iterations"), prepare_matrix,
        _defaults(1024, passes=4, blocks=2),
        minimum=(8, 9) if dtype == "float8_e4m3" else (8, 0),
        emulated=(9, 10) if dtype == "float8_e4m3" else (), clocks=True,
    )  # fmt: skip


_FMA = {"iterations": 2048, "passes": 2, "threads": 256, "p_max": 511, "q_max": 8191,
        "limit": 2**24, "blocks_per_multiprocessor": 6}  # fmt: skip
# float16 represents all integers up to 2^11 only.
_FMA_FLOAT16 = {**_FMA, "iterations": 64, "passes": 2, "p_max": 3, "q_max": 127, "limit": 2**11}


def _metal(name: str, dtype: str, defaults: Mapping[str, Any]) -> Kernel:
    kind = {"float16": "half", "float32": "float"}[dtype]
    inputs: tuple[str, ...]
    if name == "fma":
        inputs, prepare = ("p", "q", "r", "start", "iterations"), prepare_fma
        body = (
            f"nnbt_fma_passes<{kind}, PASSES>(p, q, r, start, iterations[0], "
            "thread_position_in_threadgroup.x, thread_position_in_grid.x, out);"
        )
    else:
        inputs, prepare = ("a", "b", "iterations"), prepare_matrix
        body = (
            f"nnbt_simdgroup_passes<{kind}, PASSES>(a, b, iterations[0], "
            "simdgroup_index_in_threadgroup, thread_position_in_grid.x / 32, out);"
        )
    return Kernel(
        name, "flops", dtype, "metal", text("compute.metal"), body, inputs, prepare, defaults
    )


_SIMDGROUP = {"iterations": 1024, "passes": 4, "data": "exact", "blocks": 1024}

COMPUTE = (
    Kernel(
        "fma", "flops", "float32", "cuda", text("chip_clock.cu", "fma.cu"),
        "nnbt::fma_passes<PASSES>(p, q, r, start, iterations, out, clocks);",
        ("p", "q", "r", "start", "iterations"), prepare_fma, _FMA, minimum=(8, 0), clocks=True,
    ),
    *(_wgmma(dtype, a_in_registers=False) for dtype in MATRIX_INSTRUCTIONS),
    *(_wgmma(dtype, a_in_registers=True) for dtype in MATRIX_INSTRUCTIONS),
    *(_tcgen05(dtype) for dtype in MATRIX_INSTRUCTIONS),
    *(_mma_sync(dtype) for dtype in MATRIX_INSTRUCTIONS),
    _metal("fma", "float32", {**_FMA, "blocks": 4096}),
    _metal("fma", "float16", {**_FMA_FLOAT16, "blocks": 16384}),
    _metal("simdgroup", "float32", _SIMDGROUP),
    _metal("simdgroup", "float16", _SIMDGROUP),
)  # fmt: skip
