"""Documents of schema 1 (nnbt 0.1) as documents of schema 2."""

from typing import Any

from nnbt.spec.case import FIELDS

_SAME = (
    "status", "reason", "verdict", "median_s", "interval_s", "interval_coverage", "best_s", "rate",
    "best_rate", "unit", "slope_rate", "overhead_us", "effective_bits", "precision", "stop",
    "warmup_runs", "first_run_s", "window_s", "sizes", "notes", "readings", "samples_ns",
)  # fmt: skip
_RENAMED = {
    "BACKGROUND_LOAD": ("NOISY_NEIGHBOUR",),
    "BIMODAL": ("TWO_MODES",),
    "COUNTERS_INCONSISTENT": ("COUNTERS_DO_NOT_CLOSE",),
    "LAUNCH_BOUND": ("LATENCY_BOUND",),
    "SLOPE_DISAGREES": ("SLOPE_BENT", "SUPERLINEAR", "SLOPE_UNCLEAR", "MEDIAN_OFF_SLOPE"),
    "STALLS_INCONSISTENT": ("STALLS_DO_NOT_CLOSE",),
}
_CODES = {old: new for new, olds in _RENAMED.items() for old in olds}
_FROM_DETAILS = {
    "answer": "answer", "gpu_state": "gpu_state", "cost": "check_cost", "ceiling": "ceiling",
    "measured_ceiling": "measured_ceiling", "ratio_to_random": "ratio_to_random",
    "thread_sweep": "sweep",
}  # fmt: skip
_DETAILS = {
    "fits_in": "fits_in", "clock_peak": "clock_peak", "compile_s": "compile_s",
    "device_name": "device_name", "relative_error": "relative_error", "placement": "placement",
    "hybrid": "shared_window", "clock_hz": "core_clock_hz", "no_ceiling": "not_a_ceiling",
}  # fmt: skip
"""Old names and new ones."""


def upgraded(document: dict[str, Any]) -> dict[str, Any]:
    """The document as one of schema 2."""
    return {**document, "schema": 2, "results": [_row(row) for row in document["results"]]}


def _renamed(old: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {new: old[was] for was, new in names.items() if was in old}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    case, details = row["case"], row.get("details", {})
    new = {name: row[name] for name in _SAME if name in row}
    new["case"] = {name: case[name] for name in FIELDS}
    new["case"]["params"] = {name: value for name, value in case.items() if name not in FIELDS}
    new["reasons"] = [
        {
            "code": _CODES.get(code, code),
            "sentence": row["sentences"][code],
            "severity": row["severities"][code],
        }
        for code in row["reasons"]
    ]
    if row["status"] == "SKIPPED":
        new["status"] = "UNSUPPORTED"
    if row["median_s"] is not None and "statistics" in details:
        new["summary"] = {
            "count": row["runs"],
            "median_s": row["median_s"],
            "best_s": row["best_s"],
            **details["statistics"],
            "interval_s": row["interval_s"],
            "coverage": row["interval_coverage"],
        }
    if "slope" in details:
        new["slope_unit"] = details["slope"]["unit"]
        new["slope"] = {key: value for key, value in details["slope"].items() if key != "unit"}
    if "floor_s" in details:
        problem = details.get("floor_problem", "")
        new["launch_overhead"] = {"floor_s": details["floor_s"], "problem": problem}
    new |= _renamed(details, _FROM_DETAILS)
    if "other_window" in details:  # what was noisy stood there as a sentence
        new["other_window"] = {**details["other_window"], "scatter": None}
    if "reference" in details:
        new["published"] = {**details["reference"], "note": ""}
    new["details"] = _details(details)
    return new


def _details(old: dict[str, Any]) -> dict[str, Any]:
    new = _renamed(old, _DETAILS)
    if "chip_clock_mhz" in old:
        new["chip_clock_hz"] = old["chip_clock_mhz"] * 1e6
    if "pmu" in old:
        new["counters"] = _counters(old["pmu"])
    if "power" in old:
        new["power"] = _power(old["power"])
    return new


def _counters(pmu: dict[str, Any]) -> dict[str, Any]:
    """Schema 1 kept the helper's object and what was made of it in one."""
    ours = ("status", "sentence", "helper", "wall_s", "hw_s", "work")
    new = {name: pmu[name] for name in ours if name in pmu}
    new["detail"] = str(pmu.get("detail") or "")
    if pmu.get("decoded"):
        decoded = pmu["decoded"]
        reasons = [_CODES.get(code, code) for code in decoded.get("reasons", ())]
        registers = [
            {
                "index": row["index"],
                "label": row["label"],
                "delta": row["per_evaluation"],
                "reading": {
                    "meaning": row["reading"], "unit": row["unit"], "confidence": row["confidence"],
                },
            }
            for row in pmu.get("registers", ())
        ]  # fmt: skip
        new["decoded"] = {**decoded, "reasons": reasons, "registers": registers}
    made = {*ours, "decoded", "registers"} - {"status"}
    if "windows" in pmu:
        new["raw"] = {name: value for name, value in pmu.items() if name not in made}
    return new


def _power(power: dict[str, Any]) -> dict[str, Any]:
    made = ("power_w", "run_energy_j", "problem")
    raw = {name: value for name, value in power.items() if name not in made}
    watts = power.get("power_w", {})
    rails = [
        {
            "rail": rail,
            "energy_j": power["energy_j"][rail],
            "power_w": value,
            "run_energy_j": power["run_energy_j"][rail],
        }
        for rail, value in watts.items()
    ]
    return {
        "status": str(power.get("ioreport")),
        "detail": str(power.get("detail") or ""),
        "window_s": power["window_s"] if watts else None,
        "rails": rails,
        "raw": raw,
    }
