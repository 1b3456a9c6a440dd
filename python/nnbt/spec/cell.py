"""What a metric and one of its cells are: the row types of METRICS."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nnbt._native import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nnbt.pipeline.plan import Options
    from nnbt.spec.case import Case
    from nnbt.spec.dtypes import DType, Kind
    from nnbt.spec.workload import Workload


@dataclass(frozen=True)
class Cell:
    """One cell of METRICS: `builder` is module:function, imported when the case is built.

    `dtypes` narrows `kinds` down to these types. `needs` is module:function of what is asked
    (with case and options) for a sentence if the engine can't run here (empty: it runs wherever
    its device is). `takes` names the file options that it understands; `mlx` whether MLX does the
    work. `ops` are its bandwidth operations. `params`, `sizes` and `explain` replace those of the
    metric; `default_sizes` and `ladder_sizes` are module:function(case); without `sized` there is
    no matrix, and n is 0. `expand` is module:function(case, options) -> the cases that one of the
    command line stands for, `thread_sweep` module:function(case) -> the same case on 1, 2, 4, ...
    threads. Results of a `ceiling` cell are what other rates are set against.
    """

    builder: str
    devices: tuple[str, ...]
    kinds: frozenset[Kind]
    dtypes: tuple[str, ...] = ()
    needs: str = ""
    takes: tuple[str, ...] = ()
    mlx: bool = True
    ops: tuple[str, ...] = ()
    params: tuple[str, ...] | None = None
    sizes: Callable[[Case], dict[str, int]] | None = None
    default_sizes: str = ""
    ladder_sizes: str = ""
    sized: bool = True
    expand: str = ""
    thread_sweep: str = ""
    explain: str = ""
    ceiling: bool = False

    def build(self, bench: Any) -> Workload:
        """Allocates the inputs of a case."""
        built: Workload = _function(self.builder)(bench)
        return built

    def refusal(self, case: Case, options: Options) -> str | None:
        """None where the engine can run this case here, else the sentence that says why not."""
        reason: str | None = _function(self.needs)(case, options) if self.needs else None
        return reason

    def cases(self, case: Case, options: Options) -> list[Case]:
        """The cases that this one stands for. Raises Unsupported for no threads to sweep."""
        cases: list[Case] = _function(self.expand)(case, options) if self.expand else [case]
        if not options.thread_sweep:
            return cases
        if not self.thread_sweep:
            raise Unsupported(
                f"--thread-sweep is for the pinned threads of engine native, and {case.metric} by "
                f"{case.engine} on {case.device} has none: type --engine native --device cpu with "
                "--metric bandwidth or flops, or leave it out."
            )
        sweep = _function(self.thread_sweep)
        return [swept for single in cases for swept in sweep(single)]

    def sizes_for(self, case: Case, metric: Metric, options: Options) -> tuple[int, ...]:
        """The n that are measured where none is named. Raises Unsupported for no such ladder."""
        if options.ladder_sizes:
            if not self.ladder_sizes:
                raise Unsupported(
                    f"--ladder-sizes goes through the caches of a processor, and {metric.name} by "
                    f"{case.engine} has none: type --sizes, or --metric bandwidth --engine native."
                )
            return _function(self.ladder_sizes)(case)  # type: ignore[no-any-return]
        if not self.sized:
            return (0,)
        sizes: tuple[int, ...] = metric.default_sizes
        return _function(self.default_sizes)(case) if self.default_sizes else sizes

    def measures(self, kind: DType) -> bool:
        """Whether this type is in the cell."""
        return kind.token in self.dtypes if self.dtypes else kind.kind in self.kinds


def _function(name: str) -> Callable[..., Any]:
    module, function = name.split(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


@dataclass(frozen=True)
class Param:
    """A parameter of a metric: its default, and the numbers or names that it may be."""

    default: int | str
    explain: str
    low: int = 1
    high: int = 2**20
    names: tuple[str, ...] = ()


def _smaller_matrix(case: Case, device: str) -> dict[str, int]:
    del case
    return {"n": 256 if device == "cpu" else 4096}


@dataclass(frozen=True)
class Metric:
    """One row of METRICS. `sizes(case)` is the pure arithmetic of a case, before allocation.

    `own` holds the parameters that no other metric has; `rate_unit` replaces the unit of the
    type; `smaller(case, device)` gives `n` and parameters of a short case of the same kind that
    predicts how long it takes; `chain` says that the output should keep the size of the input;
    `spelled` how its own command spells options of the main one; `published` is module:function
    that finds a published result.
    """

    name: str
    explain: str
    formulas: Mapping[str, str]
    params: tuple[str, ...]
    work: str
    sizes: Callable[[Case], dict[str, int]]
    cells: Mapping[str, tuple[Cell, ...]]
    own: Mapping[str, Param] = field(default_factory=dict)
    rate_unit: str = ""
    chain: bool = False
    smaller: Callable[[Case, str], dict[str, int]] = _smaller_matrix
    default_sizes: tuple[int, ...] = (1024, 2048, 4096)
    spelled: Mapping[str, str] = field(default_factory=dict)
    published: str = ""

    def option(self, name: str) -> str:
        """An option of the main command as this metric's command spells it."""
        return self.spelled.get(name, name)

    def beside(self, case: Case, device_name: str) -> tuple[tuple[str, ...], dict[str, object]]:
        """(notes, details) of a published result to set beside this one; empty without one."""
        if not self.published:
            return (), {}
        found: tuple[tuple[str, ...], dict[str, object]]
        found = _function(self.published)(case, device_name)
        return found

    def unit(self, kind: DType) -> str:
        """Base unit of the rate."""
        if self.rate_unit:
            return self.rate_unit
        return "B/s" if self.work == "work_bytes" else kind.family.unit
