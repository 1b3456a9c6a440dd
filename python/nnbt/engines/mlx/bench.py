"""Bench: what the builders of engine `mlx` share, from inputs to the kept outputs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from nnbt.engines.mlx.data import Data, Placement, Split
from nnbt.machine import mlx
from nnbt.machine.mlx_runtime import empty_evaluation, product_precision
from nnbt.spec.dtypes import DType, dtype
from nnbt.spec.metric import METRICS
from nnbt.spec.precision import PrecisionName, tf32_enabled
from nnbt.spec.workload import Answer, Measure, Step, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnbt.spec.case import Case
    from nnbt.spec.cell import Request

COMPILED = "mlx-compiled"
"""The engine whose graphs go through mx.compile."""
Graph = Callable[[range], "list[Any]"]
"""graph(units): the lazy outputs of these units of work, the blocks of the last one at the end."""


class _Noting(list[Split]):
    """Inputs that note which of them a graph takes: each argument of a compiled call costs time."""

    def __init__(self, inputs: list[Split]) -> None:
        super().__init__(inputs)
        self.used: dict[int, None] = {}

    def __getitem__(self, index: Any) -> Any:
        self.used[index] = None
        return super().__getitem__(index)


@dataclass
class Bench:
    """What the builders of one case share: where it runs and what the latest run left behind.

    Units of work take turns over `rotation` different inputs, across runs as well, so that
    every K of a slope has the same working set and no sub-graph is repeated in an evaluation.
    """

    mx: Any
    case: Case
    place: Placement
    sizes: Mapping[str, int]
    rotation: int
    measure: Measure
    precision: PrecisionName = ""

    @classmethod
    def of(cls, request: Request) -> Bench:
        """The bench of a request: on the CPU with one stream a worker, else on the GPU."""
        mx, case = mlx.core(), request.case
        workers = int(case.params.get("cpu_workers", 1))
        place = Placement(mx, "cpu" if case.device == "cpu" else "gpu", workers)
        return cls(
            mx,
            case,
            place,
            request.sizes,
            request.rotation,
            request.measure,
            _precision(mx, case),
        )

    def __post_init__(self) -> None:
        self.dtype: DType = dtype(self.case.dtype)
        self.data = Data(self.place, self.dtype, str(self.case.params.get("data", "normal")), 1)
        self.turn = 0
        self.latest_k = 0
        self.outputs: deque[Any] = deque()
        self._inputs: list[Split] = []

    @property
    def n(self) -> int:
        """Effective matrix size."""
        return self.sizes.get("eff_n", self.case.n)

    def prepare(self, count: int) -> None:
        """Makes `count` different inputs."""
        while len(self._inputs) < count:
            index = len(self._inputs)
            self._inputs.append(
                self.data.variation(self._inputs[0], index)
                if index
                else self.data.split(self.n, self.n)
            )

    def input(self, unit: int) -> Split:
        """The input of a unit of work."""
        return self._inputs[unit % len(self._inputs)]

    def step(self, graph: Graph, k: int, *, keep: int = 1) -> Step:
        """The Step that builds and evaluates k units and keeps the outputs of the last `keep`.

        The oldest outputs are dropped before new ones are made, so that these get their buffers.
        """
        evaluate = self.mx.eval
        outputs = self.outputs
        kept = keep * len(self.place.row_ranges(self.n))
        if self.case.engine == COMPILED:
            graph = self._compiled(graph)

        def run() -> None:
            lazy = graph(range(self.turn, self.turn + k))
            while outputs and len(outputs) + len(lazy) > max(kept, len(lazy)):
                outputs.popleft()
            evaluate(lazy)
            outputs.extend(lazy)
            self.turn += k
            self.latest_k = k

        return run

    def _compiled(self, graph: Graph) -> Graph:
        """The same graph as one mx.compile call: inputs are arguments, all else is constant.

        Where inputs take turns they do so as arguments, so that one trace serves all of them.
        """
        turning = not METRICS[self.case.metric].chain
        functions: dict[int, tuple[tuple[int, ...], Any]] = {}

        def with_inputs(inputs: list[Split], k: int) -> list[Any]:
            own, self._inputs = self._inputs, inputs
            try:
                return graph(range(k))
            finally:
                self._inputs = own

        def traced(k: int, used: tuple[int, ...], *arrays: Any) -> list[Any]:
            inputs, blocks = list(self._inputs), len(self._inputs[0].blocks)
            for position, index in enumerate(used):
                inputs[index] = Split(arrays[position * blocks : (position + 1) * blocks])
            return with_inputs(inputs, k)

        def call(units: range) -> list[Any]:
            k, first = len(units), units.start if turning else 0
            if k not in functions:
                noting = _Noting(self._inputs)
                with_inputs(noting, k)
                used = tuple(noting.used)
                functions[k] = used, self.mx.compile(partial(traced, k, used))
            used, function = functions[k]
            outputs: list[Any] = function(
                *(block for index in used for block in self.input(first + index).blocks)
            )
            return outputs

        return call

    def last_output(self) -> Split:
        """The output of the last unit of the latest run."""
        blocks = len(self.place.row_ranges(self.n))
        return Split(tuple(self.outputs)[-blocks:])

    def workload(
        self,
        graph: Graph,
        check: Callable[[], Answer],
        *,
        units: int = 1,
        unit_name: str,
        largest_k: int | None = None,
        keep: int = 1,
        notes: Sequence[str] = (),
    ) -> Workload:
        """The Workload of this graph; a run does `units` units of the work that `sizes` names."""
        sizes = self.sizes
        return Workload(
            step=lambda k: self.step(graph, k, keep=keep),
            floor=empty_evaluation(self.mx, self.place.streams),
            units=units,
            unit_work=sizes.get("work_bytes", sizes.get("work_ops", 0)) // units,
            largest_k=self.rotation if largest_k is None else largest_k,
            check=check,
            unit_name=unit_name,
            sizes=sizes,
            mantissa=self.dtype.mantissa,
            precision=self.precision,
            notes=tuple(notes),
        )


def _precision(mx: Any, case: Case) -> PrecisionName:
    """How MLX computes a product of this case, before anything was measured."""
    if METRICS[case.metric].work == "work_bytes":
        return ""
    return product_precision(mx, case.dtype, case.device, tf32=tf32_enabled())
