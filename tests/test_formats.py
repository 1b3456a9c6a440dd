"""nnbt.spec.formats: bit patterns of every format, and operands whose products stay exact."""

import numpy as np
import pytest

from nnbt.spec.formats import FORMATS, exact_operands, pack_words, uniform_bits


@pytest.mark.parametrize("name", FORMATS)
def test_integers_are_exact(name):
    row = FORMATS[name]
    values = np.arange(-row.exact_integer, row.exact_integer + 1, dtype=np.float64)
    if len(values) > 2**17:
        values = values[:: len(values) // 2**16]
    assert np.array_equal(row.decode(row.encode(values)), values)


def test_values_are_rounded_to_nearest():
    fractions = np.array([1.0, 1 + 2**-9, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-12])
    decode = {name: row.decode(row.encode(fractions)) for name, row in FORMATS.items()}
    assert list(decode["bfloat16"]) == [1, 1, 1, 1 + 2**-6, -1]
    assert list(decode["tfloat32"]) == [*fractions[:4], -1]
    assert list(decode["int8"]) == [1, 1, 1, 1, -1]


def test_every_code_of_e4m3():
    """Bias 7, no infinity, 0x7f and 0xff are NaN (OCP 8-bit floating point specification)."""
    row, code = FORMATS["float8_e4m3"], np.arange(256)
    exponent, mantissa = (code >> 3) & 15, code & 7
    value = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    value[[0x7F, 0xFF]] = np.nan
    value = np.where(code & 0x80, -value, value)
    assert np.array_equal(row.decode(code.astype(np.uint8)), value, equal_nan=True)
    finite = np.isfinite(value)
    assert np.array_equal(row.encode(value[finite]), code[finite])


def test_bfloat16_is_the_upper_half_of_float32():
    row, rng = FORMATS["bfloat16"], np.random.default_rng(1)
    for scale in (1e-30, 1.0, 1e30):
        values = rng.standard_normal(2**16) * scale
        bits = values.astype(np.float32).view(np.uint32)
        rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        assert np.array_equal(row.encode(values), rounded)
        upper = rounded.astype(np.uint32) << 16
        assert np.array_equal(row.decode(rounded), upper.view(np.float32).astype(np.float64))


def test_exact_operands_grow_slowly_while_their_factors_are_large():
    tiles = exact_operands(32, 16, 64, magnitude=255, growth=7, seed=3)
    assert 1 <= np.abs(tiles.product).min() <= np.abs(tiles.product).max() <= 7
    assert np.abs(tiles.left).max() == 255
    assert np.abs(tiles.right).mean() > 100
    partial = tiles.left[:, :32] @ tiles.right[:, :32].T
    assert np.abs(partial).max() <= tiles.peak


@pytest.mark.parametrize("name", FORMATS)
def test_uniform_bits(name):
    row = FORMATS[name]
    bits = uniform_bits(row, (64, 64), 1)
    values = row.decode(bits) / (127 if name == "int8" else 1)
    assert bits.dtype.itemsize * 8 == row.bits
    assert np.abs(values).max() <= 1
    assert np.abs(values).mean() == pytest.approx(0.5, abs=0.02)
    assert pack_words(bits).shape == (64, 64 * row.bits // 32)
