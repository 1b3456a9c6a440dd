"""Inputs are what they are called: of the type asked for, with all of its mantissa."""

import numpy as np
import pytest

from nnbt.engines.mlx.data import Data, Place, mlx_dtype
from nnbt.machine import mlx as _mlx
from nnbt.spec.dtypes import DTYPES, dtype
from nnbt.spec.options import DATA

TOKENS = [row.token for row in DTYPES.values() if row.family.name in ("inexact", "exact")]


@pytest.mark.parametrize("mode", [mode for mode in DATA if mode != "nan"])
@pytest.mark.parametrize("token", TOKENS)
def test_a_matrix_has_the_type_asked_for(token: str, mode: str) -> None:
    mx = _mlx.core()
    place = Place(mx, "cpu", 1)
    with mx.stream(place.streams[0]):
        matrix = Data(place, dtype(token), mode, 1).matrix(8, 8)
    assert matrix.dtype == mlx_dtype(mx, dtype(token))


@pytest.mark.parametrize("mode", ["normal", "uniform"])
def test_float64_has_more_mantissa_than_float32(mode: str) -> None:
    mx = _mlx.core()
    place = Place(mx, "cpu", 1)
    with mx.stream(place.streams[0]):
        values = np.array(Data(place, dtype("float64"), mode, 1).matrix(32, 32, 0.3))
    assert values.dtype == np.float64
    assert np.mean(values == values.astype(np.float32)) < 0.01
