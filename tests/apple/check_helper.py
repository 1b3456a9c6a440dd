"""The helper process apart from measurements: what it reports, how it exits, what it refuses.

Run like check_doubles.py.
"""

from __future__ import annotations

import json
import subprocess

import pytest
from doubles_build import HELPER, WITHOUT_ANE, helper

from nnbt.engines.mpsgraph import ane


@pytest.mark.parametrize(
    ("name", "status"),
    [("ane_abort", "aborted"), ("ane_kill", "killed_by_amfi"), ("hang", "timed_out")],
)
def test_a_helper_that_ends_without_a_document_is_a_status(
    fault, monkeypatch, tmp_path, name, status
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a killed process cannot clean up
    fault(name)
    process = subprocess.Popen([HELPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    request = {"device": "ane", "pmu": 1, "size": 5, "channels": 2, "layers": 2, "runs": 3}
    timed_out = False
    try:
        output, _ = process.communicate(json.dumps(request).encode(), timeout=3)
    except subprocess.TimeoutExpired:
        timed_out = True
        process.kill()
        output, _ = process.communicate()
    assert output == b""
    code = process.returncode
    assert ane.helper_status(code, timed_out=timed_out, has_output=bool(output)) == status


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"pmu": 1, "device": "gpu"}, "pmu requires device ane"),
        ({"pmu": 1, "device": "ane", "pmu_windows": 2}, "pmu_windows must be at least 3"),
        ({"op": "measuring"}, "op is one of measure, selftest, info"),
        ({"op": 1}, "op must be text"),
        ({"pmu": "yes"}, "pmu must be a number"),
    ],
)
def test_contradictory_requests_are_refused(request_, words):
    answer = helper(request_)
    assert answer["status"] == "error"
    assert words in answer["message"]


def test_the_document_contains_all_of_the_samples():
    answer = helper({"device": "ane", "min_window_s": 0.01, "relative_interval": 0.5, "runs": 0})
    assert "pmu" not in answer
    assert answer["window_ns"] >= 1e7
    assert answer["stop"] == "precise"
    assert answer["settled"] in (True, False)
    assert answer["warmup_runs"] >= 1
    names = {reading["name"]: reading["unit"] for reading in answer["readings"]}
    assert names["minor_faults"] == "count"
    assert names["user_time"] == "s"
    assert names["thermal_state"] == "level"
    assert helper({"runs": 4})["stop"] == "runs"


def test_energy_is_measured_over_the_timed_runs_on_request(fault):
    assert "power" not in helper({})
    answer = helper({"power": 1, "runs": 0, "min_window_s": 0.12, "budget_s": 0.2})
    assert answer["power"]["ioreport"] == "ok"
    assert answer["power"]["energy_j"]["CPU"] > 0
    # The window of the timed runs; starting and stopping add little.
    assert answer["power"]["window_s"] >= answer["window_ns"] / 1e9
    assert answer["power"]["thermal_state"] == "nominal"
    fault("no_ioreport")
    absent = helper({"power": 1})["power"]
    assert absent["ioreport"] == "absent"
    assert "energy_j" not in absent


def info(executable=HELPER):
    return helper({"op": "info"}, executable=executable)["ane"]


def test_info_says_what_can_be_read(fault, script, monkeypatch):
    script({}, cores=16, engines=2, architecture="h13g")
    monkeypatch.setenv("NNBT_DOUBLE_BOOT_ARGS", "anedebug=1 -v")
    fault("entitled,sip_off")
    assert info() == {
        "present": True,
        "driver": "com.apple.driver.AppleH16ANEInterface",
        "architecture": "h13g",
        "cores": 32,
        "firmware": "loaded, engine version 208.17",
        "entitled": True,
        "boot_args": "anedebug=1 -v",
        "sip": "reduced (allows 0x6f)",
        "virtual_machine": False,
        "framework_complete": True,
        "missing": [],
    }


def test_info_says_which_energies_exist():
    told = helper({"op": "info"})["power"]
    assert told["ioreport"] == "ok"
    assert "energy_j" not in told


def test_unreadable_values_are_null(fault):
    fault("no_driver,no_core_count,no_architecture,no_csr,no_task")
    absent = info()
    for name in ("driver", "architecture", "cores", "firmware", "entitled", "boot_args", "sip"):
        assert absent[name] is None, name
    assert absent["present"] is True  # the framework says so
    fault("no_driver,no_engine,virtual_machine,entitlement_error")
    absent = info()
    assert (absent["present"], absent["virtual_machine"]) == (False, True)
    assert absent["entitled"] is None
    fault("")
    assert info()["entitled"] is False
    assert info()["sip"] == "enabled"
    assert info()["boot_args"] is None


def test_the_driver_is_read_without_the_framework(script):
    script({}, cores=16, engines=1, architecture="h14g")
    told = info(WITHOUT_ANE)
    assert (told["architecture"], told["cores"], told["present"]) == ("h14g", 16, True)
    assert told["framework_complete"] is False
    assert "_ANERequest" in told["missing"]


def selftest(executable=HELPER):
    answer = helper({"op": "selftest"}, executable=executable)
    assert answer["status"] == "ok"
    assert answer["version"]
    return answer["selftest"]


@pytest.mark.parametrize(
    ("name", "counters"),
    [
        ("", "ok"),
        ("zero_counters", "zeros"),
        ("frozen", "frozen"),
        ("mask_zeroed", "locked_mask_zeroed"),
        ("no_stats", "locked_no_stats"),
        ("no_engine", "no_ane"),
        ("no_evaluate", "framework_missing"),
        ("load_fails", "load_failed"),
        ("no_region", "no_region"),
        ("no_metal", "no_region"),
    ],
)
def test_the_selftest_says_whether_counters_can_be_read(fault, name, counters):
    fault(name)
    told = selftest()
    assert told["counters"] == counters, told
    assert told["entitled"] is False
    assert told["framework_complete"] == (name != "no_evaluate")


def test_the_selftest_of_a_system_without_the_framework():
    told = selftest(WITHOUT_ANE)
    assert told["counters"] == "framework_missing"
    assert len(told["missing"]) == 7
