"""nnbt.run and the names of the package."""

import dataclasses
import inspect
import re
import subprocess
import sys
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nnbt
from fake_measure import FakeMeasure
from nnbt.engines.mlx import flops as mlx_flops
from nnbt.machine.devices import DEVICES
from nnbt.pipeline.listener import Listener
from nnbt.pipeline.plan import Plan
from nnbt.results.result import Result, Run
from nnbt.spec.case import Case
from nnbt.spec.options import OPTIONS
from result_schema import document_of


def test_the_documented_example() -> None:
    run = nnbt.run(metric="flops", device="cpu", dtype="float32", sizes=[64], runs=9)
    (row,) = run.results
    assert run.finished
    assert row.unit == "FLOP/s"
    assert len(row.samples_ns) == 9
    assert row.median_s == sorted(row.samples_ns)[4] * 1e-9
    assert row.rate == pytest.approx(2 * 64**3 / row.median_s)
    assert row.best_s == min(row.samples_ns) * 1e-9
    assert row.interval_s[0] <= row.median_s <= row.interval_s[1]
    assert row.verdict in ("VALID", "SUSPECT", "INVALID")


def test_keywords_are_those_of_the_table() -> None:
    names = set(inspect.signature(nnbt.run).parameters)
    assert names - set(OPTIONS) == {"params", "measure", "listener"}
    assert {field.name for field in dataclasses.fields(nnbt.Options)} - names == {
        "metrics", "engines", "dtypes", "lenient",
    }  # fmt: skip
    with pytest.raises(TypeError, match="'colour'"):
        nnbt.run(colour="red")


def test_parameters_of_a_metric_are_keywords_too(fake_measure: FakeMeasure) -> None:
    run = nnbt.run(
        "conv", "cpu", sizes=8, params={"channels": 4}, layers=[1, 2], measure=fake_measure
    )
    found = [[row.case.params[name] for name in ("channels", "layers")] for row in run.results]
    assert found == [[4, 1], [4, 2]]


def test_sizes_of_numpy_are_ordinary_numbers(fake_measure: FakeMeasure) -> None:
    run = nnbt.run("flops", "cpu", sizes=[np.int64(64)], measure=fake_measure)  # type: ignore[list-item]
    assert document_of(run)["results"][0]["case"]["n"] == 64


def test_a_measure_function_with_negative_times_is_an_error() -> None:
    measure = FakeMeasure(unit_ns=-1_000_000, floor_ns=0)
    (row,) = nnbt.run("flops", "cpu", sizes=[64], measure=measure).results
    assert row.status == "ERROR"


def test_several_of_each(fake_measure: FakeMeasure) -> None:
    run = nnbt.run(
        ["bandwidth", "flops"], "cpu", ["float32", "int8"], [32, 64], data=["normal", "zeros"],
        measure=fake_measure,
    )  # fmt: skip
    assert len(run.results) == 2 * 2 * 2 * 2
    assert {row.status for row in run.results} == {"OK"}


def test_zeros_are_compared_with_random_data(fake_measure: FakeMeasure) -> None:
    rows = nnbt.run(
        "flops", "cpu", sizes=[64], data=["normal", "zeros"], measure=fake_measure
    ).results
    assert [row.ratio_to_random for row in rows] == [None, 1.0]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"metric": "latency"}, "^Unknown metric 'latency': use one of bandwidth"),
        ({"sizes": []}, r"^sizes is empty: use sizes=\[1024, 2048\]"),
        ({"dtype": "q7"}, "dtype='q6' or 'q8'"),
        ({"device": "tpu"}, "^Unknown device 'tpu': use one of auto cpu"),
        ({"device": ["cpu"]}, r"^device \['cpu'\]"),
        ({"metric": []}, "^metric is empty"),
        ({"engine": []}, "^engine is empty"),
        ({"max_seconds": float("inf")}, "^max_seconds inf"),
        ({"dtype": []}, "^dtype is empty"),
        ({"data": []}, "^data is empty"),
        ({"data": ["sevens"]}, "^Unknown data 'sevens'"),
        ({"engine": [5]}, "^engine 5"),
        ({"metric": 5}, "^metric 5"),
        ({"metric": None}, "^metric None"),
        ({"sizes": "64"}, "^sizes '64'"),
        ({"sizes": b"64"}, "^sizes b'64'"),
        ({"sizes": [64.0]}, "^sizes 64.0"),
        ({"sizes": [True]}, "^sizes True"),
        ({"sizes": [0]}, "^sizes 0 is out of range"),
        ({"sizes": 10**6}, "use sizes=[0-9]+ or less"),
        ({"runs": "3"}, "^runs '3'.*use runs=8"),
        ({"runs": 2.5}, "^runs 2.5"),
        ({"runs": 0}, "^runs 0 is out of range: use 1 to"),
        ({"max_seconds": "3"}, "^max_seconds '3'.*use max_seconds=3.0"),
        ({"max_seconds": 0}, "^max_seconds 0 is out of range: use more than 0"),
        ({"graph_steps": 0}, "^graph_steps 0"),
        ({"checks": "no"}, "^checks 'no'"),
        ({"save_package": ""}, "^save_package is empty"),
        ({"sizes": [64], "ladder_sizes": True}, "^sizes and ladder_sizes"),
        ({"params": {"nope": 3}}, "has no parameter 'nope': leave it out"),
        ({"layers": 3}, "bandwidth has no parameter 'layers'"),
        ({"metric": "conv", "params": {"nope": 3}}, "has no parameter 'nope': use one of batch"),
        ({"metric": "conv", "params": {"layers": "x"}}, "^layers 'x'"),
        ({"metric": "conv", "kernel": 128}, "^kernel 128 is out of range: use 1 to 127"),
        ({"metric": "conv", "weights": "mine"}, "^Unknown weights 'mine': use one of own shared"),
    ],
)
def test_refusals(arguments: dict[str, object], part: str, fake_measure: FakeMeasure) -> None:
    with pytest.raises(nnbt.Unsupported, match=part):
        nnbt.run(**arguments, measure=fake_measure)  # type: ignore[arg-type]
    assert fake_measure.calls == []


class Recorder(Listener):
    def __init__(self) -> None:
        self.events: list[object] = []

    def planned(self, plan: Plan) -> None:
        self.events.append(len(plan.cases))

    def started(self, index: int, count: int, case: Case) -> None:
        self.events.append(f"{index + 1}/{count} {case.dtype}")

    def once(self, case: Case, expected_s: float) -> None:
        self.events.append(f"once {case.n}: {expected_s:.2g} s")

    def finished(self, result: Result, run: Run) -> None:
        self.events.append((result.status, len(run.results), run.finished))


def test_a_listener_sees_every_case(fake_measure: FakeMeasure) -> None:
    recorder = Recorder()
    nnbt.run("flops", "cpu", ["int8", "q4"], [64], measure=fake_measure, listener=recorder)
    assert recorder.events == [2, "1/2 int8", ("OK", 1, False), "2/2 q4", ("OK", 2, True)]


def test_a_failing_case_is_a_row(
    fake_measure: FakeMeasure, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ValueError("[matmul] first line\nsecond line")

    monkeypatch.setattr(mlx_flops, "_product", broken)
    run = nnbt.run("flops", "cpu", ["float32", "int8"], [64], measure=fake_measure)
    assert [row.status for row in run.results] == ["ERROR", "OK"]
    assert "first line second line" in run.results[0].reason
    assert run.failed


def test_a_type_that_a_data_mode_can_not_have_is_a_row(fake_measure: FakeMeasure) -> None:
    (row,) = nnbt.run("flops", "cpu", "int8", [64], data="nan", measure=fake_measure).results
    assert row.status == "UNSUPPORTED"
    assert "--data normal" in row.reason
    assert row.verdict is None


def test_a_run_that_outlasts_its_budget_is_predicted_and_run_once() -> None:
    recorder = Recorder()
    measure = FakeMeasure(unit_ns=10**9)  # a second for the small product
    run = nnbt.run("flops", "cpu", sizes=[1024], measure=measure, listener=recorder)
    (row,) = run.results
    assert recorder.events[2] == "once 1024: 64 s"
    assert row.stop == "one run"
    assert len(row.samples_ns) == 1
    assert "FEW_SAMPLES" in [reason.code for reason in row.reasons]


def test_an_interruption_goes_through(fake_measure: FakeMeasure) -> None:
    class Interrupting(Recorder):
        def started(self, index: int, *_: object) -> None:
            if index == 1:
                raise KeyboardInterrupt

    recorder = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        nnbt.run("flops", "cpu", sizes=[32, 64], measure=fake_measure, listener=recorder)
    assert recorder.events[-1] == ("OK", 1, False)


def test_a_second_thread_has_streams_of_its_own() -> None:
    def small() -> Run:
        return nnbt.run("bandwidth", "cpu", sizes=[64], runs=5, cpu_workers=2)

    here = small()
    there: list[Run] = []
    thread = threading.Thread(target=lambda: there.append(small()))
    thread.start()
    thread.join(60)
    assert [run.results[0].reason for run in (here, *there)] == ["", ""]
    assert there[0].results[0].rate


FORK = """
import os, nnbt
nnbt.run(device="cpu", sizes=[32], runs=5)
child = os.fork()
if child == 0:
    try:
        nnbt.run(device="cpu", sizes=[32], runs=5)
    except nnbt.Unsupported as error:
        print(error, flush=True)
        os._exit(3)
    os._exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_is_refused_instead_of_waiting_for_threads_that_are_not_there() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=60
    )
    sentence, code = done.stdout.splitlines()
    assert "get_context('spawn')" in sentence
    assert code == "3"


def test_every_public_name_is_there() -> None:
    for name in nnbt.__all__:
        assert getattr(nnbt, name) is not None
        assert name in dir(nnbt)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        nnbt.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"op": "x"}, "op 'x'"),
        ({"thread_sweep": True, "engine": "mlx"}, "engine='native' device='cpu'"),
        ({"metric": "flops", "device": "gpu", "engine": "native"}, "device='cpu'"),
        ({"params": 3}, "params="),
    ],
)
def test_refusals_of_a_run_name_keywords(
    arguments: dict[str, Any], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DEVICES, "gpu", replace(DEVICES["gpu"], missing=lambda: None))
    with pytest.raises(nnbt.Unsupported, match=re.escape(part)) as refused:
        nnbt.run(**{"device": "cpu", "sizes": [64], **arguments})
    assert "--" not in str(refused.value)
