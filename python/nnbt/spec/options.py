"""Options: what the command line and nnbt.run take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA = {
    "normal": "normal distribution, full mantissa; integers uniform over their whole range",
    "uniform": "uniform in (-1, 1); integers uniform over their whole range",
    "zeros": "all zero: less power, higher clocks, and zero-skipping hardware looks faster",
    "ones": "all one",
    "sparse50": "normal with every second element, at random, zero",
    "nan": "all NaN: what an overflowed chain computes on",
}
RANDOM_DATA = ("normal", "uniform")
TF32_MODES = ("default", "on", "off")


@dataclass(frozen=True)
class Options:
    """What the command line and nnbt.run take; the defaults are the documented ones.

    `warmup` runs before timing; `runs` timed runs (None: adaptive within `max_seconds` a case);
    `ladder_sizes` takes arrays from the first cache to beyond the last; `cpu_workers` MLX streams,
    one a thread (0: all processors this process may use); `thread_sweep` takes 1, 2, 4, ... up to
    so many threads of engine native. `params` holds values of what only one
    metric has. Device `all` stands for all that the engines have, less those in `without`. With
    `lenient`, cases that can't be run are left out with a note, as long as one is left. `counters`
    allows those of the Neural Engine; packages are folders, for engines that make them.
    """

    metrics: tuple[str, ...] = ("bandwidth",)
    device: str = "auto"
    engines: tuple[str, ...] = ("mlx",)
    dtypes: tuple[str, ...] = ("float32",)
    sizes: tuple[int, ...] | None = None
    ladder_sizes: bool = False
    op: str | None = None
    data: tuple[str, ...] = ("normal",)
    tf32: str = "default"
    graph_steps: int = 4
    warmup: int = 2
    runs: int | None = None
    max_seconds: float = 3.0
    cpu_workers: int = 0
    thread_sweep: bool = False
    checks: bool = True
    params: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    lenient: bool = False
    counters: bool = True
    save_package: str | None = None
    load_package: str | None = None
