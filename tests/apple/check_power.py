"""The power probe on Linux, against doubles of IOReport, libproc and NSProcessInfo.

Not collected by default: requires a build with NNBT_APPLE_DOUBLES=ON, in the directory
NNBT_DOUBLES_BUILD (`.ci/apple run` does both, also with sanitizers). The driver fails if an object
that IOReport returned is still alive when it exits.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(os.environ["NNBT_DOUBLES_BUILD"]) / "nnbt_power_driver"
KEYS = (
    "ioreport",
    "detail",
    "energy_j",
    "window_s",
    "thermal_state",
    "low_power_mode",
    "cpu_cycles",
    "cpu_instructions",
)
CPU = "CPU Energy,mJ,+50"  # live, so that other rails are considered


def read(*words: str, energy: str = "", faults: str = "") -> tuple[dict[str, Any], str]:
    """The last reading of the driver, and its error output."""
    environment = {**os.environ, "NNBT_DOUBLE_FAULT": faults}
    if energy:
        environment["NNBT_DOUBLE_ENERGY"] = energy
    done = subprocess.run(
        [DRIVER, *words], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "without pool" not in done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_window_has_energy_by_rail_and_every_key():
    reading, _ = read("1", "60")
    assert tuple(reading) == KEYS
    assert reading["ioreport"] == "ok"
    assert reading["energy_j"] == {"ANE": 0.035, "CPU": 0.05, "DRAM": 0.01, "GPU": 0.0009}
    assert 0.06 <= reading["window_s"] < 5
    assert reading["cpu_cycles"] == 3_000_000
    assert reading["cpu_instructions"] == 8_000_000


def test_a_window_of_the_timing_loop_is_one_window():
    reading, _ = read("measure")
    assert reading["energy_j"]["ANE"] == 0.035
    assert reading["cpu_cycles"] == 3_000_000
    assert reading["window_s"] >= 0.06  # of three runs of 20 ms, without warm-up


@pytest.mark.parametrize(
    ("faults", "state", "words"),
    [
        ("no_ioreport", "absent", "IOReport cannot be loaded: /usr/lib/libIOReport.dylib"),
        ("incomplete", "absent", "libIOReport of this OS lacks IOReportCopyChannelsInGroup"),
        ("no_channels", "absent", "lists no energy channels"),
        ("no_channel_list", "absent", "lists no energy channels"),
        ("odd_channel_list", "absent", "lists no energy channels"),
        ("no_subscription", "denied", "refused the subscription"),
        ("no_sample", "denied", "returned no sample"),
    ],
)
def test_every_obstacle_is_a_state_with_a_sentence(faults, state, words):
    reading, _ = read("2", "1", faults=faults)
    assert reading["ioreport"] == state
    assert words in reading["detail"]
    assert "energy_j" not in reading
    # The rest of the reading does not depend on it.
    assert reading["cpu_cycles"] == 3_000_000
    assert reading["thermal_state"] == "nominal"


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ("-", "this system hides them"),
        ("n", "were updated"),
        ("o", "were not updated in that time"),
    ],
)
def test_counters_that_do_not_change_are_frozen(times, words):
    rows = f"CPU Energy,mJ,700,{times};ANE0,mJ,9,{times};GPU Energy,nJ,+5000"
    reading, _ = read("1", "100", energy=rows)
    assert reading["ioreport"] == "frozen_zero"
    assert words in reading["detail"]
    assert "GPU changed, but is left out" in reading["detail"]
    assert "energy_j" not in reading


def test_a_window_of_milliseconds_says_nothing_about_frozen_counters():
    reading, _ = read("1", "2", energy="CPU Energy,mJ,700")
    assert reading["ioreport"] == "ok"
    assert reading["energy_j"] == {}
    assert "measure for longer than 0.100 s" in reading["detail"]


@pytest.mark.parametrize(
    ("row", "joules"),
    [
        ("ANE0,mJ,100/450", 0.35),
        ("ANE0,uJ,100/450", 0.00035),
        ("ANE0,nJ,100/4500", 0.0000044),
        ("ANE0_0,mJ,1/3;ANE0_1,mJ,10/40", 0.032),
        ("ANE0,mJ,7", 0),
    ],
)
def test_each_unit_is_converted_to_joules(row, joules):
    reading, _ = read("1", "60", energy=f"{CPU};{row}")
    assert reading["ioreport"] == "ok"
    assert reading["energy_j"]["ANE"] == pytest.approx(joules, rel=1e-12)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("ANE0,mJ,450/100", "ANE0 went backwards"),
        ("ANE0,kJ,1/2", 'ANE0 has the unknown unit "kJ  "'),
        ("ANE0,mJ,0/9999999", "ANE0 implies more than 1 kW"),
        ("ANE0,mJ,100/450,o/n", "ANE0 covers 1."),
        ("ANE0,mJ,100/450,o/o", "ANE0 covers 0.000 s"),
    ],
)
def test_energy_of_another_span_is_left_out(row, words):
    reading, _ = read("1", "60", energy=f"{CPU};{row}")
    assert reading["ioreport"] == "ok"
    assert reading["energy_j"] == {"CPU": 0.05}
    assert words in reading["detail"]


def test_update_times_are_ticks_of_24_mhz():
    # The tolerance is a tenth of the window, so the window is long.
    reading, _ = read("1", "1000", energy=f"{CPU};ANE0,mJ,100/450,n")
    assert reading["energy_j"] == {"ANE": 0.35, "CPU": 0.05}


def test_channels_of_other_formats_are_not_read_as_integers():
    reading, _ = read("1", "60", energy=f"{CPU};ANE0,mJ,5,n,2;ANE0,mJ,5,n,4")
    assert reading["energy_j"] == {"CPU": 0.05}
    assert "ANE" not in reading["detail"]


@pytest.mark.parametrize("faults", ["", "nothing_granted", "no_sample", "no_subscription"])
def test_two_hundred_windows_of_one_subscription_leak_nothing(faults):
    read("200", "0", faults=faults)  # the driver counts


@pytest.mark.parametrize(
    ("faults", "state"),
    [
        ("", "nominal"),
        ("warm", "fair"),
        ("hot", "serious"),
        ("critical", "critical"),
        ("no_such_level", "unknown"),
        # The worse of start and end.
        ("cools_down", "serious"),
        ("warms_up", "serious"),
    ],
)
def test_thermal_states(faults, state):
    assert read("1", "0", faults=faults)[0]["thermal_state"] == state


@pytest.mark.parametrize("faults", ["", "low_power", "saves_at_first", "saves_later"])
def test_low_power_mode_at_either_end(faults):
    assert read("1", "0", faults=faults)[0]["low_power_mode"] is bool(faults)


@pytest.mark.parametrize("faults", ["no_rusage", "no_pmu"])
def test_a_process_without_counters_has_null_not_zero(faults):
    reading, _ = read("1", "0", faults=faults)
    assert reading["cpu_cycles"] is None
    assert reading["cpu_instructions"] is None


def test_cycles_that_go_backwards_are_null():
    reading, _ = read("1", "0", faults="rusage_backwards")
    assert reading["cpu_cycles"] is None
    assert reading["cpu_instructions"] == 8_000_000


def test_availability_waits_for_the_first_update():
    values = "/".join(["700"] * 6 + ["750"])
    reading, _ = read("info", energy=f"CPU Energy,mJ,{values},o/o/o/o/o/o/n")
    assert reading["ioreport"] == "ok"
    assert "energy_j" not in reading
    assert reading["window_s"] >= 0.5


def test_availability_gives_up_on_frozen_counters():
    reading, _ = read("info", energy="CPU Energy,mJ,700")
    assert reading["ioreport"] == "frozen_zero"
    assert reading["window_s"] >= 2.5
