"""Setup: what the builders of engine `mlx` share, from inputs to the outputs of the latest run."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nnbt.engines.mlx.data import Data, Place, Split
from nnbt.machine.mlx_runtime import empty_evaluation, product_precision
from nnbt.spec.cell import Request
from nnbt.spec.dtypes import DType, dtype
from nnbt.spec.metric import METRICS
from nnbt.spec.precision import PrecisionName, tf32_enabled
from nnbt.spec.workload import Answer, Step, Workload

LONGEST_CHAIN = 64  # products in one evaluation of a slope, at least
COMPILED = "mlx-compiled"  # the engine whose graphs go through mx.compile
Inputs = Callable[[int], Split]  # inputs(unit): the input of a unit of work
Graph = Callable[[range, Inputs], "list[Any]"]
"""graph(units, inputs): lazy outputs of these units of work, the blocks of the last one last."""


class Setup:
    """What the builders of one case share: where it runs, its inputs, and its latest outputs.

    Units of work alternate between `rotation` inputs, across runs as well, so that every K of a
    slope has the same working set and an evaluation contains no equal sub-graphs. `place` replaces
    the streams of the case's device.
    """

    def __init__(self, request: Request, place: Place | None = None) -> None:
        self.case = request.case
        self.sizes = request.sizes
        self.rotation = request.rotation
        self.place = place or Place.of(request.case)
        self.mx = self.place.mx
        self.dtype: DType = dtype(self.case.dtype)
        self.n = self.sizes.get("eff_n", self.case.n)
        self.data = Data(self.place, self.dtype, str(self.case.params.get("data", "normal")), 1)
        self.turn = 0
        self.latest_k = 0
        self.outputs: deque[Any] = deque()
        self._inputs: list[Split] = []

    @property
    def precision(self) -> PrecisionName:
        """How MLX computes a product of this case, before anything was measured."""
        if METRICS[self.case.metric].work == "work_bytes":
            return ""
        return product_precision(self.mx, self.case.dtype, self.case.device, tf32=tf32_enabled())

    def prepare(self, count: int) -> None:
        """Makes `count` different inputs."""
        first = self.data.split(self.n, self.n)
        self._inputs = [first, *(self.data.variation(first, i) for i in range(1, count))]

    def input(self, unit: int) -> Split:
        """The input of a unit of work."""
        return self._inputs[unit % len(self._inputs)]

    def step(self, graph: Graph, k: int, *, keep: int = 1) -> Step:
        """The Step that builds and evaluates k units and keeps the outputs of the last `keep`.

        The oldest outputs are freed before new ones are made, which then get their buffers.
        """
        evaluate, inputs, outputs = self.mx.eval, self.input, self.outputs
        kept = keep * len(self.place.row_ranges(self.n))
        if self.case.engine == COMPILED:
            graph = self._compiled(graph)

        def run() -> None:
            lazy = graph(range(self.turn, self.turn + k), inputs)
            while outputs and len(outputs) + len(lazy) > max(kept, len(lazy)):
                outputs.popleft()
            evaluate(lazy)
            outputs.extend(lazy)
            self.turn += k
            self.latest_k = k

        return run

    def _compiled(self, graph: Graph) -> Graph:
        """The same graph as one call of an mx.compile function per number of units.

        Its arguments are the inputs that the graph uses, since each argument of a call costs time.
        Unless the metric is a chain they alternate, and one trace serves all of them.
        """
        alternate = not METRICS[self.case.metric].chain
        functions: dict[int, tuple[tuple[int, ...], Any]] = {}

        def traced(k: int, used: tuple[int, ...], *arrays: Any) -> list[Any]:
            count, blocks = len(self._inputs), len(arrays) // len(used)
            splits = (arrays[i : i + blocks] for i in range(0, len(arrays), blocks))
            given = {index: Split(split) for index, split in zip(used, splits, strict=True)}
            return graph(range(k), lambda unit: given[unit % count])

        def compiled(k: int) -> tuple[tuple[int, ...], Any]:
            used: dict[int, None] = {}

            def noted(unit: int) -> Split:
                used[unit % len(self._inputs)] = None
                return self.input(unit)

            graph(range(k), noted)
            return tuple(used), self.mx.compile(partial(traced, k, tuple(used)))

        def call(units: range, inputs: Inputs) -> list[Any]:
            k, first = len(units), units.start if alternate else 0
            if k not in functions:
                functions[k] = compiled(k)
            used, function = functions[k]
            outputs: list[Any] = function(
                *(block for index in used for block in inputs(first + index).blocks)
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
        keep: int = 1,
        notes: Sequence[str] = (),
    ) -> Workload:
        """The Workload of this graph; a run does `units` units, the work in `sizes`."""
        sizes, chain = self.sizes, METRICS[self.case.metric].chain
        return Workload(
            step=lambda k: self.step(graph, k, keep=keep),
            floor=empty_evaluation(self.mx, self.place.streams),
            units=units,
            unit_work=sizes.get("work_bytes", sizes.get("work_ops", 0)) // units,
            largest_k=max(units, LONGEST_CHAIN) if chain else self.rotation,
            check=check,
            unit_name=unit_name,
            sizes=sizes,
            mantissa=self.dtype.mantissa,
            precision=self.precision,
            notes=tuple(notes),
        )
