"""The Neural Engine's counters and the energy of a row of `conv`, from the helper's document.

The chain is compiled once more in a helper process of its own, by the signed copy of the helper
where there is one, and replayed with counters: whatever happens there, the row keeps its number.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from nnbt import _native
from nnbt.engines.mpsgraph import ane, helper
from nnbt.engines.mpsgraph.remote import patience_s
from nnbt.spec.conv import Chain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnbt._native import ConvSpec
    from nnbt.spec.case import Case

BUDGET_S = 1.0
"""Seconds of all windows together: a second of a Neural Engine is some 50 runs of 20 layers."""
LEAST_RUNS = 5
WINDOWS = 5
PRECISIONS = {"float16": "fp16", "qdq": "fp16", "int8": "int8", "w8a8": "int8"}
"""What the multipliers work on. w8a8 is judged as int8: a compiler may fuse it to that."""
CORES = 16
JUDGED = {"COUNTERS_DO_NOT_CLOSE", "COUNTERS_INCONSISTENT", "OTHER_ANE_CLIENT"}
"""Reasons of a decoding that are rows of CHECKS; the others become notes."""

_MISREAD = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
"""What values of another kind than the protocol's end in."""


@dataclass(frozen=True)
class Work:
    """What one evaluation of the whole chain does."""

    macs: int
    """Multiply-accumulates by the usual count, products with padding included."""
    traffic_bytes: tuple[int, int]
    """Least and most bytes that it moves to and from memory."""
    precision: str


def work_of(case: Case, spec: ConvSpec) -> Work:
    """The arithmetic of one evaluation, which is one submission of the chain.

    Least traffic: input, output and all weights once. Most: every layer also writes its output to
    memory and the next one reads it.
    """
    chain = Chain.of(case)
    sizes = _native.conv_work(spec)
    ends = sizes.input_bytes + sizes.output_bytes
    read_again = chain.layers - 1 if chain.shared else 0
    weights = sizes.weight_bytes
    return Work(
        macs=chain.layers * chain.layer_ops // 2,
        traffic_bytes=(ends + weights, chain.layers * ends + weights * (1 + read_again)),
        precision=PRECISIONS[case.dtype],
    )


def read(case: Case, spec: ConvSpec, package: str | None = None) -> dict[str, Any]:
    """Details of a row under "pmu", see `details_of`; a saved `package` is replayed instead.

    Whatever the helper lacks or dies of is a status.
    """
    request: dict[str, object] = {
        **json.loads(spec.to_json()),
        "enqueue": 1,
        "placement": 0,
        "warmup": 2,
        "runs": 0,
        "min_runs": LEAST_RUNS,
        "budget_s": BUDGET_S,
        "pmu": 1,
        "pmu_windows": WINDOWS,
    }
    if package is not None:
        request["package"] = package
    asked, work = helper.for_counters(), work_of(case, spec)
    timeout_s = patience_s(2.0 * work.macs, WINDOWS * LEAST_RUNS, BUDGET_S)
    document = helper.run_helper(request, executable=asked.path, timeout_s=timeout_s)
    found = details_of(document, work)
    return {"helper": "signed" if asked.signed else "shipped", **found}


def details_of(document: Mapping[str, Any], work: Work) -> dict[str, Any]:
    """What a helper's document with "pmu" says, decoded; raw registers are kept whatever it is.

    "status" is a key of ane.STATUSES, "sentence" what it means and what the user can do.
    """
    pmu = document.get("pmu")
    if document.get("status") != "ok" or not isinstance(pmu, dict):
        status = str(document.get("ended", "helper_failed"))
        detail = document.get("message", "its document has no counters")
        return _described({"status": status, "detail": str(detail)})
    details: dict[str, Any] = {**pmu, "status": str(pmu.get("status", "helper_failed"))}
    try:
        details |= _times(pmu)
        details |= _decoded(pmu, work, details["status"])
    except _MISREAD as error:
        detail = f"{pmu.get('detail') or ''} {error}".strip()
        details |= {"status": "unknown_format", "detail": detail}
    return _described(details)


def _described(details: dict[str, Any]) -> dict[str, Any]:
    known = ane.STATUSES.get(details["status"], "This version doesn't know this status.")
    return {**details, "sentence": known}


def _times(pmu: Mapping[str, Any]) -> dict[str, float | None]:
    """Medians of one evaluation, in seconds; hardware time also where there are no counters."""
    times: dict[str, float | None] = {}
    for name in ("wall", "hw"):
        samples = pmu.get(f"{name}_samples_ns") or []
        times[f"{name}_s"] = _native.median(samples) * 1e-9 if samples else None
    return times


def _windows(rows: Sequence[Mapping[str, Any]]) -> list[ane.Window]:
    return [
        ane.Window(
            before=row["before"],
            after=row["after"],
            evaluations=row["evaluations"],
            wall_ns=row.get("wall_ns"),
            hw_ns=row.get("hw_ns"),
        )
        for row in rows
    ]


def _decoded(pmu: Mapping[str, Any], work: Work, status: str) -> dict[str, Any]:
    windows = _windows(pmu.get("windows") or ())
    if not windows:
        # `ok` promises registers.
        return {"status": "helper_failed"} if status == "ok" else {}
    decoded = ane.decode_windows(
        windows,
        macs=work.macs,
        cores=pmu.get("cores") or CORES,
        precision=work.precision,
        architecture=pmu.get("architecture"),
        traffic_bytes=work.traffic_bytes,
    )
    labels = list(pmu.get("labels") or ())
    registers = [
        {
            "index": row.index,
            "label": labels[row.index] if row.index < len(labels) else row.label,
            "reading": row.reading.meaning,
            "unit": row.reading.unit,
            "confidence": row.reading.confidence,
            "per_evaluation": row.delta,
        }
        for row in decoded.registers
    ]
    numbers = {key: value for key, value in asdict(decoded).items() if key != "registers"}
    return {
        # What the helper met first counts; the decoding can only take away from `ok`.
        "status": decoded.status if status == "ok" else status,
        "decoded": numbers,
        "registers": registers,
        "work": asdict(work),
    }


def notes_of(pmu: Mapping[str, Any]) -> tuple[str, ...]:
    """What a reader of the row must know about its counters."""
    detail = f" ({pmu['detail']})" if pmu.get("detail") else ""
    if pmu["status"] != "ok":
        return (f"counters {pmu['status']}: {pmu['sentence']}{detail}",)
    return tuple(
        f"counters {code}: {ane.REASONS[code]}"
        for code in pmu["decoded"]["reasons"]
        if code not in JUDGED
    )


def energy_of(power: Mapping[str, Any], run_s: float) -> dict[str, Any]:
    """Details of a row under "power": the helper's object, with watts and joules of a run.

    `run_s` is the mean time of a run; power is the mean over the probe's window.
    """
    details = dict(power)
    try:
        if power.get("ioreport") == "ok" and power["window_s"] > 0:
            watts = {rail: joules / power["window_s"] for rail, joules in power["energy_j"].items()}
            details["power_w"] = watts
            details["run_energy_j"] = {rail: value * run_s for rail, value in watts.items()}
    except _MISREAD as error:
        details["problem"] = f"the energies can't be read ({error!r})"
    return details
