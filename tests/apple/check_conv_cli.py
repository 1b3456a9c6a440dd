"""`nnbt conv` on the doubles, from options to files; byte-exact if times are scripted.

Run like check_doubles.py. Chains of float16 on the GPU run in this process, all others in the real
helper process, whose documents are used except for their times.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from doubles_build import HELPER, native

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

from fake_measure import FLOOR, STEADY, FakeSamples  # noqa: E402
from golden_files import FOLDER, expect, fixed_machine  # noqa: E402
from nnbt.cli import main as cli  # noqa: E402
from nnbt.engines.mpsgraph import counters, helper  # noqa: E402
from nnbt.results.columns import csv_text  # noqa: E402
from nnbt.spec.case import Case  # noqa: E402
from result_schema import rows_of  # noqa: E402

LAYER_NS, FLOOR_NS = 1_000_000, 20_000
EVALUATIONS = 10
SHAPE = "--size 12 --channels 4 --layers 4 --batch 2"
COMMANDS = {
    "conv_doubles": f"{SHAPE} --variant all --control",
    "conv_counters": f"{SHAPE} --variant fp16 --device ane --verbose-pmu",
}
MACS = 2 * 12**2 * 4**2 * 3**2 * 4
# 127.6 multiplies per cycle and core for 3 x 3; traffic within its bounds.
REGISTERS = "10=1300 13=10 15=700 17=61 21=300 22=150 23=1040000 hw_ns=30"

LATE = {"device": "gpu", "size": 5, "channels": 2, "layers": 1, "enqueue": 2, "runs": 1}
# Started first and read last: waiting for lost completions takes 60 s.
_waiting = subprocess.Popen(
    [HELPER],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    env={**os.environ, "NNBT_DOUBLE_FAULT": "no_completion"},
)
assert _waiting.stdin is not None
_waiting.stdin.write(json.dumps(LATE).encode())
_waiting.stdin.close()


def scripted_samples(layers, enqueue, runs, floor):
    one = FLOOR_NS + (0 if floor else LAYER_NS * layers * enqueue)
    count = runs or len(STEADY)
    return [round(one * STEADY[i % len(STEADY)]) if count > 1 else one for i in range(count)]


def measure_here(step, *, warmup=2, runs=0, **_):
    """Runs a native Step and returns the scripted time of its layers."""
    step.run()
    floor = (warmup, runs) == FLOOR
    times = scripted_samples(step.spec.layers, step.spec.enqueue, runs, floor)
    return FakeSamples(times, 500_000_000, warmup, "runs" if runs else "precise", [])


def scripted(request, document):
    """The helper's document with scripted times and counts of evaluations."""
    if document["status"] != "ok":
        return document
    floor = (request["warmup"], request["runs"]) == FLOOR
    layers, enqueue = request["layers"], request.get("enqueue", 1)
    document |= {
        "samples_ns": scripted_samples(layers, enqueue, request["runs"], floor),
        "window_ns": 500_000_000,
        "first_run_ns": 2_000_000,
        "warmup_runs": request["warmup"],
        "compile_ns": 5_000_000,
        "stop": "runs" if request["runs"] else "precise",
        "readings": [],
    }
    document.pop("power", None)  # cycles and joules of this process
    if "pmu" in document:
        pmu = document["pmu"]
        for window in pmu["windows"]:
            count = window["evaluations"]
            assert count > 0
            changes = [b - a for a, b in zip(window["before"], window["after"], strict=True)]
            assert all(change % count == 0 for change in changes)
            window |= {
                "before": [0] * len(changes),
                "after": [change // count * EVALUATIONS for change in changes],
                "evaluations": EVALUATIONS,
                "wall_ns": 50.0,
            }
        pmu["wall_samples_ns"] = [50] * 5
        pmu["hw_samples_ns"] = pmu["hw_samples_ns"][:5]
    return document


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """The machine of the doubles, without MLX and without user files."""
    monkeypatch.setenv("NNBT_HELPER", str(HELPER))
    monkeypatch.setenv("NNBT_DOUBLE_ANE", REGISTERS)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    fixed_machine(monkeypatch, native, tmp_path / "cache")


class Compiled:
    """A native Step that was compiled in 5 ms."""

    compile_ns = 5_000_000

    def __init__(self, step):
        self._step = step

    def __getattr__(self, name):
        return getattr(self._step, name)


@pytest.fixture
def scripted_times(monkeypatch):
    real, make = helper.run_helper, native.make_conv
    monkeypatch.setattr(native, "make_conv", lambda *args: Compiled(make(*args)))
    monkeypatch.setattr(native, "measure", measure_here)
    monkeypatch.setattr(
        helper, "run_helper", lambda request, **more: scripted(request, real(request, **more))
    )


def conv(*args):
    return cli._run(["conv", *args])


@pytest.mark.usefixtures("scripted_times")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_output_is_byte_exact(tmp_path, monkeypatch, capsys, name):
    arguments = COMMANDS[name].split()
    monkeypatch.setattr("sys.argv", ["nnbt", "conv", *arguments])
    path = tmp_path / "conv.csv"
    code = conv(*arguments, "--csv", str(path), "--json", str(tmp_path / "conv.json"))
    shown = capsys.readouterr()
    expect(FOLDER / f"{name}.txt", f"{shown.err}{shown.out}exit code {code}\n")
    table = path.read_text(encoding="utf-8")
    expect(FOLDER / f"{name}.csv", table)
    assert csv_text(rows_of(tmp_path / "conv.json")) == table  # the JSON has everything


@pytest.mark.usefixtures("scripted_times")
def test_counters_are_decoded_from_the_registers(tmp_path):
    path = tmp_path / "conv.json"
    assert conv(*COMMANDS["conv_counters"].split(), "--json", str(path)) == 0
    (row,) = rows_of(path)
    found = row.details.counters
    assert (found.status, found.helper, found.work.macs) == ("ok", "shipped", MACS)
    decoded = found.decoded
    assert (decoded.status, decoded.layout, decoded.dma_register) == ("ok", "dma21", 21)
    assert decoded.macs_per_cycle_core == pytest.approx(MACS / 1300)
    assert decoded.utilisation == pytest.approx(MACS / 1300 / 256)
    assert decoded.clock_hz == pytest.approx(1300 / (30e-9 * 16))
    assert decoded.hw_ops_per_s == pytest.approx(2 * MACS / 30e-9)
    assert decoded.dispatch_ns == pytest.approx(20)
    assert (decoded.dma_bytes, decoded.dma_read_bytes) == (300 * 64, 150 * 64)
    assert decoded.energy_units == 1_040_000
    assert {share.index: share.of_nominal for share in decoded.shares}[15] == pytest.approx(7 / 13)
    broken = [i.name for i in decoded.identities if i.scope != "hypothesis" and not i.holds]
    assert broken == ["framework_closure", "published_closure"]
    changes = {register.index: register.delta for register in decoded.registers if register.delta}
    assert changes == {10: 1300, 13: 10, 15: 700, 17: 61, 21: 300, 22: 150, 23: 1_040_000}
    assert len(decoded.registers) == 29
    windows = found.raw["windows"]
    assert [window["evaluations"] for window in windows] == [EVALUATIONS] * len(windows)
    assert windows[0]["after"][10] - windows[0]["before"][10] == 1300 * EVALUATIONS


QUICK = ("--size", "6", "--channels", "3", "--layers", "2", "--iterations", "5", "--max-seconds",
         "0.2")  # fmt: skip


def test_real_times_of_every_variant_on_both_devices(tmp_path, capsys):
    path = tmp_path / "conv.csv"
    conv(*QUICK, "--no-fail", "--csv", str(path), "--json", str(tmp_path / "conv.json"))
    rows = rows_of(tmp_path / "conv.json")
    assert [row.status for row in rows] == ["OK"] * 7
    assert {row.case.device for row in rows} == {"gpu", "ane"}
    cells = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    for row, cell in zip(rows, cells, strict=True):
        assert row.runs == 5
        assert not row.has("WRONG_ANSWER")
        assert not row.has("NON_FINITE")
        assert row.details.device_name == "Double of an Apple GPU"
        readings = {"minor_faults", "thermal_state", "voluntary_switches"}
        assert readings <= set(row.readings)
        on_ane = row.case.device == "ane"
        assert (cell["placement"], bool(cell["pmu"])) == ("proven" if on_ane else "", on_ane)
    assert "left out: conv by mpsgraph on gpu does not support int8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "status", "words"),
    [
        ("abort", "UNSUPPORTED", "aborted"),
        ("kill", "ERROR", "killed"),
        ("compile_nil", "UNSUPPORTED", "fp16 chain"),
        ("run_error", "ERROR", "lost"),
        ("no_ane", "UNSUPPORTED", "Neural Engine"),
    ],
)
def test_a_failing_helper_becomes_a_row(tmp_path, monkeypatch, capsys, fault, status, words):
    monkeypatch.setenv("NNBT_DOUBLE_FAULT", fault)
    path = tmp_path / "conv.json"
    code = conv(*QUICK, "--device", "ane", "--variant", "fp16", "--no-gpu", "--json", str(path))
    (row,) = rows_of(path)
    assert row.status == status
    assert words in row.reason
    assert code == (1 if status == "ERROR" else 0)
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fault", "verdict", "code"),
    [("gpu_fallback", "INVALID", "NOT_ON_ANE"), ("zero_output", "INVALID", "WRONG_ANSWER"),
     ("nan_output", "INVALID", "NON_FINITE")],
)  # fmt: skip
def test_a_wrong_run_is_invalid(tmp_path, monkeypatch, fault, verdict, code):
    monkeypatch.setenv("NNBT_DOUBLE_FAULT", fault)
    path = tmp_path / "conv.json"
    args = ("--device", "ane", "--variant", "fp16", "--no-gpu", "--json", str(path))
    assert conv(*QUICK, *args) == 1
    (row,) = rows_of(path)
    assert row.verdict == verdict
    assert row.has(code)


@pytest.mark.parametrize(
    ("fault", "status"),
    [("frozen", "frozen"), ("zero_counters", "zeros"), ("reset", "reset"),
     ("no_region", "no_region"), ("two_regions", "not_placed_on_ane")],
)  # fmt: skip
def test_a_status_of_the_counters_reaches_the_row(tmp_path, monkeypatch, fault, status):
    monkeypatch.setenv("NNBT_DOUBLE_FAULT", fault)
    path = tmp_path / "conv.json"
    args = ("--device", "ane", "--variant", "fp16", "--no-gpu", "--no-fail", "--json", str(path))
    assert conv(*QUICK, *args) == 0
    (row,) = rows_of(path)
    assert row.status == "OK"
    assert row.details.counters.status == status


def test_a_second_client_is_detected(tmp_path, monkeypatch):
    monkeypatch.setenv("NNBT_DOUBLE_FAULT", "second_client")
    path = tmp_path / "conv.json"
    conv(*QUICK, "--device", "ane", "--variant", "fp16", "--no-fail", "--json", str(path))
    (row,) = rows_of(path)
    assert row.has("OTHER_ANE_CLIENT")


def test_packages_are_saved_by_the_helper(tmp_path):
    path = tmp_path / "conv.json"
    args = (*QUICK, "--device", "ane", "--variant", "w8a8", "--no-fail", "--json", str(path))
    assert conv(*args, "--save-package", str(tmp_path / "saved")) == 0
    package = tmp_path / "saved" / "conv_w8a8_ane_k3.mpsgraphpackage"
    assert (package / "manifest.plist").is_file()
    assert (package / "ane_bundle").is_dir()
    (row,) = rows_of(path)
    assert f"saved {package}" in row.notes
    # The double keeps graphs in its process, so another process cannot load them.
    assert conv(*args, "--load-package", str(package)) == 0
    (row,) = rows_of(path)
    assert row.status == "UNSUPPORTED"
    assert "load the package" in row.reason


def test_info_ane_describes_the_double(capsys):
    assert cli._run(["info", "ane"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "architecture h16g" in words
    assert "cores 16" in words
    assert "framework complete" in words


def test_a_signed_copy_of_the_double_reads_counters(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "codesign").write_text("#!/bin/sh\nexit 0\n")
    (folder / "codesign").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    cli._run(["sign-helper"])
    assert "selftest of the copy: ok" in capsys.readouterr().out
    assert helper.for_counters().signed


def test_the_helper_accepts_the_request_of_a_row_with_counters():
    spec = native.ConvSpec(device="ane", size=6, channels=3, layers=2)
    params = {"batch": 1, "channels": 3, "layers": 2, "kernel": 3, "enqueue": 1,
              "weights": "shared", "data": "normal"}  # fmt: skip
    case = Case("conv", "ane", "mpsgraph", "float16", 6, params)
    found = counters.read(case, spec)
    assert found.status in ("ok", "implausible")
    assert found.raw["check"]["ok"]
    assert len(found.decoded.registers) == 29


def test_missing_completions_time_out_after_a_minute():
    _waiting.wait(timeout=90)
    assert _waiting.stdout is not None
    answer = json.load(_waiting.stdout)
    assert answer["status"] == "error"
    assert "complete within 60 s" in answer["message"]
