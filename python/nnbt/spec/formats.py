"""Number formats as bit patterns, and random operands whose products stay exact."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Format:
    """How values of a dtype lie in memory.

    `rounded` makes values that `dtype` represents, where NumPy's conversion does not. Integers up
    to `exact_integer` in magnitude are represented exactly.
    """

    name: str
    dtype: np.dtype[Any]
    exact_integer: int
    rounded: Callable[[Array], Array] = lambda values: values

    @property
    def bits(self) -> int:
        """Width of an element."""
        return 8 * self.dtype.itemsize

    def encode(self, values: Array) -> Array:
        """Bit patterns, as unsigned integers, of float64 values rounded to nearest."""
        return self.rounded(values).astype(self.dtype).view(f"uint{self.bits}")

    def decode(self, bits: Array) -> Array:
        """The float64 values of bit patterns, exactly."""
        return bits.view(self.dtype).astype(np.float64)


def _tfloat32(values: Array) -> Array:
    """float32 with 10 bits of mantissa, which ml_dtypes lacks."""
    bits: Array = values.astype(np.float32).view(np.uint32)
    rounded: Array = (bits + np.uint32(0x0FFF) + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)
    return rounded.view(np.float32)


FORMATS = {
    row.name: row
    for row in (
        Format("float32", np.dtype(np.float32), 2**24),
        Format("tfloat32", np.dtype(np.float32), 2**11, _tfloat32),
        Format("float16", np.dtype(np.float16), 2**11),
        Format("bfloat16", np.dtype(ml_dtypes.bfloat16), 2**8),
        Format("float8_e4m3", np.dtype(ml_dtypes.float8_e4m3fn), 2**4),
        Format("int8", np.dtype(np.int8), 127, np.rint),
    )
}


def pack_words(bits: Array) -> Array:
    """The same bytes as 4-byte words along the last axis."""
    return np.ascontiguousarray(bits).view(np.uint32)


def uniform_bits(row: Format, shape: tuple[int, ...], seed: int) -> Array:
    """Bit patterns of uniform(-1, 1) values, for int8 of uniform integers from -127 to 127."""
    rng = np.random.default_rng(seed)
    if row.name in ("float32", "tfloat32"):
        values = rng.random(shape, dtype=np.float32) * np.float32(2) - np.float32(1)
        return row.encode(values) if row.name == "tfloat32" else values.view(np.uint32)
    # 2^16 equally likely quantiles, encoded once: much faster than encoding each value.
    span = row.exact_integer if row.name == "int8" else 1.0
    table = row.encode((np.arange(2**16) + 0.5) / 2**15 * span - span)
    return table[np.frombuffer(rng.bytes(2 * int(np.prod(shape))), dtype=np.uint16)].reshape(shape)


@dataclass(frozen=True)
class ExactOperands:
    """Values of two tiles whose product can be added many times without rounding.

    `product` is left @ right.T; `peak` bounds the magnitude of every partial sum of one product.
    """

    left: Array
    right: Array
    product: Array
    peak: float


def exact_operands(
    rows: int, columns: int, depth: int, *, magnitude: int, growth: int, seed: int
) -> ExactOperands:
    """Random integers up to `magnitude`; each product changes a sum by at most `growth`.

    left = [P, -P] and right = [Q, Q - E] with one entry of +-1 in each row of E: a product adds
    P E^T, at most `growth`, while the hardware multiplies random integers. A float32 accumulator
    so holds the exact sum of thousands of products (up to 2^24), and one lost product shows.
    """
    rng = np.random.default_rng(seed)
    half = depth // 2
    p = rng.integers(-magnitude, magnitude + 1, (rows, half))
    q = rng.integers(-(magnitude - 1), magnitude, (columns, half))
    # E touches only the first four columns of P, which are bounded by `growth`.
    p[:, :4] = rng.integers(1, growth + 1, (rows, 4)) * rng.choice((-1, 1), (rows, 4))
    e = np.zeros_like(q)
    e[np.arange(columns), rng.integers(0, 4, columns)] = rng.choice((-1, 1), columns)
    left, right = np.concatenate([p, -p], axis=1), np.concatenate([q, q - e], axis=1)
    peak = float((np.abs(p) @ np.abs(q).T).max() + growth)
    return ExactOperands(left, right, left @ right.T, peak)
