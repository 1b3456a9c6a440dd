"""What `import nnbt` offers: the command line's main job as a function, and its types."""

import inspect
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from nnbt._native import Samples, Unsupported, measure
from nnbt.pipeline.listener import Listener
from nnbt.results.result import Reason, Result, Run
from nnbt.spec.case import Case
from nnbt.spec.errors import Refusal
from nnbt.spec.options import OPTIONS, Options, make_options, python_spelling
from nnbt.spec.workload import Measure

__all__ = [
    "Case", "Options", "Reason", "Result", "Run", "Samples", "Unsupported", "load", "measure",
    "run",
]  # fmt: skip
_KEYWORDS = {row.name: row for row in OPTIONS.values() if row.attribute or row.metrics}


def run(
    metric: str | Sequence[str] = Options.metrics,
    device: str = Options.device,
    dtype: str | Sequence[str] = Options.dtypes,
    sizes: int | Sequence[int] | None = None,
    *,
    params: Mapping[str, int | str | Sequence[int | str]] | None = None,
    measure: Measure | None = None,
    listener: Listener | None = None,
    **options: Any,
) -> Run:
    """Measures and judges; returns what the command line prints.

    The other keywords are the options of `nnbt` and `nnbt conv` with underscores, such as `engine`,
    `runs`, `max_seconds`, `thread_sweep` or `checks=False`; nnbt.Options has them with their types
    and defaults. `sizes` are N of N x N matrices or images. metric, dtype, engine, sizes and data
    may be one value or a list, and so may what only metric conv has (batch, channels, layers,
    kernel, weights, enqueue), also as a dictionary `params`. Rates are in base units per second
    (bytes, operations), times in seconds, samples in nanoseconds. `measure` replaces the native
    timing function, for tests.

    Raises nnbt.Unsupported with one sentence for what this machine or MLX cannot do, before
    anything is measured; a case that fails later becomes a row with a status and a reason.
    """
    from nnbt.pipeline.session import execute

    asked = {"metric": metric, "device": device, "dtype": dtype, "sizes": sizes, **options}
    for name in asked.keys() - _KEYWORDS.keys():
        raise TypeError(f"run() got an unexpected keyword argument {name!r}")
    with python_spelling():
        given: dict[str, Any] = {name: _KEYWORDS[name].convert(asked[name]) for name in asked}
        if not isinstance(params, Mapping | None):
            raise Refusal(f"params {params!r} is not a dictionary", "use params={'layers': 3}")
        given["params"] = {
            name: OPTIONS[name].convert(value) if name in OPTIONS else value
            for name, value in (params or {}).items()
        }
        return execute(make_options(given), measure=measure, listener=listener)


def _signature() -> inspect.Signature:
    """That of `run` with each option of the table."""
    named = inspect.signature(run).parameters
    own = [item for item in named.values() if item.kind is not inspect.Parameter.VAR_KEYWORD]
    kind = inspect.Parameter.KEYWORD_ONLY
    rows = [row for name, row in _KEYWORDS.items() if name not in named]
    more = [inspect.Parameter(row.name, kind, default=row.default) for row in rows]
    return inspect.Signature([*own, *more], return_annotation="Run")


run.__signature__ = _signature()  # type: ignore[attr-defined]


def load(path: str | PathLike[str]) -> Run:
    """The Run that `nnbt --json` wrote. Raises nnbt.Unsupported for what is no such file."""
    from nnbt.results.files import load as read

    return read(path)
