"""Cell and Engine: what an engine can measure, on which devices and with which dtypes.

A combination of metric, engine, device and dtype is supported exactly when an engine has a cell
for it; refusals are generated from the cells.
"""

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from nnbt.spec.case import Case
from nnbt.spec.dtypes import DType, FamilyName
from nnbt.spec.options import Options
from nnbt.spec.workload import Measure, Workload

_ROTATION = 8
_MOST_ROTATION = 64
_ROTATION_BYTES = 2**26
_UNKNOWN_ROOM = 2**33


@dataclass(frozen=True)
class Request:
    """What a builder gets: a case with its sizes, and the options of the run.

    `free_bytes` is the free memory by device name, where known.
    """

    case: Case
    sizes: Mapping[str, int]
    options: Options
    measure: Measure
    free_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def rotation(self) -> int:
        """How many inputs units of work alternate between, within half of free memory."""
        room = min(self.free_bytes.values(), default=_UNKNOWN_ROOM) // 2
        unit = max(1, self.sizes["unit_bytes"])
        wanted = min(_MOST_ROTATION, max(_ROTATION, _ROTATION_BYTES // unit))
        return max(1, min(wanted, room // unit))


@dataclass(frozen=True)
class Cell:
    """What one engine measures of one metric.

    `build` allocates the inputs of a case. It measures these `dtypes`, or all of these `families`.
    `refusal(case, options)` returns why the engine cannot run a case here; without it the engine
    runs wherever its device is present. `takes` are the file options that it accepts, `ops` its
    bandwidth operations. `params`, `sizes` and `explain` replace those of the metric; n is 0 unless
    `sized`. `expand(case, options)` returns the cases that one case of the command line stands for,
    `thread_sweep(case)` the same case on 1, 2, 4, ... threads. `predicts_ops` is, by device, the
    number of operations from which a smaller case predicts the time of one run. Results of a
    `ceiling` cell are ceilings of other rates.
    """

    metric: str
    devices: tuple[str, ...]
    build: Callable[[Request], Workload]
    families: tuple[FamilyName, ...] = ()
    dtypes: tuple[str, ...] = ()
    refusal: Callable[[Case, Options], str | None] | None = None
    takes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    params: tuple[str, ...] | None = None
    sizes: Callable[[Case], dict[str, int]] | None = None
    default_sizes: Callable[[Case], tuple[int, ...]] | None = None
    cache_sizes: Callable[[Case], tuple[int, ...]] | None = None
    sized: bool = True
    expand: Callable[[Case, Options], list[Case]] | None = None
    thread_sweep: Callable[[Case], list[Case]] | None = None
    explain: str = ""
    ceiling: bool = False
    predicts_ops: Mapping[str, float] = field(default_factory=dict)

    def measures(self, dtype: DType) -> bool:
        """Whether this dtype is in the cell."""
        return dtype.token in self.dtypes or dtype.family.name in self.families


@dataclass(frozen=True)
class Runtime:
    """What an engine loaded for the cases of one run.

    `facts` are added to those of the machine in the file; `free_bytes` is free memory by device
    name. `scope(case)` is the context in which a case is built, timed and checked; `release()`
    then frees its memory.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    free_bytes: Mapping[str, int] = field(default_factory=dict)
    scope: Callable[[Case], AbstractContextManager[object]] = lambda _: contextlib.nullcontext()
    release: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Load:
    """What an engine gets when it is loaded; `resident_bytes` is the largest working set."""

    options: Options
    device: str
    resident_bytes: int


@dataclass(frozen=True)
class Engine:
    """One row of ENGINES. `load` loads its libraries; raises Unsupported where that fails."""

    name: str
    explain: str
    cells: tuple[Cell, ...]
    load: Callable[[Load], Runtime] = lambda _: Runtime()
