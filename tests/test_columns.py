"""nnbt.results.columns: numbers by size on a terminal, plain numbers in CSV."""

import csv
import math
from dataclasses import replace

import pytest

from nnbt.results.columns import COLUMNS, chosen, csv_text, number, shown
from nnbt.results.result import Reason, Result
from nnbt.spec.case import Case

BY_KEY = {column.key: column for column in COLUMNS}


def result(rate: float = 12.3456e9, unit: str = "FLOP/s", **changes: object) -> Result:
    row = Result(
        Case("flops", "cpu", "mlx", "float32", 64, {"cpu_workers": 2, "data": "normal"}),
        verdict="VALID", median_s=0.0012345678, interval_s=(0.0012, 0.0013), best_s=0.0012,
        rate=rate, best_rate=rate * 1.01, unit=unit, samples_ns=(1_200_000,) * 5,
        sizes={"n": 64, "matrix_bytes": 2**20},
    )  # fmt: skip
    return replace(row, **changes)  # type: ignore[arg-type]


def cells(*rows: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(csv_text(rows).splitlines()))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"), (123456, "123456"), (0.0, "0"), (123456.7, "123457"), (1234.56, "1235"),
        (999.96, "1000"), (123.456, "123.5"), (12.3456, "12.35"), (1.23456, "1.235"),
        (0.123456, "0.1235"), (0.0123456, "0.01235"), (0.00123456, "0.001235"),
        (0.000123456, "1.235e-04"), (-12.3456, "-12.35"), (math.inf, "exact"), (math.nan, "-"),
    ],
)  # fmt: skip
def test_numbers_have_the_digits_of_their_size(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("n", None, "-"), ("dtype", "", "-"), ("verdict", "VALID", "✓ VALID"),
        ("verdict", "SUSPECT", "? SUSPECT"), ("verdict", "INVALID", "✗ INVALID"),
        ("verdict", "SKIPPED", "- SKIPPED"), ("interval_pct", 12.345, "12.3"),
        ("effective_bits", math.inf, "exact"), ("median_ms", 1.23456, "1.235"),
    ],
)  # fmt: skip
def test_cells(key: str, value: float | str | None, text: str) -> None:
    assert shown(BY_KEY[key], value) == text


@pytest.mark.parametrize(
    ("rate", "unit", "heading"),
    [
        (9e9, "FLOP/s", "GFLOPS"), (2e12, "FLOP/s", "TFLOPS"), (9e9, "IOP/s", "GIOPS"),
        (2e12, "QOP/s", "TQOPS"), (2e12, "B/s", "GB/s"),
    ],
)  # fmt: skip
def test_a_table_shows_one_unit(rate: float, unit: str, heading: str) -> None:
    headers = [column.header for column in chosen([result(rate, unit)])]
    rates = [name for name in headers if name.endswith(("OPS", "B/s"))]
    assert rates == [heading, f"best {heading}"]


def test_columns_without_values_are_left_out() -> None:
    headers = {column.header for column in chosen([result()])}
    assert "eff n" not in headers
    assert "eff n" in {c.header for c in chosen([result(), result(sizes={"eff_n": 64})])}


def test_a_row_without_a_number_makes_a_table() -> None:
    row = Result(Case("flops", "cpu", "mlx", "int8", 64), "UNSUPPORTED", "because", unit="IOP/s")
    headers = [column.header for column in chosen([row])]
    assert headers[-1] == "verdict"


def test_csv_holds_plain_numbers_with_units_in_the_names() -> None:
    (row,) = cells(result(effective_bits=math.inf, overhead_us=0.5))
    assert float(row["gflops"]) == pytest.approx(12.3456)
    assert float(row["tflops"]) == pytest.approx(0.0123456)
    assert float(row["best_gflops"]) == pytest.approx(12.3456 * 1.01)
    assert float(row["median_ms"]) == pytest.approx(1.2345678)
    assert float(row["interval_low_ms"]) == pytest.approx(1.2)
    assert float(row["matrix_mib"]) == 1
    assert row["runs"] == "5"
    assert row["cpu_workers"] == "2"
    assert row["gb_per_s"] == ""
    assert row["effective_bits"] == ""


def test_csv_has_one_header_for_all_kinds_of_rows() -> None:
    reasons = (Reason("FEW_SAMPLES", "few, very few", "suspect"), Reason("DRIFT", "x", "suspect"))
    failed = Result(
        Case("bandwidth", "gpu", "mlx", "bool", 9, {"op": "add"}), "ERROR", 'said "no",\nand fell'
    )
    rows = cells(result(), result(unit="B/s", reasons=reasons), failed)
    assert [row["status"] for row in rows] == ["OK", "OK", "ERROR"]
    assert rows[1]["reasons"] == "FEW_SAMPLES DRIFT"
    assert rows[2]["reason"].startswith('said "no",')
    assert rows[2]["op"] == "add"
    assert rows[2]["median_ms"] == ""


def test_keys_are_different() -> None:
    assert len(BY_KEY) == len(COLUMNS)
