"""off_sums: an element that is wrong anywhere moves the sum of its row and of its column."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nnbt.engines.mlx import freivalds as mlx_freivalds
from nnbt.engines.mlx.data import Split, to_numpy
from nnbt.engines.mlx.freivalds import off_sums
from nnbt.machine import mlx as _mlx

N = 150
TYPES = {"float64": 1e-14, "float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2, "complex64": 1e-5}

HERE = [("float64", "cpu"), *((token, d) for token in list(TYPES)[1:] for d in ("cpu", "gpu"))]
"""The device decides whose sums: NumPy's, or MLX's, which has float64 on the CPU only."""
FROM: dict[str, Any] = {"float64": np.float64, "complex64": np.complex64}


@pytest.fixture
def mx() -> Any:
    return _mlx.core()


def sums(mx: Any, token: str, device: str, change: Any = None) -> tuple[float, str]:
    """off_sums of a random product in two row blocks, with its output changed."""
    random = np.random.default_rng(0)
    kind = getattr(mx, token)
    with mx.stream(mx.cpu):
        left, right = (random.standard_normal((N, N)) for _ in range(2))
        if token == "complex64":
            left, right = left + 1j * right, right - 1j * left
        a, b = (mx.array(x.astype(FROM.get(token, np.float32))).astype(kind) for x in (left, right))
        c = mx.matmul(a, b)
        rms = float(np.sqrt(np.mean(np.square(np.abs(to_numpy(mx, c))))))
        c = change(c) if change else c
        place: Any = SimpleNamespace(mx=mx, device=device)
        halves = [Split((x[:70], x[70:])) for x in (a, c)]
        return off_sums(place, halves[0], lambda i: b[:, i.start : i.stop : i.step], halves[1], rms)


@pytest.mark.parametrize("chunk", [2**24, 7 * N])
@pytest.mark.parametrize(("token", "device"), HERE)
def test_a_right_product_is_off_by_rounding_only(
    mx: Any, token: str, chunk: int, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlx_freivalds, "_CHUNK_ELEMENTS", chunk)
    error, _ = sums(mx, token, device)
    assert 0 < error < TYPES[token]


@pytest.mark.parametrize(("token", "device"), [pair for pair in HERE if pair[0] != "complex64"])
def test_row_and_column_of_a_wrong_element_are_named(mx: Any, token: str, device: str) -> None:
    error, where = sums(mx, token, device, lambda c: c.at[0, N - 1].add(1000))
    assert error > 1
    assert where in ("row 0", f"column {N - 1}")


@pytest.mark.parametrize("row", [0, 1, 77, N - 1])
def test_a_row_of_zeros_is_off_by_all_of_it(mx: Any, row: int) -> None:
    error, where = sums(mx, "float32", "cpu", lambda c: c.at[row].multiply(0))
    assert where == f"row {row}"
    assert error > 0.3


def test_what_is_not_a_number_is_no_small_error(mx: Any) -> None:
    error, _ = sums(mx, "float32", "cpu", lambda c: c.at[3, 5].multiply(float("nan")))
    assert np.isnan(error)
