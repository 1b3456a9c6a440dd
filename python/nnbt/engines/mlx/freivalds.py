"""Freivalds' check of a product: covers every element, but only reads the matrices twice."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nnbt.engines.mlx.data import Place, Split, to_numpy

VECTORS = 4
_CHUNK_ELEMENTS = 2**24  # 64 MiB of float32: the memory of a pass in addition to the matrices


def off_sums(
    place: Place, left: Split, columns: Callable[[range], Any], output: Split, rms: float
) -> tuple[float, str]:
    """(error, "row 3") of the worst row or column of output = left @ right, all n x n.

    With random signs R and S, output @ R is compared with left @ (right @ R), row by row, and
    S @ output with (S @ left) @ right, column by column (R. Freivalds, 1977). The error is the
    RMS over VECTORS sums, relative to the RMS of a sum of n elements of this `rms`.
    `columns(range)` returns columns of right as one lazy array.
    """
    n = output.row_count
    random = np.random.default_rng(5)
    kind = np.complex128 if left.blocks[0].dtype == place.mx.complex64 else np.float64
    right_signs, left_signs = (
        random.choice([-1.0, 1.0], (n, VECTORS)).astype(kind) for _ in range(2)
    )
    rows = max(1, _CHUNK_ELEMENTS // n)

    def over_columns(matrix: Split, signs: Any) -> Any:
        return np.concatenate([_times(place, part, signs) for _, part in _parts(matrix, rows)])

    def over_rows(matrix: Split, signs: Any) -> Any:
        return sum(_times(place, part.T, signs[where]) for where, part in _parts(matrix, rows))

    sums_of_left = over_rows(left, left_signs)
    of_rows: Any = 0
    of_columns = []
    for start in range(0, n, rows):
        part = columns(range(start, min(n, start + rows)))
        of_rows = of_rows + _times(place, part, right_signs[start : start + rows])
        of_columns.append(_times(place, part.T, sums_of_left))
    scale = rms * n**0.5 or 1.0
    row, row_error = _worst(over_columns(output, right_signs) - over_columns(left, of_rows))
    column, column_error = _worst(over_rows(output, left_signs) - np.concatenate(of_columns))
    if row_error >= column_error:
        return row_error / scale, f"row {row}"
    return column_error / scale, f"column {column}"


def _parts(matrix: Split, rows: int) -> Iterator[tuple[slice, Any]]:
    first = 0
    for block in matrix.blocks:
        count = int(block.shape[0])
        for start in range(0, count, rows):
            stop = min(count, start + rows)
            yield slice(first + start, first + stop), block[start:stop]
        first += count


def _times(place: Place, part: Any, vectors: Any) -> Any:
    """part @ vectors as float64 or complex128, computed in at least float32.

    On the CPU by NumPy, so that MLX does not check itself; on a GPU by MLX.
    """
    mx = place.mx
    if part.dtype in (mx.float16, mx.bfloat16):
        part = part.astype(mx.float32)
    if place.device == "cpu":
        values = np.asarray(part)
        with np.errstate(invalid="ignore", over="ignore"):
            return (values @ vectors.astype(values.dtype)).astype(vectors.dtype, copy=False)
    signs = mx.array(vectors.astype(np.complex64 if part.dtype == mx.complex64 else np.float32))
    return to_numpy(mx, mx.matmul(part, signs)).astype(vectors.dtype)


def _worst(difference: Any) -> tuple[int, float]:
    """(index, RMS) of the row with the largest RMS; NaN counts as the largest."""
    errors = np.sqrt(np.mean(np.square(np.abs(difference)), axis=1))
    index = int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))
    return index, float(errors[index])
