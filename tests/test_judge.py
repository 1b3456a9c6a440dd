"""Every row of CHECKS can fail: a fault is planted into a clean case and changes its verdict."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import nnbt
from fake_measure import FakeMeasure
from faults import FAULTS, Fault
from nnbt import runner
from nnbt.checks import CHECKS, modes, rank_correlation
from nnbt.evidence import effective_bits, expected_bits

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
    faulty = judged(**{"measure": measure} | fault.case | changes)
    assert fault.code in codes(faulty)
    assert faulty.verdict == VERDICT[SEVERITY[fault.code]]


def test_every_check_has_a_planted_fault() -> None:
    assert {fault.code for fault in FAULTS} == {check.code for check in CHECKS}


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
        ([100] * 19 + [150], None),  # one outlier is no mode
        ([100] * 10 + [110] * 10, None),  # too near
        (list(range(100, 200)), None),  # a broad single group
    ],
)
def test_modes(samples: list[int], found: tuple[float, float] | None) -> None:
    assert modes(samples) == found
