"""Builder of bandwidth on device `hybrid`: CPU and GPU share one window.

One side can be 300 times faster than the other, so each repeats its step until the window is full,
and rates are those of the time in which both were busy.
"""

import math
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

from nnbt.engines.mlx.bandwidth import of_setup as one_device
from nnbt.engines.mlx.data import Place
from nnbt.engines.mlx.setup import Setup
from nnbt.machine import mlx
from nnbt.spec.cell import Request
from nnbt.spec.details import Details, SharedWindow, SideRates
from nnbt.spec.formulas import bandwidth_sizes
from nnbt.spec.workload import After, Answer, Measure, Step, Workload

T = TypeVar("T")

WINDOW_S = 0.05  # minimum length of the shared window
EVALUATION_S = 0.001
"""Length of an evaluation of several units, in which launch overhead is negligible."""
MOST_UNITS = 64


@dataclass
class Side:
    """One device of the pair: `step` is one evaluation that moves `step_bytes`."""

    name: str
    step: Step
    step_bytes: int
    solo_s: float
    repetitions: int = 1
    stamps_ns: list[int] = field(default_factory=list)

    @property
    def solo_rate(self) -> float:
        """Bytes per second alone."""
        return self.step_bytes / self.solo_s

    def repeat(self) -> None:
        """Runs all repetitions, with a time stamp before the first and after each."""
        stamps = [time.perf_counter_ns()]
        for _ in range(self.repetitions):
            self.step()
            stamps.append(time.perf_counter_ns())
        self.stamps_ns = stamps


@dataclass(frozen=True)
class Overlap:
    """The time in which both sides were busy: its share of the window, and bytes per second."""

    share: float
    rates: tuple[float, float]


def overlap_of(first: Side, second: Side) -> Overlap:
    """Rates of both sides in the time in which both were busy, and its share of the window."""
    start = max(side.stamps_ns[0] for side in (first, second))
    end = min(side.stamps_ns[-1] for side in (first, second))
    whole = max(s.stamps_ns[-1] for s in (first, second)) - min(
        s.stamps_ns[0] for s in (first, second)
    )
    if end <= start:
        return Overlap(0.0, (0.0, 0.0))
    seconds = (end - start) * 1e-9

    def rate(side: Side) -> float:
        done = _steps_at(side.stamps_ns, end) - _steps_at(side.stamps_ns, start)
        return done * side.step_bytes / seconds

    return Overlap((end - start) / whole, (rate(first), rate(second)))


def _steps_at(stamps_ns: Sequence[int], at_ns: int) -> float:
    """Steps finished at a time, including the finished fraction of a step."""
    for index, (before, after) in enumerate(pairwise(stamps_ns)):
        if at_ns <= after:
            return index + max(0.0, (at_ns - before) / max(1, after - before))
    return float(len(stamps_ns) - 1)


class PairedStep:
    """Two sides as one Step: the second runs in a thread of its own, both start at a barrier."""

    def __init__(self, first: Side, on_thread: Callable[[], Side]) -> None:
        self.first = first
        self.overlaps: list[Overlap] = []
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="nnbt-hybrid")
        self._barrier = threading.Barrier(2)
        self.second = self.in_thread(on_thread)

    def in_thread(self, call: Callable[[], T]) -> T:
        """Calls a function in the thread of the second side."""
        return self._pool.submit(call).result()

    def balance(self) -> None:
        """Sets the repetitions with which each side fills the same window.

        First from solo times, then from times together: a side may become three times slower.
        """
        sides = (self.first, self.second)
        seconds = [side.solo_s for side in sides]
        for _ in range(3):
            window = max(WINDOW_S, 4 * max(seconds))
            for side, step_s in zip(sides, seconds, strict=True):
                side.repetitions = max(1, round(window / step_s))
            self.run()
            seconds = [
                (side.stamps_ns[-1] - side.stamps_ns[0]) * 1e-9 / side.repetitions for side in sides
            ]
        self.overlaps.clear()

    def _start_second(self) -> None:
        self._barrier.wait()
        self.second.repeat()

    def run(self) -> None:
        """Both sides once, through all their repetitions."""
        second = self._pool.submit(self._start_second)
        try:
            self._barrier.wait()
        except BaseException:  # Ctrl-C: the other side would wait forever
            self._barrier.abort()
            raise
        self.first.repeat()
        second.result()
        self.overlaps.append(overlap_of(self.first, self.second))

    def close(self) -> None:
        """Ends the thread."""
        self._pool.shutdown()


def _side(name: str, workload: Workload, measure: Measure) -> Side:
    """A side with its solo time, from evaluations with negligible launch overhead."""

    def median_s(step: Step) -> float:
        return statistics.median(measure(step, warmup=2, runs=9).samples_ns) * 1e-9

    unit_s = median_s(workload.step(1))
    units = max(1, min(MOST_UNITS, workload.largest_k, math.ceil(EVALUATION_S / unit_s)))
    step = workload.step(units)
    return Side(name, step, units * workload.unit_work, median_s(step))


def pair_of(
    first: Setup, second: Callable[[], Setup], measure: Measure, sizes: Mapping[str, int]
) -> Workload:
    """The Workload of two setups; `second` is called in the thread that will run it.

    MLX streams work only in the thread that made them.
    """
    first_work = one_device(first)
    made: list[Workload] = []

    def on_thread() -> Side:
        work = one_device(second())
        made.append(work)
        return _side("gpu", work, measure)

    first_side = _side("cpu", first_work, measure)
    pair = PairedStep(first_side, on_thread)
    pair.balance()
    sides = (pair.first, pair.second)
    work = sum(side.repetitions * side.step_bytes for side in sides)

    def check() -> Answer:
        answers = (first_work.check(), pair.in_thread(made[0].check))
        return Answer(
            compared=f"CPU: {answers[0].compared}; GPU: {answers[1].compared}",
            exact=all(answer.exact for answer in answers),
            distinct=all(answer.distinct for answer in answers),
            inputs=answers[1].inputs,
            outputs=answers[1].outputs,
        )

    def after() -> After:
        pair.close()
        return _report(sides, pair.overlaps)

    sizes = {
        **sizes,
        "io_bytes": work,
        "work_bytes": work,
        "cpu_repetitions": sides[0].repetitions,
        "gpu_repetitions": sides[1].repetitions,
    }
    return Workload(
        step=lambda _: pair.run,
        units=1,
        unit_work=work,
        largest_k=1,
        check=check,
        unit_name="window",
        floor=first_work.floor,
        sizes=sizes,
        no_slope="a shared window has no units of work",
        notes=(*first_work.notes, *(f"gpu {note}" for note in made[0].notes)),
        after=after,
    )


def _report(sides: tuple[Side, Side], overlaps: Sequence[Overlap]) -> After:
    share = statistics.median(item.share for item in overlaps)
    rates, parts = [], []
    for index, side in enumerate(sides):
        rate = statistics.median(item.rates[index] for item in overlaps)
        slowdown = side.solo_rate / rate if rate else None
        rates.append(SideRates(side.solo_rate, rate, slowdown, side.repetitions))
        parts.append(
            f"{side.name} {rate * 1e-9:,.4g} GB/s together, {side.solo_rate * 1e-9:,.4g} alone"
        )
    note = f"{'; '.join(parts)}; both busy {share:.0%} of the window"
    return After((note,), Details(shared_window=SharedWindow(share, *rates)))


def bandwidth(request: Request) -> Workload:
    """CPU copy and GPU operation at the same time, each on buffers of its own."""
    case = request.case
    copy = replace(case, device="cpu", params={**case.params, "op": "copy"})

    def gpu() -> Setup:
        # Each side counts its own bytes: those of the case are the sum of both.
        alone = replace(request, sizes=bandwidth_sizes(case))
        return Setup(alone, Place(mlx.core(), "gpu", 1, own_stream=True))

    cpu = Setup(replace(request, case=copy, sizes=bandwidth_sizes(copy)))
    return pair_of(cpu, gpu, request.measure, request.sizes)
