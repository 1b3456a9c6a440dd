"""A helper process without Apple's frameworks: obeys the protocol, computes nothing.

`install` makes it an executable. NNBT_FAKE_HELPER holds {"log": file of all requests, "rules": [
{"when": {key: value of the request}, "do": what}]}: abort, kill, hang, crash, garbage, silence, or
keys that are merged into the document. The times are those of an M4 Pro, scaled by the work.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

STEADY = (1.0, 1.004, 0.998, 1.002, 0.996, 1.001, 0.999, 1.003, 0.997, 1.0, 1.005, 0.995)
CORES, CLOCK_GHZ, MACS_PER_CYCLE = 16, 2.36, 248.2
REGISTERS = 29
KEYS = {
    "op", "variant", "device", "fill", "padding", "layout", "package", "save_package", "batch",
    "size", "channels", "layers", "kernel", "enqueue", "warmup", "runs", "min_runs", "max_runs",
    "budget_s", "min_window_s", "relative_interval", "shared_weights", "optimization_level", "seed",
    "placement", "pmu", "pmu_windows", "power",
}  # fmt: skip


def install(folder: Path, name: str = "nnbt_helper") -> Path:
    """The fake as an executable in this folder."""
    path = folder / name
    path.write_text(f"#!{sys.executable} -IS\n{Path(__file__).read_text(encoding='utf-8')}")
    path.chmod(0o755)
    return path


def macs(request: dict[str, Any]) -> int:
    pixels = request["batch"] * request["size"] ** 2
    products = (request["channels"] * request["kernel"]) ** 2
    return int(pixels * products * request["layers"])


def run_ns(request: dict[str, Any]) -> float:
    """The time of one evaluation without dispatch: INT8 is twice as fast."""
    speed = 1.9 if request["variant"] == "int8" else 1.0
    return macs(request) / (MACS_PER_CYCLE * speed * CORES * CLOCK_GHZ)


def counters(request: dict[str, Any]) -> dict[str, Any]:
    """Registers in the order of an M4; the stall registers close no more than the published."""
    nominal = round(run_ns(request) * CORES * CLOCK_GHZ)
    item = 2 if request["variant"] == "fp16" else 1
    tensor = request["batch"] * request["size"] ** 2 * request["channels"] * item
    weights = (request["channels"] * request["kernel"]) ** 2 * item
    lines = (2 * tensor * request["layers"] + weights * request["layers"]) // 64
    change = {10: nominal, 13: nominal // 5000, 15: nominal * 6 // 10, 17: nominal * 471 // 10000}
    change |= {21: lines, 22: lines // 2, 23: nominal * 800}
    evaluations, before, windows = 10, [10**9] * REGISTERS, []
    for _ in range(request.get("pmu_windows", 5)):
        after = [n + evaluations * change.get(i, 0) for i, n in enumerate(before)]
        windows.append(
            {
                "before": before, "after": after, "evaluations": evaluations,
                "wall_ns": run_ns(request) + 150_000, "hw_ns": run_ns(request),
            }
        )  # fmt: skip
        before = after
    return {
        "status": "ok", "detail": "", "architecture": "h16g", "cores": CORES,
        "labels": [f"kANE_FAKE_{i}" for i in range(REGISTERS)], "fully_placed": True,
        "windows": windows, "wall_samples_ns": [round(run_ns(request) + 150_000)] * 50,
        "hw_samples_ns": [round(run_ns(request))] * 50,
    }  # fmt: skip


def power(window_s: float) -> dict[str, Any]:
    return {
        "ioreport": "ok", "detail": "", "energy_j": {"ANE": 4.0 * window_s, "CPU": 1.5 * window_s},
        "window_s": window_s, "thermal_state": "nominal", "low_power_mode": False,
        "cpu_cycles": 10**6, "cpu_instructions": 2 * 10**6,
    }  # fmt: skip


def measured(request: dict[str, Any]) -> dict[str, Any]:
    one = (run_ns(request) + 150_000) * request["enqueue"]
    count = request["runs"] or 12
    samples = [round(one * STEADY[i % len(STEADY)]) for i in range(count)]
    window_ns = max(sum(samples), 10**9)
    document = {
        "status": "ok",
        "device_name": "Apple M4 Pro",
        "spec": {},
        "compile_ns": 5_000_000,
        "first_run_ns": 2 * samples[0],
        "warmup_runs": request["warmup"],
        "samples_ns": samples,
        "window_ns": window_ns,
        "settled": True,
        "stop": "runs" if request["runs"] else "precise",
        "readings": [{"name": "minor_faults", "unit": "count", "value": 3.0}],
        "check": {
            "ok": True, "compared": 7, "relative_error": 1e-3, "zero_fraction": 0.0,
            "non_finite": 0, "detail": "7 values with float64",
        },
    }  # fmt: skip
    if request["device"] == "ane" and request.get("placement", 1):
        document |= {"placement": "proven", "evidence": ["the manifest says so"]}
    if "save_package" in request:
        Path(request["save_package"]).mkdir()
        document["package_note"] = "without its ANE bundle"
    if request.get("pmu"):
        document["pmu"] = counters(request)
    if request.get("power"):
        document["power"] = power(window_ns * 1e-9)
    return document


def answer(request: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(request) - KEYS)
    if unknown:
        return {"status": "error", "message": f"unknown key in the request: {unknown[0]}"}
    if request.get("op") == "selftest":
        test = {"framework_complete": True, "missing": [], "entitled": False}
        return {
            "status": "ok",
            "selftest": test | {"counters": "locked_mask_zeroed", "detail": ""},
            "version": "0",
        }
    if request.get("op") == "info":
        return {
            "status": "ok",
            "ane": {
                "present": True, "driver": "com.apple.driver.AppleH16ANE", "architecture": "h16g",
                "cores": 16, "firmware": "208.17", "entitled": False, "boot_args": "",
                "sip": "enabled", "virtual_machine": False, "framework_complete": True,
                "missing": [],
            },
            "power": {**power(1.0), "ioreport": "frozen_zero", "energy_j": None},
        }  # fmt: skip
    return measured({"runs": 0, "warmup": 2, **request})


def misbehave(deed: str) -> None:
    if deed in ("abort", "kill", "crash"):
        names = {"abort": signal.SIGABRT, "kill": signal.SIGKILL, "crash": signal.SIGSEGV}
        os.kill(os.getpid(), names[deed])
    if deed == "hang":
        time.sleep(60)
    if deed == "garbage":
        sys.stdout.write("no JSON")
    sys.stderr.write("a framework complained\n")
    sys.exit(3)


def merge(document: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(document.get(key), dict):
            merge(document[key], value)
        else:
            document[key] = value


def main() -> None:
    # -I keeps the environment of Python out, not that of the process.
    script = json.loads(os.environ.get("NNBT_FAKE_HELPER", "{}"))
    request = json.load(sys.stdin)
    with Path(script.get("log", os.devnull)).open("a", encoding="utf-8") as log:
        log.write(json.dumps({**request, "helper": Path(sys.argv[0]).name}) + "\n")
    asked = {"helper": Path(sys.argv[0]).name, **request}
    document = answer(request)
    for rule in script.get("rules", ()):
        if all(asked.get(key) == value for key, value in rule["when"].items()):
            if isinstance(rule["do"], str):
                misbehave(rule["do"])
            else:
                merge(document, rule["do"])
    sys.stdout.write(json.dumps(document))


if __name__ == "__main__":
    main()
