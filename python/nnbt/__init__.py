"""nn-backend-test: what a machine can do for neural networks, and whether to believe the number.

    import nnbt
    run = nnbt.run(metric="flops", device="cpu", dtype="float32", sizes=[512])
    run.results[0].median_s, run.results[0].rate, run.results[0].verdict
    samples = nnbt.measure(lambda: sum(range(1000)))
    samples.samples_ns

Importing this package does not import MLX; measuring does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nnbt._native import Samples, Unsupported, measure
    from nnbt.api import run
    from nnbt.results.result import Reason, Result, Run
    from nnbt.spec.case import Case
    from nnbt.spec.options import Options

_HOMES = {
    "Case": "nnbt.spec.case",
    "Options": "nnbt.spec.options",
    "Reason": "nnbt.results.result",
    "Result": "nnbt.results.result",
    "Run": "nnbt.results.result",
    "Samples": "nnbt._native",
    "Unsupported": "nnbt._native",
    "measure": "nnbt._native",
    "run": "nnbt.api",
}

__all__ = [
    "Case",
    "Options",
    "Reason",
    "Result",
    "Run",
    "Samples",
    "Unsupported",
    "measure",
    "run",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("nn-backend-test")
    if name not in _HOMES:
        raise AttributeError(f"module 'nnbt' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
