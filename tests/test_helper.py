"""The helper process: how it ends, what a row makes of it, counters and energy of a row."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import fake_helper as double
from nnbt import _native
from nnbt._native import Unsupported
from nnbt.cli import main as cli
from nnbt.engines.mpsgraph import ane, counters, helper, remote
from nnbt.engines.mpsgraph.conv import risky
from nnbt.engines.mpsgraph.helper import HelperError
from nnbt.engines.mpsgraph.remote import RemoteStep
from nnbt.results.columns import COLUMNS, shown
from nnbt.results.result import Result
from nnbt.spec.case import Case

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import FakeHelper

SPEC = json.loads(_native.ConvSpec(device="ane", size=8, channels=4, layers=3).to_json())
SMALL = ("--sizes", "8", "--channels", "4", "--layers", "3")
ONE = ("--no-checks", "--device", "ane")


@pytest.fixture
def apple(monkeypatch: pytest.MonkeyPatch, fake_helper: FakeHelper) -> FakeHelper:
    """A machine on which everything but the GPU in this process works."""
    monkeypatch.setattr(_native, "conv_available", lambda: None)
    return fake_helper


def conv(*args: str, tmp_path: Path, code: int = 0) -> list[dict[str, Any]]:
    """The rows of `nnbt conv` on the Neural Engine."""
    path = tmp_path / "conv.json"
    shape = () if "--sizes" in args else SMALL
    assert cli._run(["conv", *ONE, *shape, "--no-gpu", "--json", str(path), *args]) == code
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["results"]
    return rows


# --- how the process ends ----------------------------------------------------------------------

ENDS = {
    "abort": (Unsupported, "MPSGraph aborted the helper process", "aborted"),
    "kill": (HelperError, "The helper process was killed", "killed_by_amfi"),
    "crash": (HelperError, "crashed inside a framework", "helper_failed"),
    "silence": (HelperError, r"\(exit 3\): a framework complained", "helper_failed"),
    "garbage": (HelperError, "gave no document", "helper_failed"),
    "hang": (HelperError, "The helper took over 0.5 s", "timed_out"),
}


@pytest.mark.parametrize("deed", ENDS)
def test_a_process_without_a_document_is_a_sentence(fake_helper: FakeHelper, deed: str) -> None:
    kind, words, ended = ENDS[deed]
    fake_helper.rule(deed)
    with pytest.raises(RuntimeError, match=words) as caught:
        helper.answer(SPEC, timeout_s=0.5)
    assert type(caught.value) is kind
    assert helper.run_helper(SPEC, timeout_s=0.5)["ended"] == ended
    assert ended in ane.STATUSES


@pytest.mark.parametrize(
    ("status", "ended"), [(137, "killed_by_amfi"), (134, "aborted"), (255, "helper_failed")]
)
def test_a_shell_in_between_hides_no_signal(tmp_path: Path, status: int, ended: str) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\nexit {status}\n")
    script.chmod(0o755)
    assert helper.run_helper({}, executable=script)["ended"] == ended


def test_a_file_that_is_no_program_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("words")
    found = helper.run_helper({}, executable=path)
    assert (found["status"], found["ended"]) == ("error", "helper_failed")
    assert found["message"] == f"the helper {path} can't be started: Permission denied"


@pytest.mark.parametrize("said", ["", "[" * 100_000])
def test_words_that_are_no_document_are_a_whole_sentence(tmp_path: Path, said: str) -> None:
    (tmp_path / "words").write_text(said)
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ncat {tmp_path}/words\n")
    script.chmod(0o755)
    with pytest.raises(HelperError, match=r"gave no document \(exit 0\): it said nothing$"):
        helper.answer({}, executable=script)


@pytest.mark.parametrize(("status", "kind"), [("unsupported", Unsupported), ("error", HelperError)])
def test_a_refusal_of_the_helper_keeps_its_sentence(
    fake_helper: FakeHelper, status: str, kind: type[Exception]
) -> None:
    fake_helper.rule({"status": status, "message": "the MPSGraph of this macOS can't: use fp16"})
    with pytest.raises(kind, match=r"^The MPSGraph of this macOS can't: use fp16$"):
        helper.answer(SPEC)


def test_without_a_helper_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNBT_HELPER", "/none/nnbt_helper")
    with pytest.raises(Unsupported, match="part of the macOS package only"):
        helper.answer(SPEC)


PARENT = """
import pathlib, signal, sys
from nnbt.cli import main as cli
from nnbt.engines.mpsgraph import helper
signal.signal(signal.SIGTERM, cli._terminate)
helper.run_helper({}, executable=pathlib.Path(sys.argv[1]))
"""


def read_until(pipe: int, wanted: bytes, parent: subprocess.Popen[bytes]) -> bool:
    """Whether this came out of a pipe within 20 s; b"" once nobody holds its other end."""
    for _ in range(2000):
        with contextlib.suppress(BlockingIOError):
            if os.read(pipe, 1) == wanted:
                return True
        assert wanted == b"" or parent.poll() is None
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_no_process_behind(tmp_path: Path, number: int) -> None:
    script, held = tmp_path / "script", tmp_path / "held"
    os.mkfifo(held)
    # Its input ends once the parent waits for the answer.
    script.write_text(f"#!/bin/sh\nexec 3> {held}\ncat > /dev/null\necho >&3\nexec sleep 60\n")
    script.chmod(0o755)
    pipe = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    command = [sys.executable, "-c", PARENT, str(script)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        assert read_until(pipe, b"\n", parent)
        parent.send_signal(number)
        assert parent.wait(30) != 0
        assert read_until(pipe, b"", parent)
    os.close(pipe)


@pytest.mark.parametrize("end", ["exec sleep 60", "kill -9 $$", "exit 1"])
def test_no_scratch_file_outlives_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    saved = tmp_path / "saved"
    script = tmp_path / "script"
    script.write_text(
        f"#!/bin/sh\nmkdir -p {saved}/chain.mpsgraphpackage.partial-$$-0/ane_bundle\n"
        f"mkdir {tmp_path}/nnbt-replay-$$-0 {tmp_path}/nnbt.mpsgraphpackage.partial-$$-1\n{end}\n"
    )
    script.chmod(0o755)
    (tmp_path / "nnbt-replay-0-0").mkdir()  # of another process
    request = {"save_package": str(saved / "chain.mpsgraphpackage")}
    found = helper.run_helper(request, executable=script, timeout_s=1.0)
    assert found["status"] == "error"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "nnbt-replay-0-0", "saved", "script"
    ]  # fmt: skip
    assert list(saved.iterdir()) == []


# --- a Step that lives there -------------------------------------------------------------------


def test_all_but_float16_on_the_gpu_is_risky() -> None:
    safe = [
        (device, dtype)
        for device in ("gpu", "ane")
        for dtype in ("float16", "int8", "qdq", "w8a8")
        if not risky(Case("conv", device, "mpsgraph", dtype, 8))
    ]
    assert safe == [("gpu", "float16")]


def test_samples_are_whole(fake_helper: FakeHelper) -> None:
    step = RemoteStep(SPEC, 1e6)
    samples = remote.measure(step, warmup=3, runs=7, budget_s=2.0, on_progress=print)
    (asked,) = fake_helper.requests()
    assert (asked["warmup"], asked["runs"], asked["budget_s"]) == (3, 7, 2.0)
    assert len(samples.samples_ns) == 7
    assert (samples.warmup_runs, samples.stop) == (3, "runs")
    assert samples.window_ns == 10**9
    assert samples.first_run_ns == 2 * samples.samples_ns[0]
    assert [(r.name, r.unit, r.value) for r in samples.readings] == [("minor_faults", "count", 3.0)]
    assert step.document["device_name"] == "Apple M4 Pro"


@pytest.mark.parametrize(
    "broken",
    [
        {"samples_ns": []}, {"samples_ns": None}, {"samples_ns": ["x"]}, {"readings": [1]},
        {"samples_ns": [0] * 9}, {"samples_ns": [-5] * 9}, {"samples_ns": [2**70]},
        {"samples_ns": [1e400]}, {"window_ns": 1e400},
    ],
)  # fmt: skip
def test_a_document_that_cannot_be_read_is_an_error(
    fake_helper: FakeHelper, broken: dict[str, Any]
) -> None:
    fake_helper.rule(broken)
    with pytest.raises(HelperError, match="document"):
        RemoteStep(SPEC, 1e6).run()


def test_single_runs_come_out_of_one_process(fake_helper: FakeHelper) -> None:
    step = RemoteStep(SPEC, 1e6, {"save_package": "x"})
    times = [remote.measure(step, warmup=0, runs=1).samples_ns for _ in range(30)]
    assert len(fake_helper.requests()) == 1
    assert "save_package" not in fake_helper.requests()[0]
    assert all(len(time) == 1 for time in times)
    assert times[:12] == times[12:24]
    assert len({time[0] for time in times}) > 5


def test_other_steps_are_timed_here() -> None:
    samples = remote.measure(lambda: None, warmup=0, runs=3)
    assert isinstance(samples, _native.Samples)


def test_the_timeout_grows_with_the_budget_and_the_runs() -> None:
    wait = remote.patience_s
    assert wait(4e11, 0, 60.0) > wait(4e11, 0, 3.0) > helper.START_S
    assert wait(4e11, 1000, 3.0) >= 1000 * remote.LEAST_RUN_S
    assert wait(1e13, 10, 3.0) > 10 * 50


@pytest.mark.parametrize("deed", ["abort", "kill", {"status": "error", "message": "no power"}])
def test_what_is_optional_is_left_out_in_a_second_try(fake_helper: FakeHelper, deed: Any) -> None:
    fake_helper.rule(deed, power=1)
    step = RemoteStep(SPEC, 1e6, optional={"power": 1})
    assert len(step.measure(runs=2).samples_ns) == 2
    assert [one.get("power") for one in fake_helper.requests()] == [1, None]


# --- rows --------------------------------------------------------------------------------------

ROWS = {
    "abort": ("UNSUPPORTED", "MPSGraph aborted the helper process", 0),
    "kill": ("ERROR", "The helper process was killed", 1),
    "silence": ("ERROR", "gave no document", 1),
}


@pytest.mark.parametrize("deed", ROWS)
def test_a_dead_process_is_a_row_and_others_go_on(
    apple: FakeHelper, tmp_path: Path, deed: str
) -> None:
    status, words, code = ROWS[deed]
    apple.rule(deed, variant="int8")
    rows = conv("--variant", "all", "--iterations", "5", tmp_path=tmp_path, code=code)
    found = {row["case"]["dtype"]: row["status"] for row in rows}
    assert found == {"float16": "OK", "int8": status, "qdq": "OK", "w8a8": "OK"}
    (dead,) = (row for row in rows if row["status"] == status)
    assert words in dead["reason"]


def test_a_helper_that_hangs_is_an_error_row(
    apple: FakeHelper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "patience_s", lambda *_: 0.5)
    apple.rule("hang")
    (row,) = conv("--variant", "fp16", "--iterations", "5", tmp_path=tmp_path, code=1)
    assert (row["status"], row["reason"]) == ("ERROR", "The helper took over 0.5 s")


def test_an_engine_that_refuses_the_smallest_chain_still_measures(
    apple: FakeHelper, tmp_path: Path
) -> None:
    apple.rule({"status": "unsupported", "message": "too small"}, size=8, channels=8, layers=1)
    path = tmp_path / "row.json"
    args = [*SMALL, "--device", "ane"]
    cli._run(["conv", *args, "--no-gpu", "--variant", "fp16", "--json", str(path)])
    (row,) = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert row["status"] == "OK"
    assert row["details"]["floor_problem"] == "Too small"
    assert row["details"]["floor_s"] > 0


@pytest.mark.parametrize("check", [None, {}, {"ok": True}])
def test_a_result_that_was_not_checked_is_an_error(
    apple: FakeHelper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: Any
) -> None:
    answer = helper.answer
    monkeypatch.setattr(helper, "answer", lambda *a, **k: {**answer(*a, **k), "check": check})
    assert apple.path.is_file()
    path = tmp_path / "row.json"
    args = [*SMALL, "--device", "ane"]
    code = cli._run(["conv", *args, "--no-gpu", "--variant", "fp16", "--json", str(path)])
    (row,) = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert (code, row["status"]) == (1, "ERROR")
    assert row["reason"] == "The helper's document has no check of the result."


def test_a_slope_is_taken_through_the_helper(apple: FakeHelper, tmp_path: Path) -> None:
    args = ["--device", "ane"]
    path = tmp_path / "slope.json"
    code = cli._run(
        ["conv", *args, "--no-gpu", "--variant", "fp16", "--channels", "128", "--size", "256",
         "--layers", "20", "--json", str(path)]
    )  # fmt: skip
    (row,) = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert (code, row["status"]) == (0, "OK")
    slope = row["details"]["slope"]
    assert slope["unit"] == "layer"
    assert slope["doubling"] == pytest.approx(2.0, abs=0.05)
    assert row["slope_rate"] > row["rate"]
    assert not {"WORK_NOT_DONE", "HEADLINE_OFF_SLOPE"} & set(row["reasons"])
    assert "UNCHECKED" not in row["reasons"]
    layers = [one["layers"] for one in apple.requests() if not one.get("pmu")]
    assert len(layers) == len(set(layers)) + (layers.count(20) - 1) + (layers.count(1) - 1)
    assert {1, 2, 4, 8, 20} <= set(layers)


# --- counters ----------------------------------------------------------------------------------

STANDARD = ("--channels", "128", "--sizes", "256", "--layers", "20", "--runs", "5")


def test_counters_join_the_row(apple: FakeHelper, tmp_path: Path) -> None:
    (row,) = conv(*STANDARD, "--variant", "fp16", "--shared-weights", tmp_path=tmp_path)
    pmu = row["details"]["pmu"]
    decoded = pmu["decoded"]
    assert (pmu["status"], pmu["helper"]) == ("ok", "shipped")
    assert decoded["macs_per_cycle_core"] == pytest.approx(248.2, abs=0.05)
    assert decoded["utilisation"] == pytest.approx(0.9695, abs=1e-4)
    assert decoded["clock_hz"] == pytest.approx(2.36e9, rel=1e-6)
    assert decoded["layout"] == "dma21"
    assert len(pmu["registers"]) == double.REGISTERS
    assert pmu["registers"][21]["label"] == "kANE_FAKE_21"
    assert pmu["registers"][21]["unit"] == "64-byte lines"
    assert len(pmu["windows"]) == 5
    assert pmu["windows"][0]["before"] == [10**9] * double.REGISTERS
    assert "COUNTERS_INCONSISTENT" not in row["reasons"]
    assert "STALLS_INCONSISTENT" in row["reasons"]
    assert row["verdict"] == "SUSPECT"
    assert set(row["reasons"]) == {"UNCHECKED", "STALLS_INCONSISTENT", "SLOPE_UNKNOWN"}
    power = row["details"]["power"]
    assert power["power_w"] == pytest.approx({"ANE": 4.0, "CPU": 1.5})
    (asked,) = apple.requests(pmu=1)
    assert (asked["enqueue"], asked["device"], asked["layers"]) == (1, "ane", 20)


@pytest.mark.usefixtures("apple")
def test_counters_are_columns(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "conv.csv"
    rows = conv(*STANDARD, "--variant", "fp16", "--csv", str(path), tmp_path=tmp_path)
    (cells,) = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    assert (cells["placement"], cells["pmu"]) == ("proven", "ok")
    assert float(cells["macs_per_cycle_core"]) == pytest.approx(248.2, abs=0.05)
    assert float(cells["pct_of_lanes"]) == pytest.approx(96.95, abs=0.01)
    assert float(cells["ane_clock_ghz"]) == pytest.approx(2.36)
    assert float(cells["ane_wall_ms"]) - float(cells["ane_hw_ms"]) == pytest.approx(0.15)
    assert float(cells["hw_tops"]) == pytest.approx(2 * 16 * 248.2 * 2.36e-3, rel=1e-3)
    pmu = rows[0]["details"]["pmu"]
    assert float(cells["dma_gb_per_s"]) == pytest.approx(
        pmu["decoded"]["dma_bytes"] / pmu["hw_s"] * 1e-9
    )
    assert float(cells["ane_w"]) == pytest.approx(4.0)
    # Watts x mean time of a run: the fake's window is a second for five runs.
    assert float(cells["ane_mj"]) == pytest.approx(4.0 / 5 * 1e3)
    out = capsys.readouterr().out
    for header in ("placement", "counters", "hw TOPS", "MACs/cyc/core", "% lanes", "DMA GB/s"):
        assert header in out
    assert "hw GOPS" not in out
    assert "counters ok" not in out


@pytest.mark.parametrize("weights", ["--own-weights", "--shared-weights"])
@pytest.mark.parametrize("variant", ["fp16", "int8", "qdq", "w8a8"])
def test_traffic_bounds_are_those_of_the_published_tables(variant: str, weights: str) -> None:
    dtype = {"fp16": "float16"}.get(variant, variant)
    shared = weights == "--shared-weights"
    params = {"batch": 1, "channels": 128, "layers": 20, "kernel": 3, "enqueue": 7,
              "weights": "shared" if shared else "own", "data": "normal"}  # fmt: skip
    case = Case("conv", "ane", "mpsgraph", dtype, 256, params)
    spec = _native.ConvSpec(variant=variant, device="ane", shared_weights=shared)
    work = counters.work_of(case, spec)
    tensor = 2**23 * (2 if variant == "fp16" else 1)
    blob = 128 * 128 * 9 * (2 if variant in ("fp16", "qdq") else 1)
    most = ane.conv_traffic_bytes(
        input_bytes=tensor, output_bytes=tensor, weight_bytes=blob, layers=20
    )[1]
    least = 2 * tensor + blob * (1 if shared else 20)
    assert work.macs == 193_273_528_320
    assert work.traffic_bytes == (least, most)
    assert work.precision == ("fp16" if variant in ("fp16", "qdq") else "int8")


def test_int8_is_judged_by_its_own_lanes(apple: FakeHelper, tmp_path: Path) -> None:
    rows = conv(*STANDARD, "--variant", "int8", tmp_path=tmp_path)
    assert apple.requests(pmu=1)
    decoded = rows[0]["details"]["pmu"]["decoded"]
    assert decoded["peak_macs_per_cycle_core"] == 512
    assert decoded["utilisation"] == pytest.approx(248.2 * 1.9 / 512, abs=1e-3)


def test_no_pmu_asks_for_nothing(apple: FakeHelper, tmp_path: Path) -> None:
    (row,) = conv("--variant", "fp16", "--iterations", "5", "--no-pmu", tmp_path=tmp_path)
    assert not apple.requests(pmu=1)
    assert not apple.requests(power=1)
    assert "pmu" not in row["details"]


LOCKED = [status for status in ane.STATUSES if status != "ok"]


@pytest.mark.parametrize("status", LOCKED)
def test_every_status_is_shown_with_its_sentence(
    apple: FakeHelper, tmp_path: Path, status: str, capsys: Any
) -> None:
    locked = {"status": status, "detail": "code 7", "windows": [], "hw_samples_ns": []}
    apple.rule({"pmu": locked}, pmu=1)
    (row,) = conv("--variant", "fp16", "--iterations", "5", tmp_path=tmp_path)
    assert row["status"] == "OK"
    assert row["details"]["pmu"]["status"] == status
    assert row["details"]["pmu"]["hw_s"] is None
    assert f"counters {status}: {ane.STATUSES[status]} (code 7)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("deed", "status"),
    [("abort", "aborted"), ("silence", "helper_failed"), ("garbage", "helper_failed")],
)
def test_counters_that_kill_their_helper_leave_the_row(
    apple: FakeHelper, tmp_path: Path, deed: str, status: str
) -> None:
    apple.rule(deed, pmu=1)
    (row,) = conv("--variant", "fp16", "--iterations", "5", tmp_path=tmp_path)
    assert (row["status"], row["details"]["pmu"]["status"]) == ("OK", status)


@pytest.mark.parametrize(
    ("windows", "status"),
    [
        ([{}], "unknown_format"),
        ([{"before": [1], "after": [2], "evaluations": 1}] * 3, "locked_no_counters"),
        ([{"before": [0] * 29, "after": [-1] * 29, "evaluations": 1}] * 3, "unknown_format"),
        ([{"before": [0] * 29, "after": [1] * 29, "evaluations": 0}] * 3, "unknown_format"),
        ("words", "unknown_format"),
        ([], "helper_failed"),
    ],
)
def test_windows_that_make_no_sense_are_a_status(
    apple: FakeHelper, tmp_path: Path, windows: Any, status: str
) -> None:
    apple.rule({"pmu": {"windows": windows}}, pmu=1)
    (row,) = conv("--variant", "fp16", "--iterations", "5", tmp_path=tmp_path)
    assert row["status"] == "OK"
    assert row["details"]["pmu"]["status"] == status
    assert row["details"]["pmu"]["windows"] == windows  # what came is kept


def test_the_decoding_can_only_take_away_from_ok(apple: FakeHelper, tmp_path: Path) -> None:
    still = {"before": [5] * 29, "after": [5] * 29, "evaluations": 10, "wall_ns": 1e6}
    apple.rule({"pmu": {"windows": [still] * 3}}, pmu=1)
    (row,) = conv("--variant", "fp16", "--iterations", "5", tmp_path=tmp_path)
    assert row["details"]["pmu"]["status"] == "frozen"
    assert row["details"]["pmu"]["decoded"]["macs_per_cycle_core"] is None


def test_an_impossible_clock_makes_the_row_suspect(apple: FakeHelper, tmp_path: Path) -> None:
    (honest,) = conv(*STANDARD, "--variant", "fp16", tmp_path=tmp_path)
    windows = honest["details"]["pmu"]["windows"]
    for window in windows:
        window["hw_ns"] /= 3
    apple.rule({"pmu": {"windows": windows}}, pmu=1)
    (row,) = conv(*STANDARD, "--variant", "fp16", tmp_path=tmp_path)
    assert row["details"]["pmu"]["status"] == "implausible"
    assert "COUNTERS_INCONSISTENT" in row["reasons"]
    assert "clock_plausible" in row["sentences"]["COUNTERS_INCONSISTENT"]


def test_another_client_makes_the_row_suspect(apple: FakeHelper, tmp_path: Path) -> None:
    (honest,) = conv(*STANDARD, "--variant", "fp16", tmp_path=tmp_path)
    windows = honest["details"]["pmu"]["windows"]
    windows[2]["after"][10] += windows[2]["after"][10] - windows[2]["before"][10]
    apple.rule({"pmu": {"windows": windows}}, pmu=1)
    (row,) = conv(*STANDARD, "--variant", "fp16", tmp_path=tmp_path)
    assert "1 of 5 windows" in row["sentences"]["OTHER_ANE_CLIENT"]


@pytest.mark.parametrize("state", ["absent", "denied", "frozen_zero"])
def test_without_energy_there_are_no_joules(apple: FakeHelper, tmp_path: Path, state: str) -> None:
    apple.rule({"power": {"ioreport": state, "energy_j": None}}, power=1)
    (row,) = conv("--variant", "fp16", "--iterations", "5", tmp_path=tmp_path)
    assert row["details"]["power"]["ioreport"] == state
    assert "power_w" not in row["details"]["power"]


KEYS = ("status", "windows", "wall_samples_ns", "hw_samples_ns", "labels", "cores", "architecture",
        "ioreport", "energy_j", "window_s", "detail")  # fmt: skip
ODD = (None, True, False, 0, 1, -1, 2**63, 2**64, -(2**70), 0.5, 1e400, float("nan"), "", "ok", [])
WORK = counters.Work(10**9, (10**6, 10**8), "fp16")
REAL = double.counters(json.loads(_native.ConvSpec(device="ane").to_json()))


def any_value(random: Random, depth: int = 3) -> Any:
    """A value that JSON can hold, also where the protocol has another kind."""
    kind = random.randrange(4 if depth else 2)
    if kind == 2:
        return [any_value(random, depth - 1) for _ in range(random.randrange(4))]
    if kind == 3:
        names = random.sample(("before", "after", "evaluations", "wall_ns", "ANE"), 3)
        return {name: any_value(random, depth - 1) for name in names}
    return random.choice(ODD)


@pytest.mark.parametrize("seed", range(5))
def test_no_document_makes_a_row_fail(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(400):
        changes = {key: any_value(random) for key in random.sample(KEYS, random.randrange(1, 4))}
        found = counters.details_of({"status": "ok", "pmu": {**REAL, **changes}}, WORK)
        assert isinstance(found["status"], str)
        assert found["sentence"]
        assert isinstance(counters.notes_of(found), tuple)
        for key in changes.keys() - {"status", "detail"}:
            assert found[key] is changes[key]  # what came is kept
        power = counters.energy_of({"ioreport": "ok", **changes}, 1e-3)
        assert power.get("energy_j") is changes.get("energy_j")
        details = {"pmu": found, "power": power}
        row = Result(Case("conv", "ane", "mpsgraph", "float16", 8), details=details)
        for column in COLUMNS:
            shown(column, column.value(row))


# --- all registers -----------------------------------------------------------------------------


@pytest.mark.usefixtures("apple")
def test_verbose_pmu_prints_every_register(tmp_path: Path, capsys: Any) -> None:
    (row,) = conv(*STANDARD, "--variant", "fp16", "--verbose-pmu", tmp_path=tmp_path)
    out = capsys.readouterr().out
    assert "registers of ane float16 n=256 C=128 K=3: change over one evaluation" in out
    assert "5 windows used; order of registers: dma21" in out
    for register in row["details"]["pmu"]["registers"]:
        (line,) = (one for one in out.splitlines() if f"[{register['index']}]" in one[:8])
        assert register["label"] in line
        assert f"{register['per_evaluation']:,}" in line
        assert register["reading"] in line


def test_verbose_pmu_says_why_there_are_none(
    apple: FakeHelper, tmp_path: Path, capsys: Any
) -> None:
    apple.rule({"pmu": {"status": "no_region", "windows": []}}, pmu=1)
    conv("--variant", "fp16", "--iterations", "5", "--verbose-pmu", tmp_path=tmp_path)
    assert f"none: {ane.STATUSES['no_region']}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "args",
    [
        ("--engine", "mlx", "--pmu"),
        ("--engine", "mlx", "--verbose-pmu"),
        ("--engine", "mpsgraph", "--device", "gpu", "--pmu"),
        ("--engine", "mpsgraph", "--device", "ane", "--no-pmu", "--verbose-pmu"),
    ],
)
def test_counters_where_there_are_none_are_refused(args: tuple[str, ...], capsys: Any) -> None:
    assert cli._run(["conv", *args]) == 2
    err = capsys.readouterr().err
    assert "--engine mpsgraph --device ane" in err
    assert err.count("\n") == 1
