"""How often correct results are called INVALID or SUSPECT on this machine.

    python tests/bench/false_alarms.py [--repeats 50] [--share 0.33] [--max-seconds 1.25]

Repeats a sweep of cases whose numbers are right (sizes 256 to 2048, all dtypes, three metrics) and
prints the share of rows with each verdict and each reason. A repeat takes `--share` of the cases,
drawn anew with a fixed seed. Products of more than --most-ops operations are left out, since they
run for many seconds.
"""

import argparse
import contextlib
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import nnbt
from nnbt.pipeline.matrix import cell_of
from nnbt.pipeline.plan import Planned
from nnbt.results.files import json_text
from nnbt.spec.dtypes import DTYPES
from nnbt.spec.metric import METRICS

TRUE_SUSPICIONS = {"LAUNCH_BOUND", "FEW_SAMPLES", "COARSE_CLOCK", "BACKGROUND_LOAD"}
"""Codes that small sizes, single runs and a busy machine deserve: no false alarms."""
GRAPH_STEPS = 4


def sweep(
    metrics: list[str], device: str, sizes: list[int], most_ops: float
) -> Iterator[tuple[str, str, int]]:
    params = {"op": "add" if device == "gpu" else "copy", "graph_steps": GRAPH_STEPS}
    for metric in metrics:
        for dtype in DTYPES:
            for n in sizes:
                case = nnbt.Case(metric, device, "mlx", dtype, n, params)
                try:
                    planned = Planned.of(case, cell_of(case))
                except nnbt.Unsupported:
                    continue
                if planned.sizes.get("work_ops", 0) <= most_ops:
                    yield metric, dtype, n


def share(count: int, total: int) -> str:
    return f"{count:6d}  {count / total:7.2%}"


def false_alarm(row: nnbt.Result) -> bool:
    """INVALID always is one; noise under background load is none."""
    codes = {reason.code for reason in row.reasons if reason.severity != "note"}
    loaded = "BACKGROUND_LOAD" in codes
    return row.verdict == "INVALID" or (not loaded and bool(codes - TRUE_SUSPICIONS))


def report(rows: list[nnbt.Result]) -> None:
    total = len(rows)
    print(f"\n{total} rows")
    for verdict, count in sorted(Counter(str(row.verdict or row.status) for row in rows).items()):
        print(f"  {verdict:<20}{share(count, total)}")
    print("reasons (without notes), by metric")
    for severity in ("invalid", "suspect"):
        found: dict[str, Counter[str]] = {}
        for row in rows:
            for reason in row.reasons:
                if reason.severity == severity:
                    found.setdefault(reason.code, Counter())[row.case.metric] += 1
        for code, where in sorted(found.items(), key=lambda item: -item[1].total()):
            places = ", ".join(f"{metric} {count}" for metric, count in where.most_common())
            print(f"  {severity:<8} {code:<20}{share(where.total(), total)}  {places}")
    alarms = [row for row in rows if false_alarm(row)]
    print(
        f"false alarms (not counting {' '.join(sorted(TRUE_SUSPICIONS))}, or noise under "
        "BACKGROUND_LOAD)"
    )
    print(f"  {'any':<29}{share(len(alarms), total)}")
    twice = sum(row.other_window is not None for row in rows)
    print(f"  {'(measured twice)':<29}{share(twice, total)}")
    invalid = [row for row in rows if row.verdict == "INVALID"]
    print(f"  {'INVALID':<29}{share(len(invalid), total)}")
    for row in invalid:
        first = row.reasons[0]
        print(f"    {row.case.metric} {row.case.dtype} n={row.case.n}: {first.sentence}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--max-seconds", type=float, default=1.25)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--metric", action="append", choices=list(METRICS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 512, 1024, 2048])
    parser.add_argument("--most-ops", type=float, default=2e9)
    parser.add_argument("--json", type=Path, help="keep all rows there")
    options = parser.parse_args()
    metrics = options.metric or ["bandwidth", "flops", "flops_graph"]
    cases = list(sweep(metrics, options.device, options.sizes, options.most_ops))
    draw = np.random.default_rng(1)
    rows: list[nnbt.Result] = []
    started = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C reports what is there
        for repeat in range(options.repeats):
            for i in draw.permutation(len(cases))[: round(options.share * len(cases))]:
                metric, dtype, n = cases[i]
                done = nnbt.run(
                    metric, options.device, dtype, [n], max_seconds=options.max_seconds,
                    graph_steps=GRAPH_STEPS,
                )  # fmt: skip
                rows += done.results
            load, minutes = os.getloadavg()[0], (time.monotonic() - started) / 60
            print(f"repeat {repeat + 1}: {minutes:.1f} min, load {load:.1f}", flush=True)
            if options.json:
                options.json.write_text(json_text(replace(done, results=rows)))
    report(rows)


if __name__ == "__main__":
    main()
