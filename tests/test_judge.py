"""Every row of CHECKS can fail: a fault is planted into a clean case and changes its verdict."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import nnbt
from fake_measure import FakeMeasure
from faults import FAULTS, Fault, with_counters
from nnbt.peaks.published import Ceiling
from nnbt.pipeline import session as runner
from nnbt.results.schema1 import _CODES as RENAMED
from nnbt.spec.case import Case
from nnbt.spec.precision import effective_bits, expected_bits
from nnbt.spec.workload import Answer, DataShare
from nnbt.timing.scatter import modes, rank_correlation
from nnbt.timing.slope import Slope, fit
from nnbt.timing.statistics import summarize
from nnbt.verdict import slope as slope_checks
from nnbt.verdict.checks import CHECKS
from nnbt.verdict.evidence import Evidence
from nnbt.verdict.judge import judge

SEVERITY = {check.code: check.severity for check in CHECKS}
VERDICT = {"invalid": "INVALID", "suspect": "SUSPECT", "note": "VALID"}


@pytest.fixture(autouse=True)
def _no_known_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "last_cache_bytes", lambda: None)


def judged(**arguments: Any) -> nnbt.Result:
    settings = {"device": "cpu", "sizes": [64], "cpu_workers": 1} | arguments
    (row,) = nnbt.run(**settings).results
    assert row.status == "OK", row.reason
    return row


def codes(row: nnbt.Result) -> list[str]:
    return [reason.code for reason in row.reasons]


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, id=fault.name, marks=fault.marks) for fault in FAULTS]
)
def test_a_planted_fault_changes_the_verdict(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    clean = judged(measure=FakeMeasure(), **fault.case)
    assert (clean.verdict, clean.reasons) == ("VALID", ())

    measure = FakeMeasure()
    changes = fault.plant(monkeypatch, measure) or {}
    if fault.finding:
        only = {fault.finding: slope_checks.DISAGREEMENTS[fault.finding]}
        monkeypatch.setattr(slope_checks, "DISAGREEMENTS", only)
    faulty = judged(**{"measure": measure} | fault.case | changes)
    assert fault.code in codes(faulty)
    assert faulty.verdict == VERDICT[SEVERITY[fault.code]]


def test_counters_that_close_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with_counters(monkeypatch)
    row = judged(measure=FakeMeasure())
    assert row.details.counters.status == "ok"
    assert (row.verdict, row.reasons) == ("VALID", ())


def test_every_check_has_a_planted_fault() -> None:
    assert {fault.code for fault in FAULTS} == {check.code for check in CHECKS}
    findings = {fault.finding for fault in FAULTS if fault.finding}
    assert findings == set(slope_checks.DISAGREEMENTS)


def test_renamed_codes_are_gone_and_their_new_names_exist() -> None:
    assert not set(RENAMED) & set(SEVERITY)
    assert set(RENAMED.values()) <= set(SEVERITY)


def test_reasons_stand_worst_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "last_cache_bytes", lambda: 2**40)
    row = judged(measure=FakeMeasure(), data="nan", runs=3)
    assert [reason.severity for reason in row.reasons] == sorted(
        (reason.severity for reason in row.reasons), key=["invalid", "suspect", "note"].index
    )
    assert codes(row) == ["NON_FINITE", "NON_RANDOM_DATA", "FEW_SAMPLES", "CACHE_RESIDENT"]


def test_each_check_is_one_full_row() -> None:
    assert len(SEVERITY) == len(CHECKS)
    for check in CHECKS:
        assert check.code.isupper()
        assert check.severity in VERDICT
        assert check.looks_at
        assert check.threshold
        assert check.hazard


SHARE = DataShare(finite=1.0, zero=0.0, denormal=0.0, rms=1.0, all_finite=True)
ANSWER = Answer("a block", error=1e-7, worst=1e-6, typical=1e-7, inputs=SHARE, outputs=SHARE)
LINE = {k: 1e-3 * k for k in (1, 2, 4, 8)}


def evidence(**changes: Any) -> Evidence:
    samples = [1_000_000, 1_001_000, 999_000, 1_000_500, 999_500] * 4
    clean = Evidence(
        case=Case("flops", "cpu", "mlx", "float32", 64, {"data": "normal"}), samples_ns=samples,
        summary=summarize(samples), rate=1e9, window_s=1.0, mantissa=24, inner=64, answer=ANSWER,
        slope=fit(LINE, 1e-6), floor_s=1e-6,
    )  # fmt: skip
    return replace(clean, **changes)


def codes_of(**changes: Any) -> set[str]:
    return {reason.code for reason in judge(evidence(**changes))[1]}


def test_made_up_evidence_without_a_fault_is_valid() -> None:
    assert judge(evidence(ceiling=Ceiling(2e9, "a peak"))) == ("VALID", ())


@pytest.mark.parametrize("rate", [math.nan, 0.0, -1.0, math.inf])
def test_no_number_passes_as_a_rate(rate: float) -> None:
    assert codes_of(rate=rate, ceiling=Ceiling(2e9, "a peak")) == {"NO_RATE"}
    assert codes_of(ceiling=Ceiling(rate, "a peak")) == {"NO_RATE"}


@pytest.mark.parametrize("field", ["error", "worst", "typical"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_no_number_passes_as_an_error(field: str, value: float) -> None:
    assert "WRONG_ANSWER" in codes_of(answer=replace(ANSWER, **{field: value}))


def test_an_rms_that_is_no_number_is_seen() -> None:
    outputs = replace(SHARE, rms=math.nan)
    assert codes_of(answer=replace(ANSWER, outputs=outputs)) == {"NON_FINITE"}


def test_an_answer_without_a_comparison_is_unchecked() -> None:
    assert codes_of(answer=Answer("nothing")) == {"UNCHECKED"}


@pytest.mark.parametrize(
    ("factor", "readings", "found"),
    [
        (1.0, {}, set()),
        (2.4, {}, set()),  # a slope that was disturbed a little
        (2.6, {}, {"HEADLINE_OFF_SLOPE"}),
        (2.6, {"steal_time": 0.5}, {"BACKGROUND_LOAD"}),
        (6.0, {"steal_time": 0.5}, {"BACKGROUND_LOAD", "HEADLINE_OFF_SLOPE"}),
        (100.0, {}, {"HEADLINE_OFF_SLOPE"}),
    ],
)
def test_headline_and_slope(factor: float, readings: dict[str, float], found: set[str]) -> None:
    slope = fit({k: factor * t for k, t in LINE.items()}, 1e-6)
    assert codes_of(slope=slope, readings=readings) == found


@pytest.mark.parametrize(("steal", "found"), [(0.5, {"BACKGROUND_LOAD"}), (0.0, None)])
def test_under_load_the_median_counts(steal: float, found: set[str] | None) -> None:
    """The fastest run had a moment for itself: a tenth of what a unit takes beside the others."""
    samples = [100_000, *([500_000] * 11)]
    changes = {"samples_ns": samples, "summary": summarize(samples), "rate": 1.0}
    codes = codes_of(readings={"steal_time": steal}, slope=fit(LINE, 1e-6), **changes)
    assert codes == (found or {"HEADLINE_OFF_SLOPE"})


def test_a_first_unit_that_was_skipped_is_no_mere_slowdown() -> None:
    """Two K, of which the first spins for a tenth of its time."""
    slope = fit({1: 1e-3, 2: 20e-3}, 1e-6)
    assert codes_of(slope=slope) == {"HEADLINE_OFF_SLOPE", "SLOPE_DISAGREES"}


@pytest.mark.parametrize(
    ("doubling", "window_s", "found"),
    [
        (1.6, 0.05, {"SLOPE_DISAGREES"}),
        (1.6, 0.6, {"WORK_NOT_DONE"}),
        (1.3, 0.05, {"WORK_NOT_DONE"}),
    ],
)
def test_a_window_too_short_for_load(doubling: float, window_s: float, found: set[str]) -> None:
    slope = replace(fit(LINE, 1e-6), doubling=doubling)
    assert codes_of(slope=slope, window_s=window_s) == found


def findings(**changes: Any) -> set[str]:
    made = evidence(**changes)
    return {name for name, test in slope_checks.DISAGREEMENTS.items() if test(made)}


STEEP = replace(fit(LINE, 1e-6), doubling=2.3)
BENT = replace(fit(LINE, 1e-6), residual=0.51)
FAST = replace(fit(LINE, 1e-6), unit_s=0.5e-3)


@pytest.mark.parametrize(
    ("slope", "window_s", "found"),
    [
        (STEEP, 1.0, {"superlinear"}),
        (replace(STEEP, doubling=2.2), 1.0, set()),
        (BENT, 1.0, {"bent"}),
        (replace(BENT, residual=0.5), 1.0, set()),
        (FAST, 1.0, {"median"}),
        (replace(FAST, unit_s=0.56e-3), 1.0, set()),
        (replace(BENT, doubling=1.79), 0.4, {"unclear", "bent"}),
        (replace(STEEP, residual=0.6), 1.0, {"superlinear", "bent"}),
        (replace(BENT, doubling=None), 1.0, set()),  # nothing is told, so nothing disagrees
    ],
)
def test_disagreements_have_thresholds(slope: Slope, window_s: float, found: set[str]) -> None:
    assert findings(slope=slope, window_s=window_s) == found
    assert ("SLOPE_DISAGREES" in codes_of(slope=slope, window_s=window_s)) == bool(found)


@pytest.mark.parametrize(
    ("n", "zero", "found"),
    [
        (1, 1.0, set()),  # one element proves nothing
        (64, 0.52, set()),  # heads of a coin among 4096
        (64, 0.6, {"DEGENERATE_DATA"}),
        (4096, 0.51, {"DEGENERATE_DATA"}),
    ],
)
def test_a_share_of_zeros_is_judged_by_its_scatter(n: int, zero: float, found: set[str]) -> None:
    case = Case("flops", "cpu", "mlx", "float32", n, {"data": "normal"})
    answer = replace(ANSWER, inputs=replace(SHARE, zero=zero))
    assert codes_of(case=case, answer=answer) == found


def test_a_slope_that_tells_nothing_shows_no_rate() -> None:
    row = judged(measure=FakeMeasure(unit_ns=1_000), metric="flops")
    assert row.slope.doubling is None
    assert (row.slope_rate, row.overhead_us) == (None, None)
    assert "LAUNCH_BOUND" in codes(row)


@pytest.mark.parametrize("bits", [8, 10, 16, 23])
def test_effective_bits_counts_the_bits_of_rounded_values(bits: int) -> None:
    values = np.random.default_rng(0).standard_normal(100_000)
    mantissa, exponent = np.frexp(values)
    rounded = np.ldexp(np.round(mantissa * 2.0**bits) / 2.0**bits, exponent)
    error = np.sqrt(np.mean((rounded - values) ** 2) / np.mean(values**2))
    assert effective_bits(float(error)) == pytest.approx(bits, abs=0.2)


def test_effective_bits_at_the_ends() -> None:
    assert effective_bits(0.0) == math.inf
    assert effective_bits(10.0) == 0.0
    assert effective_bits(math.nan) is None
    assert effective_bits(None) is None


@pytest.mark.parametrize(
    ("mantissa", "inner", "bits"), [(8, 4096, 8), (11, 4096, 11), (24, 4096, 18), (53, 4096, 47)]
)
def test_expected_bits_lose_half_a_bit_a_doubling(mantissa: int, inner: int, bits: float) -> None:
    assert expected_bits(mantissa, inner) == bits


@pytest.mark.parametrize("seed", range(5))
def test_rank_correlation_is_that_of_scipy(seed: int) -> None:
    samples = np.random.default_rng(seed).integers(0, 20, 50)
    expected = stats.spearmanr(np.arange(50), samples).statistic
    assert rank_correlation([int(x) for x in samples]) == pytest.approx(expected)


def test_rank_correlation_of_equal_samples_is_zero() -> None:
    assert rank_correlation([7] * 20) == 0.0


@pytest.mark.parametrize(
    ("samples", "found"),
    [
        ([100] * 20, None),
        ([100, 101, 99] * 7, None),
        ([100] * 15 + [150] * 5, (100, 150)),
        ([100] * 7 + [150] * 2, None),  # too few
        ([100] * 19 + [150], None),  # one outlier is no mode
        ([100] * 10 + [110] * 10, None),  # too near
        (list(range(100, 200)), None),  # a broad single group
    ],
)
def test_modes(samples: list[int], found: tuple[float, float] | None) -> None:
    assert modes(samples) == found
