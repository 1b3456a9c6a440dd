"""Engines native, kernel, library and mlx-compiled: their cells, their counts, planted faults."""

import csv
import datetime as dt
import io
import itertools
import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nnbt
from fake_cublaslt import FakeLibraries
from fake_gpu import FakeGpu, chip_stamps
from fake_measure import FakeMeasure
from nnbt import _native
from nnbt.engines import kernel
from nnbt.engines.kernel import launcher as gpu_kernels
from nnbt.engines.kernel import steps as kernel_steps
from nnbt.engines.kernel.launcher import KERNELS
from nnbt.engines.kernel.sources.instructions import UNTRIED
from nnbt.engines.library import BLAS_DTYPES, cublaslt
from nnbt.engines.library import products as vendor
from nnbt.engines.library import steps as library_steps
from nnbt.engines.library.cublaslt import PRECISIONS
from nnbt.engines.mlx.setup import Setup
from nnbt.engines.native import steps as native_steps
from nnbt.ladder.rungs import RUNGS
from nnbt.ladder.sources import best_of
from nnbt.machine import mlx as _mlx
from nnbt.machine.chains import CLOCK_CHAIN
from nnbt.peaks import stored as measured
from nnbt.peaks.stored import Ceilings, Measured
from nnbt.pipeline import session as runner
from nnbt.pipeline.matrix import cell_of, cells
from nnbt.pipeline.plan import Planned, make_plan
from nnbt.results.ceiling import ceiling_rate, described, fit_for_ceiling
from nnbt.results.columns import COLUMNS, csv_text
from nnbt.results.result import Reason, Result, Run
from nnbt.spec.case import Case
from nnbt.spec.cell import Request
from nnbt.spec.details import Details
from nnbt.spec.dtypes import DTYPES
from nnbt.spec.formulas import arrays
from nnbt.spec.options import Options
from nnbt.spec.workload import After
from nnbt.terminal.tables import table_text

N = 64
CHAINS = [row for row in _native.peak_chains() if row.name != CLOCK_CHAIN]
CUDA = [row for row in KERNELS.values() if row.language == "cuda"]


def plan(**options: Any) -> list[Case]:
    return list(make_plan(Options(device="cpu", **options)).cases)


def planned(engine: str, metric: str, dtype: str = "float32", **options: Any) -> list[Case]:
    """The cases of a cell, without asking whether its device is here."""
    found = cells(metric, engine)[0]
    asked = Options(engines=(engine,), **options)
    assert found.expand is not None
    params = {"cpu_workers": 2} if "cpu" in found.devices else {}
    return found.expand(Case(metric, found.devices[0], engine, dtype, N, params), asked)


def test_cells_name_what_the_tables_of_the_engines_hold() -> None:
    bandwidth = [row for row in KERNELS.values() if row.metric == "bandwidth"]
    flops = [row for row in KERNELS.values() if row.metric == "flops"]
    assert set(kernel.OPS) == {row.name for row in bandwidth}
    assert set(kernel.DTYPES) == {row.dtype for row in flops} == set(PRECISIONS)
    assert set(BLAS_DTYPES) == set(vendor._BLAS_OPS)
    assert set(native_steps.CHAIN_DTYPES) == {row.dtype for row in CHAINS}


@pytest.mark.parametrize(
    ("op", "count"),
    [
        *{"read": 1, "write": 1, "copy": 2, "scale": 2, "add": 3, "triad": 3}.items(),
        *{"bulk_read": 1, "bulk_copy": 2}.items(),
    ],
)
def test_arrays_of_an_operation(op: str, count: int) -> None:
    assert arrays(op) == count


@pytest.mark.parametrize("dtype", ["tfloat32", "float8_e4m3"])
def test_types_of_matrix_units_are_refused_by_mlx_and_name_who_has_them(dtype: str) -> None:
    with pytest.raises(nnbt.Unsupported, match="--engine kernel --device gpu, or --engine library"):
        cell_of(Case("flops", "gpu", "mlx", dtype, N))
    assert cell_of(Case("flops", "gpu", "kernel", dtype, 0)) in kernel.ENGINE.cells


def test_bandwidth_expands_to_kernels_and_stores() -> None:
    got = [(c.params["op"], c.params["stores"]) for c in planned("native", "bandwidth")]
    both = ("write", "copy", "scale", "add", "triad")
    assert got == [
        ("read", "none"),
        *((op, stores) for op in both for stores in ("ordinary", "nontemporal")),
    ]


def test_op_keeps_its_kernel_only() -> None:
    cases = plan(engines=("native",), op="triad", sizes=(N,))
    assert [c.params["stores"] for c in cases] == ["ordinary", "nontemporal"]
    assert {c.params["op"] for c in cases} == {"triad"}


def test_an_op_of_another_engine_is_refused_with_that_engine() -> None:
    with pytest.raises(nnbt.Unsupported, match="copy add, or --engine native or kernel"):
        plan(engines=("mlx",), op="triad")


def test_flops_expands_to_every_chain_of_the_dtype_without_a_size() -> None:
    asked = Options(device="cpu", metrics=("flops",), engines=("native",), sizes=(512, 1024))
    made = make_plan(asked)
    cases = made.cases
    assert [c.params["chain"] for c in cases] == [r.name for r in CHAINS if r.dtype == "float32"]
    assert {c.n for c in cases} == {0}
    assert all(item.sizes["resident_bytes"] == 0 for item in made.planned)


def test_kernels_expand_to_rows_of_their_dtype() -> None:
    chains = [c.params["chain"] for c in planned("kernel", "flops", "float8_e4m3")]
    assert chains == ["wgmma", "wgmma_registers", "tcgen05", "mma_sync"]
    ops = [c.params["op"] for c in planned("kernel", "bandwidth")]
    assert ops == ["read", "write", "copy", "add", "triad", "bulk_read", "bulk_copy"]
    assert [c.params["op"] for c in planned("kernel", "bandwidth", op="copy")] == ["copy"]


def test_default_arrays_are_four_times_the_last_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "cache_bytes", lambda: {1: 2**15, 3: 2**25})
    (n,) = {case.n for case in plan(engines=("native",))}
    assert n * n * 4 >= 4 * 2**25
    assert (n - N) ** 2 * 4 < 4 * 2**25


def test_ladder_sizes_double_from_first_cache_to_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "cache_bytes", lambda: {1: 2**15, 2: 2**19, 3: 2**25})
    cases = plan(engines=("native",), op="read", ladder_sizes=True)
    arrays = [case.n**2 * 4 for case in cases]
    assert arrays[0] == 2**14
    assert arrays[-1] >= 4 * 2**25
    steps = [after / before for before, after in itertools.pairwise(arrays)]
    assert all(1.9 < step < 4.1 for step in steps)


@pytest.mark.parametrize(
    ("bytes_", "level"), [(2**16, "L1"), (2**20, "L2"), (2**25, "L3"), (2**25 + 1, "memory")]
)
def test_private_caches_per_thread(
    bytes_: int, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "cache_bytes", lambda: {1: 2**15, 2: 2**19, 3: 2**25})
    assert native_steps.fits_in(bytes_, 2) == level


@pytest.mark.parametrize("arrays", [3.9, 4.0])
def test_arrays_below_four_times_the_cache(arrays: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """STREAM's rule is about each array: two of half that size are not enough."""
    monkeypatch.setattr(runner, "last_cache_bytes", lambda: 2**18)
    n = math.isqrt(int(arrays * 2**18) // 4)
    run = nnbt.run(engine="native", device="cpu", sizes=[n], op="triad", measure=FakeMeasure())
    for row in run.results:
        found = [reason for reason in row.reasons if reason.code == "CACHE_RESIDENT"]
        assert len(found) == (1 if arrays < 4 else 0)
        if found:
            assert "996 KiB" in found[0].sentence


def test_ladder_sizes_are_for_caches_only() -> None:
    with pytest.raises(nnbt.Unsupported, match="--sizes, or --metric bandwidth --engine native"):
        plan(engines=("mlx",), ladder_sizes=True)
    with pytest.raises(nnbt.Unsupported, match="--sizes and --ladder-sizes"):
        plan(engines=("native",), ladder_sizes=True, sizes=(N,))


def test_options_that_do_not_count_are_named_and_give_no_second_case() -> None:
    asked = Options(
        device="cpu", metrics=("flops",), engines=("native",), sizes=(N,), data=("normal", "zeros")
    )
    made = make_plan(asked)
    assert len({case.params["chain"] for case in made.cases}) == len(made.cases)
    assert any("--sizes" in note for note in made.notes)
    assert any("--data" in note for note in made.notes)


@pytest.mark.parametrize(
    "case", planned("native", "bandwidth"), ids=lambda c: "-".join(map(str, c.params.values()))
)
def test_a_stream_row_is_checked_and_counts_three_ways(case: Case) -> None:
    op, stores = str(case.params["op"]), case.params["stores"]
    run = nnbt.run(engine="native", device="cpu", sizes=[N], op=op, cpu_workers=2, runs=5)
    (row,) = (row for row in run.results if row.case.params["stores"] == stores)
    assert row.status == "OK", row.reason
    assert row.verdict != "INVALID", row.reasons
    assert row.answer.exact is True
    sizes, kernel = row.sizes, next(k for k in _native.stream_kernels() if k.name == op)
    elements = N * N * 4 // 8 * sizes["passes"]
    assert sizes["work_bytes"] == sizes["io_bytes"] == elements * kernel.counted_bytes
    bus = kernel.write_allocate_bytes if stores == "ordinary" else kernel.counted_bytes
    assert sizes["traffic_bytes"] == elements * bus
    assert sizes.get("bcopy_bytes") == (elements * 8 if op == "copy" else None)
    assert (sizes["threads"], sizes["element_bytes"]) == (2, kernel.counted_bytes)
    assert sizes["written_bytes"] == elements * 8 * kernel.writes
    assert row.rate == pytest.approx(sizes["work_bytes"] / row.median_s)


@pytest.mark.parametrize("dtype", dict.fromkeys(row.dtype for row in CHAINS))
def test_each_chain_is_a_row_or_says_why_not(dtype: str) -> None:
    run = nnbt.run("flops", "cpu", dtype, engine="native", cpu_workers=1, runs=5)
    reasons = {row.name: row.reason for row in CHAINS if row.dtype == dtype}
    assert [row.case.params["chain"] for row in run.results] == list(reasons)
    for row in run.results:
        missing = reasons[str(row.case.params["chain"])]
        assert row.status == ("UNSUPPORTED" if missing else "OK")
        assert row.reason == (missing or "")
        if not missing:
            assert row.verdict != "INVALID", row.reasons
            assert row.rate == pytest.approx(row.sizes["work_ops"] / row.median_s)
            assert row.unit == DTYPES[dtype].family.unit


def test_a_slope_repeats_the_step_and_goes_on_in_the_same_arrays() -> None:
    measure = FakeMeasure(unit_ns=5_000_000, window_ns=3_000_000_000)
    run = nnbt.run(engine="native", device="cpu", sizes=[N], op="read", measure=measure)
    (row,) = run.results
    assert {units for units, _ in measure.calls} >= {1, 2, 4, 8}
    assert row.slope.doubling == pytest.approx(2, rel=0.01)
    assert "CACHE_RESIDENT" in {reason.code for reason in row.reasons}


@pytest.mark.parametrize("k", [1, 2, 8])
def test_k_units_are_k_runs_of_the_step(k: int) -> None:
    ran: list[int] = []

    class Counted:
        def run(self) -> None:
            ran.append(1)

        __call__ = run

    native_steps._repeated(Counted(), k)()
    assert len(ran) == k


def test_a_corrupted_array_is_a_wrong_answer_in_the_words_of_the_step() -> None:
    def corrupting(step: Any, **options: Any) -> Any:
        samples = _native.measure(step, **options)
        if hasattr(step, "destination"):
            step.destination[5] += 1
        return samples

    run = nnbt.run(engine="native", device="cpu", sizes=[N], op="add", measure=corrupting, runs=5)
    for row in run.results:
        assert row.verdict == "INVALID"
        (reason,) = (r for r in row.reasons if r.code == "WRONG_ANSWER")
        assert "element 5 is wrong" in reason.sentence


def test_a_clock_that_can_not_be_read_costs_a_note_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> float:
        raise nnbt.Unsupported("The machine is too busy.")

    monkeypatch.setattr(_native, "core_clock_hz", busy)
    run = nnbt.run("flops", "cpu", engine="native", runs=3)
    done = [row for row in run.results if row.status == "OK"]
    assert done
    assert all("The machine is too busy." in row.notes for row in done)
    assert all(row.details.clock_peak is None for row in done)


@pytest.mark.parametrize("dtype", BLAS_DTYPES)
def test_blas_multiplies_on_so_many_threads(dtype: str) -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    seen = []

    def looking(step: Any, **options: Any) -> Any:
        def inside(*args: Any, **kwargs: Any) -> Any:
            seen.extend(
                library["num_threads"]
                for library in threadpoolctl.threadpool_info()
                if library["user_api"] == "blas"
            )
            return matmul(*args, **kwargs)

        matmul = vendor.np.matmul
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(vendor.np, "matmul", inside)
            step()
        return _native.measure(step, **options)

    run = nnbt.run(
        "flops", "cpu", dtype, [65], engine="library", cpu_workers=1, runs=5, measure=looking
    )
    (row,) = run.results
    assert row.status == "OK", row.reason
    assert row.verdict != "INVALID", row.reasons
    assert row.sizes["work_ops"] == (8 if dtype == "complex64" else 2) * 65**3
    known = {
        library["num_threads"]
        for library in threadpoolctl.threadpool_info()
        if library["user_api"] == "blas"
    }
    assert set(seen) == ({1} if known else set())
    assert "NumPy" in row.notes[0]


def test_k_products_of_blas_are_k_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    case = Case("flops", "cpu", "library", "float32", 32, {"cpu_workers": 1})
    workload = library_steps.blas(request(case))
    monkeypatch.setattr(vendor.np, "matmul", lambda *_, **__: ran.append(1))
    workload.step(3)()
    assert len(ran) == 3


def test_a_wrong_product_of_blas_is_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(a: Any, b: Any, out: Any) -> None:
        out[:] = a @ b
        out[3] += 1.0

    monkeypatch.setattr(vendor.np, "matmul", wrong)
    (row,) = nnbt.run("flops", "cpu", sizes=[N], engine="library", runs=5).results
    assert row.verdict == "INVALID"
    assert row.reasons[0].code == "WRONG_ANSWER"


def request(case: Case) -> Request:
    return Request(case, Planned.of(case, cell_of(case)).sizes, Options(), _native.measure)


@pytest.mark.parametrize("dtype", kernel.DTYPES)
@pytest.mark.parametrize("spoil", [0.0, 3.0])
def test_cublaslt_is_checked(dtype: str, spoil: float, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeLibraries(spoil=spoil)
    monkeypatch.setattr(cublaslt, "_call", fake.call)
    monkeypatch.setattr(cublaslt, "_names", lambda _: {20: "128x256"})
    workload = library_steps.cublaslt(request(Case("flops", "gpu", "library", dtype, 32)))
    fake.ran.clear()
    workload.step(3)()
    assert len(fake.ran) == 3
    assert workload.unit_work == workload.sizes["work_ops"] == 2 * 32**3
    answer = workload.check()
    assert answer.exact is (spoil == 0)
    assert (answer.problem is None) is (spoil == 0)


@pytest.fixture
def small_gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeGpu]:
    """small_gpu(capability, ...): two multiprocessors, on which the builders run from now on."""
    monkeypatch.setattr(gpu_kernels, "multiprocessors", lambda: 2)
    monkeypatch.setattr(kernel_steps, "_language", lambda: "cuda")
    mx = _mlx.core()

    def gpu(*capability: int, **more: Any) -> FakeGpu:
        made = FakeGpu(mx, capability or (9, 0), **more)
        made.compile = lambda function: function  # the kernels that are NumPy can't be traced
        monkeypatch.setattr(_mlx, "core", lambda: made)
        return made

    return gpu


def chain(dtype: str, name: str) -> Case:
    return Case("flops", "gpu", "kernel", dtype, 0, {"chain": name})


@pytest.mark.parametrize(
    ("capability", "words", "ceiling"),
    [((9, 0), "", True), ((10, 0), "tcgen05", False), ((12, 0), "neither wgmma nor", True)],
)
def test_blackwell_paths(
    small_gpu: Any, capability: tuple[int, int], words: str, ceiling: bool
) -> None:
    small_gpu(*capability)
    case = chain("bfloat16", "mma_sync")
    workload = kernel_steps.flops(request(case))
    assert [words in note for note in workload.notes[1:]] == ([True] if words else [])
    details = workload.after().details
    assert (details.not_a_ceiling == "") is ceiling
    row = Result(case, verdict="VALID", rate=1e12, best_rate=1e12, unit="FLOP/s", details=details)
    assert (kept(row).known(replace(case, engine="mlx"), "") is not None) is ceiling
    if capability > (9, 0):
        with pytest.raises(nnbt.Unsupported, match="use mma_sync"):
            kernel_steps.flops(request(chain("bfloat16", "wgmma")))


@pytest.mark.parametrize("verdict", ["VALID", "INVALID"])
def test_a_tcgen05_row_with_right_sums_is_a_ceiling(small_gpu: Any, verdict: str) -> None:
    small_gpu(10, 0)
    case = chain("bfloat16", "tcgen05")
    assert UNTRIED in kernel_steps.flops(request(case)).notes
    details = after_a_run("bfloat16", "tcgen05").details
    assert details.clock_peak.rate == pytest.approx(2 * 8192 * 1.785e9)
    assert details.not_a_ceiling == ""
    row = Result(case, verdict=verdict, rate=9e12, best_rate=9e12, unit="FLOP/s", details=details)
    assert (kept(row).known(replace(case, engine="mlx"), "") is not None) is (verdict == "VALID")
    older = replace(row, verdict="VALID", best_rate=1e12, details=Details(not_a_ceiling="Older."))
    rung = best_of(RUNGS["native"], Run({}, [], "", [row, older], finished=True))
    assert rung.rate == (9e12 if verdict == "VALID" else 1e12)


def test_int8_of_10_3_has_no_tcgen05_and_mma_sync_is_its_ceiling(small_gpu: Any) -> None:
    small_gpu(10, 3)
    with pytest.raises(nnbt.Unsupported, match="has no instruction"):
        after_a_run("int8", "tcgen05")
    assert after_a_run("int8", "mma_sync").details.not_a_ceiling == ""


@pytest.mark.parametrize("row", CUDA, ids=lambda row: row.key)
@pytest.mark.parametrize("spoilt", [False, True])
def test_a_kernel_is_wired_and_checked(small_gpu: Any, row: Any, spoilt: bool) -> None:
    def spoil(output: Any) -> Any:
        output.flat[0] += 1
        return output

    capability = (9, 0)
    if row.name == "mma_sync" and row.dtype == "float8_e4m3":
        capability = (12, 0)
    if row.name == "tcgen05":
        capability = (10, 0)
    mx = small_gpu(*capability, **({"spoil": spoil} if spoilt else {}))
    name = "op" if row.metric == "bandwidth" else "chain"
    n = 256 if row.metric == "bandwidth" else 0
    case = Case(row.metric, "gpu", "kernel", row.dtype, n, {name: row.name})
    workload = getattr(kernel_steps, row.metric)(request(case))
    workload.step(workload.units)()
    work = workload.sizes["work_bytes" if row.metric == "bandwidth" else "work_ops"]
    assert work == workload.units * workload.unit_work > 0
    assert workload.units == len(mx.calls)
    assert 4 <= workload.units <= workload.largest_k
    if row.metric == "bandwidth":  # small arrays: so many that no cache holds them
        assert (workload.largest_k, workload.units) == (64, 32)
        assert workload.unit_work == arrays(row.name) * n * n * 4
    answer = workload.check()
    assert answer.exact is not spoilt
    assert bool(answer.problem) is spoilt


def after_a_run(dtype: str, name: str) -> After:
    workload = kernel_steps.flops(request(chain(dtype, name)))
    workload.step(1)()
    return workload.after()


@pytest.mark.parametrize(
    ("dtype", "name", "per_clock"),
    [
        ("bfloat16", "wgmma", 4096), ("tfloat32", "wgmma_registers", 2048),
        ("tfloat32", "mma_sync", 2048), ("float32", "fma", 256),
    ],
)  # fmt: skip
def test_a_kernel_counts_its_clock(small_gpu: Any, dtype: str, name: str, per_clock: int) -> None:
    small_gpu()
    details = after_a_run(dtype, name).details
    assert details.chip_clock_hz == pytest.approx(1785e6)
    assert details.clock_peak.rate == pytest.approx(2 * per_clock * 1.785e9)
    for part in ("2 SM", f"{per_clock:,}", "1,785 MHz"):
        assert part in details.clock_peak.source


def test_the_share_of_the_peak_is_that_of_the_whole_run(small_gpu: Any) -> None:
    # 2 SM of 4,096 operations a clock at 1.785 GHz for 10 ms, and a block that starts 1 us later.
    row = KERNELS["wgmma-bfloat16-cuda"]
    ops = gpu_kernels.build(row, small_gpu(), launches=1).work.ops
    share = ops / (2 * 4096 * 1.785e9 * 10.001e-3)
    (note,) = after_a_run("bfloat16", "wgmma").notes
    assert f"{share:.1%}" in note


@pytest.mark.parametrize(("cycles", "ns"), [(1785 * 10**6, 10**7), (1785 * 10, 10**7)])
def test_a_clock_that_can_not_be_right_makes_no_peak(small_gpu: Any, cycles: int, ns: int) -> None:
    """A hundred times too fast or too slow."""
    small_gpu(stamps=lambda *_: np.array([[5, 10, 5 + cycles, 10 + ns]], np.uint64))
    after = after_a_run("bfloat16", "wgmma")
    assert (len(after.notes), after.details) == (1, Details(ops_per_clock=2 * 4096))


def test_the_clock_is_that_of_the_timed_runs_not_of_the_slope(small_gpu: Any) -> None:
    gpu = small_gpu()
    launch = itertools.count(1)  # one after the other, 11 ms apart
    gpu.stamps = lambda *shape: chip_stamps(*shape) + np.uint64(next(launch) * 11_000_000)
    workload = kernel_steps.flops(request(chain("bfloat16", "wgmma")))
    workload.step(workload.units)()
    workload.check()
    gpu.stamps = lambda *_: np.array([[5, 10, 5 + 10**6, 10 + 10**6]], np.uint64)
    workload.step(1)()
    assert workload.after().details.chip_clock_hz == pytest.approx(1785e6)


def test_a_chip_of_unknown_rate_has_a_clock_and_no_peak(small_gpu: Any) -> None:
    small_gpu(12, 0)
    after = after_a_run("bfloat16", "mma_sync")
    assert "1,785 MHz" in after.notes[0]
    assert after.details == Details(chip_clock_hz=pytest.approx(1785e6))


def test_a_clock_that_the_kernel_did_not_write_leaves_that_of_nvml(small_gpu: Any) -> None:
    small_gpu(stamps=lambda *shape: np.zeros(shape, np.uint64))
    after = after_a_run("bfloat16", "wgmma")
    assert (len(after.notes), after.details) == (1, Details(ops_per_clock=2 * 4096))


def test_streams_count_no_clock(small_gpu: Any) -> None:
    small_gpu()
    case = Case("bandwidth", "gpu", "kernel", "float32", 256, {"op": "copy"})
    assert kernel_steps.bandwidth(request(case)).after() == After()


def test_a_kernel_that_the_chip_lacks_says_so(small_gpu: Any) -> None:
    small_gpu(8, 0)
    with pytest.raises(nnbt.Unsupported, match=r"needs compute capability 9\.0"):
        kernel_steps.flops(request(chain("float8_e4m3", "wgmma")))


@pytest.mark.parametrize("op", ["copy", "bulk_copy"])
def test_arrays_too_small_for_a_kernel_are_refused(small_gpu: Any, op: str) -> None:
    small_gpu()
    case = Case("bandwidth", "gpu", "kernel", "float32", 16, {"op": op})
    with pytest.raises(nnbt.Unsupported, match="--sizes"):
        kernel_steps.bandwidth(request(case))


@pytest.mark.parametrize(
    ("metric", "dtype"),
    [
        *itertools.product(
            ("bandwidth", "flops", "flops_graph"),
            ("float32", "bfloat16", "complex64", "int8", "bool"),
        ),
        ("flops", "q4"),
        ("flops_graph", "q4"),
    ],
)
def test_compiled_graphs_give_the_same_answers(metric: str, dtype: str) -> None:
    (row,) = nnbt.run(
        metric, "cpu", dtype, [65], engine="mlx-compiled", cpu_workers=2, measure=FakeMeasure()
    ).results
    assert row.status == "OK", row.reason
    assert row.verdict == "VALID", row.reasons
    assert row.slope.doubling == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("engine", ["mlx", "mlx-compiled"])
def test_units_of_one_evaluation_stay_apart_and_take_turns(engine: str) -> None:
    mx, outputs = _mlx.core(), []

    def keeping(step: Any, **options: Any) -> Any:
        made = evaluate_once(mx, step)
        outputs.append([np.array(array).tobytes() for array in made])
        return FakeMeasure()(step, **options)

    nnbt.run("flops", "cpu", sizes=[33], engine=engine, cpu_workers=1, measure=keeping)
    for made in outputs:
        assert len(set(made)) == len(made)
    assert max(map(len, outputs)) >= 4


def evaluate_once(mx: Any, step: Any) -> list[Any]:
    """Runs a step, and gives what it evaluated."""
    evaluated: list[Any] = []
    import inspect

    captured = inspect.getclosurevars(step).nonlocals
    if "graph" in captured:
        evaluated = captured["graph"](range(captured["k"]), captured["inputs"])
        mx.eval(evaluated)
    return evaluated


def test_a_compiled_call_gets_the_inputs_that_it_uses() -> None:
    mx, counts = _mlx.core(), []
    params: dict[str, int | str] = {"cpu_workers": 1, "data": "normal"}
    setup = Setup(request(Case("flops", "cpu", "mlx-compiled", "float32", 33, params)))
    setup.prepare(8)

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arrays: Any) -> Any:
            counts.append(len(arrays))
            return function(*arrays)

        return call

    setup.mx = SimpleNamespace(compile=counted)
    compiled = setup._compiled(
        lambda units, inputs: [mx.negative(inputs(unit).blocks[0]) for unit in units]
    )
    for first in (0, 5):
        made = compiled(range(first, first + 2), setup.input)
        expected = [-np.array(setup.input(first + i).blocks[0]) for i in range(2)]
        assert np.array_equal(np.array(made), expected)
    assert counts == [2, 2]


def test_peaks_show_their_chain_and_no_size() -> None:
    run = nnbt.run("flops", "cpu", engine="native", measure=FakeMeasure())
    text = table_text(run.results, None, color=False)
    assert "n=0" not in text
    assert " n " not in text.splitlines()[1]
    assert all(str(row.case.params["chain"]) in text for row in run.results)


def test_streams_show_operation_stores_and_conventions() -> None:
    run = nnbt.run(engine="native", device="cpu", sizes=[N], op="copy", measure=FakeMeasure())
    rows = list(csv.DictReader(io.StringIO(csv_text(run.results))))
    assert [(row["op"], row["stores"]) for row in rows] == [
        ("copy", "ordinary"),
        ("copy", "nontemporal"),
    ]
    for row, bus in zip(rows, (1.5, 1.0), strict=True):
        rate = float(row["gb_per_s"])
        assert float(row["bus_gb_per_s"]) == pytest.approx(bus * rate, rel=1e-6)
        assert float(row["moved_gb_per_s"]) == pytest.approx(rate / 2, rel=1e-6)
        assert row["bytes_per_element"] == "16"
        assert row["fits_in"] == "L1"


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", kernel.DTYPES)
def test_a_gpu_runs_a_kernel_of_each_type_or_says_why_not(dtype: str) -> None:
    run = nnbt.run("flops", "gpu", dtype, engine="kernel", runs=5)
    assert all(row.status == "OK" or row.reason for row in run.results)
    done = [row for row in run.results if row.status == "OK"]
    assert done or dtype in ("tfloat32", "bfloat16", "int8", "float8_e4m3")
    assert all(row.verdict != "INVALID" for row in done), [row.reasons for row in done]
    if sys.platform != "darwin":
        assert all(2e8 < (row.details.chip_clock_hz or 0) < 4e9 for row in done)


@pytest.mark.gpu
def test_a_gpu_runs_every_bandwidth_kernel() -> None:
    run = nnbt.run(device="gpu", engine="kernel", sizes=[1024], runs=5)
    done = [row for row in run.results if row.status == "OK"]
    assert {"copy", "add", "triad"} <= {row.case.params["op"] for row in done}
    wrong = [row for row in done if "WRONG_ANSWER" in {reason.code for reason in row.reasons}]
    assert not wrong


@pytest.mark.gpu
@pytest.mark.skipif(sys.platform == "darwin", reason="cuBLASLt is NVIDIA's")
@pytest.mark.parametrize("dtype", kernel.DTYPES)
def test_a_gpu_multiplies_by_its_library(dtype: str) -> None:
    (row,) = nnbt.run("flops", "gpu", dtype, [512], engine="library", runs=5).results
    assert row.status == "OK" or row.reason
    assert row.verdict != "INVALID", row.reasons


@pytest.mark.gpu
@pytest.mark.parametrize("metric", ["bandwidth", "flops", "flops_graph"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_a_gpu_runs_compiled_graphs(metric: str, dtype: str) -> None:
    (row,) = nnbt.run(metric, "gpu", dtype, [512], engine="mlx-compiled", runs=5).results
    assert row.status == "OK", row.reason
    assert row.verdict != "INVALID", row.reasons


@pytest.fixture
def cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(measured, "folder", lambda: tmp_path / "nnbt")
    return tmp_path / "nnbt"


def keep(ceilings: Ceilings, row: Result) -> None:
    """Keeps a row as a run does."""
    if cell_of(row.case).ceiling and fit_for_ceiling(row):
        ceilings.remember(row.case, ceiling_rate(row), row.unit, described(row))


def kept(*rows: Result, keep_file: bool = False) -> Ceilings:
    """The ceilings that rows make, kept for this process alone or in the file."""
    found = Ceilings("abc", keep=keep_file)
    for row in rows:
        keep(found, row)
    return found


def ceiling(best: float, **changes: Any) -> Result:
    params = {"cpu_workers": 2, "op": "triad", "stores": "nontemporal"}
    case = Case("bandwidth", "cpu", "native", "float64", N, params)
    row = Result(case, verdict="VALID", rate=best, best_rate=best, unit="B/s")
    return replace(row, **changes)


MLX_CASE = Case("bandwidth", "cpu", "mlx", "float32", N, {"op": "copy", "cpu_workers": 2})


def test_the_best_rate_is_kept_for_the_next_process(cache: Any) -> None:
    kept(*map(ceiling, (10e9, 30e9, 20e9)), keep_file=True)
    (file,) = cache.iterdir()
    assert file.name == "ceilings-abc.json"
    known = Ceilings("abc", keep=True).known(MLX_CASE, "")
    assert (known.rate, known.by) == (30e9, "native triad, nontemporal stores")
    assert known.age() == "just now"
    assert Ceilings("another", keep=True).known(MLX_CASE, "") is None


@pytest.mark.usefixtures("cache")
def test_the_same_operation_counts_before_the_best_of_all() -> None:
    copy = replace(ceiling(20e9).case, params={**ceiling(1).case.params, "op": "copy"})
    known = kept(ceiling(30e9), ceiling(20e9, case=copy)).known(MLX_CASE, "")
    assert known.rate == 20e9


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "INVALID"}, {"verdict": None, "rate": None},
        {"reasons": (Reason("CACHE_RESIDENT", "in cache", "note"),)},
        {"reasons": (Reason("ABOVE_CEILING", "too much", "suspect"),)}, {"case": MLX_CASE},
    ],
)  # fmt: skip
def test_what_is_no_ceiling_is_not_kept(changes: dict[str, Any], cache: Any) -> None:
    best = kept(ceiling(30e9, **changes), keep_file=True)
    assert best.known(MLX_CASE, "") is None
    assert not cache.exists()


@pytest.mark.usefixtures("cache")
def test_small_arrays_of_a_gpu_are_no_ceiling() -> None:
    case = Case("bandwidth", "gpu", "kernel", "float32", N, {"op": "triad"})
    mlx = Case("bandwidth", "gpu", "mlx", "float32", N, {"op": "add"})
    small = ceiling(9e12, case=case, sizes={"matrix_bytes": 2**26})
    assert kept(small).known(mlx, "") is None
    assert kept(replace(small, sizes={"matrix_bytes": 2**30})).known(mlx, "") is not None


@pytest.mark.usefixtures("cache")
def test_ceilings_do_not_compare_with_other_threads() -> None:
    other = replace(MLX_CASE, params={"op": "copy", "cpu_workers": 1})
    assert kept(ceiling(30e9)).known(other, "") is None


@pytest.mark.usefixtures("cache")
def test_tf32_compares_with_tf32_and_complex_numbers_with_float32() -> None:
    best = kept(
        *(
            ceiling(rate, case=chain(token, "x"), unit="FLOP/s", slope_rate=rate * 1.01)
            for token, rate in (("float32", 60e12), ("tfloat32", 400e12))
        )
    )
    for token, precision, rate in (
        ("float32", "TF32", 404e12),
        ("float32", "full", 60.6e12),
        ("complex64", "", 60.6e12),
    ):
        known = best.known(Case("flops_graph", "gpu", "mlx", token, N), precision)
        assert known.rate == pytest.approx(rate)


@pytest.mark.parametrize(
    ("ago", "words"),
    [(59, "just now"), (60, "1 minute ago"), (7200, "2 hours ago"), (86400 * 5, "5 days ago")],
)
def test_ages_are_in_words(ago: int, words: str) -> None:
    now = dt.datetime(2026, 1, 10, tzinfo=dt.timezone.utc)
    row = Measured(1.0, "B/s", "", (now - dt.timedelta(seconds=ago)).isoformat())
    assert row.age(now) == words


def test_an_old_ceiling_gives_way_to_a_lower_one(cache: Any) -> None:
    kept(ceiling(30e9), keep_file=True)
    file = cache / "ceilings-abc.json"
    text = json.loads(file.read_text())
    for row in text["ceilings"].values():
        row["measured"] = "2020-01-01T00:00:00+00:00"
    file.write_text(json.dumps(text))
    known = kept(ceiling(20e9), keep_file=True).known(MLX_CASE, "")
    assert known.rate == 20e9


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 99}', '{"schema": 1, "ceilings": 3}'])
def test_a_file_of_something_else_counts_as_none(text: str, cache: Any) -> None:
    cache.mkdir()
    (cache / "ceilings-abc.json").write_text(text)
    assert Ceilings("abc", keep=True).known(MLX_CASE, "") is None
    kept(ceiling(30e9), keep_file=True)
    assert Ceilings("abc", keep=True).known(MLX_CASE, "") is not None


def test_ceilings_without_a_writable_folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(measured, "folder", lambda: tmp_path / "file" / "nnbt")
    best = kept(ceiling(30e9), keep_file=True)
    assert best.known(MLX_CASE, "") is not None


def test_a_run_keeps_its_ceilings_and_no_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "last_cache_bytes", lambda: None)
    asked: list[tuple[str, float, str]] = []
    monkeypatch.setattr(
        Ceilings, "remember", lambda _, case, rate, *__: asked.append((case.engine, rate))
    )
    run = nnbt.run(
        engine=["native", "mlx"], device="cpu", sizes=[N], op="copy", measure=FakeMeasure()
    )
    assert asked == [("native", row.best_rate) for row in run.results[:2]]


def test_scripted_times_never_reach_the_cache(cache: Any) -> None:
    nnbt.run(engine=["native", "mlx"], device="cpu", sizes=[N], measure=FakeMeasure())
    assert not cache.exists()


def test_rows_show_their_share_of_the_measured_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Measured(4e9, "B/s", "native triad", "2026-01-01T00:00:00+00:00")
    monkeypatch.setattr(Ceilings, "known", lambda *_: known)
    row, *own = nnbt.run(
        device="cpu", sizes=[N], engine=["mlx", "native"], op="copy", measure=FakeMeasure()
    ).results
    assert [result.measured_ceiling for result in own] == [None, None]  # ceilings themselves
    column = next(column for column in COLUMNS if column.key == "pct_of_ceiling")
    assert row.measured_ceiling == known
    assert column.value(row) == pytest.approx(row.rate / 4e9 * 100)
    assert any("native triad" in note for note in row.notes)
