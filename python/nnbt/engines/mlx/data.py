"""Inputs of engine `mlx`: where they are, what they contain, and samples of them."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnbt.machine import mlx
from nnbt.spec.case import Case
from nnbt.spec.comparison import data_share
from nnbt.spec.dtypes import DType
from nnbt.spec.errors import Refusal
from nnbt.spec.workload import DataShare

_SAMPLE_ROWS = 64
SAMPLE = 64  # rows and columns of the block that is compared with a reference


_KEPT = threading.local()  # CPU streams: MLX's work only in the thread that made them


class Place:
    """Where a case runs: one MLX stream per worker on the CPU, the default stream on a GPU.

    MLX runs an element-wise operation of a CPU stream on one thread, so rows are split over
    streams. CPU streams are reused for the life of the calling thread, since each owns a thread.
    With `own_stream` (for other threads than the main one) the GPU gets a new stream.
    """

    def __init__(self, mx: Any, device: str, workers: int, *, own_stream: bool = False) -> None:
        self.mx = mx
        self.device = device
        if device == "cpu":
            kept: list[Any] = vars(_KEPT).setdefault("streams", [])
            while len(kept) < workers:
                kept.append(mx.new_stream(mx.cpu))
            self.streams = kept[:workers]
        else:
            self.streams = [mx.new_stream(mx.gpu) if own_stream else mx.default_stream(mx.gpu)]

    @classmethod
    def of(cls, case: Case) -> Place:
        """The place of a case; on device `hybrid` that of the GPU."""
        device = "cpu" if case.device == "cpu" else "gpu"
        return cls(mlx.core(), device, int(case.params.get("cpu_workers", 1)))

    def row_ranges(self, rows: int) -> list[tuple[int, int]]:
        """(first, last + 1) of the rows of each stream; never an empty range."""
        count = min(len(self.streams), rows)
        edges = [rows * i // count for i in range(count + 1)]
        return list(itertools.pairwise(edges))


@dataclass(frozen=True)
class Split:
    """A matrix as row blocks, one per stream, each with a buffer of its own."""

    blocks: tuple[Any, ...]

    def part(self, indices: range) -> list[Any]:
        """The rows of a range, block by block, as MLX arrays.

        Strided slices, since indexing with arrays compiles a kernel on CUDA, which takes seconds.
        """
        parts = []
        first = 0
        for block in self.blocks:
            count = int(block.shape[0])
            start = indices.start - first
            if start < 0:
                start %= indices.step
            stop = min(count, indices.stop - first)
            if start < stop:
                parts.append(block[start : stop : indices.step])
            first += count
        return parts

    def rows(self, mx: Any, indices: range) -> Any:
        """The rows of a range as one float64 (complex128, or integer) NumPy array."""
        return np.concatenate([to_numpy(mx, part) for part in self.part(indices)])

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks."""
        return sum(int(block.nbytes) for block in self.blocks)

    @property
    def row_count(self) -> int:
        """Rows of all blocks."""
        return sum(int(block.shape[0]) for block in self.blocks)


def to_numpy(mx: Any, array: Any) -> Any:
    """A NumPy copy, floating point as float64 or complex128; bfloat16 through float32, exactly."""
    if array.dtype == mx.bfloat16:
        array = array.astype(mx.float32)
    values = np.array(on_host(mx, array))
    wide = {"f": np.float64, "c": np.complex128}.get(values.dtype.kind)
    return values.astype(wide) if wide else values


def on_host(mx: Any, array: Any) -> Any:
    """The array with a small buffer of its own, made on its device.

    NumPy would read a strided slice in place. On CUDA that moves every page it touches to the
    host, a whole matrix for 64 of its columns (1 GiB: 0.4 s, and the next run moves it back).
    """
    return mx.contiguous(array)


def mlx_dtype(mx: Any, dtype: DType) -> Any:
    """MLX's dtype object; activations of quantised dtypes are float32."""
    if dtype.quantized:
        return mx.float32
    return mx.bool_ if dtype.token == "bool" else getattr(mx, dtype.token)


class Data:
    """Makes matrices of one dtype and data mode; each call returns other values."""

    def __init__(self, place: Place, dtype: DType, mode: str, seed: int) -> None:
        self.place = place
        self.mx = place.mx
        self.dtype = dtype
        self.mode = mode
        self.generator = np.random.default_rng(seed)

    def split(self, rows: int, columns: int, scale: float = 1.0) -> Split:
        """A matrix in row blocks, one per stream, evaluated."""
        blocks = [
            self._block(last - first, columns, scale) for first, last in self.place.row_ranges(rows)
        ]
        self.mx.eval(blocks)
        return Split(tuple(blocks))

    def variation(self, base: Split, index: int) -> Split:
        """Another matrix of the same distribution: the rows of `base`, rolled within each block.

        A copy is cheaper than new random numbers, and a library that looks for equal sub-graphs
        cannot see the relation.
        """
        mx = self.mx
        blocks = []
        for block in base.blocks:
            rows = int(block.shape[0])
            shift = index * 7 % rows
            blocks.append(
                mx.concatenate([block[shift:], block[:shift]])
                if shift
                else self._block(rows, int(block.shape[1]), 1.0)
            )
        mx.eval(blocks)
        return Split(tuple(blocks))

    def matrix(self, rows: int, columns: int, scale: float = 1.0) -> Any:
        """A matrix in one buffer, evaluated."""
        block = self._block(rows, columns, scale)
        self.mx.eval(block)
        return block

    def _block(self, rows: int, columns: int, scale: float) -> Any:
        if self.dtype.exact:
            return self._integers(rows, columns)
        if self.dtype.token == "complex64":
            real, imaginary = (self._reals(rows, columns, scale / 2**0.5) for _ in range(2))
            return real + 1j * imaginary
        target = mlx_dtype(self.mx, self.dtype)
        return self._reals(rows, columns, scale).astype(target)

    def _key(self) -> Any:
        return self.mx.random.key(int(self.generator.integers(2**31)))

    def _constant(self, rows: int, columns: int) -> Any | None:
        values = {"zeros": 0.0, "ones": 1.0, "nan": float("nan")}
        if self.mode not in values:
            return None
        return self.mx.full((rows, columns), values[self.mode], dtype=self.mx.float32)

    def _reals(self, rows: int, columns: int, scale: float) -> Any:
        constant = self._constant(rows, columns)
        if constant is not None:
            return constant
        values = self._draw(rows, columns)
        if self.mode == "sparse50":
            values = values * self._coin(rows, columns)
        return values * scale

    def _draw(self, rows: int, columns: int) -> Any:
        mx = self.mx
        uniform = self.mode == "uniform"
        if self.place.device != "cpu":
            if uniform:
                return mx.random.uniform(-1, 1, (rows, columns), key=self._key())
            return mx.random.normal((rows, columns), key=self._key())
        # NumPy is twice as fast as MLX's one CPU thread, and float64 gets its full mantissa.
        kind = np.float64 if self.dtype.token == "float64" else np.float32
        if uniform:
            values = self.generator.random((rows, columns), dtype=kind) * kind(2) - kind(1)
        else:
            values = self.generator.standard_normal((rows, columns), dtype=kind)
        # Without a dtype, MLX converts NumPy's float64 to float32.
        return mx.array(values, dtype=mx.float64 if kind is np.float64 else mx.float32)

    def _coin(self, rows: int, columns: int) -> Any:
        mx = self.mx
        if self.place.device != "cpu":
            return mx.random.bernoulli(0.5, (rows, columns), key=self._key())
        return mx.array(self.generator.random((rows, columns), dtype=np.float32) < 0.5)

    def _integers(self, rows: int, columns: int) -> Any:
        mx = self.mx
        target = mlx_dtype(mx, self.dtype)
        if self.mode == "nan":
            raise Refusal(f"{self.dtype.token} has no NaN", "use --data normal, or --dtype float32")
        if self.mode in ("zeros", "ones"):
            one = self.mode == "ones"
            # mx.full returns int32 for dtype bool and an integer value.
            value = one if self.dtype.token == "bool" else int(one)
            return mx.full((rows, columns), value, dtype=target)
        raw = self._bits(rows, columns)
        return raw * self._coin(rows, columns).astype(target) if self.mode == "sparse50" else raw

    def _bits(self, rows: int, columns: int) -> Any:
        mx = self.mx
        target = mlx_dtype(mx, self.dtype)
        if self.dtype.token == "bool":
            return self._coin(rows, columns)
        if self.place.device == "cpu":
            info = np.iinfo(self.dtype.token)
            return mx.array(
                self.generator.integers(
                    info.min, info.max, (rows, columns), dtype=info.dtype, endpoint=True
                )
            )
        if self.dtype.bits < 32:
            info = np.iinfo(self.dtype.token)
            return mx.random.randint(
                info.min, info.max + 1, (rows, columns), dtype=target, key=self._key()
            )
        # The bits of normal numbers: MLX's randint goes through float32 and has 24 random bits.
        words = columns * self.dtype.bits // 32
        return mx.random.normal((rows, words), key=self._key()).view(target)


def sample_indices(count: int, seed: int, size: int = SAMPLE) -> range:
    """Up to `size` evenly spaced indices below `count`, from a random start.

    The distance is odd, so that they have different offsets in tiles of a power of two.
    """
    step = max(1, count // size)
    step -= step % 2 == 0
    spare = count - step * (min(size, count) - 1)
    start = int(np.random.default_rng(seed).integers(spare)) if count > size else 0
    return range(start, start + step * (min(size, count) - 1) + 1, step)


def share_of(mx: Any, matrix: Split) -> DataShare:
    """DataShare of a matrix: shares of a sample of rows, `all_finite` of every element."""
    first = matrix.blocks[0]
    sample = matrix.rows(mx, sample_indices(matrix.row_count, 0, _SAMPLE_ROWS))
    inexact = mx.issubdtype(first.dtype, mx.inexact)
    tiny = 0.0
    if inexact and first.dtype != mx.complex64:
        tiny = float(mx.finfo(first.dtype).smallest_normal)
    return data_share(
        sample,
        tiny=tiny,
        all_finite=not inexact or all(_finite(mx, block) for block in matrix.blocks),
    )


def _finite(mx: Any, array: Any) -> bool:
    """Whether every element is finite: their sum shows it in one pass, unless it overflows."""
    return bool(mx.isfinite(mx.sum(array))) or bool(mx.all(mx.isfinite(array)))
