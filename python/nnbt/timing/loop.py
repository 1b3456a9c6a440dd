"""Runs the one timing loop (cpp/measure/measure.cpp), here or in the process of the Step."""

from typing import Any, Protocol, cast, runtime_checkable

from nnbt import _native
from nnbt.spec.workload import SamplesLike, Step


@runtime_checkable
class TimedElsewhere(Protocol):
    """A Step that runs in another process, where the same native loop times it."""

    def timed(self, **options: Any) -> SamplesLike:
        """What `measure` returns, with the same options."""


def measure(step: Step | TimedElsewhere, **options: Any) -> SamplesLike:
    """Samples of a Step; options are those of nnbt.measure."""
    if isinstance(step, TimedElsewhere):
        return step.timed(**options)
    return cast("SamplesLike", _native.measure(step, **options))
