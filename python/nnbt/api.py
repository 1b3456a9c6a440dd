"""nnbt.run: the command line's main job as a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnbt.plan import Options
from nnbt.runner import Listener, execute

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnbt.result import Run
    from nnbt.workload import Measure


def _several(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


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
    checks: bool = True,
    params: Mapping[str, int | str | Sequence[int | str]] | None = None,
    measure: Measure | None = None,
    listener: Listener | None = None,
) -> Run:
    """Measures and judges; the same objects as the command line prints.

    `sizes` are N of N x N matrices or images (None: the metric's own); metric, dtype, engine and
    data may be one name or several; `ladder_sizes` takes those from the first cache to beyond the
    last instead. `runs` fixes the number of timed runs (None: until the median
    is known to 1 % or `max_seconds` seconds a case are spent). `params` holds what only one metric
    has, each one value or several: batch, channels, layers, kernel, weights ("own", "shared") and
    enqueue of conv. Rates are in base units a second (bytes, operations), times in seconds,
    samples in nanoseconds. `measure` replaces the native timing function, for tests.

    Raises nnbt.Unsupported with one sentence for what this machine or MLX can't do, before
    anything is measured; a case that fails later becomes a row with a status and a reason.
    """
    options = Options(
        metrics=_several(metric),
        device=device,
        engines=_several(engine),
        dtypes=_several(dtype),
        sizes=None if sizes is None else tuple(sizes),
        ladder_sizes=ladder_sizes,
        op=op,
        data=_several(data),
        tf32=tf32,
        graph_steps=graph_steps,
        warmup=warmup,
        runs=runs,
        max_seconds=max_seconds,
        cpu_workers=cpu_workers,
        checks=checks,
        params={
            name: (value,) if isinstance(value, int | str) else tuple(value)
            for name, value in (params or {}).items()
        },
    )
    return execute(options, measure=measure, listener=listener)
