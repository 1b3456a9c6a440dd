"""Every cell metric x engine x device x dtype gives a checked result or refuses in a sentence."""

import itertools
import re
import sys
from dataclasses import replace

import pytest

import nnbt
from fake_measure import FakeMeasure
from nnbt.machine.devices import DEVICES
from nnbt.pipeline import case as case_runner
from nnbt.pipeline.matrix import ENGINES, cell_of
from nnbt.spec.dtypes import DTYPES
from nnbt.spec.errors import Refusal
from nnbt.spec.metric import METRICS
from result_schema import document_of

FLOATS = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8}
INTEGERS = {f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}
DENSE = {**FLOATS, **INTEGERS, "bool": 1}
BITS_A_WEIGHT = {
    **{f"q{bits}": bits + 64 / 64 for bits in (2, 3, 4, 5, 6, 8)},  # two float32 a group of 64
    "mxfp4": 4 + 8 / 32,
    "mxfp8": 8 + 8 / 32,
    "nvfp4": 4 + 8 / 16,
}
MLX = {*DENSE, *BITS_A_WEIGHT}
MATRIX = {"float32", "tfloat32", "float16", "bfloat16", "int8", "float8_e4m3"}
BOTH = ("cpu", "gpu")
SUPPORTED: dict[tuple[str, str, str], set[str]] = {
    (metric, engine, device): dtypes - ({"float64"} if device != "cpu" else set())
    for metric, engines, devices, dtypes in (
        ("bandwidth", ("mlx", "mlx-compiled"), BOTH, {*DENSE}),
        ("bandwidth", ("mlx",), ("hybrid",), {*DENSE}),
        ("bandwidth", ("native",), ("cpu",), {*DENSE}),
        ("bandwidth", ("kernel",), ("gpu",), {*DENSE}),
        ("flops", ("mlx", "mlx-compiled"), BOTH, MLX),
        ("flops", ("native",), ("cpu",), {"float32", "float64", "float16", "bfloat16", "int8"}),
        ("flops", ("kernel", "library"), ("gpu",), MATRIX),
        ("flops", ("library",), ("cpu",), {"float32", "float64", "complex64"}),
        ("flops_graph", ("mlx", "mlx-compiled"), BOTH, MLX),
        ("conv", ("mlx",), BOTH, {"float16", "bfloat16", "float32"}),
        ("conv", ("mpsgraph",), ("gpu",), {"float16", "qdq", "w8a8"}),
        ("conv", ("mpsgraph",), ("ane",), {"float16", "int8", "qdq", "w8a8"}),
    )
    for engine in engines
    for device in devices
}
N = 65
LIBRARY_N = 64
"""A vendor's library multiplies 8-bit types where n is a multiple of 16."""
STEPS = 3
STREAMS = {"copy": 2, "add": 3}
COMPILED = {"float32", "complex64", "int8", "q4"}
"""One of each kind: on a CPU each takes seconds to compile, and dtypes differ in nothing else."""
CONV = {"channels": 8, "layers": 2}
CHAINS = list(itertools.product(METRICS, ENGINES, DEVICES))


def measured(*engines: str) -> list[object]:
    return [
        pytest.param(*names, dtype, marks=marks(*names), id="-".join((*names, dtype)))
        for names, dtypes in SUPPORTED.items()
        for dtype in sorted(dtypes)
        if names[1] in engines and (names[1] != "mlx-compiled" or dtype in COMPILED)
    ]


def marks(_: str, engine: str, device: str) -> list[pytest.MarkDecorator]:
    return [] if device == "cpu" or engine == "mpsgraph" else [pytest.mark.gpu]


@pytest.fixture(autouse=True)
def _no_published_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times here are scripted: they would not fit the peak of the GPU that is there."""
    monkeypatch.setattr(case_runner, "published_ceiling", lambda *_: None)


def size(metric: str, engine: str, dtype: str) -> int:
    if metric == "conv":
        return 16
    return LIBRARY_N if engine == "library" and dtype in ("int8", "float8_e4m3") else N


def results(metric: str, engine: str, device: str, dtype: str, **more: object) -> list[nnbt.Result]:
    done = nnbt.run(
        metric,
        device,
        dtype,
        [size(metric, engine, dtype)],
        engine=engine,
        graph_steps=STEPS,
        cpu_workers=2,
        params=CONV if metric == "conv" else {},
        **more,  # type: ignore[arg-type]
    )
    document_of(done)
    return done.results


def run(metric: str, engine: str, device: str, dtype: str, **more: object) -> nnbt.Result:
    (row,) = results(metric, engine, device, dtype, **more)
    return row


def expected_unit(metric: str, dtype: str) -> str:
    if metric == "bandwidth":
        return "B/s"
    if metric == "conv":
        return "OP/s"
    if dtype in BITS_A_WEIGHT:
        return "QOP/s"
    return "IOP/s" if dtype in DENSE and dtype not in FLOATS else "FLOP/s"


def expected_work(metric: str, dtype: str, op: str) -> int:
    """Bytes or operations of one run, written down anew."""
    if metric == "conv":
        return CONV["layers"] * 2 * 16 * 16 * CONV["channels"] ** 2 * 3 * 3
    if metric == "bandwidth":
        return STREAMS[op] * N * N * DENSE[dtype]
    repeats = STEPS if metric == "flops_graph" else 1
    if dtype in FLOATS:
        return repeats * (8 if dtype == "complex64" else 2) * N**3
    return repeats * (5 * N * N if dtype in DENSE else 2 * 128**3)


def assert_believed(row: nnbt.Result, unit: str) -> int:
    """The work of one run of a row that has a number and passed every check."""
    assert row.status == "OK", row.reason
    assert [reason for reason in row.reasons if reason.severity != "note"] == []
    assert row.verdict == "VALID"
    assert row.unit == unit
    assert row.answer.compared
    assert row.median_s is not None
    assert row.rate is not None
    work = row.sizes["work_bytes" if row.case.metric == "bandwidth" else "work_ops"]
    assert row.rate * row.median_s == pytest.approx(work)
    return work


def test_the_tables_hold_what_is_tested_here() -> None:
    assert set(DTYPES) == MLX | MATRIX | {"qdq", "w8a8"}
    found = {
        (item.metric, engine.name, device)
        for engine in ENGINES.values()
        for item in engine.cells
        for device in item.devices
    }
    assert found == set(SUPPORTED)


@pytest.mark.parametrize(
    ("metric", "engine", "device", "dtype"), measured("mlx", "mlx-compiled", "library")
)
def test_a_cell_gives_a_checked_result(metric: str, engine: str, device: str, dtype: str) -> None:
    row = run(metric, engine, device, dtype, measure=FakeMeasure())
    if device == "hybrid":
        assert row.status == "OK", row.reason
        assert row.verdict != "INVALID", row.reasons
        assert row.details.shared_window.cpu.solo_rate > 0
        assert row.details.shared_window.gpu.solo_rate > 0
        return
    work = assert_believed(row, expected_unit(metric, dtype))
    if engine != "library" or dtype in FLOATS:
        assert work == expected_work(metric, dtype, str(row.case.params.get("op")))


@pytest.mark.parametrize(("metric", "engine", "device", "dtype"), measured("native", "kernel"))
def test_a_ceiling_gives_checked_results(metric: str, engine: str, device: str, dtype: str) -> None:
    op = "copy" if metric == "bandwidth" else None
    rows = results(metric, engine, device, dtype, measure=FakeMeasure(), op=op)
    assert rows
    for row in rows:
        if row.status == "UNSUPPORTED":  # an instruction that this processor or GPU does not have
            assert re.search("has no|needs compute capability|would be emulated", row.reason)
        else:
            assert assert_believed(row, expected_unit(metric, dtype)) > 0


@pytest.mark.parametrize(("metric", "engine", "device", "dtype"), measured("mpsgraph"))
@pytest.mark.skipif(sys.platform == "darwin", reason="measured on a Mac, refused elsewhere")
def test_apples_engine_is_refused_elsewhere(
    metric: str, engine: str, device: str, dtype: str
) -> None:
    with pytest.raises(nnbt.Unsupported) as refused:
        run(metric, engine, device, dtype)
    assert "\n" not in str(refused.value)
    assert "--engine mlx" in str(refused.value)


@pytest.mark.parametrize("dtype", BITS_A_WEIGHT)
def test_quantised_weights_are_padded_and_counted(dtype: str) -> None:
    sizes = run("flops", "mlx", "cpu", dtype, measure=FakeMeasure()).sizes
    assert sizes["eff_n"] == 128
    assert sizes["act_bytes"] == 128 * 128 * 4
    assert sizes["weight_bytes"] == BITS_A_WEIGHT[dtype] * 128 * 128 / 8


@pytest.mark.parametrize("dtype", BITS_A_WEIGHT)
def test_the_counted_weight_bytes_are_those_of_mlx(dtype: str) -> None:
    from nnbt.machine import mlx as _mlx

    mx, row = _mlx.core(), DTYPES[dtype]
    packed = mx.quantize(
        mx.zeros((128, 128)), group_size=row.group_size, bits=row.bits, mode=row.mode
    )
    assert sum(part.nbytes for part in packed) == BITS_A_WEIGHT[dtype] * 128 * 128 / 8


@pytest.mark.parametrize(("metric", "engine", "device"), CHAINS)
def test_every_other_cell_is_refused(metric: str, engine: str, device: str) -> None:
    for dtype in set(DTYPES) - SUPPORTED.get((metric, engine, device), set()):
        with pytest.raises(nnbt.Unsupported) as refused:
            cell_of(nnbt.Case(metric, device, engine, dtype, N))
        sentence = str(refused.value)
        assert "\n" not in sentence
        assert "--" in sentence


def test_a_refusal_names_where_it_would_run() -> None:
    with pytest.raises(nnbt.Unsupported, match="--device cpu, or --dtype float32"):
        cell_of(nnbt.Case("flops", "gpu", "mlx", "float64", N))
    with pytest.raises(nnbt.Unsupported, match="--device cpu or gpu"):
        cell_of(nnbt.Case("flops", "hybrid", "mlx", "float32", N))


@pytest.mark.parametrize("device", ["gpu", "hybrid"])
def test_a_missing_gpu_is_refused(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = replace(DEVICES[device], missing=lambda: Refusal("No GPU here"))
    monkeypatch.setitem(DEVICES, device, absent)
    with pytest.raises(nnbt.Unsupported, match=re.escape("No GPU here.")):
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
