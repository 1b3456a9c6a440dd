"""What a GPU kernel is: a row of the table, how it is launched and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from nnbt.engines.kernel.sources.chip_clock import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

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
    """How one launch is made; `threads` is per block, `template` the compile-time constants."""

    blocks: int
    threads: int
    template: list[tuple[str, int]]
    output_shape: tuple[int, ...]
    output_dtype: str
    shared_memory: int = 0


class Prepared(NamedTuple):
    """A row with its parameters: launch, inputs of each launch, work, and the check.

    `wrong(output, i)` says what is wrong with the output of launch `i`, or None.
    """

    launch: Launch
    inputs: list[list[MlxArray]]
    work: Work
    wrong: Callable[[MlxArray, int], str | None]


@dataclass(frozen=True)
class Kernel:
    """A row of KERNELS. `minimum` and `maximum` are NVIDIA compute capabilities."""

    name: str
    metric: str
    dtype: str
    language: str
    source: str
    """Functions that come before the kernel."""
    body: str
    inputs: tuple[str, ...]
    prepare: Callable[[Kernel, ModuleType, Mapping[str, Any]], Prepared]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    minimum: tuple[int, int] | None = None
    maximum: tuple[int, int] | None = None
    missing: tuple[tuple[int, int], ...] = ()
    """Compute capabilities in between that lack the instruction."""
    emulated: tuple[int, ...] = ()
    """Major compute capabilities where the compiler builds the instruction out of others."""
    clocks: bool = False
    """Whether each block writes the chip's own clock to a second output (see chip_clock.cu)."""

    @property
    def key(self) -> str:
        """Unique in KERNELS."""
        return f"{self.name}-{self.dtype}-{self.language}"

    def outputs(self, launch: Launch) -> list[Output]:
        """What a launch writes: its result, then the stamps of its blocks where it has any."""
        out = Output("out", launch.output_shape, launch.output_dtype)
        return [out, *([Output("clocks", (launch.blocks, WORDS), "uint64")] if self.clocks else [])]
