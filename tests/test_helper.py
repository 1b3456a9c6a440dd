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
from dataclasses import asdict, replace
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import fake_helper as double
from nnbt import _native
from nnbt._native import Unsupported
from nnbt.cli import main as cli
from nnbt.engines.mpsgraph import ane, counters, helper, helper_step
from nnbt.engines.mpsgraph.helper import HelperError
from nnbt.engines.mpsgraph.helper_step import HelperStep
from nnbt.engines.mpsgraph.power import power_of
from nnbt.results import schema1
from nnbt.results.columns import COLUMNS, shown
from nnbt.results.files import json_text, load
from nnbt.results.result import Result, Run
from nnbt.spec.case import Case
from nnbt.spec.details import Details, EvaluationWork
from nnbt.timing.loop import measure

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import FakeHelper

SPEC = json.loads(_native.ConvSpec(device="ane", size=8, channels=4, layers=3).to_json())
SMALL = ("--sizes", "8", "--channels", "4", "--layers", "3")
STANDARD = ("--sizes", "256", "--channels", "128", "--layers", "20")
QUICK = ("--runs", "5", "--no-checks")
CASE = Case("conv", "ane", "mpsgraph", "float16", 8)


@pytest.fixture
def apple(monkeypatch: pytest.MonkeyPatch, fake_helper: FakeHelper) -> FakeHelper:
    """A machine on which everything but the GPU in this process works."""
    monkeypatch.setattr(_native, "conv_available", lambda: None)
    return fake_helper


def conv(tmp_path: Path, *args: str, variant: str = "fp16", code: int = 0) -> list[Result]:
    """The rows of `nnbt conv` on the Neural Engine, as read from its file."""
    path = tmp_path / "conv.json"
    where = ("--device", "ane", "--no-gpu", "--variant", variant, "--json", str(path))
    assert cli._run(["conv", *where, *args]) == code
    return load(path).results


def small(tmp_path: Path) -> Result:
    (row,) = conv(tmp_path, *SMALL, *QUICK)
    assert row.status == "OK"
    return row


def standard(tmp_path: Path, *args: str, variant: str = "fp16") -> Result:
    (row,) = conv(tmp_path, *STANDARD, *QUICK, *args, variant=variant)
    return row


def counters_of(row: Result) -> Any:
    return row.details.counters


def decoded_of(row: Result) -> Any:
    return counters_of(row).decoded


def codes(row: Result) -> set[str]:
    return {reason.code for reason in row.reasons}


def script(tmp_path: Path, body: str) -> Path:
    """An executable shell script in the place of the helper."""
    path = tmp_path / "script"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


# --- how the process ends ----------------------------------------------------------------------

# What the process does: error, status of the counters, and what of it the message has.
ENDS = {
    "abort": (Unsupported, "aborted", None),
    "kill": (HelperError, "killed_by_amfi", None),
    "crash": (HelperError, "helper_failed", None),
    "silence": (HelperError, "helper_failed", r"3\): a framework complained$"),
    "garbage": (HelperError, "helper_failed", r"3\): a framework complained$"),
    "hang": (HelperError, "timed_out", "0.5 s$"),
}


@pytest.mark.parametrize("deed", ENDS)
def test_a_process_without_a_document_is_a_sentence(fake_helper: FakeHelper, deed: str) -> None:
    kind, ended, words = ENDS[deed]
    fake_helper.rule(deed)
    with pytest.raises(RuntimeError, match=words) as caught:
        helper.answer(SPEC, timeout_s=0.5)
    assert type(caught.value) is kind
    assert helper.run_helper(SPEC, timeout_s=0.5)["ended"] == ended
    assert ended in ane.STATUSES


@pytest.mark.parametrize(
    ("body", "ended"),
    [
        # A shell in between hides no signal.
        ("exit 137", "killed_by_amfi"),
        ("exit 134", "aborted"),
        ("exit 255", "helper_failed"),
        ("true", "helper_failed"),
        ("head -c 100000 /dev/zero | tr '\\0' '['", "helper_failed"),
    ],
)
def test_output_that_is_no_document_is_an_error(tmp_path: Path, body: str, ended: str) -> None:
    found = helper.run_helper({}, executable=script(tmp_path, body))
    assert (found["status"], found["ended"]) == ("unsupported" if "134" in body else "error", ended)


def test_a_file_that_is_no_program_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("words")
    found = helper.run_helper({}, executable=path)
    assert (found["status"], found["ended"]) == ("error", "helper_failed")
    assert f"{path} " in found["message"]
    assert found["message"].endswith("Permission denied")


@pytest.mark.parametrize(("status", "kind"), [("unsupported", Unsupported), ("error", HelperError)])
def test_refusals_of_the_helper(
    fake_helper: FakeHelper, status: str, kind: type[Exception]
) -> None:
    fake_helper.rule({"status": status, "message": "the MPSGraph of this macOS can't: use fp16"})
    with pytest.raises(kind, match=r"^The MPSGraph of this macOS can't: use fp16$"):
        helper.answer(SPEC)


def test_without_a_helper_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNBT_HELPER", "/none/nnbt_helper")
    with pytest.raises(Unsupported, match="/none/nnbt_helper"):
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
    held = tmp_path / "held"
    os.mkfifo(held)
    # Its input ends once the parent waits for the answer.
    body = f"exec 3> {held}\ncat > /dev/null\necho >&3\nexec sleep 60"
    command = [sys.executable, "-c", PARENT, str(script(tmp_path, body))]
    pipe = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        assert read_until(pipe, b"\n", parent)
        parent.send_signal(number)
        assert parent.wait(30) != 0
        assert read_until(pipe, b"", parent)
    os.close(pipe)


@pytest.mark.parametrize("end", ["exec sleep 60", "kill -9 $$", "exit 1"])
def test_no_scratch_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    saved = tmp_path / "saved"
    path = script(
        tmp_path,
        f"mkdir -p {saved}/chain.mpsgraphpackage.partial-$$-0/ane_bundle\n"
        f"mkdir {tmp_path}/nnbt-replay-$$-0 {tmp_path}/nnbt.mpsgraphpackage.partial-$$-1\n{end}",
    )
    (tmp_path / "nnbt-replay-0-0").mkdir()  # of another process
    request = {"save_package": str(saved / "chain.mpsgraphpackage")}
    assert helper.run_helper(request, executable=path, timeout_s=1.0)["status"] == "error"
    assert {one.name for one in tmp_path.iterdir()} == {"nnbt-replay-0-0", "saved", "script"}
    assert list(saved.iterdir()) == []


def test_samples_are_whole(fake_helper: FakeHelper) -> None:
    step = HelperStep(SPEC, 1e6)
    samples = measure(step, warmup=3, runs=7, budget_s=2.0, on_progress=print)
    (request,) = fake_helper.requests()
    assert (request["warmup"], request["runs"], request["budget_s"]) == (3, 7, 2.0)
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
def test_unreadable_documents_are_errors(fake_helper: FakeHelper, broken: dict[str, Any]) -> None:
    fake_helper.rule(broken)
    with pytest.raises(HelperError):
        HelperStep(SPEC, 1e6).run()


def test_single_runs_come_out_of_one_process(fake_helper: FakeHelper) -> None:
    step = HelperStep(SPEC, 1e6, {"save_package": "x"})
    times = [measure(step, warmup=0, runs=1).samples_ns for _ in range(30)]
    assert len(fake_helper.requests()) == 1
    assert "save_package" not in fake_helper.requests()[0]
    assert all(len(time) == 1 for time in times)
    assert times[:12] == times[12:24]
    assert len({time[0] for time in times}) > 5


def test_the_time_limit_grows_with_the_budget_and_the_runs() -> None:
    limit = helper_step.time_limit_s
    assert limit(4e11, 0, 60.0) > limit(4e11, 0, 3.0) > helper.START_S
    assert limit(4e11, 1000, 3.0) >= 1000 * helper_step.LEAST_RUN_S
    assert limit(1e13, 10, 3.0) > 10 * 50


@pytest.mark.parametrize("deed", ["abort", "kill", {"status": "error", "message": "no power"}])
def test_what_is_optional_is_left_out_in_a_second_try(fake_helper: FakeHelper, deed: Any) -> None:
    fake_helper.rule(deed, power=1)
    step = HelperStep(SPEC, 1e6, optional={"power": 1})
    assert len(step.measure(runs=2).samples_ns) == 2
    assert [one.get("power") for one in fake_helper.requests()] == [1, None]


@pytest.mark.parametrize(
    ("deed", "status", "code"),
    [("abort", "UNSUPPORTED", 0), ("kill", "ERROR", 1), ("silence", "ERROR", 1)],
)
def test_dead_process_is_a_row(
    apple: FakeHelper, tmp_path: Path, deed: str, status: str, code: int
) -> None:
    apple.rule(deed, variant="int8")
    rows = conv(tmp_path, *SMALL, *QUICK, variant="all", code=code)
    found = {row.case.dtype: row.status for row in rows}
    assert found == {"float16": "OK", "int8": status, "qdq": "OK", "w8a8": "OK"}
    assert [bool(row.reason) for row in rows] == [row.status != "OK" for row in rows]


def test_a_hanging_helper(
    apple: FakeHelper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helper_step, "time_limit_s", lambda *_: 0.5)
    apple.rule("hang")
    (row,) = conv(tmp_path, *SMALL, *QUICK, code=1)
    assert row.status == "ERROR"
    assert "0.5 s" in row.reason


def test_a_refused_smallest_chain_is_no_error(apple: FakeHelper, tmp_path: Path) -> None:
    apple.rule({"status": "unsupported", "message": "too small"}, size=8, channels=8, layers=1)
    (row,) = conv(tmp_path, *SMALL, code=1)  # its times don't scale with the work
    assert row.status == "OK"
    overhead: Any = row.launch_overhead
    assert overhead.problem == "Too small"
    assert overhead.floor_s > 0


@pytest.mark.parametrize("check", [None, {}, {"ok": True}])
def test_a_result_that_was_not_checked_is_an_error(
    apple: FakeHelper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: Any
) -> None:
    answer = helper.answer
    monkeypatch.setattr(helper, "answer", lambda *a, **k: {**answer(*a, **k), "check": check})
    assert apple.path.is_file()
    (row,) = conv(tmp_path, *SMALL, code=1)
    assert row.status == "ERROR"


def test_a_slope_is_taken_through_the_helper(apple: FakeHelper, tmp_path: Path) -> None:
    row: Any
    (row,) = conv(tmp_path, *STANDARD)
    assert (row.status, row.slope_unit) == ("OK", "layer")
    assert row.slope.doubling == pytest.approx(2.0, abs=0.05)
    assert row.slope_rate > row.rate
    assert not {"WORK_NOT_DONE", "SLOPE_DISAGREES", "UNCHECKED"} & codes(row)
    layers = [one["layers"] for one in apple.requests() if not one.get("pmu")]
    assert len(layers) == len(set(layers)) + (layers.count(20) - 1) + (layers.count(1) - 1)
    assert {1, 2, 4, 8, 20} <= set(layers)


def test_counters_join_the_row(apple: FakeHelper, tmp_path: Path) -> None:
    row = standard(tmp_path, "--shared-weights")
    found, decoded = counters_of(row), decoded_of(row)
    assert (found.status, found.helper) == ("ok", "shipped")
    assert found.sentence == ane.STATUSES["ok"]
    assert decoded.macs_per_cycle_core == pytest.approx(248.2, abs=0.05)
    assert decoded.utilisation == pytest.approx(0.9695, abs=1e-4)
    assert decoded.clock_hz == pytest.approx(2.36e9, rel=1e-6)
    assert decoded.layout == "dma21"
    assert len(decoded.registers) == double.REGISTERS
    assert decoded.registers[21].label == "kANE_FAKE_21"
    assert decoded.registers[21].reading.unit == "64-byte lines"
    assert len(found.raw["windows"]) == 5
    assert found.raw["windows"][0]["before"] == [10**9] * double.REGISTERS
    assert codes(row) == {"UNCHECKED", "STALLS_INCONSISTENT", "SLOPE_UNKNOWN"}
    assert row.verdict == "SUSPECT"
    power: Any = row.details.power
    watts = {one.rail: one.power_w for one in power.rails}
    assert watts == pytest.approx({"ANE": 4.0, "CPU": 1.5})
    assert isinstance(hash(row.details), int)
    (request,) = apple.requests(pmu=1)
    assert (request["enqueue"], request["device"], request["layers"]) == (1, "ane", 20)


@pytest.mark.usefixtures("apple")
def test_counters_are_columns(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "conv.csv"
    row = standard(tmp_path, "--csv", str(path))
    (cells,) = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    assert (cells["placement"], cells["pmu"]) == ("proven", "ok")
    wanted = {
        "macs_per_cycle_core": pytest.approx(248.2, abs=0.05),
        "pct_of_lanes": pytest.approx(96.95, abs=0.01),
        "ane_clock_ghz": pytest.approx(2.36),
        "hw_tops": pytest.approx(2 * 16 * 248.2 * 2.36e-3, rel=1e-3),
        "dma_gb_per_s": pytest.approx(decoded_of(row).dma_bytes / counters_of(row).hw_s * 1e-9),
        "ane_w": pytest.approx(4.0),
        # Watts x mean time of a run: the fake's window is a second for five runs.
        "ane_mj": pytest.approx(4.0 / 5 * 1e3),
    }
    assert {name: float(cells[name]) for name in wanted} == wanted
    assert float(cells["ane_wall_ms"]) - float(cells["ane_hw_ms"]) == pytest.approx(0.15)
    out = capsys.readouterr().out
    for header in ("placement", "counters", "hw TOPS", "MACs/cyc/core", "% lanes", "DMA GB/s"):
        assert header in out
    assert "hw GOPS" not in out
    assert "counters ok" not in out


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("variant", ["fp16", "int8", "qdq", "w8a8"])
def test_traffic_bounds_are_those_of_the_published_tables(variant: str, shared: bool) -> None:
    dtype = {"fp16": "float16"}.get(variant, variant)
    params = {"batch": 1, "channels": 128, "layers": 20, "kernel": 3, "enqueue": 7,
              "weights": "shared" if shared else "own", "data": "normal"}  # fmt: skip
    case = Case("conv", "ane", "mpsgraph", dtype, 256, params)
    spec = _native.ConvSpec(variant=variant, device="ane", shared_weights=shared)
    tensor = 2**23 * (2 if variant == "fp16" else 1)
    blob = 128 * 128 * 9 * (2 if variant in ("fp16", "qdq") else 1)
    _, most = ane.conv_traffic_bytes(
        input_bytes=tensor, output_bytes=tensor, weight_bytes=blob, layers=20
    )
    least = 2 * tensor + blob * (1 if shared else 20)
    precision = "fp16" if variant in ("fp16", "qdq") else "int8"
    work = EvaluationWork(193_273_528_320, (least, most), precision)
    assert counters.work_of(case, spec) == work


def test_int8_is_judged_by_its_own_lanes(apple: FakeHelper, tmp_path: Path) -> None:
    decoded = decoded_of(standard(tmp_path, variant="int8"))
    assert apple.requests(pmu=1)
    assert decoded.peak_macs_per_cycle_core == 512
    assert decoded.utilisation == pytest.approx(248.2 * 1.9 / 512, abs=1e-3)


def test_no_pmu_asks_for_nothing(apple: FakeHelper, tmp_path: Path) -> None:
    (row,) = conv(tmp_path, *SMALL, *QUICK, "--no-pmu")
    assert not apple.requests(pmu=1)
    assert not apple.requests(power=1)
    assert row.details.counters is None


@pytest.mark.parametrize("status", [status for status in ane.STATUSES if status != "ok"])
def test_every_status_is_shown(apple: FakeHelper, tmp_path: Path, status: str, capsys: Any) -> None:
    locked = {"status": status, "detail": "code 7", "windows": [], "hw_samples_ns": []}
    apple.rule({"pmu": locked}, pmu=1)
    found = counters_of(small(tmp_path))
    assert (found.status, found.hw_s, found.decoded) == (status, None, None)
    assert f"counters {status}: {ane.STATUSES[status]} (code 7)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("deed", "status"),
    [("abort", "aborted"), ("silence", "helper_failed"), ("garbage", "helper_failed")],
)
def test_counters_that_kill_the_helper(
    apple: FakeHelper, tmp_path: Path, deed: str, status: str
) -> None:
    apple.rule(deed, pmu=1)
    assert counters_of(small(tmp_path)).status == status


@pytest.mark.parametrize(
    ("windows", "status"),
    [
        ([{}], "unknown_format"),
        ([{"before": [1], "after": [2], "evaluations": 1}] * 3, "locked_no_counters"),
        ([{"before": [0] * 29, "after": [-1] * 29, "evaluations": 1}] * 3, "unknown_format"),
        ([{"before": [0] * 29, "after": [1] * 29, "evaluations": 0}] * 3, "unknown_format"),
        # The decoding can only take away from `ok`.
        ([{"before": [5] * 29, "after": [5] * 29, "evaluations": 9, "wall_ns": 1e6}] * 3, "frozen"),
        ("words", "unknown_format"),
        ([], "helper_failed"),
    ],
)
def test_invalid_windows_are_a_status(
    apple: FakeHelper, tmp_path: Path, windows: Any, status: str
) -> None:
    apple.rule({"pmu": {"windows": windows}}, pmu=1)
    found = counters_of(small(tmp_path))
    assert found.status == status
    assert found.raw["windows"] == windows
    assert found.decoded is None or found.decoded.macs_per_cycle_core is None


def test_an_impossible_clock_makes_the_row_suspect(apple: FakeHelper, tmp_path: Path) -> None:
    windows = counters_of(standard(tmp_path)).raw["windows"]
    for window in windows:
        window["hw_ns"] /= 3
    apple.rule({"pmu": {"windows": windows}}, pmu=1)
    row = standard(tmp_path)
    assert counters_of(row).status == "implausible"
    (failed,) = (one for one in decoded_of(row).identities if one.name == "clock_plausible")
    assert not failed.holds
    (sentence,) = (one.sentence for one in row.reasons if one.code == "COUNTERS_INCONSISTENT")
    assert "clock_plausible" in sentence


def test_another_client_makes_the_row_suspect(apple: FakeHelper, tmp_path: Path) -> None:
    windows = counters_of(standard(tmp_path)).raw["windows"]
    windows[2]["after"][10] += windows[2]["after"][10] - windows[2]["before"][10]
    apple.rule({"pmu": {"windows": windows}}, pmu=1)
    row = standard(tmp_path)
    assert "OTHER_ANE_CLIENT" in codes(row)
    assert (decoded_of(row).windows_shared, decoded_of(row).windows_used) == (1, 4)


@pytest.mark.parametrize("state", ["absent", "denied", "frozen_zero"])
def test_without_energy_there_are_no_joules(apple: FakeHelper, tmp_path: Path, state: str) -> None:
    apple.rule({"power": {"ioreport": state, "energy_j": None}}, power=1)
    power: Any = small(tmp_path).details.power
    assert (power.status, power.rails) == (state, ())


KEYS = ("status", "windows", "wall_samples_ns", "hw_samples_ns", "labels", "cores", "architecture",
        "ioreport", "energy_j", "window_s", "detail")  # fmt: skip
ODD: Any = (
    None, True, False, 0, 1, -1, 2**63, 2**64, -(2**70), 0.5, 1e400, float("nan"), "", "ok", [],
)  # fmt: skip
WORK = EvaluationWork(10**9, (10**6, 10**8), "fp16")
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
def test_no_document_makes_a_row_fail(seed: int, tmp_path: Path) -> None:
    random = Random(seed)  # noqa: S311
    run = Run({}, [], "")
    for _ in range(400):
        changes = {key: any_value(random) for key in random.sample(KEYS, random.randrange(1, 4))}
        pmu = {**REAL, **changes}
        found = counters.decoded_counters({"status": "ok", "pmu": pmu}, WORK)
        assert found.sentence
        assert isinstance(counters.notes_of(found), tuple)
        energies = {"ioreport": "ok", **changes}
        power = power_of(energies, 1e-3)
        assert (found.raw, power.raw) == (pmu, energies)
        row = Result(CASE, details=Details(counters=found, power=power))
        for column in COLUMNS:
            shown(column, column.value(row))
        run.results.append(row)
    path = tmp_path / "run.json"
    path.write_text(json_text(run), encoding="utf-8")
    for row, again in zip(run.results, load(path).results, strict=True):
        assert counters_of(again).decoded == counters_of(row).decoded
        assert hash(again.details) == hash(row.details)


@pytest.mark.usefixtures("apple")
def test_counters_and_power_of_schema_1_are_read(tmp_path: Path) -> None:
    details: Any = standard(tmp_path).details
    found, power = details.counters, details.power
    decoded = asdict(found.decoded)
    registers = [
        {"index": row["index"], "label": row["label"], "per_evaluation": row["delta"],
         **row["reading"], "reading": row["reading"]["meaning"]}
        for row in decoded.pop("registers")
    ]  # fmt: skip
    decoded["reasons"] = ["COUNTERS_DO_NOT_CLOSE"]
    ours = ("status", "sentence", "detail", "helper", "wall_s", "hw_s")
    pmu = {name: getattr(found, name) for name in ours}
    pmu = {**found.raw, **pmu, "decoded": decoded, "registers": registers,
           "work": asdict(found.work)}  # fmt: skip
    rails = {
        name: {row.rail: getattr(row, name) for row in power.rails}
        for name in ("energy_j", "power_w", "run_energy_j")
    }
    old = json.loads(json.dumps({"pmu": pmu, "power": {**power.raw, **rails}}))
    expected = replace(details, placement=None, compile_s=None, device_name="")
    assert found.decoded.reasons == ("COUNTERS_INCONSISTENT",)
    assert msgspec.convert(schema1._details(old), Details) == expected


@pytest.mark.parametrize(
    ("old", "status"),
    [({"pmu": {"status": "killed_by_amfi", "detail": "code 9"}}, "killed_by_amfi"),
     ({"pmu": {"status": "no_region", "windows": [], "detail": None}}, "no_region"),
     ({"power": {"ioreport": "denied", "energy_j": None}}, "denied")],
)  # fmt: skip
def test_details_of_schema_1_may_lack_what_was_not_read(old: Any, status: str) -> None:
    details = msgspec.convert(schema1._details(old), Details)
    assert [one.status for one in (details.counters, details.power) if one is not None] == [status]


@pytest.mark.usefixtures("apple")
def test_verbose_pmu_prints_every_register(tmp_path: Path, capsys: Any) -> None:
    decoded = decoded_of(standard(tmp_path, "--verbose-pmu"))
    out = capsys.readouterr().out
    assert "float16 n=256 C=128 K=3" in out
    assert f"{decoded.windows_used} windows used" in out
    assert "dma21" in out
    for register in decoded.registers:
        (line,) = (one for one in out.splitlines() if f"[{register.index}]" in one[:8])
        for words in (register.label, f"{register.delta:,}", register.reading.meaning):
            assert words in line


def test_verbose_pmu_without_counters(apple: FakeHelper, tmp_path: Path, capsys: Any) -> None:
    apple.rule({"pmu": {"status": "no_region", "windows": []}}, pmu=1)
    conv(tmp_path, *SMALL, *QUICK, "--verbose-pmu")
    assert f"none: {ane.STATUSES['no_region']}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "args",
    [
        ("--pmu", "--engine", "mlx"),
        ("--verbose-pmu", "--engine", "mlx"),
        ("--pmu", "--engine", "mpsgraph", "--device", "gpu"),
        ("--verbose-pmu", "--engine", "mpsgraph", "--device", "ane", "--no-pmu"),
    ],
)
def test_counters_where_there_are_none_are_refused(args: tuple[str, ...], capsys: Any) -> None:
    assert cli._run(["conv", *args]) == 2
    err = capsys.readouterr().err
    assert args[0].removeprefix("--verbose") in err
    assert err.count("\n") == 1
