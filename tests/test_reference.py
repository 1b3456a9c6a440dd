"""The published tables reproduce from their shapes, and nothing invalid passes for a ceiling."""

import pytest

from nnbt.peaks import chips, reference
from nnbt.peaks.reference import Shape

STANDARD = Shape(1, 128, 256, 3, 20)
SATURATION = Shape(1, 256, 256, 3, 50)
RESIDENT = Shape(1, 128, 64, 3, 10)


def test_operations_of_the_published_shapes():
    assert STANDARD.ops == 2 * 193_273_528_320
    assert SATURATION.ops == 2 * 1_932_735_283_200
    assert RESIDENT.ops == 2 * 6_039_797_760


@pytest.mark.parametrize("row", reference.references())
def test_every_row_has_a_source_a_caveat_and_multiplies_out(row):
    assert row.source
    assert row.url.startswith("https://")
    assert "all-zero" in row.caveat
    assert row.confidence in {"high", "medium", "low"}
    assert row.device in {"ane", "gpu"}
    assert row.variant in {"fp16", "int8", "qdq"}
    assert row.chip == "" or row.chip in {known.id for known in chips.chips()}
    # Latency is printed to 10 us, the rate to 0.01 TOPS.
    low = row.shape.ops / ((row.latency_ns + 5e3) * 1e-9) - 0.006e12
    high = row.shape.ops / ((row.latency_ns - 5e3) * 1e-9) + 0.006e12
    assert low <= row.ops_per_s <= high


def test_all_published_rows_are_here():
    rows = reference.references()
    assert len(rows) == 24
    assert sum(row.model.startswith("iPhone") for row in rows) == 8


def test_phones_and_effective_rates_are_no_ceilings():
    for row in reference.references():
        if row.model.startswith("iPhone"):
            assert not row.valid
            assert row.device == "gpu" or "skips" in row.caveat
        if row.device == "gpu":
            assert not row.valid
        if row.valid:
            peak = chips.chip(row.model.removeprefix("Mac mini ").removeprefix("MacBook Pro "))
            assert peak is not None


CORES, CLOCK_HZ = 16, 2.42e9
OPS_PER_CLOCK = {"fp16": 512, "qdq": 512, "int8": 512}
"""Of a core; chips from M4 on do twice as many in INT8 (measure_ane_capacity, maderix/ANE)."""


def test_valid_rows_stay_below_the_multipliers():
    for row in reference.references():
        if row.valid:
            double = row.variant == "int8" and row.chip >= "apple-m4"
            per_clock = OPS_PER_CLOCK[row.variant] * (2 if double else 1)
            assert row.ops_per_s < per_clock * CORES * CLOCK_HZ, row


def test_nearest():
    exact = reference.nearest(STANDARD, device="ane", variant="int8", chip="apple-m4-pro")
    assert (exact.model, exact.ops_per_s) == ("Apple M4 Pro", 35.87e12)
    large = reference.nearest(Shape(1, 256, 256, 3, 40), device="ane", variant="int8")
    assert large.shape == SATURATION
    small = reference.nearest(Shape(1, 96, 48, 3, 10), device="ane", variant="fp16")
    assert small.shape == RESIDENT
    valid = reference.nearest(
        Shape(1, 96, 48, 3, 10), device="ane", variant="fp16", valid_only=True
    )
    assert valid.shape == STANDARD
    m1 = reference.nearest(RESIDENT, device="ane", variant="fp16", chip="apple-m1")
    assert m1.ops_per_s == 10.83e12


def test_nearest_of_nothing():
    assert reference.nearest(STANDARD, device="ane", variant="fp8") is None
    assert reference.nearest(STANDARD, device="ane", variant="fp16", chip="apple-m5") is None
    with pytest.raises(ValueError, match="at least 1"):
        reference.nearest(Shape(1, 0, 64, 3, 1), device="ane", variant="fp16")
