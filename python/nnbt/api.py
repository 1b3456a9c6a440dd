"""nnbt.run: the command line's main job as a function."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from nnbt._native import Unsupported
from nnbt.pipeline.session import execute
from nnbt.spec.options import Options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnbt.pipeline.listener import Listener
    from nnbt.results.result import Run
    from nnbt.spec.workload import Measure


def _several(name: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """Names as a tuple. Raises Unsupported for none, or for what is no name."""
    found = (value,) if isinstance(value, str) else _listed(name, value, "a name or a list of them")
    if not found:
        raise Unsupported(f"{name} is empty: type one name or several.")
    for item in found:
        if not isinstance(item, str):
            raise Unsupported(f"{name} {item!r} is no name: type a string.")
    return found


def _listed(name: str, value: Any, wanted: str) -> tuple[Any, ...]:
    if isinstance(value, str | bytes):
        raise Unsupported(f"{name} {value!r} is a string: type {wanted}.")
    try:
        return tuple(value)
    except TypeError:
        raise Unsupported(f"{name} {value!r} is no list: type {wanted}.") from None


def _whole(name: str, value: Any) -> int:
    """An int; NumPy's whole numbers become one. Raises Unsupported for everything else."""
    try:
        if isinstance(value, bool):
            raise TypeError  # noqa: TRY301
        return operator.index(value)
    except TypeError:
        raise Unsupported(f"{name} {value!r} is no whole number: type one such as 8.") from None


def _param(name: str, value: Any) -> tuple[int | str, ...]:
    several = (value,) if isinstance(value, str) or hasattr(value, "__index__") else None
    found = _listed(name, value, "one value or a list") if several is None else several
    return tuple(item if isinstance(item, str) else _whole(name, item) for item in found)


def _seconds(value: Any) -> float:
    if isinstance(value, bool | str):
        raise Unsupported(f"max_seconds {value!r} is no number: type one such as 3.0.")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise Unsupported(f"max_seconds {value!r} is no number: type one such as 3.0.") from None


def run(
    metric: str | Sequence[str] = "bandwidth",
    device: str = "auto",
    dtype: str | Sequence[str] = "float32",
    sizes: Sequence[int] | None = None,
    *,
    ladder_sizes: bool = False,
    engine: str | Sequence[str] = "mlx",
    op: str | None = None,
    data: str | Sequence[str] = "normal",
    tf32: str = "default",
    graph_steps: int = Options.graph_steps,
    warmup: int = Options.warmup,
    runs: int | None = None,
    max_seconds: float = Options.max_seconds,
    cpu_workers: int = 0,
    thread_sweep: bool = False,
    checks: bool = True,
    params: Mapping[str, int | str | Sequence[int | str]] | None = None,
    measure: Measure | None = None,
    listener: Listener | None = None,
) -> Run:
    """Measures and judges; the same objects as the command line prints.

    `sizes` are N of N x N matrices or images (None: the metric's own); metric, dtype, engine and
    data may be one name or several; `ladder_sizes` takes those from the first cache to beyond the
    last instead; `thread_sweep` takes 1, 2, 4, ... threads of engine native and names the knee in
    `details`. `runs` fixes the number of timed runs (None: until the median
    is known to 1 % or `max_seconds` seconds a case are spent). `params` holds what only one metric
    has, each one value or several: batch, channels, layers, kernel, weights ("own", "shared") and
    enqueue of conv. Rates are in base units a second (bytes, operations), times in seconds,
    samples in nanoseconds. `measure` replaces the native timing function, for tests.

    Raises nnbt.Unsupported with one sentence for what this machine or MLX can't do, before
    anything is measured; a case that fails later becomes a row with a status and a reason.
    """
    options = Options(
        metrics=_several("metric", metric),
        device=device,
        engines=_several("engine", engine),
        dtypes=_several("dtype", dtype),
        sizes=None
        if sizes is None
        else tuple(
            _whole("sizes", n) for n in _listed("sizes", sizes, "a list such as sizes=[512]")
        ),
        ladder_sizes=ladder_sizes,
        op=op,
        data=_several("data", data),
        tf32=tf32,
        graph_steps=_whole("graph_steps", graph_steps),
        warmup=_whole("warmup", warmup),
        runs=None if runs is None else _whole("runs", runs),
        max_seconds=_seconds(max_seconds),
        cpu_workers=_whole("cpu_workers", cpu_workers),
        thread_sweep=thread_sweep,
        checks=checks,
        params={name: _param(name, value) for name, value in (params or {}).items()},
    )
    return execute(options, measure=measure, listener=listener)
