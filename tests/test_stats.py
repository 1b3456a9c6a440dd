"""Statistics against NumPy's and SciPy's, on recorded run times and on generated ones.

tests/data/samples.json was written by tests/data/record.py: measured samples, and expected values
that NumPy and SciPy computed when they were recorded.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from nnbt import _native
from nnbt.timing import statistics as stats

RECORDS: dict[str, Any] = json.loads((Path(__file__).parent / "data/samples.json").read_text())
samples_ns = st.lists(st.integers(0, 10**12), min_size=1, max_size=200)


@pytest.mark.parametrize("name", RECORDS)
def test_recorded_samples(name: str) -> None:
    record = RECORDS[name]
    samples = record["samples_ns"]
    assert _native.median(samples) == record["median"]
    for q, expected in record["quantiles"].items():
        assert _native.quantile(samples, float(q)) == pytest.approx(expected, rel=1e-12)
    assert _native.median_absolute_deviation(samples) == pytest.approx(record["mad"], rel=1e-12)
    assert _native.median_interval(samples) == pytest.approx(record["interval"], rel=1e-9)


@pytest.mark.parametrize("name", RECORDS)
def test_recorded_expectations_are_still_scipys(name: str) -> None:
    """The interval is SciPy's own order-statistic interval of a quantile, where it has one."""
    record = RECORDS[name]
    samples = record["samples_ns"]
    test = scipy_stats.quantile_test(samples, q=record["median"], p=0.5)
    interval = test.confidence_interval(confidence_level=0.95)
    if not math.isnan(interval.low):
        assert interval.low >= record["interval"][0]
        assert interval.high <= record["interval"][1]
    assert float(np.median(samples)) == record["median"]
    assert float(scipy_stats.median_abs_deviation(samples)) == record["mad"]


@given(samples_ns, st.floats(0, 1))
def test_quantile_is_numpys(samples: list[int], q: float) -> None:
    assert _native.quantile(samples, q) == pytest.approx(float(np.quantile(samples, q)), rel=1e-9)


@given(samples_ns)
def test_median_and_deviation_are_numpys_and_scipys(samples: list[int]) -> None:
    assert _native.median(samples) == pytest.approx(float(np.median(samples)), rel=1e-12)
    deviation = float(scipy_stats.median_abs_deviation(samples))
    assert _native.median_absolute_deviation(samples) == pytest.approx(deviation, rel=1e-9)


@settings(max_examples=60)
@given(st.integers(5, 3000), st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999]))
def test_interval_ranks_are_the_narrowest_that_cover(n: int, confidence: float) -> None:
    interval = _native.median_interval(list(range(n)), confidence)
    assert interval is not None
    low, high, coverage = interval
    k = int(low)
    assert high == n - 1 - k
    binomial = scipy_stats.binom(n, 0.5)
    assert coverage == pytest.approx(1 - 2 * binomial.cdf(k), abs=1e-9)
    if k > 0:
        assert coverage >= confidence
    assert 2 * (k + 1) + 1 >= n or 1 - 2 * binomial.cdf(k + 1) < confidence


def test_intervals_hold_the_true_median_as_often_as_they_say() -> None:
    generator = np.random.default_rng(5)
    draws = 4000
    held, coverage = 0, 0.0
    for _ in range(draws):
        # A skewed distribution with the median 10 000.
        samples = (1e4 * generator.lognormal(0, 0.5, 31)).astype(np.int64).tolist()
        interval = _native.median_interval(samples)
        held += interval[0] <= 1e4 <= interval[1]
        coverage = interval[2]
    # Four standard errors of a share of 4000 draws.
    assert held / draws == pytest.approx(coverage, abs=4 * math.sqrt(0.95 * 0.05 / draws))


def test_too_few_samples_have_no_interval() -> None:
    assert _native.median_interval([1, 2, 3, 4]) is None
    assert _native.median_interval([]) is None
    assert math.isnan(_native.median([]))
    assert math.isnan(_native.quantile([], 0.5))


@pytest.mark.parametrize("q", [-0.01, 1.01, math.nan, math.inf])
def test_quantile_outside_of_0_to_1_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="q must be between 0 and 1"):
        _native.quantile([1, 2, 3], q)


def test_summary_is_in_seconds() -> None:
    samples = RECORDS["matrix product"]["samples_ns"]
    summary = stats.summarize(samples)
    expected = RECORDS["matrix product"]
    assert summary.count == len(samples)
    assert summary.median_s == pytest.approx(expected["median"] * 1e-9)
    assert summary.best_s == pytest.approx(min(samples) * 1e-9)
    assert summary.p95_s == pytest.approx(expected["quantiles"]["0.95"] * 1e-9)
    assert summary.mad_s == pytest.approx(expected["mad"] * 1e-9)
    assert summary.interval_s == pytest.approx([v * 1e-9 for v in expected["interval"][:2]])
    assert summary.coverage == pytest.approx(expected["interval"][2])


def test_summary_below_five_samples_has_no_interval() -> None:
    summary = stats.summarize([3, 1, 2])
    assert (summary.count, summary.median_s) == (3, pytest.approx(2e-9))
    assert summary.interval_s is None
    assert summary.coverage is None
    with pytest.raises(ValueError, match="no samples"):
        stats.summarize([])
