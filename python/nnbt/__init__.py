"""nn-backend-test: what a machine can do for neural networks, and whether to believe the number.

    import nnbt
    run = nnbt.run(metric="flops", device="cpu", dtype="float32", sizes=[512])
    run.results[0].median_s, run.results[0].rate, run.results[0].verdict
    samples = nnbt.measure(lambda: sum(range(1000)))
    samples.samples_ns

Importing this package does not import MLX; measuring does.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes 10 ms, in which Ctrl-C is a traceback

if TYPE_CHECKING:
    from nnbt.api import (
        Case,
        Options,
        Reason,
        Result,
        Run,
        Samples,
        Unsupported,
        load,
        measure,
        run,
    )
    from nnbt.engines.mpsgraph import ane

__all__ = [
    "Case", "Options", "Reason", "Result", "Run", "Samples", "Unsupported", "ane", "load",
    "measure", "run",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        return version("nn-backend-test")
    if name not in __all__:
        raise AttributeError(f"module 'nnbt' has no attribute {name!r}")
    if name == "ane":
        from nnbt.engines.mpsgraph import ane

        return ane
    if name in ("Samples", "Unsupported", "measure"):  # native: they work without dependencies
        from nnbt import _native

        return getattr(_native, name)
    from nnbt import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
