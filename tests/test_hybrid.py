"""nnbt.engines.mlx.hybrid: rates within the common time of two sides."""

from collections.abc import Sequence
from typing import Any

import pytest

import nnbt
from nnbt import _native
from nnbt.engines.mlx import hybrid
from nnbt.engines.mlx.data import Place
from nnbt.engines.mlx.hybrid import WINDOW_S, PairedStep, Side, overlap_of, pair_of
from nnbt.engines.mlx.setup import Setup
from nnbt.machine import mlx as _mlx
from nnbt.spec.case import Case
from nnbt.spec.cell import Request
from nnbt.spec.formulas import bandwidth_sizes, hybrid_sizes
from nnbt.spec.options import Options
from nnbt.spec.workload import Measure, Workload

MS = 1_000_000


def side(stamps_ms: Sequence[float], step_bytes: int = 1000) -> Side:
    stamps = [round(stamp * MS) for stamp in stamps_ms]
    return Side("side", lambda: None, step_bytes, 1e-3, stamps_ns=stamps)


@pytest.mark.parametrize(
    ("first", "second", "share", "rates"),
    [
        # both from 0 to 4 ms: 4 steps and 1 step of 1000 bytes
        ([0, 1, 2, 3, 4], [0, 4], 1.0, (1e6, 0.25e6)),
        # common from 2 to 4 of 0 to 6 ms: half of the first step of the second side
        ([0, 1, 2, 3, 4], [2, 6], 2 / 6, (1e6, 0.25e6)),
        # a step of the first is cut at both ends of the common time
        ([0, 4], [1, 2, 3], 0.5, (0.25e6, 1e6)),
        # no common time
        ([0, 1], [2, 3], 0.0, (0.0, 0.0)),
        ([2, 3], [0, 1], 0.0, (0.0, 0.0)),
        # a pause of the second side counts against it
        ([0, 1, 2, 3, 4], [0, 1, 4], 1.0, (1e6, 0.5e6)),
    ],
)
def test_overlap(
    first: list[float], second: list[float], share: float, rates: tuple[float, float]
) -> None:
    found = overlap_of(side(first), side(second))
    assert found.share == pytest.approx(share)
    assert found.rates == pytest.approx(rates)


def test_a_side_stamps_before_its_first_and_after_each_step() -> None:
    calls: list[int] = []
    here = Side("cpu", lambda: calls.append(1), 1000, 1e-3, repetitions=5)
    here.repeat()
    assert len(calls) == 5
    assert len(here.stamps_ns) == 6
    assert here.stamps_ns == sorted(here.stamps_ns)
    assert here.solo_rate == pytest.approx(1e6)


def test_a_pair_runs_all_repetitions_of_both_sides_in_two_threads() -> None:
    import threading

    threads: dict[str, set[str]] = {"cpu": set(), "gpu": set()}
    counts = {"cpu": 0, "gpu": 0}

    def step(name: str) -> None:
        threads[name].add(threading.current_thread().name)
        counts[name] += 1

    pair = PairedStep(
        Side("cpu", lambda: step("cpu"), 10, 1e-3, repetitions=3),
        lambda: Side("gpu", lambda: step("gpu"), 10, 1e-3, repetitions=7),
    )
    pair.run()
    pair.run()
    pair.close()
    assert counts == {"cpu": 6, "gpu": 14}
    assert len(pair.overlaps) == 2
    assert threads["cpu"].isdisjoint(threads["gpu"])


def test_an_error_in_the_other_thread_comes_back() -> None:
    def fails() -> None:
        raise RuntimeError("out of memory")

    pair = PairedStep(Side("cpu", lambda: None, 10, 1e-3), lambda: Side("gpu", fails, 10, 1e-3))
    with pytest.raises(RuntimeError, match="out of memory"):
        pair.run()
    pair.close()


def cpu_setup(own_stream: bool) -> Setup:
    mx = _mlx.core()
    case = Case("bandwidth", "cpu", "mlx", "float32", 256, {"op": "copy", "cpu_workers": 1})
    place = Place(mx, "cpu", 1)
    if own_stream:
        place.streams = [mx.new_stream(mx.cpu)]
    return Setup(Request(case, bandwidth_sizes(case), Options(), _native.measure), place)


def test_two_cpu_sides_share_a_window() -> None:
    """The whole builder with real MLX, a CPU stream of another thread in the place of the GPU."""
    workload = pair_of(cpu_setup(False), lambda: cpu_setup(True), _native.measure, {})
    samples = nnbt.measure(workload.step(1), warmup=1, runs=3)
    answer = workload.check()
    after = workload.after()
    (note,), found = after.notes, after.details.shared_window
    assert answer.exact is True
    assert answer.distinct is True
    assert 0 < found.overlap <= 1
    for name, side in (("cpu", found.cpu), ("gpu", found.gpu)):
        assert side.solo_rate > 0
        assert side.overlap_rate > 0
        assert side.repetitions == workload.sizes[f"{name}_repetitions"]
    assert workload.unit_work == workload.sizes["work_bytes"]
    assert workload.unit_work % (2 * 256 * 256 * 4) == 0
    assert "GB/s together" in note
    assert workload.no_slope
    assert min(samples.samples_ns) > 0
    assert WINDOW_S > 0


def test_each_side_counts_its_own_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy moves 2 matrices, a + b 3; a CPU stream stands for the GPU."""
    steps: dict[str, int] = {}

    def on_cpu(mx: Any, *_: object, **_more: object) -> Place:
        place = Place(mx, "cpu", 1)
        place.streams = [mx.new_stream(mx.cpu)]
        return place

    def noting(name: str, workload: Workload, measure: Measure) -> Side:
        steps[name] = workload.unit_work
        return make_side(name, workload, measure)

    make_side = hybrid._side
    monkeypatch.setattr(hybrid, "Place", on_cpu)
    monkeypatch.setattr(hybrid, "_side", noting)
    case = Case("bandwidth", "hybrid", "mlx", "float32", 256, {"op": "add", "cpu_workers": 1})
    workload = hybrid.bandwidth(Request(case, hybrid_sizes(case), Options(), _native.measure))
    workload.step(1)()
    workload.after()
    matrix = 256 * 256 * 4
    assert steps == {"cpu": 2 * matrix, "gpu": 3 * matrix}
    assert workload.sizes["matrix_bytes"] == 2 * matrix  # the row's, of both sides
