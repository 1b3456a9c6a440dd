"""Every cell metric x engine x device x dtype gives a checked result or refuses in a sentence."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace

import pytest

import nnbt
from fake_measure import FakeMeasure
from nnbt.devices import DEVICES
from nnbt.dtypes import DTYPES
from nnbt.metrics import ENGINES, METRICS, cell
from result_schema import validate

FLOATS = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8}
INTEGERS = {f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}
DENSE = {**FLOATS, **INTEGERS, "bool": 1}
BITS_A_WEIGHT = {
    **{f"q{bits}": bits + 64 / 64 for bits in (2, 3, 4, 5, 6, 8)},  # two float32 a group of 64
    "mxfp4": 4 + 8 / 32,
    "mxfp8": 8 + 8 / 32,
    "nvfp4": 4 + 8 / 16,
}
N = 65
STEPS = 3
STREAMS = {"copy": 2, "add": 3}
ELSEWHERE = {"tfloat32", "float8_e4m3", "qdq", "w8a8"}
"""Types that engine mlx has no case of."""
MATRICES = [name for name in METRICS if name != "conv"]
"""test_conv.py has the cells of conv: it needs shapes of its own."""
CELLS = list(itertools.product(MATRICES, ENGINES, DEVICES, DTYPES))


def cells(*, measured: bool) -> list[object]:
    return [
        pytest.param(
            *names,
            marks=[pytest.mark.gpu] if measured and names[2] != "cpu" else [],
            id="-".join(names),
        )
        for names in CELLS
        if (refusal(*names) is None) is measured and names[1] == "mlx"
    ]


def refusal(metric: str, engine: str, device: str, dtype: str) -> str | None:
    """What a refused combination must tell to type; None for one that is measured."""
    del engine
    if device == "ane":
        return "--device cpu or gpu"
    if device == "hybrid" and metric != "bandwidth":
        return "--device cpu or gpu"
    if dtype in ELSEWHERE or (metric == "bandwidth" and dtype not in DENSE):
        return "--dtype"
    if dtype == "float64" and device != "cpu":
        return "--device cpu"
    return None


def run(metric: str, engine: str, device: str, dtype: str, **more: object) -> nnbt.Result:
    done = nnbt.run(
        metric, device, dtype, [N], engine=engine, graph_steps=STEPS, cpu_workers=2, **more
    )
    validate(json.loads(done.to_json()))
    (row,) = done.results
    return row


def expected_unit(metric: str, dtype: str) -> str:
    if metric == "bandwidth":
        return "B/s"
    if dtype in FLOATS:
        return "FLOP/s"
    return "IOP/s" if dtype in DENSE else "QOP/s"


def expected_work(metric: str, dtype: str, op: str) -> int:
    """Bytes or operations of one run, written down anew."""
    if metric == "bandwidth":
        return STREAMS[op] * N * N * DENSE[dtype]
    repeats = STEPS if metric == "flops_graph" else 1
    if dtype in FLOATS:
        return repeats * (8 if dtype == "complex64" else 2) * N**3
    return repeats * (5 * N * N if dtype in DENSE else 2 * 128**3)


def test_the_tables_hold_the_documented_names() -> None:
    assert set(DTYPES) == set(DENSE) | set(BITS_A_WEIGHT) | ELSEWHERE
    assert {"bandwidth", "flops", "flops_graph", "conv"} <= set(METRICS)
    assert {"cpu", "gpu", "hybrid", "ane"} <= set(DEVICES)


@pytest.mark.parametrize(("metric", "engine", "device", "dtype"), cells(measured=True))
def test_a_cell_gives_a_checked_result(metric: str, engine: str, device: str, dtype: str) -> None:
    row = run(metric, engine, device, dtype, measure=FakeMeasure())
    assert row.status == "OK", row.reason
    assert row.verdict != "INVALID", row.reasons
    assert row.unit == expected_unit(metric, dtype)
    assert row.details["answer"]["compared"]
    assert row.median_s is not None
    assert row.rate is not None
    work = row.sizes["work_bytes" if metric == "bandwidth" else "work_ops"]
    assert row.rate * row.median_s == pytest.approx(work)
    if device == "hybrid":
        assert row.details["hybrid"]["cpu"]["solo_rate"] > 0
        assert row.details["hybrid"]["gpu"]["solo_rate"] > 0
        return
    assert [reason for reason in row.reasons if reason.severity != "note"] == []
    assert row.verdict == "VALID"
    assert work == expected_work(metric, dtype, str(row.case.params.get("op")))


@pytest.mark.parametrize("dtype", BITS_A_WEIGHT)
def test_quantised_weights_are_padded_and_counted(dtype: str) -> None:
    sizes = run("flops", "mlx", "cpu", dtype, measure=FakeMeasure()).sizes
    assert sizes["eff_n"] == 128
    assert sizes["act_bytes"] == 128 * 128 * 4
    assert sizes["weight_bytes"] == BITS_A_WEIGHT[dtype] * 128 * 128 / 8


@pytest.mark.parametrize("dtype", BITS_A_WEIGHT)
def test_the_counted_weight_bytes_are_those_of_mlx(dtype: str) -> None:
    from nnbt import _mlx

    mx, row = _mlx.core(), DTYPES[dtype]
    packed = mx.quantize(
        mx.zeros((128, 128)), group_size=row.group_size, bits=row.bits, mode=row.mode
    )
    assert sum(part.nbytes for part in packed) == BITS_A_WEIGHT[dtype] * 128 * 128 / 8


@pytest.mark.parametrize(("metric", "engine", "device", "dtype"), cells(measured=False))
def test_a_refused_cell_says_what_to_type(
    metric: str, engine: str, device: str, dtype: str
) -> None:
    with pytest.raises(nnbt.Unsupported) as refused:
        cell(nnbt.Case(metric, device, engine, dtype, N))
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert ": type " in sentence
    assert str(refusal(metric, engine, device, dtype)) in sentence


@pytest.mark.parametrize("device", ["gpu", "hybrid"])
def test_a_gpu_that_is_not_there_is_refused_in_one_sentence(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = replace(DEVICES[device], missing=lambda: "No GPU here: type --device cpu.")
    monkeypatch.setitem(DEVICES, device, absent)
    with pytest.raises(nnbt.Unsupported, match=re.escape("No GPU here: type --device cpu.")):
        run("bandwidth", "mlx", device, "float32")


@pytest.mark.parametrize(
    ("metric", "dtype"), [("bandwidth", "float32"), ("flops", "float32"), ("flops_graph", "q4")]
)
def test_the_native_measure_fills_the_same_row(metric: str, dtype: str) -> None:
    row = run(metric, "mlx", "cpu", dtype, runs=7)
    assert row.status == "OK", row.reason
    assert len(row.samples_ns) == 7
    assert row.stop == "runs"
    assert row.interval_s is not None
    assert row.readings.keys() >= {"minor_faults", "involuntary_switches"}
