"""The Neural Engine's counters of a row of `conv`, read in a helper process of its own.

The chain is compiled once more there, by the signed copy of the helper if there is one, and
replayed with counters: whatever happens there, the row keeps its number.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nnbt import _native
from nnbt._native import ConvSpec
from nnbt.engines.mpsgraph import ane, helper
from nnbt.engines.mpsgraph.ane_tables import status_sentence
from nnbt.engines.mpsgraph.helper import MISREAD
from nnbt.engines.mpsgraph.helper_step import time_limit_s
from nnbt.spec.case import Case
from nnbt.spec.conv import Chain
from nnbt.spec.details import Counters, DecodedCounters, EvaluationWork

BUDGET_S = 1.0
"""Seconds of all windows together: a second of a Neural Engine is some 50 runs of 20 layers."""
MIN_RUNS = 5
WINDOWS = 5
PRECISIONS = {"float16": "fp16", "qdq": "fp16", "int8": "int8", "w8a8": "int8"}
"""What the multipliers work on. w8a8 is judged as int8: a compiler may fuse it to that."""
CORES = 16
JUDGED = {"COUNTERS_INCONSISTENT", "OTHER_ANE_CLIENT"}
"""Reasons of a decoding that are checks with a verdict; the others become notes."""


def work_of(case: Case, spec: ConvSpec) -> EvaluationWork:
    """The arithmetic of one evaluation, which is one submission of the chain.

    Least traffic: input, output and all weights once. Most: every layer also writes its output to
    memory and the next one reads it.
    """
    chain = Chain.of(case)
    sizes = _native.conv_work(spec)
    ends = sizes.input_bytes + sizes.output_bytes
    read_again = chain.layers - 1 if chain.shared else 0
    weights = sizes.weight_bytes
    return EvaluationWork(
        macs=chain.layers * chain.layer_ops // 2,
        traffic_bytes=(ends + weights, chain.layers * ends + weights * (1 + read_again)),
        precision=PRECISIONS[case.dtype],
    )


def read(case: Case, spec: ConvSpec, package: str | None = None) -> Counters:
    """Counters of the chain of a case, or of a saved `package`.

    Whatever the helper lacks, or ends with, is a status.
    """
    request: dict[str, object] = {
        **json.loads(spec.to_json()),
        "enqueue": 1,
        "placement": 0,
        "warmup": 2,
        "runs": 0,
        "min_runs": MIN_RUNS,
        "budget_s": BUDGET_S,
        "pmu": 1,
        "pmu_windows": WINDOWS,
    }
    if package is not None:
        request["package"] = package
    reader, work = helper.for_counters(), work_of(case, spec)
    document = helper.run_helper(
        request,
        executable=reader.path,
        timeout_s=time_limit_s(2.0 * work.macs, WINDOWS * MIN_RUNS, BUDGET_S),
    )
    return replace(
        decoded_counters(document, work), helper="signed" if reader.signed else "shipped"
    )


def decoded_counters(document: Mapping[str, Any], work: EvaluationWork) -> Counters:
    """The counters in a helper's document; what it holds under "pmu" is kept whatever it is."""
    pmu = document.get("pmu")
    if document.get("status") != "ok" or not isinstance(pmu, dict):
        status = str(document.get("ended", "helper_failed"))
        detail = str(document.get("message", "its document has no counters"))
        return Counters(status, status_sentence(status), detail)
    found = Counters(
        str(pmu.get("status", "helper_failed")), detail=str(pmu.get("detail") or ""), raw=pmu
    )
    try:
        # Hardware time also without counters.
        found = replace(found, wall_s=_median_s(pmu, "wall"), hw_s=_median_s(pmu, "hw"))
        if pmu.get("windows"):
            decoded = _decoded(pmu, work)
            # What the helper met first counts; the decoding can only take away from `ok`.
            status = decoded.status if found.status == "ok" else found.status
            found = replace(found, status=status, decoded=decoded, work=work)
        elif found.status == "ok":  # which promises registers
            found = replace(found, status="helper_failed")
    except MISREAD as error:
        detail = f"{found.detail} {error}".strip()
        found = replace(found, status="unknown_format", detail=detail)
    return replace(found, sentence=status_sentence(found.status))


def _median_s(pmu: Mapping[str, Any], clock: str) -> float | None:
    """Median time of one evaluation."""
    samples = pmu.get(f"{clock}_samples_ns")
    median_s = _native.median(samples) * 1e-9 if samples else math.nan
    return median_s if math.isfinite(median_s) else None


def _decoded(pmu: Mapping[str, Any], work: EvaluationWork) -> DecodedCounters:
    """The windows, decoded; registers by the names that this system's framework has for them."""
    decoded = ane.decode_windows(
        [
            ane.Window(
                before=row["before"],
                after=row["after"],
                evaluations=row["evaluations"],
                wall_ns=row.get("wall_ns"),
                hw_ns=row.get("hw_ns"),
            )
            for row in pmu["windows"]
        ],
        macs=work.macs,
        cores=pmu.get("cores") or CORES,
        precision=work.precision,
        architecture=pmu.get("architecture"),
        traffic_bytes=work.traffic_bytes,
    )
    named = dict(enumerate(map(str, pmu.get("labels") or ())))
    registers = (replace(row, label=named.get(row.index, row.label)) for row in decoded.registers)
    return replace(decoded, registers=tuple(registers))


def notes_of(counters: Counters) -> tuple[str, ...]:
    """What a reader of the row must know about its counters."""
    if counters.status != "ok" or counters.decoded is None:
        detail = f" ({counters.detail})" if counters.detail else ""
        return (f"counters {counters.status}: {counters.sentence}{detail}",)
    return tuple(
        f"counters {code}: {ane.REASONS[code]}"
        for code in counters.decoded.reasons
        if code not in JUDGED
    )
