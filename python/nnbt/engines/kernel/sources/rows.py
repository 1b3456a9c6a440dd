"""Types of a GPU kernel: a row of KERNELS, its launch, outputs and work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

from nnbt.engines.kernel.sources.chip_clock import WORDS

MlxArray = Any


class Work(NamedTuple):
    """Operations and bytes of one launch."""

    ops: float
    bytes: float


class Output(NamedTuple):
    """An array that a launch writes, by its name in the body."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class Launch(NamedTuple):
    """Geometry of a launch; `threads` is per block, `template` has the compile-time constants."""

    blocks: int
    threads: int
    template: list[tuple[str, int]]
    output_shape: tuple[int, ...]
    output_dtype: str
    shared_memory: int = 0


class Prepared(NamedTuple):
    """A row with parameters: the launch, inputs of each launch, work of one, and the check.

    `wrong(output, i)` returns what is wrong with the output of launch `i`, or None.
    """

    launch: Launch
    inputs: list[list[MlxArray]]
    work: Work
    wrong: Callable[[MlxArray, int], str | None]


@dataclass(frozen=True)
class Kernel:
    """A row of KERNELS; `minimum` and `maximum` are NVIDIA compute capabilities."""

    name: str
    metric: str
    dtype: str
    language: str
    source: str  # functions that the body uses
    body: str
    inputs: tuple[str, ...]
    prepare: Callable[[Kernel, ModuleType, Mapping[str, Any]], Prepared]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    minimum: tuple[int, int] | None = None
    maximum: tuple[int, int] | None = None
    missing: tuple[tuple[int, int], ...] = ()
    """Compute capabilities between the two that lack the instruction."""
    emulated: tuple[int, ...] = ()
    """Major compute capabilities where the compiler replaces the instruction by others."""
    clocks: bool = False
    """Whether each block writes clock stamps to a second output (see chip_clock.cu)."""

    @property
    def key(self) -> str:
        """Unique in KERNELS."""
        return f"{self.name}-{self.dtype}-{self.language}"

    def outputs(self, launch: Launch) -> list[Output]:
        """Arrays that a launch writes: its result, then clock stamps where `clocks` is set."""
        out = Output("out", launch.output_shape, launch.output_dtype)
        return [out, *([Output("clocks", (launch.blocks, WORDS), "uint64")] if self.clocks else [])]
