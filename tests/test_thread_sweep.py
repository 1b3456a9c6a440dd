"""The sweep over threads: its cases, the knee, and where it is shown."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import nnbt
from command import nnbt as command
from fake_measure import FakeMeasure
from nnbt import _native
from nnbt.engines.native import steps as native_steps
from nnbt.pipeline import plan
from nnbt.pipeline.listener import Listener
from nnbt.pipeline.matrix import ENGINES
from nnbt.pipeline.plan import make_plan
from nnbt.results import sweep as thread_sweep
from nnbt.results.columns import csv_text
from nnbt.results.result import Reason, Result, Run
from nnbt.results.sweep import knee, with_knee
from nnbt.spec.case import Case
from nnbt.spec.options import Options
from nnbt.spec.threads import thread_counts
from nnbt.terminal.tables import table_text
from result_schema import document_of

NOISY = Reason("BACKGROUND_LOAD", "Others were busy.", "suspect")


def swept(**options: Any) -> list[Case]:
    asked = Options(device="cpu", engines=("native",), thread_sweep=True, **options)
    return list(make_plan(asked).cases)


def row(threads: int, rate: float | None, *, op: str = "copy", **changes: Any) -> Result:
    case = Case("bandwidth", "cpu", "native", "float32", 64, {"op": op, "cpu_workers": threads})
    done = Result(case, verdict="VALID", rate=rate, unit="B/s", median_s=1.0)
    return replace(done, **{"interval_s": (0.99, 1.01), **changes})


def rows(**rates: float | None) -> list[Result]:
    """rows(t1=..., t2=...)."""
    return [row(int(name[1:]), rate) for name, rate in rates.items()]


@pytest.mark.parametrize(
    ("most", "cores", "counts"),
    [
        (1, 1, (1,)), (2, 2, (1, 2)), (6, 6, (1, 2, 4, 6)), (8, 4, (1, 2, 4, 8)),
        (24, 12, (1, 2, 4, 8, 12, 16, 24)), (3, 12, (1, 2, 3)), (5, 0, (1, 2, 4, 5)),
    ],
)  # fmt: skip
def test_threads_double_and_stop_at_cores(most: int, cores: int, counts: tuple[int, ...]) -> None:
    assert thread_counts(most, cores) == counts


def test_a_sweep_is_an_axis_of_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "allowed_cores", lambda: 4)
    cases = swept(op="copy", sizes=(64,), cpu_workers=4)
    got = [(case.params["stores"], case.params["cpu_workers"]) for case in cases]
    assert got == [(stores, n) for stores in native_steps.STORES for n in (1, 2, 4)]


def test_a_sweep_goes_up_to_the_usable_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "machine", lambda: SimpleNamespace(usable_cpus=3))
    monkeypatch.setattr(_native, "allowed_cores", lambda: 3)
    assert [case.params["cpu_workers"] for case in swept(op="read", sizes=(64,))] == [1, 2, 3]


def test_a_chain_that_can_not_run_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "allowed_cores", lambda: 2)
    counts: dict[str, list[int]] = {}
    for case in swept(metrics=("flops",), cpu_workers=2):
        counts.setdefault(str(case.params["chain"]), []).append(int(case.params["cpu_workers"]))
    reasons = {chain.name: chain.reason for chain in _native.peak_chains()}
    assert counts == {name: [2] if reasons[name] else [1, 2] for name in counts}


@pytest.mark.parametrize(
    ("metric", "engine"),
    [
        (cell.metric, engine.name)
        for engine in ENGINES.values()
        for cell in engine.cells
        if "cpu" in cell.devices and cell.thread_sweep is None
    ],
)
def test_engines_without_threads_of_their_own_refuse(metric: str, engine: str) -> None:
    asked = Options(
        metrics=(metric,), device="cpu", engines=(engine,),
        dtypes=("float16",) if metric == "conv" else ("float32",), thread_sweep=True,
    )  # fmt: skip
    with pytest.raises(nnbt.Unsupported, match=f"{metric} by {engine} on cpu has none"):
        make_plan(asked)


@pytest.mark.parametrize(
    ("rates", "threads", "best", "share"),
    [
        ({"t1": 10.0, "t2": 20.0, "t4": 40.0}, 4, 4, 1.0),
        ({"t1": 10.0, "t2": 38.0, "t4": 40.0, "t8": 39.0}, 2, 4, 0.95),
        ({"t1": 10.0, "t2": 37.9, "t4": 40.0, "t8": 39.0}, 4, 4, 1.0),
        ({"t1": 30.0, "t2": 20.0}, 1, 1, 1.0),
        ({"t1": 39.0, "t2": None, "t4": 40.0}, 1, 4, 0.975),
        ({"t4": 40.0, "t1": 39.0}, 1, 4, 0.975),
    ],
)
def test_the_knee_is_the_fewest_threads_near_the_best(
    rates: dict[str, float | None], threads: int, best: int, share: float
) -> None:
    found = knee(rows(**rates))
    assert (found.knee_threads, found.best_threads) == (threads, best)
    assert found.rate_share == pytest.approx(share)
    assert f"knee: {threads} thread" in found.sentence
    assert ("fewer" in found.sentence) is (threads == best > 1)


def test_an_invalid_rate_is_not_the_best() -> None:
    wrong = replace(row(4, 900.0), verdict="INVALID")
    found = knee([*rows(t1=10.0, t2=20.0), wrong])
    assert (found.knee_threads, found.best_rate) == (2, 20.0)
    assert "uncertain: not all thread counts have a rate" in found.sentence


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"interval_s": (0.951, 1.049)}, ""),
        ({"interval_s": (0.94, 1.06)}, "not all medians are known to 5%"),
        ({"interval_s": None}, "not all medians are known to 5%"),
        ({"reasons": (NOISY,)}, "other processes used CPU time"),
    ],
)
def test_what_makes_a_knee_uncertain_is_said(changes: dict[str, Any], words: str) -> None:
    found = knee([row(1, 10.0), row(2, 20.0, **changes)])
    assert bool(found.doubt) is bool(words)
    assert words in found.sentence
    assert ("uncertain" in found.sentence) is bool(words)


@pytest.mark.parametrize("few", [[], [row(1, 10.0)], [row(1, None), row(2, 10.0)]])
def test_one_rate_has_no_knee(few: list[Result]) -> None:
    assert knee(few) is None


def test_rows_of_a_sweep_get_its_knee_and_one_note() -> None:
    marked = with_knee(rows(t1=10.0, t2=20.0))
    assert [row.sweep and row.sweep.knee_threads for row in marked] == [2, 2]
    assert [len(row.notes) for row in marked] == [0, 1]
    alone = rows(t1=10.0)
    assert with_knee(alone) == alone


def test_a_sweep_is_marked_once_it_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "allowed_cores", lambda: 2)
    seen: list[list[bool]] = []

    class Marks(Listener):
        def finished(self, result: Result, run: Run) -> None:
            assert result == run.results[-1]
            seen.append([row.sweep is not None for row in run.results])

    nnbt.run(
        engine="native", device="cpu", sizes=[64], op="copy", cpu_workers=2, thread_sweep=True,
        measure=scaled(), listener=Marks(),
    )  # fmt: skip
    assert seen == [[False], [True] * 2, [True] * 2 + [False], [True] * 4]


def scaled(**more: Any) -> FakeMeasure:
    """Two threads take as long as one for their own share of the work: twice the rate."""
    return FakeMeasure(unit_ns=50_000_000, window_ns=3_000_000_000, **more)


def test_a_run_names_the_knee_of_each_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "allowed_cores", lambda: 4)
    run = nnbt.run(
        engine="native", device="cpu", sizes=[64], op="copy", cpu_workers=4, thread_sweep=True,
        measure=scaled(),
    )  # fmt: skip
    assert [result.sizes["threads"] for result in run.results] == [1, 2, 4] * 2
    for result in run.results:
        assert (result.sweep.knee_threads, result.sweep.doubt) == (4, "")
        told = [note for note in result.notes if note.startswith("knee")]
        assert bool(told) is (result.sizes["threads"] == 4)
    assert document_of(run)["results"][0]["sweep"]["best_threads"] == 4


def test_a_sweep_is_one_table_and_has_csv_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "allowed_cores", lambda: 2)
    run = nnbt.run(
        engine="native", device="cpu", sizes=[64], op="read", cpu_workers=2, thread_sweep=True,
        measure=scaled(),
    )  # fmt: skip
    text = table_text(run.results, None, color=False)
    assert text.startswith("bandwidth on cpu (native): ")
    assert {"threads", "knee"} <= set(text.splitlines()[1].split())
    assert "% best" in text
    assert "[n=64 cpu_workers=2] note: knee: 2 threads, the best rate" in text
    table = list(csv.DictReader(io.StringIO(csv_text(run.results))))
    assert [line["threads"] for line in table] == ["1", "2"]
    assert [line["knee_threads"] for line in table] == ["2", "2"]
    assert [float(line["pct_of_sweep"]) for line in table] == pytest.approx([50, 100], rel=0.01)


def test_without_a_sweep_there_is_no_knee() -> None:
    run = nnbt.run(engine="native", device="cpu", sizes=[64], op="read", measure=scaled())
    assert all(result.sweep is None for result in run.results)
    (line,) = csv.DictReader(io.StringIO(csv_text(run.results)))
    assert (line["knee_threads"], line["pct_of_sweep"]) == ("", "")


def test_each_thread_count_has_a_floor_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "allowed_cores", lambda: 2)
    measure = scaled()
    nnbt.run(
        engine="native", device="cpu", sizes=[64], op="read", cpu_workers=2, thread_sweep=True,
        measure=measure,
    )  # fmt: skip
    assert sum(units == 0 for units, _ in measure.calls) == 2


def test_the_command_sweeps_and_refuses(tmp_path: Path) -> None:
    done = command(
        "--engine", "native", "--device", "cpu", "--op", "write", "--sizes", "64", "--runs", "5",
        "--cpu-workers", "2", "--thread-sweep", "--no-fail", "--csv", "s.csv", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "knee: " in done.stdout
    with (tmp_path / "s.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["threads"] for line in lines[::2]] == ["1"] * len(native_steps.STORES)
    assert all(line["knee_threads"] in ("1", "2") for line in lines)
    done = command("--thread-sweep", "--device", "cpu")
    assert done.returncode == 2
    assert "--engine native" in done.stderr


def test_the_share_that_makes_a_knee_is_explained() -> None:
    from nnbt.cli.info import explain

    assert f"{thread_sweep.KNEE_SHARE:.0%} of the best rate" in " ".join(explain("columns").split())
