"""Cell and Engine: what an engine can measure, on which devices, of which types.

A combination of metric, engine, device and dtype is supported exactly when an engine has a cell
for it; refusals are made from the cells.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from nnbt.spec.case import Case
    from nnbt.spec.dtypes import DType, Kind
    from nnbt.spec.options import Options
    from nnbt.spec.workload import Measure, Workload

_ROTATION = 8
_MOST_ROTATION = 64
_ROTATION_BYTES = 2**26
_UNKNOWN_ROOM = 2**33


@dataclass(frozen=True)
class Request:
    """What a builder is given: a case with its sizes, and what the run allows.

    `free_bytes` holds the free memory by device name, as far as it is known.
    """

    case: Case
    sizes: Mapping[str, int]
    options: Options
    measure: Measure
    free_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def rotation(self) -> int:
        """How many buffers units of work should take turns over, within half of free memory."""
        room = min(self.free_bytes.values(), default=_UNKNOWN_ROOM) // 2
        unit = max(1, self.sizes["unit_bytes"])
        wanted = min(_MOST_ROTATION, max(_ROTATION, _ROTATION_BYTES // unit))
        return max(1, min(wanted, room // unit))


@dataclass(frozen=True)
class Cell:
    """What one engine measures of one metric.

    `build` allocates the inputs of a case. `dtypes` narrows `kinds` down to these types.
    `refusal(case, options)` says why the engine can't run a case here (without it: it runs wherever
    its device is). `takes` names the file options that it understands. `ops` are its bandwidth
    operations. `params`, `sizes` and `explain` replace those of the metric; without `sized` there
    is no matrix, and n is 0. `expand(case, options)` gives the cases that one of the command line
    stands for, `thread_sweep(case)` the same case on 1, 2, 4, ... threads. `predicts_ops` holds, by
    device, the operations from which a smaller case predicts how long one run takes. Results of a
    `ceiling` cell are what other rates are set against.
    """

    metric: str
    devices: tuple[str, ...]
    build: Callable[[Request], Workload]
    kinds: frozenset[Kind] = frozenset()
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

    def measures(self, kind: DType) -> bool:
        """Whether this type is in the cell."""
        return kind.token in self.dtypes if self.dtypes else kind.kind in self.kinds


def _no_scope(case: Case) -> AbstractContextManager[object]:
    del case
    return contextlib.nullcontext()


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Runtime:
    """What an engine has loaded for the cases of one run.

    `facts` go into the file beside those of the machine; `free_bytes` is free memory by device
    name. `scope(case)` surrounds everything that is done for a case; `release()` comes after it and
    gives back what it left.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    free_bytes: Mapping[str, int] = field(default_factory=dict)
    scope: Callable[[Case], AbstractContextManager[object]] = _no_scope
    release: Callable[[], object] = _nothing


@dataclass(frozen=True)
class Load:
    """What an engine is told when it is loaded: the device, and the largest working set."""

    options: Options
    device: str
    resident_bytes: int


def _nothing_to_load(load: Load) -> Runtime:
    del load
    return Runtime()


@dataclass(frozen=True)
class Engine:
    """One row of ENGINES. `load` loads its libraries; raises Unsupported where that fails."""

    name: str
    explain: str
    cells: tuple[Cell, ...]
    load: Callable[[Load], Runtime] = _nothing_to_load
