"""The ladder: rungs out of results, the picture, causes of losses, a BLAS that is tried."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nnbt
from command import nnbt as command
from fake_measure import FakeMeasure
from fake_site import compile_library
from nnbt.engines.library import steps as library_steps
from nnbt.ladder import conditions, preload, sources
from nnbt.ladder import run as ladder_run
from nnbt.ladder.causes import CAUSES, Cause, explain_losses
from nnbt.ladder.conditions import Gap, Host, loaded_blas
from nnbt.ladder.files import ladder_csv
from nnbt.ladder.preload import Trial, preloaded_rung, try_loading
from nnbt.ladder.run import measure_ladder
from nnbt.ladder.rungs import RUNGS, Ladder, Loss, Rung
from nnbt.ladder.sources import best_of, clock_derived, published, refused, rung_options
from nnbt.machine.devices import DEVICES
from nnbt.machine.nvml import GpuState
from nnbt.machine.shared_cores import Pair, SharedCores
from nnbt.results.files import json_text
from nnbt.results.result import Reason, Result, Run
from nnbt.spec.case import Case
from nnbt.spec.details import ClockPeak, Details, VendorLibrary
from nnbt.spec.errors import Refusal, Unsupported
from nnbt.spec.options import Options
from nnbt.spec.precision import mlx_precision
from nnbt.terminal.ladder_picture import bar, ladder_text
from result_schema import validate

UNITS = {"flops": "FLOP/s", "bandwidth": "B/s"}
BLAS = "libblas-bd8a282c.so.3.10.0"


def result(engine: str = "mlx", rate: float = 1e9, **changes: Any) -> Result:
    metric = changes.pop("metric", "flops")
    params = changes.pop("params", {"cpu_workers": 2})
    case = Case(metric, changes.pop("device", "cpu"), engine, "float32", 1024, params)
    row = Result(
        case, verdict="VALID", rate=rate, best_rate=rate, median_s=1e-3, unit=UNITS[metric]
    )
    return replace(row, **changes)


def run_of(*rows: Result) -> Run:
    return Run({}, [], "", list(rows), finished=True)


def made(
    *rungs: Rung, metric: str = "flops", device: str = "cpu", dtype: str = "float32"
) -> Ladder:
    return Ladder(metric, device, dtype, UNITS[metric], rungs)


def rung(key: str, rate: float | None, by: str = "", **more: Any) -> Rung:
    return Rung(RUNGS[key], rate, "FLOP/s", by, **more)


PICTURE = made(
    rung("published", None, reason="There is no figure."),
    rung("clock", 200e9, "2 cores x 32 operations x 3.12 GHz"),
    rung("native", 190e9, "native avx2_float32", verdict="VALID"),
    rung("library", 95e9, "NumPy float32: openblas", verdict="SUSPECT"),
    rung("mlx", 4e9, "float32 n = 1024", verdict="VALID", row=result(rate=4e9)),
    rung("mlx-compiled", None, reason="Not here.", verdict="UNSUPPORTED"),
    rung("tried", 60e9, "libopenblas.so.0, n = 1024", verdict="VALID"),
)


def test_shares_pass_over_rungs_without_a_rate() -> None:
    shares = {
        r.kind.key: (PICTURE.share_of_above(r), PICTURE.share_of_top(r)) for r in PICTURE.rungs
    }
    assert shares["published"] == shares["mlx-compiled"] == (None, None)
    assert shares["clock"] == (None, 1.0)
    assert shares["native"] == pytest.approx((0.95, 0.95))
    assert shares["library"] == pytest.approx((0.5, 0.475))
    assert shares["mlx"] == pytest.approx((4 / 95, 0.02))


def test_a_tried_library_is_set_against_mlx_without_it() -> None:
    rungs = [replace(r, rate=5e9) if r.kind.key == "mlx-compiled" else r for r in PICTURE.rungs]
    whole = made(*rungs)
    assert whole.share_of_above(whole.rungs[-1]) == pytest.approx(15.0)


@pytest.mark.parametrize(
    ("share", "drawn"),
    [
        (1.0, "████"), (0.5, "██"), (0.53125, "██▏"), (0.96875, "███▉"), (1e-6, "▏"), (0.0, ""),
        (7.0, "████"),
    ],
)  # fmt: skip
def test_bars_are_to_scale(share: float, drawn: str) -> None:
    assert bar(share, 4) == drawn


GOLDEN = """\
ladder of flops, float32, on cpu
                                                                     rate  of above  of top  by
  published peak          - There is no figure.
  clock-derived peak      ████████████████████████████████   200.0 GFLOPS         -    100%  2 cores x 32 operations x 3.12 GHz
  native kernel           ██████████████████████████████▍    190.0 GFLOPS       95%     95%  native avx2_float32
  vendor library          ███████████████▎                   95.00 GFLOPS       50%     48%  ? NumPy float32: openblas
  MLX eager               ▋                                  4.000 GFLOPS      4.2%    2.0%  float32 n = 1024
  MLX compiled            - UNSUPPORTED: Not here.
  MLX, library preloaded  █████████▋                         60.00 GFLOPS     1500%     30%  libopenblas.so.0, n = 1024
  --try: libopenblas.so.0, n = 1024 makes MLX 15 times as fast (4.000 GFLOPS -> 60.00 GFLOPS).
"""  # noqa: E501


def test_the_picture_is_exact() -> None:
    assert ladder_text(PICTURE, None) == GOLDEN


def test_the_picture_fits_an_ascii_terminal() -> None:
    assert [bar(share, 8, ascii_only=True) for share in (1.0, 0.5, 0.01)] == ["#" * 8, "####", "#"]
    text = ladder_text(PICTURE, None, ascii_only=True)
    assert text.isascii()
    assert text.count("#") == 32 + 30 + 15 + 1 + 10


def test_sentences_are_wrapped_to_the_terminal() -> None:
    loss = Loss("mlx", "library", 0.04, "REFERENCE_BLAS", "A slow one. " * 9, "look")
    text = ladder_text(replace(PICTURE, losses=(loss,)), 100)
    sentences = text[text.index("REFERENCE_BLAS") :].splitlines()
    assert len(sentences) > 2
    assert max(map(len, sentences)) < 100
    assert "(MLX eager is 4.0% of vendor library)" in " ".join(text.split())
    assert "What you can do: look." in " ".join(text.split())


def test_csv_has_one_line_a_rung() -> None:
    loss = Loss("mlx", "library", 0.04, "REFERENCE_BLAS", "", "")
    rows = list(csv.DictReader(io.StringIO(ladder_csv(replace(PICTURE, losses=(loss,))))))
    assert [row["rung"] for row in rows] == list(RUNGS)
    by_key = {row["rung"]: row for row in rows}
    assert float(by_key["mlx"]["rate"]) == 4e9
    assert float(by_key["library"]["share_of_above"]) == 0.5
    assert (by_key["mlx"]["cause"], by_key["library"]["cause"]) == ("REFERENCE_BLAS", "")
    assert (by_key["published"]["rate"], by_key["published"]["reason"]) == (
        "",
        "There is no figure.",
    )
    assert {row["unit"] for row in rows} == {"FLOP/s"}


def test_a_rung_is_the_best_row_that_is_not_invalid() -> None:
    rows = [result(rate=2e9), result(rate=3e9), result(rate=9e9, verdict="INVALID")]
    found = best_of(RUNGS["mlx"], run_of(*rows))
    assert (found.rate, found.row, found.by) == (3e9, rows[1], "float32 n = 1024")


def test_native_counts_its_fastest_run_and_a_gpu_its_slope() -> None:
    chain = {"cpu_workers": 2, "chain": "avx2_float32"}
    row = result("native", 2e9, best_rate=3e9, slope_rate=8e9, params=chain)
    assert best_of(RUNGS["native"], run_of(row)).rate == 3e9
    assert best_of(RUNGS["native"], run_of(row)).by == "native avx2_float32"
    row = result("kernel", 2e9, best_rate=3e9, slope_rate=8e9, device="gpu", params={"op": "copy"})
    assert best_of(RUNGS["native"], run_of(row)).rate == 8e9


def test_a_rung_of_invalid_and_missing_rows_says_why() -> None:
    wrong = Reason("WRONG_ANSWER", "The output is wrong.", "invalid")
    noisy = Reason("BACKGROUND_LOAD", "Others were busy.", "suspect")
    rows = [
        result(verdict="INVALID", reasons=(wrong, noisy)),
        result(rate=None, verdict=None, status="UNSUPPORTED", reason="No such unit."),
    ]
    found = best_of(RUNGS["mlx"], run_of(*rows))
    assert (found.rate, found.verdict) == (None, "INVALID")
    assert found.reason == "The output is wrong. No such unit."


def test_the_clock_of_the_chains_makes_a_peak() -> None:
    rows = [
        result("native", details=Details(clock_peak=ClockPeak(rate, f"{rate:g}")))
        for rate in (1e9, 3e9, 2e9)
    ]
    found = clock_derived("flops", "float32", run_of(*rows), rows[0], {})
    assert (found.rate, found.by) == (3e9, "3e+09")


def gpu_state(**known: Any) -> GpuState:
    return GpuState(**{**dict.fromkeys(GpuState.__dataclass_fields__), **known})


def gpu_row(**state: Any) -> Result:
    return result("kernel", 9e11, device="gpu", gpu_state=gpu_state(**state))


def test_the_clock_of_a_gpu_makes_a_peak() -> None:
    row = gpu_row(sm_clock_mhz=1500)
    known = replace(row, details=Details(ops_per_clock=1000))
    found = clock_derived("flops", "bfloat16", run_of(known), known, {})
    assert (found.rate, found.by) == (1.5e12, "at 1,500 MHz under load (NVML)")
    found = clock_derived("flops", "bfloat16", run_of(row), row, {"device_name": "Voodoo 2"})
    assert (found.rate, "bfloat16" in found.reason) == (None, True)


def test_the_clock_that_a_kernel_counted_comes_before_that_of_nvml() -> None:
    row = gpu_row(sm_clock_mhz=1965)
    row = replace(row, details=Details(chip_clock_hz=1785e6, ops_per_clock=1000))
    found = clock_derived("flops", "bfloat16", run_of(row), row, {})
    assert found.rate == 1.785e12
    assert sources.gpu_clock(row) == (1785e6, "counted by the kernel")


def counted(chain: str, dtype: str, mhz: float, per_clock: int) -> Result:
    """A row of engine kernel with the peak that its blocks counted."""
    peak = ClockPeak(132 * per_clock * mhz * 1e6, f"132 SM x {per_clock} x {mhz:g} MHz")
    details = Details(chip_clock_hz=mhz * 1e6, clock_peak=peak)
    row = result(
        "kernel", 901e12, device="gpu", params={"chain": chain}, details=details,
        gpu_state=gpu_state(sm_clock_mhz=1811),
    )  # fmt: skip
    return replace(row, case=replace(row.case, dtype=dtype))


def test_the_peak_of_a_gpu_is_that_of_its_best_kernel() -> None:
    # mma.sync does two thirds of wgmma's rate, and the clock is higher meanwhile.
    wgmma, lighter = (
        counted("wgmma", "bfloat16", 1650, 4096),
        counted("mma", "bfloat16", 1900, 4096),
    )
    found = clock_derived("flops", "bfloat16", run_of(lighter, wgmma), wgmma, {})
    assert (found.rate, found.by) == (132 * 4096 * 1650e6, "132 SM x 4096 x 1650 MHz")


@pytest.mark.parametrize(
    ("metric", "run", "words"),
    [
        ("bandwidth", run_of(), "Memory"),
        ("flops", None, "unknown"),
        ("flops", run_of(result(rate=None, verdict=None, reason="No AMX.")), "No AMX."),
    ],
)
def test_no_clock_is_a_sentence(metric: str, run: Run | None, words: str) -> None:
    found = clock_derived(metric, "float32", run, None, {})
    assert found.rate is None
    assert words in found.reason


H200 = {"device_name": "NVIDIA H200", "cpu": "Intel(R) Xeon(R) Platinum 8480+"}


@pytest.mark.parametrize(
    ("metric", "device", "dtype", "rate"),
    [
        ("flops", "gpu", "bfloat16", 989.4e12), ("flops", "gpu", "tfloat32", 494.7e12),
        ("flops", "gpu", "float8_e4m3", 1978.9e12), ("bandwidth", "gpu", "float32", 4.8e12),
        ("bandwidth", "cpu", "float32", 307.2e9),
    ],
)  # fmt: skip
def test_published_peaks_of_the_table(metric: str, device: str, dtype: str, rate: float) -> None:
    found = published(metric, device, dtype, H200)
    assert found.rate == pytest.approx(rate, rel=1e-3)
    assert found.by


@pytest.mark.parametrize(
    ("metric", "device", "words"),
    [
        ("flops", "gpu", "float32 peak is known for 'Voodoo 2'"),
        ("bandwidth", "gpu", "memory bandwidth is known for 'Voodoo 2'"),
        ("bandwidth", "cpu", "memory bandwidth is known for 'Z80'"),
        ("flops", "cpu", "operations per cycle"),
        ("flops", "cpu", "data/chips.toml has no entry for 'Z80'"),
    ],
)
def test_unknown_hardware_is_a_sentence(metric: str, device: str, words: str) -> None:
    found = published(metric, device, "float32", {"device_name": "Voodoo 2", "cpu": "Z80"})
    assert found.rate is None
    assert words in found.reason


def test_a_known_processor_is_not_called_unknown() -> None:
    assert "chips.toml" not in published("flops", "cpu", "float32", H200).reason


@pytest.mark.parametrize(
    ("key", "device", "asked", "tf32", "engine", "dtype"),
    [
        ("native", "cpu", "float32", False, "native", "float32"),
        ("native", "gpu", "float32", True, "kernel", "tfloat32"),
        ("native", "gpu", "float32", False, "kernel", "float32"),
        ("library", "gpu", "float32", True, "library", "tfloat32"),
        ("mlx", "gpu", "float32", True, "mlx", "float32"),
        ("mlx", "gpu", "int8", True, "mlx", "q8"),
        ("mlx-compiled", "gpu", "float8_e4m3", True, "mlx-compiled", "mxfp8"),
        ("library", "gpu", "int8", True, "library", "int8"),
    ],
)
def test_dtypes_of_rungs(
    key: str, device: str, asked: str, tf32: bool, engine: str, dtype: str
) -> None:
    options = Options(metrics=("flops",), dtypes=(asked,))
    found = rung_options(options, device, RUNGS[key], tf32=tf32)
    assert (found.engines, found.dtypes, found.device) == ((engine,), (dtype,), device)


def test_sizes_go_to_what_has_a_size() -> None:
    flops = Options(metrics=("flops",), sizes=(64,))
    assert rung_options(flops, "cpu", RUNGS["native"]).sizes is None  # type: ignore[union-attr]
    assert rung_options(flops, "cpu", RUNGS["mlx"]).sizes == (64,)  # type: ignore[union-attr]
    streams = replace(flops, metrics=("bandwidth",))
    assert rung_options(streams, "cpu", RUNGS["native"]).sizes == (64,)  # type: ignore[union-attr]
    assert rung_options(flops, "cpu", RUNGS["clock"]) is None


def reason(code: str) -> tuple[Reason, ...]:
    return (Reason(code, f"Sentence of {code}.", "suspect"),)


def gap(key: str = "mlx", above: str = "library", **more: Any) -> Gap:
    """A rung at 70 % of the one above; `row`, `above_row` and `native` are their results."""
    native, above_row, row = (more.pop(name, None) for name in ("native", "above_row", "row"))
    rungs = [rung(above, 1e9, row=above_row), rung(key, 0.7e9, row=row)]
    if native is not None and "native" not in (key, above):
        rungs.insert(0, rung("native", 1e9, row=native))
    where = {name: more.pop(name) for name in ("metric", "device", "dtype") if name in more}
    host = Host(**{"usable_cpus": 2, "cores": 16, **more})
    return Gap(made(*rungs, **where), rungs[-1], rungs[-2], host)


def stored(stores: str) -> Result:
    """A row of engine native with this kind of stores."""
    return result("native", metric="bandwidth", params={"op": "triad", "stores": stores})


def by_blas(kernels: str) -> Result:
    """A row of engine library whose BLAS chose these kernels."""
    library = VendorLibrary("openblas", "0.3.31", kernels)
    return result("library", details=Details(library=library))


def pair(make: Callable[[Any], Gap], planted: Any, absent: Any) -> tuple[Gap, Gap]:
    return make(planted), make(absent)


GPU = {"device": "gpu"}
STREAM = {"metric": "bandwidth"}
AVX512 = result("native", params={"chain": "avx512_float32", "cpu_workers": 2})
SHARED = SharedCores((Pair((0, 1), "avx2", 1.0, 2.0),), 2)
HOLDS: dict[str, tuple[Gap, Gap]] = {
    "REFERENCE_BLAS": (gap(mlx_blas=BLAS), gap()),
    "SIMPLE_KERNEL": (gap(dtype="bfloat16"), gap(dtype="float32")),
    "NO_SUCH_PRODUCT": (gap(dtype="int8", row=result()), gap(row=result())),
    "TF32_OFF": (gap(tf32=False, **GPU), gap(tf32=True, **GPU)),
    "PAGE_FAULTS": (gap(row=result(reasons=reason("PAGE_FAULTS"))), gap(row=result())),
    "LAUNCH_BOUND": (gap(row=result(overhead_us=200.0)), gap(row=result(overhead_us=100.0))),
    "ONE_BY_ONE": pair(lambda rate: gap(row=result(slope_rate=rate), **GPU), 0.9e9, 0.7e9),
    "ONE_THREAD_PER_STREAM": pair(lambda n: gap(row=result(params={"cpu_workers": n})), 1, 2),
    "POWER_CAP": pair(
        lambda reasons: gap(row=gpu_row(throttle_reasons=reasons), **GPU),
        ("idle", "software power cap"), ("idle",),
    ),
    "LOW_CLOCK": pair(
        lambda mhz: gap("clock", "published", native=gpu_row(sm_clock_mhz=mhz), **GPU), 1200, None
    ),
    "WRITE_ALLOCATE": pair(
        lambda stores: gap(above="native", above_row=stored(stores), **STREAM),
        "nontemporal", "ordinary",
    ),
    "FEW_CORES": pair(lambda n: gap("native", "published", cores=n, **STREAM), 2, 64),
    "NARROW_KERNELS": pair(
        lambda name: gap("library", "native", row=by_blas(name), above_row=AVX512),
        "Haswell", "SkylakeX",
    ),
    "OLDER_INSTRUCTIONS": pair(
        lambda why: gap(
            "native", "clock", row=result("kernel", details=Details(not_a_ceiling=why)), **GPU),
        "Not used.", "",
    ),
    "HIDDEN_SMT": (gap("native", "clock", shared=replace(SHARED, cpus=4)), gap("native", "clock")),
    "SCATTER": (
        gap(row=result(best_rate=0.9e9)),
        gap(row=result(best_rate=0.5e9, reasons=reason("WIDE_INTERVAL"))),  # 17 % explain no half
    ),
    "BACKGROUND_LOAD": (gap(row=result(reasons=reason("BACKGROUND_LOAD"))), gap(row=result())),
}  # fmt: skip


def test_every_cause_is_tested() -> None:
    assert set(HOLDS) == {cause.code for cause in CAUSES} != set()


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.code)
def test_a_cause_holds_where_it_was_planted_and_nowhere_else(cause: Cause) -> None:
    planted, absent = HOLDS[cause.code]
    assert cause.condition(planted)
    assert not cause.condition(absent)
    assert planted.rung.kind.key in cause.rungs


def test_narrow_kernels_need_a_wide_chain_above() -> None:
    avx2 = result("native", params={"chain": "avx2_float32", "cpu_workers": 2})
    low = gap("library", "native", row=by_blas("Haswell"), above_row=avx2)
    assert conditions.narrow_kernels(low) is None


@pytest.mark.parametrize(
    ("native", "clock"),
    [
        (gpu_row(sm_clock_mhz=1200), "1,200 MHz"),
        (
            result(
                "kernel",
                gpu_state=gpu_state(sm_clock_mhz=1200),
                details=Details(chip_clock_hz=1.1e9),
            ),
            "1,100 MHz",
        ),
    ],
)
def test_a_low_clock_is_the_one_that_was_counted(native: Result, clock: str) -> None:
    found = conditions.low_clock(gap("clock", "published", native=native, **GPU))
    assert clock in (found or "")


def explained(found: Gap) -> list[tuple[str, str]]:
    return [(loss.rung, loss.cause) for loss in explain_losses(found.ladder, found.host)]


@pytest.mark.parametrize("code", HOLDS)
def test_a_large_loss_has_its_cause(code: str) -> None:
    planted = HOLDS[code][0]
    assert (planted.rung.kind.key, code) in explained(planted)


def test_small_losses_need_none_and_unknown_ones_say_so() -> None:
    near = made(rung("library", 1e9), rung("mlx", 0.9e9, row=result()))
    far = made(rung("library", 1e9), rung("mlx", 0.5e9, row=result(rate=0.5e9)))
    assert explained(replace(gap(), ladder=near)) == []
    assert explained(replace(gap(), ladder=far)) == [("mlx", "UNKNOWN")]


@pytest.mark.parametrize(("fastest", "cause"), [(0.9e9, "SCATTER"), (0.6e9, "UNKNOWN")])
def test_compiled_is_below_eager_only_if_its_fastest_run_is(fastest: float, cause: str) -> None:
    eager = rung("mlx", 0.9e9, row=result(rate=0.9e9, best_rate=1e9))
    compiled = rung("mlx-compiled", 0.5e9, row=result(rate=0.5e9, best_rate=fastest))
    assert explained(replace(gap(), ladder=made(eager, compiled))) == [("mlx-compiled", cause)]


def test_hidden_smt_says_what_whole_cores_can_do() -> None:
    planted = HOLDS["HIDDEN_SMT"][0]
    low = replace(planted.rung, rate=104e9)
    high = replace(planted.above, rate=208e9)
    host = replace(planted.host, shared=SHARED)
    smt = Gap(made(high, low), low, high, host)
    sentence = conditions.hidden_smt(smt) or ""
    assert SHARED.sentence in sentence
    assert "104.0 GFLOPS" in sentence
    assert "100%" in sentence
    more_than_one_core_does = replace(smt, rung=replace(low, rate=110e9))
    assert conditions.hidden_smt(more_than_one_core_does) is None


def test_a_preloaded_blas_is_no_reference_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libopenblas.so.0")
    host = Host(2, 16, mlx_blas=BLAS, preloaded=conditions.preloaded())
    assert explained(replace(HOLDS["REFERENCE_BLAS"][0], host=host)) == [("mlx", "UNKNOWN")]


def test_the_blas_of_mlx_is_found_among_mapped_files(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    line = "7f00-7f01 r-xp 00000000 08:01 42   /site/"
    maps.write_text(
        f"{line}numpy.libs/libscipy_openblas64_-1.so\n{line}mlx_cpu.libs/{BLAS}\n7f02\n"
    )
    assert loaded_blas(maps) == BLAS
    assert loaded_blas(tmp_path / "absent") == ""


QUICK = Options(metrics=("flops",), device="cpu", sizes=(64,), cpu_workers=2)


def test_a_ladder_has_every_rung_from_the_top_down() -> None:
    found, whole = measure_ladder(QUICK, measure=FakeMeasure(unit_ns=5_000_000))
    assert [r.kind.key for r in found.rungs] == [key for key in RUNGS if key != "tried"]
    for r in found.rungs:
        assert (r.rate is None) is bool(r.reason)
        assert r.rate is None or r.by
    assert {row.case.engine for row in whole.results} == {
        "native", "library", "mlx", "mlx-compiled",
    }  # fmt: skip
    assert whole.finished
    assert found.unit == "FLOP/s"
    document = json.loads(json_text(whole, found.as_dict()))
    assert [row["rung"] for row in document["ladder"]["rungs"]] == [r.kind.key for r in found.rungs]
    assert "mlx" in whole.machine


def test_a_ladder_of_bandwidth_has_no_library() -> None:
    streams = replace(QUICK, metrics=("bandwidth",))
    found, _ = measure_ladder(streams, measure=FakeMeasure())
    reasons = {r.kind.key: r.reason for r in found.rungs}
    assert reasons["library"] == RUNGS["library"].missing
    assert not reasons["mlx"]
    assert found.unit == "B/s"


def test_a_refused_rung_shows_the_problem_alone() -> None:
    refusal = Refusal("flops by library on cpu does not support bfloat16", "use --engine mlx")
    for error, reason in ((refusal, f"{refusal.problem}."), (Unsupported("No."), "No.")):
        found = refused(RUNGS["library"], error)
        assert (found.rate, found.verdict, found.reason) == (None, "UNSUPPORTED", reason)


def test_a_rung_names_the_library_that_reached_its_rate() -> None:
    assert best_of(RUNGS["library"], run_of(by_blas("SkylakeX"))).by == (
        "openblas 0.3.31, SkylakeX kernels, n = 1024"
    )


def test_a_rung_that_can_not_be_is_a_sentence_and_the_others_are_measured() -> None:
    found, _ = measure_ladder(replace(QUICK, dtypes=("bfloat16",)), measure=FakeMeasure())
    by_key = {r.kind.key: r for r in found.rungs}
    assert by_key["library"].verdict == "UNSUPPORTED"
    assert "does not support bfloat16" in by_key["library"].reason
    assert by_key["mlx"].rate


def test_a_large_loss_below_the_clock_tests_for_hidden_smt(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(
        ladder_run, "find_shared_cores", lambda _, chain, threads: asked.append((chain, threads))
    )
    measure = FakeMeasure(unit_ns=5_000_000)
    found, whole = measure_ladder(QUICK, measure=measure)
    native = next(r for r in found.rungs if r.kind.key == "native")
    (best,) = (row for row in whole.results if row is native.row)
    share = found.share_of_above(native)
    wanted = [(best.case.params["chain"], 2)] if share is not None and share < 0.8 else []
    assert asked == wanted
    asked.clear()
    measure_ladder(replace(QUICK, sizes=None), measure=FakeMeasure(unit_ns=900_000_000))
    assert [threads for _, threads in asked] == [2]
    asked.clear()
    measure_ladder(replace(QUICK, metrics=("bandwidth",)), measure=measure)
    assert asked == []
    shared = SharedCores((Pair((0, 1), "avx2_float32", 1.0, 2.0),), 2)
    monkeypatch.setattr(ladder_run, "find_shared_cores", lambda *_: shared)
    found, _ = measure_ladder(QUICK, measure=FakeMeasure(unit_ns=900_000_000))
    (loss,) = (loss for loss in found.losses if loss.rung == "native")
    assert (loss.cause, shared.sentence in loss.sentence) == ("HIDDEN_SMT", True)


def test_a_rate_out_of_a_cache_says_so() -> None:
    note = Reason("CACHE_RESIDENT", "Small.", "note")
    params = {"op": "copy", "stores": "ordinary", "cpu_workers": 2}
    for level, words in (("L2", "in L2"), ("memory", "partly in the last cache")):
        row = result(
            "native", metric="bandwidth", params=params, reasons=(note,),
            details=Details(fits_in=level),
        )  # fmt: skip
        assert best_of(RUNGS["native"], run_of(row)).by == (
            f"native copy, ordinary stores, {words}"
        )
    row = result("native", metric="bandwidth", params=params, details=Details(fits_in="memory"))
    assert best_of(RUNGS["native"], run_of(row)).by == "native copy, ordinary stores"


def test_the_library_of_apple_gpus_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_steps.sys, "platform", "darwin")
    with pytest.raises(nnbt.Unsupported, match=r"MPSMatrixMultiplication.*--engine kernel"):
        library_steps.cublaslt(None)  # type: ignore[arg-type]


H200_RATES = {"kernel": 926e12, "library": 771e12, "mlx": 641e12, "mlx-compiled": 630e12}
CAPPED = gpu_state(sm_clock_mhz=1755, throttle_reasons=("software power cap",))


def h200(asked: list[Options], ops_per_clock: int | None = 132 * 4096) -> Any:
    """Stands for `execute`: one row an engine, as an H200 gives them."""

    def execute(options: Options, **_: Any) -> Run:
        asked.append(options)
        engine, token = options.engines[0], options.dtypes[0]
        params = {"chain": "wgmma"} if engine == "kernel" else {}
        row = result(engine, H200_RATES[engine], device="gpu", params=params)
        case = replace(row.case, dtype=token)
        details = Details(ops_per_clock=ops_per_clock) if engine == "kernel" else row.details
        done = replace(row, case=case, gpu_state=CAPPED, details=details)
        return Run(H200, [], "", [done])

    return execute


def on_gpu(patch: pytest.MonkeyPatch, facts: dict[str, Any], backend: str) -> None:
    """MLX on a GPU with these facts."""
    patch.setattr(
        ladder_run,
        "product_precision",
        lambda _, token, device, tf32: mlx_precision(token, device, facts, tf32=tf32),
    )
    patch.setattr(ladder_run.mlx, "backend", lambda: backend)


@pytest.fixture
def on_h200(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    asked: list[Options] = []
    monkeypatch.delenv("MLX_ENABLE_TF32", raising=False)
    present = replace(DEVICES["gpu"], missing=lambda: None)
    monkeypatch.setitem(DEVICES, "gpu", present)
    monkeypatch.setattr(ladder_run, "execute", h200(asked))
    info = {"compute_capability_major": 9, "compute_capability_minor": 0}
    on_gpu(monkeypatch, {**H200, "device_info": info}, "cuda")
    return asked


BF16 = replace(QUICK, device="gpu", dtypes=("bfloat16",))


def test_a_gpu_has_the_same_rungs(on_h200: list[Options]) -> None:
    found, _ = measure_ladder(replace(BF16, sizes=None))
    rates = {r.kind.key: r.rate for r in found.rungs}
    assert rates == {
        "published": pytest.approx(989.4e12, rel=1e-3), "clock": pytest.approx(132 * 4096 * 1755e6),
        "native": 926e12, "library": 771e12, "mlx": 641e12, "mlx-compiled": 630e12,
    }  # fmt: skip
    assert [options.engines for options in on_h200] == [(name,) for name in H200_RATES]
    assert [options.sizes for options in on_h200] == [None, (8192,), (8192,), (8192,)]
    assert found.losses == ()


@pytest.mark.parametrize(
    ("tf32", "above", "published_rate"),
    [("default", "tfloat32", 494.7e12), ("off", "float32", 67e12)],
)
def test_precision_of_float32(
    tf32: str, above: str, published_rate: float, on_h200: list[Options]
) -> None:
    found, _ = measure_ladder(replace(QUICK, device="gpu", tf32=tf32))
    assert [options.dtypes[0] for options in on_h200] == [above, above, "float32", "float32"]
    assert found.rungs[0].rate == pytest.approx(published_rate, rel=1e-3)


@pytest.mark.parametrize(
    ("facts", "tf32", "types", "published_as"),
    [
        ({"device_info": {"compute_capability_major": 7}}, "default", "float32", "float32"),
        ({"device_info": {"compute_capability_major": 8}}, "default", "tfloat32", "tfloat32"),
        ({"device_info": {"compute_capability_major": 8}}, "off", "float32", "float32"),
        ({"device_info": {"architecture": "applegpu_g13g"}, "system": "macOS 15.6"},
         "default", "float32", "float32"),
        ({"device_info": {"architecture": "applegpu_g17g"},
          "system": "macOS 26.2"}, "default", "float32", "tfloat32"),
    ],
)  # fmt: skip
def test_the_upper_rungs_have_the_precision_of_mlx(
    facts: dict[str, Any],
    tf32: str,
    types: str,
    published_as: str,
    on_h200: list[Options],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    published_rung = sources.published
    on_gpu(monkeypatch, {**H200, **facts}, "cuda" if "system" not in facts else "metal")
    monkeypatch.setattr(
        sources, "published", lambda *args: asked.append(args[2]) or published_rung(*args)
    )
    measure_ladder(replace(QUICK, device="gpu", tf32=tf32))
    assert [options.dtypes[0] for options in on_h200[:2]] == [types, types]
    assert asked == [published_as]


def test_a_gpu_without_tf32_has_it_not_switched_off() -> None:
    assert conditions.tf32_off(gap(tf32=False, **GPU))
    assert not conditions.tf32_off(gap(tf32=None, **GPU))


@pytest.mark.parametrize(("tf32", "per_clock"), [("default", 2048), ("off", 256)])
def test_clock_peak_of_float32(
    tf32: str, per_clock: int, on_h200: list[Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = ladder_run.execute
    peaks = {"tfloat32": 2048, "float32": 256}

    def execute(options: Options, **_: Any) -> Run:
        if options.engines != ("kernel",):
            return ordinary(options)
        token = options.dtypes[0]
        return Run(H200, [], "", [counted("wgmma", token, 1800, peaks[token])])

    monkeypatch.setattr(ladder_run, "execute", execute)
    found, _ = measure_ladder(replace(QUICK, device="gpu", tf32=tf32))
    assert found.rungs[1].rate == pytest.approx(132 * per_clock * 1800e6)
    assert on_h200


def test_power_cap(on_h200: list[Options], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(H200_RATES, "kernel", 700e12)
    found, _ = measure_ladder(BF16)
    (loss,) = found.losses
    assert (loss.rung, loss.cause, len(on_h200)) == ("native", "POWER_CAP", 4)
    assert "software power cap" in loss.sentence


def test_clock_peak_of_an_unknown_chip(
    on_h200: list[Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder_run, "execute", h200(on_h200, ops_per_clock=None))
    found, _ = measure_ladder(BF16)
    assert on_h200
    assert found.rungs[1].rate == pytest.approx(132 * 4096 * 1755e6)


@pytest.mark.parametrize(
    ("changes", "library", "words"),
    [
        ({"metrics": ("conv",)}, None, "--metric bandwidth or flops"),
        ({"metrics": ("flops_graph",)}, None, "--metric bandwidth or flops"),
        ({"device": "hybrid"}, None, "--device cpu or gpu"),
        ({"dtypes": ("float33",)}, None, "--dtype 'float33'"),
        ({}, "no/such/lib.so", "no/such/lib.so does not exist"),
        ({"metrics": ("bandwidth",)}, "lib.so", "--try preloads a BLAS"),
        ({"dtypes": ("float16",)}, "lib.so", "--try preloads a BLAS"),
        ({}, "/tmp/a b.so", "splits paths at spaces"),  # noqa: S108  never opened
    ],
)
def test_refusals(
    changes: dict[str, Any], library: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preload.sys, "platform", "linux")
    with pytest.raises(nnbt.Unsupported, match=words):
        measure_ladder(replace(QUICK, **changes), library=library, measure=FakeMeasure())


SGEMM = """
#include <stddef.h>
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a,
                 int lda, const float* b, int ldb, float beta, float* c, int ldc) {
  (void)order;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) {
        sum += (ta == 112 ? a[(size_t)l * lda + i] : a[(size_t)i * lda + l]) *
               (tb == 112 ? b[(size_t)j * ldb + l] : b[(size_t)l * ldb + j]);
      }
      c[(size_t)i * ldc + j] = FACTOR * alpha * sum + (beta ? beta * c[(size_t)i * ldc + j] : 0);
    }
  }
}
"""


END = "#include <unistd.h>\n__attribute__((constructor)) static void end(void) { _exit(3); }"
RIGHT, WRONG = (SGEMM.replace("FACTOR", factor) for factor in ("1.0f", "2.0f"))


def built(folder: Path, source: str) -> str:
    compile_library(source, folder / "libtried.so")
    return str(folder / "libtried.so")


def tried(path: str) -> Rung:
    return preloaded_rung(replace(QUICK, sizes=(48,), runs=5, warmup=1), path)


def test_a_right_blas_makes_a_rung(tmp_path: Path) -> None:
    found = tried(built(tmp_path, RIGHT))
    assert found.rate, found.reason
    assert found.rate > 0
    assert (found.by, found.unit) == ("libtried.so, n = 48", "FLOP/s")


@pytest.mark.parametrize(
    ("source", "verdict", "end"),
    [(WRONG, {"INVALID"}, ""), (END, {""}, "exit code 3"), ("", {"", "INVALID"}, "")],
    ids=["wrong", "ends the process", "no library"],
)
def test_no_rung(tmp_path: Path, source: str, verdict: set[str], end: str) -> None:
    (tmp_path / "libtried.so").write_text("no library")
    found = tried(built(tmp_path, source) if source else str(tmp_path / "libtried.so"))
    assert found.rate is None
    assert found.verdict in verdict
    assert "libtried.so" in found.reason
    assert found.reason.endswith(end)


def test_a_library_without_sgemm_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder_run, "execute", lambda *_, **__: pytest.fail("measured"))
    library = built(tmp_path, RIGHT.replace("cblas_", "scipy_cblas_"))
    with pytest.raises(nnbt.Unsupported, match=r"libtried\.so has no cblas_sgemm"):
        measure_ladder(QUICK, library=library, measure=FakeMeasure())


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (RIGHT, ""),
        ("int cblas_dgemm;", "no function"),
        (END, ""),
        (
            "#include <stdio.h>\n"
            '__attribute__((constructor)) static void hi(void) { printf("\\xff banner "); }\n'
            '__attribute__((destructor)) static void bye(void) { printf("bye\\n"); }',
            "no function",
        ),
    ],
)
def test_libraries_without_a_function(source: str, problem: str, tmp_path: Path) -> None:
    detail = "cblas_sgemm" if problem else ""
    assert try_loading(built(tmp_path, source), "cblas_sgemm") == Trial(problem, detail)


@pytest.mark.parametrize("name", ["loop.so", "x" * 300])
def test_names_that_no_file_can_have_are_sentences(name: str, tmp_path: Path) -> None:
    (tmp_path / "loop.so").symlink_to(tmp_path / "loop.so")
    with pytest.raises(nnbt.Unsupported, match="use --try with the path of an installed OpenBLAS"):
        measure_ladder(QUICK, library=str(tmp_path / name), measure=FakeMeasure())


def test_a_library_that_loads_forever_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = built(tmp_path, END.replace("_exit(3)", "pause()"))
    monkeypatch.setattr(preload, "_LOAD_SECONDS", 1)
    with pytest.raises(nnbt.Unsupported, match="did not finish within 1 s"):
        measure_ladder(QUICK, library=library, measure=FakeMeasure())


def test_what_can_not_be_loaded_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    text = tmp_path / "libtext.so"
    text.write_text("no library")
    measure = FakeMeasure()
    with pytest.raises(nnbt.Unsupported, match=r"libtext\.so cannot be loaded \(.*\): use --try"):
        measure_ladder(QUICK, library=str(text), measure=measure)
    assert measure.calls == []


def test_the_command_prints_the_picture_and_writes_files(tmp_path: Path) -> None:
    done = command(
        "ladder", "--device", "cpu", "--sizes", "48", "--runs", "3", "--cpu-workers", "1",
        "--csv", "l.csv", "--json", "l.json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for kind in RUNGS.values():
        assert (kind.label in done.stdout) is (kind.key != "tried")
    assert "█" in done.stdout
    document = json.loads((tmp_path / "l.json").read_text())
    validate(document)
    assert [row["rung"] for row in document["ladder"]["rungs"]] == [
        k for k in RUNGS if k != "tried"
    ]
    assert all(row["samples_ns"] for row in document["results"] if row["status"] == "OK")
    with (tmp_path / "l.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(RUNGS) - 1


def test_the_command_draws_in_ascii_where_it_must(tmp_path: Path) -> None:
    done = command(
        "ladder", "--device", "cpu", "--sizes", "48", "--runs", "1", "--metric", "bandwidth",
        cwd=tmp_path, PYTHONIOENCODING="ascii",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "##" in done.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--metric", "conv"], "--metric bandwidth or flops"),
        (["--try", "no.so", "--device", "cpu"], "no.so does not exist: use --try"),
        (["--sizes", "0", "--device", "cpu"], "--sizes 0"),
        (["--tf32", "maybe", "--device", "cpu"], "Unknown --tf32"),
        (["--dtype", "float33", "--device", "cpu"], "Unknown --dtype"),
        (["--json", "."], "is a folder"),
    ],
)
def test_the_command_refuses_in_one_sentence(args: list[str], words: str) -> None:
    done = command("ladder", *args)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
