"""Random operands as bit patterns: formats that NumPy lacks, and products that stay exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[Any]


@dataclass(frozen=True)
class Format:
    """How values of a dtype lie in memory.

    `encode` rounds float64 values to bit patterns, `decode` is its exact inverse. Integers up to
    `exact_integer` in magnitude are represented exactly.
    """

    name: str
    bits: int
    exact_integer: int
    encode: Callable[[Array], Array]
    decode: Callable[[Array], Array]


def _encode_bfloat16(values: Array) -> Array:
    bits: Array = values.astype(np.float32).view(np.uint32)
    rounding = np.uint32(0x7FFF) + ((bits >> 16) & 1)
    rounded: Array = ((bits + rounding) >> 16).astype(np.uint16)
    return rounded


def _decode_bfloat16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def _encode_tfloat32(values: Array) -> Array:
    bits: Array = values.astype(np.float32).view(np.uint32)
    rounded: Array = (bits + np.uint32(0x0FFF) + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)
    return rounded


def _e4m3_values() -> Array:
    """Value of each e4m3 code (bias 7, no infinity, 0x7f and 0xff are NaN; OCP 8-bit formats)."""
    code = np.arange(256)
    exponent, mantissa = (code >> 3) & 15, code & 7
    magnitude = np.where(
        exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0)
    )
    magnitude[[0x7F, 0xFF]] = np.nan
    return np.where(code & 0x80, -magnitude, magnitude)


_E4M3 = _e4m3_values()
_E4M3_MIDPOINTS = (_E4M3[:126] + _E4M3[1:127]) / 2


def _encode_e4m3(values: Array) -> Array:
    # A value halfway between two codes goes up: only random operands pass here, no results.
    code = np.searchsorted(_E4M3_MIDPOINTS, np.abs(values), side="right").astype(np.uint8)
    return np.where(values < 0, code | np.uint8(0x80), code).astype(np.uint8)


FORMATS = {
    row.name: row
    for row in (
        Format(
            "float32",
            32,
            2**24,
            lambda v: v.astype(np.float32).view(np.uint32),
            lambda b: b.view(np.float32).astype(np.float64),
        ),
        Format(
            "tfloat32",
            32,
            2**11,
            _encode_tfloat32,
            lambda b: b.view(np.float32).astype(np.float64),
        ),
        Format(
            "float16",
            16,
            2**11,
            lambda v: v.astype(np.float16).view(np.uint16),
            lambda b: b.view(np.float16).astype(np.float64),
        ),
        Format("bfloat16", 16, 2**8, _encode_bfloat16, _decode_bfloat16),
        Format("float8_e4m3", 8, 2**4, _encode_e4m3, lambda b: _E4M3[b]),
        Format(
            "int8",
            8,
            127,
            lambda v: np.rint(v).astype(np.int8).view(np.uint8),
            lambda b: b.view(np.int8).astype(np.float64),
        ),
    )
}


def pack_words(bits: Array) -> Array:
    """The same bytes as 4-byte words along the last axis."""
    return np.ascontiguousarray(bits).view(np.uint32)


def uniform_bits(row: Format, shape: tuple[int, ...], seed: int) -> Array:
    """Bit patterns of uniform(-1, 1) values; for int8 of uniform integers from -127 to 127."""
    rng = np.random.default_rng(seed)
    if row.name in ("float32", "tfloat32"):
        values = rng.random(shape, dtype=np.float32) * np.float32(2) - np.float32(1)
        return row.encode(values) if row.name == "tfloat32" else values.view(np.uint32)
    # 2^16 equally likely quantiles, encoded once: a hundred times faster than encoding each value.
    span = row.exact_integer if row.name == "int8" else 1.0
    table = row.encode((np.arange(2**16) + 0.5) / 2**15 * span - span)
    return table[np.frombuffer(rng.bytes(2 * int(np.prod(shape))), dtype=np.uint16)].reshape(shape)


@dataclass(frozen=True)
class ExactOperands:
    """Two tiles, as values, whose product can be summed many times without rounding.

    `product` is left @ right.T; `peak` bounds every partial sum of one product.
    """

    left: Array
    right: Array
    product: Array
    peak: float


def exact_operands(
    rows: int, columns: int, depth: int, *, magnitude: int, growth: int, seed: int
) -> ExactOperands:
    """Random integers up to `magnitude`, whose product grows by at most `growth` in magnitude.

    left = [P, -P] and right = [Q, Q - E] with one entry of +-1 in each column of E, so that a
    product adds P E^T, at most `growth`, while the hardware multiplies random integers. A float32
    accumulator thus holds the exact sum after thousands of products (up to 2^24), and a single
    lost product shows.
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
