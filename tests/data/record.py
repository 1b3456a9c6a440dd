"""Records run times for test_stats.py: real distributions, with what SciPy and NumPy say of them.

python tests/data/record.py tests/data/samples.json
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

import nnbt

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIDENCE = 0.95


def matrix_product() -> None:
    """A BLAS call: a few microseconds, with outliers."""
    np.dot(MATRIX, MATRIX)


def interrupted() -> None:
    """Waiting: the scheduler's spread."""
    time.sleep(0.0005)


def two_speeds(state: list[int]) -> Callable[[], object]:
    """Two clusters, one three times the other."""

    def step() -> object:
        state[0] += 1
        return sum(range(300 if state[0] % 3 else 900))

    return step


MATRIX = np.ones((64, 64))
CASES: dict[str, tuple[Callable[[], object], int]] = {
    "matrix product": (matrix_product, 200),
    "sleep": (interrupted, 51),
    "two speeds": (two_speeds([0]), 120),
    "nothing": (lambda: None, 333),
    "five": (matrix_product, 5),
    "seven": (interrupted, 7),
}


def order_statistics(samples: list[int]) -> list[float]:
    """The symmetric pair of order statistics by the exact binomial, with its coverage."""
    n = len(samples)
    binomial = stats.binom(n, 0.5)
    ranks = [k for k in range(n // 2) if 1 - 2 * binomial.cdf(k) >= CONFIDENCE]
    k = max(ranks, default=0)
    ordered = sorted(samples)
    return [ordered[k], ordered[n - 1 - k], float(1 - 2 * binomial.cdf(k))]


def describe(samples: list[int]) -> dict[str, object]:
    """Expected values, from NumPy and SciPy alone."""
    return {
        "samples_ns": samples,
        "median": float(np.median(samples)),
        "quantiles": {str(q): float(np.quantile(samples, q)) for q in (0, 0.05, 0.5, 0.95, 1)},
        "mad": float(stats.median_abs_deviation(samples)),
        "interval": order_statistics(samples),
    }


def main() -> None:
    """Writes one record a case."""
    records = {
        name: describe(nnbt.measure(step, runs=runs).samples_ns)
        for name, (step, runs) in CASES.items()
    }
    Path(sys.argv[1]).write_text(json.dumps(records, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
