"""nnbt.spec.dtypes: names, sizes and units of element types."""

import pytest

from nnbt._native import Unsupported
from nnbt.spec.dtypes import DTYPES, dtype


@pytest.mark.parametrize(
    ("name", "token"),
    [
        ("float32", "float32"), ("mlx.core.float16", "float16"), ("mx.bfloat16", "bfloat16"),
        ("bool_", "bool"), (" INT8 ", "int8"), ("q4", "q4"),
    ],
)  # fmt: skip
def test_names_that_are_understood(name: str, token: str) -> None:
    assert dtype(name).token == token


@pytest.mark.parametrize("name", ["", "float", "float8", "q0", "q1", "q7", "q9", "mxfp6"])
def test_other_names_are_refused_with_what_to_type(name: str) -> None:
    with pytest.raises(Unsupported, match="type ") as refused:
        dtype(name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "token", [name for name, row in DTYPES.items() if row.family.name == "inexact"]
)
def test_sizes_and_mantissas_are_those_of_mlx(token: str) -> None:
    from nnbt.machine import mlx as _mlx

    mx = _mlx.core()
    row = DTYPES[token]
    kind = getattr(mx, token)
    assert row.itemsize == kind.size
    if token != "complex64":
        assert 2.0 ** (1 - (row.mantissa or 0)) == mx.finfo(kind).eps


@pytest.mark.parametrize(
    "token", [name for name, row in DTYPES.items() if row.family.name == "exact"]
)
def test_integer_sizes_are_those_of_mlx(token: str) -> None:
    from nnbt.machine import mlx as _mlx

    mx = _mlx.core()
    assert DTYPES[token].itemsize == getattr(mx, "bool_" if token == "bool" else token).size
    assert DTYPES[token].mantissa is None


def test_units_by_family() -> None:
    assert {dtype(name).family.unit for name in ("float64", "complex64")} == {"FLOP/s"}
    assert {dtype(name).family.unit for name in ("int8", "uint64", "bool")} == {"IOP/s"}
    assert {dtype(name).family.unit for name in ("q2", "mxfp4", "nvfp4")} == {"QOP/s"}


def test_a_complex_multiply_add_is_eight_operations() -> None:
    assert {row.token for row in DTYPES.values() if row.ops_per_mac == 8} == {"complex64"}
