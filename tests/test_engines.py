"""Engines native, kernel, library and mlx-compiled: their cells, their counts, planted faults."""

from __future__ import annotations

import csv
import datetime as dt
import io
import itertools
import json
import math
import sys
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nnbt
from fake_cublaslt import FakeLibraries
from fake_gpu import FakeGpu, chip_stamps
from fake_measure import FakeMeasure
from nnbt import _native
from nnbt.engines.kernel import launcher as gpu_kernels
from nnbt.engines.kernel import steps as kernel_steps
from nnbt.engines.kernel.launcher import KERNELS
from nnbt.engines.library import cublaslt
from nnbt.engines.library import products as vendor
from nnbt.engines.library import steps as library_steps
from nnbt.engines.library.cublaslt import PRECISIONS
from nnbt.engines.mlx.bench import _Noting
from nnbt.engines.native import steps as native_steps
from nnbt.ladder.rungs import RUNGS, best_of
from nnbt.machine import mlx as _mlx
from nnbt.machine.chains import CLOCK_CHAIN
from nnbt.peaks import stored as measured
from nnbt.peaks.stored import Ceilings, Measured
from nnbt.pipeline import matrix as metrics
from nnbt.pipeline import session as runner
from nnbt.pipeline.plan import make_plan
from nnbt.results.columns import csv_text
from nnbt.results.result import Reason, Result, Run
from nnbt.spec import formulas as sizes
from nnbt.spec.case import Case
from nnbt.spec.dtypes import DTYPES
from nnbt.spec.metric import METRICS
from nnbt.spec.options import Options
from nnbt.terminal.tables import table_text

N = 64
CHAINS = [row for row in _native.peak_chains() if row.name != CLOCK_CHAIN]
CUDA = [row for row in KERNELS.values() if row.language == "cuda"]


def plan(**options: Any) -> list[Case]:
    return list(make_plan(Options(device="cpu", **options)).cases)


def planned(engine: str, metric: str, dtype: str = "float32", **options: Any) -> list[Case]:
    """The cases of a cell, without asking whether its device is here."""
    found = METRICS[metric].cells[engine][0]
    asked = Options(engines=(engine,), **options)
    return found.cases(Case(metric, found.devices[0], engine, dtype, N), asked)


# Tables


def test_cells_name_what_the_tables_of_the_engines_hold() -> None:
    bandwidth = [row for row in KERNELS.values() if row.metric == "bandwidth"]
    flops = [row for row in KERNELS.values() if row.metric == "flops"]
    assert set(metrics.KERNEL_OPS) == {row.name for row in bandwidth}
    assert set(metrics.MATRIX_DTYPES) == {row.dtype for row in flops} == set(PRECISIONS)
    assert set(metrics.BLAS_DTYPES) == set(vendor._BLAS_OPS)
    assert set(metrics.CHAIN_DTYPES) == {row.dtype for row in CHAINS}
    assert set(metrics.ENGINE_WORDS) == set(metrics.ENGINES)


@pytest.mark.parametrize("row", _native.stream_kernels(), ids=lambda row: row.name)
def test_streams_are_counted_as_the_native_table_does(row: Any) -> None:
    assert sizes.STREAMS[row.name] == row.reads + row.writes


@pytest.mark.parametrize("dtype", ["tfloat32", "float8_e4m3"])
def test_types_of_matrix_units_are_refused_by_mlx_and_name_who_has_them(dtype: str) -> None:
    with pytest.raises(nnbt.Unsupported, match="--engine kernel --device gpu, or --engine library"):
        metrics.cell(Case("flops", "gpu", "mlx", dtype, N))
    assert (
        metrics.cell(Case("flops", "gpu", "kernel", dtype, 0)).builder
        == "nnbt.engines.kernel.steps:flops"
    )


# What one case of the command line stands for


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
    with pytest.raises(
        nnbt.Unsupported, match="type one of copy add, or --engine native or kernel"
    ):
        plan(engines=("mlx",), op="triad")


def test_flops_expands_to_every_chain_of_the_dtype_without_a_size() -> None:
    cases = plan(metrics=("flops",), engines=("native",), sizes=(512, 1024))
    assert [c.params["chain"] for c in cases] == [r.name for r in CHAINS if r.dtype == "float32"]
    assert {c.n for c in cases} == {0}
    assert all(sizes_of(case)["resident_bytes"] == 0 for case in cases)


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


def test_ladder_sizes_double_from_the_first_cache_to_beyond_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
def test_private_caches_count_once_a_thread(
    bytes_: int, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "cache_bytes", lambda: {1: 2**15, 2: 2**19, 3: 2**25})
    assert native_steps.fits_in(bytes_, 2) == level


@pytest.mark.parametrize("arrays", [3.9, 4.0])
def test_arrays_below_four_times_the_last_cache_say_so(
    arrays: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STREAM's rule is about each array: two of half that size are not enough."""
    monkeypatch.setattr(runner, "last_cache_bytes", lambda: 2**18)
    n = math.isqrt(int(arrays * 2**18) // 4)
    run = nnbt.run(engine="native", device="cpu", sizes=[n], op="triad", measure=FakeMeasure())
    for row in run.results:
        found = [reason for reason in row.reasons if reason.code == "CACHE_RESIDENT"]
        assert len(found) == (1 if arrays < 4 else 0)
        if found:
            assert "Each array is 996 KiB, less than 4 times the last cache (256 KiB)" in (
                found[0].sentence
            )


def test_ladder_sizes_are_for_caches_only() -> None:
    with pytest.raises(nnbt.Unsupported, match="type --sizes, or --metric bandwidth --engine nat"):
        plan(engines=("mlx",), ladder_sizes=True)
    with pytest.raises(nnbt.Unsupported, match="type one of them"):
        plan(engines=("native",), ladder_sizes=True, sizes=(N,))


def test_options_that_do_not_count_are_named_and_give_no_second_case() -> None:
    asked = Options(
        device="cpu", metrics=("flops",), engines=("native",), sizes=(N,), data=("normal", "zeros")
    )
    made = make_plan(asked)
    assert len({case.params["chain"] for case in made.cases}) == len(made.cases)
    assert any("--sizes does not count" in note for note in made.notes)
    assert any("--data does not count" in note for note in made.notes)


# Engine native


@pytest.mark.parametrize(
    "case", planned("native", "bandwidth"), ids=lambda c: "-".join(map(str, c.params.values()))
)
def test_a_stream_row_is_checked_and_counts_three_ways(case: Case) -> None:
    op, stores = str(case.params["op"]), case.params["stores"]
    run = nnbt.run(engine="native", device="cpu", sizes=[N], op=op, cpu_workers=2, runs=5)
    (row,) = (row for row in run.results if row.case.params["stores"] == stores)
    assert row.status == "OK", row.reason
    assert row.verdict != "INVALID", row.reasons
    assert row.details["answer"]["exact"] is True
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
    assert row.details["slope"]["doubling"] == pytest.approx(2, rel=0.01)
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
    assert all("clock_peak" not in row.details for row in done)


# Engine library


@pytest.mark.parametrize("dtype", metrics.BLAS_DTYPES)
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
    workload = library_steps.blas(bench(case))
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


def bench(case: Case, mx: Any = None, **sizes: int) -> Any:
    return SimpleNamespace(
        mx=mx, case=case, sizes={**sizes_of(case), **sizes}, rotation=3, options=None
    )


@pytest.mark.parametrize("dtype", metrics.MATRIX_DTYPES)
@pytest.mark.parametrize("spoil", [0.0, 3.0])
def test_cublaslt_is_wired_and_checked(
    dtype: str, spoil: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeLibraries(spoil=spoil)
    monkeypatch.setattr(cublaslt, "_call", fake.call)
    monkeypatch.setattr(cublaslt, "_names", lambda _: {20: "128x256"})
    workload = library_steps.cublaslt(bench(Case("flops", "gpu", "library", dtype, 32)))
    fake.ran.clear()
    workload.step(3)()
    assert len(fake.ran) == 3
    assert workload.unit_work == workload.sizes["work_ops"] == 2 * 32**3
    answer = workload.check()
    assert answer.exact is (spoil == 0)
    assert (answer.problem is None) is (spoil == 0)


# Engine kernel


@pytest.fixture
def small_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_kernels, "multiprocessors", lambda: 2)
    monkeypatch.setattr(kernel_steps, "_language", lambda: "cuda")


@pytest.mark.usefixtures("small_gpu")
@pytest.mark.parametrize(
    ("capability", "words", "ceiling"),
    [((9, 0), "", True), ((10, 0), "tcgen05", False), ((12, 0), "neither wgmma nor", True)],
)
def test_a_blackwell_row_names_its_path_and_is_no_ceiling_where_it_is_an_old_one(
    capability: tuple[int, int], words: str, ceiling: bool
) -> None:
    mx = FakeGpu(_mlx.core(), capability)
    case = Case("flops", "gpu", "kernel", "bfloat16", 0, {"chain": "mma_sync"})
    workload = kernel_steps.flops(bench(case, mx))
    assert [words in note for note in workload.notes[1:]] == ([True] if words else [])
    assert workload.after is not None
    _, details = workload.after()
    assert ("no_ceiling" not in details) is ceiling
    kept = Ceilings("0" * 12, keep=False)
    kept.remember(
        Result(case, verdict="VALID", rate=1e12, best_rate=1e12, unit="FLOP/s", details=details)
    )
    assert (kept.known(replace(case, engine="mlx"), "") is not None) is ceiling
    wgmma = replace(case, params={"chain": "wgmma"})
    if capability > (9, 0):
        with pytest.raises(nnbt.Unsupported, match="use mma_sync"):
            kernel_steps.flops(bench(wgmma, mx))


@pytest.mark.usefixtures("small_gpu")
@pytest.mark.parametrize("verdict", ["VALID", "INVALID"])
def test_the_row_of_tcgen05_is_a_ceiling_where_its_sums_are_right(verdict: str) -> None:
    gpu = FakeGpu(_mlx.core(), (10, 0))
    case = Case("flops", "gpu", "kernel", "bfloat16", 0, {"chain": "tcgen05"})
    workload = kernel_steps.flops(bench(case, gpu))
    assert any("no chip had it yet" in note for note in workload.notes)
    _, details = after_a_run(gpu, "bfloat16", "tcgen05")
    assert details["clock_peak"]["rate"] == pytest.approx(2 * 8192 * 1.785e9)
    assert "no_ceiling" not in details
    kept = Ceilings("0" * 12, keep=False)
    row = Result(case, verdict=verdict, rate=9e12, best_rate=9e12, unit="FLOP/s", details=details)
    kept.remember(row)
    assert (kept.known(replace(case, engine="mlx"), "") is not None) is (verdict == "VALID")
    older = replace(row, verdict="VALID", best_rate=1e12, details={"no_ceiling": "Older."})
    rung = best_of(RUNGS["native"], Run({}, [], "", [row, older], finished=True))
    assert rung.rate == (9e12 if verdict == "VALID" else 1e12)


@pytest.mark.usefixtures("small_gpu")
def test_int8_of_10_3_has_no_tcgen05_and_mma_sync_is_its_ceiling() -> None:
    gpu = FakeGpu(_mlx.core(), (10, 3))
    with pytest.raises(nnbt.Unsupported, match="has no instruction there"):
        after_a_run(gpu, "int8", "tcgen05")
    _, details = after_a_run(gpu, "int8", "mma_sync")
    assert "no_ceiling" not in details


@pytest.mark.usefixtures("small_gpu")
@pytest.mark.parametrize("row", CUDA, ids=lambda row: row.key)
@pytest.mark.parametrize("spoilt", [False, True])
def test_a_kernel_is_wired_and_checked(row: Any, spoilt: bool) -> None:
    def spoil(output: Any) -> Any:
        output.flat[0] += 1
        return output

    capability = (9, 0)
    if row.name == "mma_sync" and row.dtype == "float8_e4m3":
        capability = (12, 0)
    if row.name == "tcgen05":
        capability = (10, 0)
    mx = FakeGpu(_mlx.core(), capability, spoil if spoilt else lambda output: output)
    mx.compile = lambda function: function  # the kernels that are NumPy can't be traced
    name = "op" if row.metric == "bandwidth" else "chain"
    n = 256 if row.metric == "bandwidth" else 0
    case = Case(row.metric, "gpu", "kernel", row.dtype, n, {name: row.name})
    workload = getattr(kernel_steps, row.metric)(bench(case, mx))
    workload.step(workload.units)()
    work = workload.sizes["work_bytes" if row.metric == "bandwidth" else "work_ops"]
    assert work == workload.units * workload.unit_work > 0
    assert workload.units == len(mx.calls)
    assert 4 <= workload.units <= workload.largest_k
    if row.metric == "bandwidth":  # small arrays: so many that no cache holds them
        assert (workload.largest_k, workload.units) == (64, 32)
        assert workload.unit_work == sizes.STREAMS[row.name] * n * n * 4
    answer = workload.check()
    assert answer.exact is not spoilt
    assert bool(answer.problem) is spoilt


def after_a_run(gpu: FakeGpu, dtype: str, chain: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    gpu.compile = lambda function: function
    workload = kernel_steps.flops(
        bench(Case("flops", "gpu", "kernel", dtype, 0, {"chain": chain}), gpu)
    )
    workload.step(1)()
    assert workload.after is not None
    return workload.after()


@pytest.mark.usefixtures("small_gpu")
@pytest.mark.parametrize(
    ("dtype", "chain", "per_clock"),
    [
        ("bfloat16", "wgmma", 4096),
        ("tfloat32", "wgmma_registers", 2048),
        ("tfloat32", "mma_sync", 2048),
        ("float32", "fma", 256),
    ],
)
def test_a_kernel_counts_its_clock_and_the_peak_at_it(
    dtype: str, chain: str, per_clock: int
) -> None:
    notes, details = after_a_run(FakeGpu(_mlx.core()), dtype, chain)
    assert details["chip_clock_mhz"] == pytest.approx(1785)
    assert details["clock_peak"] == {
        "rate": pytest.approx(2 * per_clock * 1.785e9),
        "source": f"2 SM x {per_clock:,} operations a clock x 1,785 MHz, counted on the chip",
    }
    (note,) = notes
    assert note.startswith("chip clock 1,785 MHz by its own counter; the last run did ")


@pytest.mark.usefixtures("small_gpu")
def test_the_share_of_the_peak_is_that_of_the_whole_run() -> None:
    # 2 SM of 4,096 operations a clock at 1.785 GHz for 10 ms, and a block that starts 1 us later.
    row = KERNELS["wgmma-bfloat16-cuda"]
    ops = gpu_kernels.build(row, FakeGpu(_mlx.core()), launches=1).work.ops
    share = ops / (2 * 4096 * 1.785e9 * 10.001e-3)
    (note,), _ = after_a_run(FakeGpu(_mlx.core()), "bfloat16", "wgmma")
    assert f"did {share:.1%} of the peak" in note


@pytest.mark.usefixtures("small_gpu")
@pytest.mark.parametrize(("cycles", "ns"), [(1785 * 10**6, 10**7), (1785 * 10, 10**7)])
def test_a_clock_that_can_not_be_right_makes_no_peak(cycles: int, ns: int) -> None:
    """A hundred times too fast or too slow."""
    gpu = FakeGpu(_mlx.core())
    gpu.stamps = lambda *_: np.array([[5, 10, 5 + cycles, 10 + ns]], np.uint64)
    (note,), details = after_a_run(gpu, "bfloat16", "wgmma")
    assert note.startswith("the chip's own counter can't be right (chip clock ")
    assert details == {}


@pytest.mark.usefixtures("small_gpu")
def test_the_clock_is_that_of_the_timed_runs_not_of_the_slope() -> None:
    gpu = FakeGpu(_mlx.core())
    gpu.compile = lambda function: function
    launch = itertools.count(1)  # one after the other, 11 ms apart
    gpu.stamps = lambda *shape: chip_stamps(*shape) + np.uint64(next(launch) * 11_000_000)
    workload = kernel_steps.flops(
        bench(Case("flops", "gpu", "kernel", "bfloat16", 0, {"chain": "wgmma"}), gpu)
    )
    workload.step(workload.units)()
    workload.check()
    gpu.stamps = lambda *_: np.array([[5, 10, 5 + 10**6, 10 + 10**6]], np.uint64)
    workload.step(1)()
    assert workload.after is not None
    assert workload.after()[1]["chip_clock_mhz"] == pytest.approx(1785)


@pytest.mark.usefixtures("small_gpu")
def test_a_chip_of_unknown_rate_has_a_clock_and_no_peak() -> None:
    notes, details = after_a_run(FakeGpu(_mlx.core(), (12, 0)), "bfloat16", "mma_sync")
    assert notes == ("chip clock 1,785 MHz by its own counter",)
    assert details == {"chip_clock_mhz": pytest.approx(1785)}


@pytest.mark.usefixtures("small_gpu")
def test_a_clock_that_the_kernel_did_not_write_leaves_that_of_nvml() -> None:
    silent = FakeGpu(_mlx.core(), stamps=lambda *shape: np.zeros(shape, np.uint64))
    notes, details = after_a_run(silent, "bfloat16", "wgmma")
    assert ("could not be read" in notes[0], details) == (True, {})


@pytest.mark.usefixtures("small_gpu")
def test_streams_count_no_clock() -> None:
    case = Case("bandwidth", "gpu", "kernel", "float32", 256, {"op": "copy"})
    workload = kernel_steps.bandwidth(bench(case, FakeGpu(_mlx.core())))
    assert workload.after is not None
    assert workload.after() == ((), {})


@pytest.mark.usefixtures("small_gpu")
def test_a_kernel_that_the_chip_lacks_says_so() -> None:
    mx = FakeGpu(_mlx.core(), (8, 0))
    case = Case("flops", "gpu", "kernel", "float8_e4m3", 0, {"chain": "wgmma"})
    with pytest.raises(nnbt.Unsupported, match=r"needs compute capability 9\.0"):
        kernel_steps.flops(bench(case, mx))


@pytest.mark.usefixtures("small_gpu")
@pytest.mark.parametrize("op", ["copy", "bulk_copy"])
def test_arrays_too_small_for_a_kernel_are_refused(op: str) -> None:
    case = Case("bandwidth", "gpu", "kernel", "float32", 16, {"op": op})
    with pytest.raises(nnbt.Unsupported, match=r"moves at least .*: type a larger --sizes"):
        kernel_steps.bandwidth(bench(case, FakeGpu(_mlx.core())))


# Engine mlx-compiled


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
    assert row.details["slope"]["doubling"] == pytest.approx(2, rel=0.01)


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
        evaluated = captured["graph"](range(captured["k"]))
        mx.eval(evaluated)
    return evaluated


def test_an_input_that_is_taken_is_noted() -> None:
    noting = _Noting(["a", "b", "c"])  # type: ignore[list-item]
    assert (noting[2], noting[0], noting[2]) == ("c", "a", "c")
    assert list(noting.used) == [2, 0]


# What a table shows


def test_peaks_show_their_chain_and_no_size() -> None:
    run = nnbt.run("flops", "cpu", engine="native", measure=FakeMeasure())
    text = table_text(run.results, None, color=False)
    assert "most operations that one instruction" in text.splitlines()[0]
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


# On a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", metrics.MATRIX_DTYPES)
def test_a_gpu_runs_a_kernel_of_each_type_or_says_why_not(dtype: str) -> None:
    run = nnbt.run("flops", "gpu", dtype, engine="kernel", runs=5)
    assert all(row.status == "OK" or row.reason for row in run.results)
    done = [row for row in run.results if row.status == "OK"]
    assert done or dtype in ("tfloat32", "bfloat16", "int8", "float8_e4m3")
    assert all(row.verdict != "INVALID" for row in done), [row.reasons for row in done]
    if sys.platform != "darwin":
        assert all(200 < row.details["chip_clock_mhz"] < 4000 for row in done)


@pytest.mark.gpu
def test_a_gpu_runs_every_bandwidth_kernel() -> None:
    run = nnbt.run(device="gpu", engine="kernel", sizes=[1024], runs=5)
    done = [row for row in run.results if row.status == "OK"]
    assert {"copy", "add", "triad"} <= {row.case.params["op"] for row in done}
    wrong = [row for row in done if "WRONG_ANSWER" in {reason.code for reason in row.reasons}]
    assert not wrong


@pytest.mark.gpu
@pytest.mark.skipif(sys.platform == "darwin", reason="cuBLASLt is NVIDIA's")
@pytest.mark.parametrize("dtype", metrics.MATRIX_DTYPES)
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


# Measured ceilings


@pytest.fixture
def cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(measured, "folder", lambda: tmp_path / "nnbt")
    return tmp_path / "nnbt"


def ceiling(best: float, **changes: Any) -> Result:
    params = {"cpu_workers": 2, "op": "triad", "stores": "nontemporal"}
    case = Case("bandwidth", "cpu", "native", "float64", N, params)
    row = Result(case, verdict="VALID", rate=best, best_rate=best, unit="B/s")
    return replace(row, **changes)


MLX_CASE = Case("bandwidth", "cpu", "mlx", "float32", N, {"op": "copy", "cpu_workers": 2})


def test_the_best_rate_is_kept_for_the_next_process(cache: Any) -> None:
    first = Ceilings("abc", keep=True)
    for rate in (10e9, 30e9, 20e9):
        first.remember(ceiling(rate))
    (file,) = cache.iterdir()
    assert file.name == "ceilings-abc.json"
    known = Ceilings("abc", keep=True).known(MLX_CASE, "")
    assert known is not None
    assert (known.rate, known.by) == (30e9, "native triad, nontemporal stores")
    assert known.age() == "just now"
    assert Ceilings("another", keep=True).known(MLX_CASE, "") is None


@pytest.mark.usefixtures("cache")
def test_the_same_operation_counts_before_the_best_of_all() -> None:
    best = Ceilings("abc", keep=True)
    best.remember(ceiling(30e9))
    copy = replace(ceiling(20e9).case, params={**ceiling(1).case.params, "op": "copy"})
    best.remember(ceiling(20e9, case=copy))
    known = best.known(MLX_CASE, "")
    assert known is not None
    assert known.rate == 20e9


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "INVALID"},
        {"verdict": None, "rate": None},
        {"reasons": (Reason("CACHE_RESIDENT", "in cache", "note"),)},
        {"reasons": (Reason("ABOVE_CEILING", "too much", "suspect"),)},
        {"case": MLX_CASE},
    ],
)
def test_what_is_no_ceiling_is_not_kept(changes: dict[str, Any], cache: Any) -> None:
    best = Ceilings("abc", keep=True)
    best.remember(ceiling(30e9, **changes))
    assert best.known(MLX_CASE, "") is None
    assert not cache.exists()


@pytest.mark.usefixtures("cache")
def test_small_arrays_of_a_gpu_are_no_ceiling() -> None:
    case = Case("bandwidth", "gpu", "kernel", "float32", N, {"op": "triad"})
    mlx = Case("bandwidth", "gpu", "mlx", "float32", N, {"op": "add"})
    best = Ceilings("abc", keep=True)
    best.remember(ceiling(9e12, case=case, sizes={"matrix_bytes": 2**26}))
    assert best.known(mlx, "") is None
    best.remember(ceiling(4e12, case=case, sizes={"matrix_bytes": 2**30}))
    assert best.known(mlx, "") is not None


@pytest.mark.usefixtures("cache")
def test_ceilings_do_not_compare_with_other_threads_or_with_themselves() -> None:
    best = Ceilings("abc", keep=True)
    best.remember(ceiling(30e9))
    other = replace(MLX_CASE, params={"op": "copy", "cpu_workers": 1})
    assert best.known(other, "") is None
    assert best.known(ceiling(1).case, "") is None


@pytest.mark.usefixtures("cache")
def test_tf32_compares_with_tf32_and_complex_numbers_with_float32() -> None:
    best = Ceilings("abc", keep=True)
    for token, rate in (("float32", 60e12), ("tfloat32", 400e12)):
        case = Case("flops", "gpu", "kernel", token, 0, {"chain": "x"})
        best.remember(ceiling(rate, case=case, unit="FLOP/s", slope_rate=rate * 1.01))
    for token, precision, rate in (
        ("float32", "TF32", 404e12),
        ("float32", "full", 60.6e12),
        ("complex64", "", 60.6e12),
    ):
        known = best.known(Case("flops_graph", "gpu", "mlx", token, N), precision)
        assert known is not None
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
    Ceilings("abc", keep=True).remember(ceiling(30e9))
    file = cache / "ceilings-abc.json"
    text = json.loads(file.read_text())
    for row in text["ceilings"].values():
        row["measured"] = "2020-01-01T00:00:00+00:00"
    file.write_text(json.dumps(text))
    best = Ceilings("abc", keep=True)
    best.remember(ceiling(20e9))
    known = best.known(MLX_CASE, "")
    assert known is not None
    assert known.rate == 20e9


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 99}', '{"schema": 1, "ceilings": 3}'])
def test_a_file_of_something_else_counts_as_none(text: str, cache: Any) -> None:
    cache.mkdir()
    (cache / "ceilings-abc.json").write_text(text)
    best = Ceilings("abc", keep=True)
    assert best.known(MLX_CASE, "") is None
    best.remember(ceiling(30e9))
    assert Ceilings("abc", keep=True).known(MLX_CASE, "") is not None


def test_a_folder_that_can_not_be_written_lasts_for_the_process(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(measured, "folder", lambda: tmp_path / "file" / "nnbt")
    best = Ceilings("abc", keep=True)
    best.remember(ceiling(30e9))
    assert best.known(MLX_CASE, "") is not None


def test_scripted_times_never_reach_the_cache(cache: Any) -> None:
    nnbt.run(engine=["native", "mlx"], device="cpu", sizes=[N], measure=FakeMeasure())
    assert not cache.exists()


def test_rows_show_their_share_of_the_measured_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    from nnbt.results.columns import COLUMNS

    known = Measured(4e9, "B/s", "native triad", "2026-01-01T00:00:00+00:00")
    monkeypatch.setattr(Ceilings, "known", lambda *_: known)
    (row,) = nnbt.run(device="cpu", sizes=[N], measure=FakeMeasure()).results
    column = next(column for column in COLUMNS if column.key == "pct_of_ceiling")
    assert row.details["measured_ceiling"] == asdict(known)
    assert column.value(row) == pytest.approx(row.rate / 4e9 * 100)
    assert any("native triad, measured" in note for note in row.notes)
