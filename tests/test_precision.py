"""How a float32 product was computed: one answer for the label, the ceiling and the check."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

import nnbt
from fake_measure import FakeMeasure
from nnbt.engines.mlx import flops as mlx_flops
from nnbt.engines.mlx import setup as mlx_setup
from nnbt.peaks.published import published_ceiling
from nnbt.spec.case import Case
from nnbt.spec.precision import (
    BITS_MARGIN,
    Precision,
    expected_bits,
    measured_precision,
    mlx_precision,
    tf32_enabled,
    unit_dtype,
)
from nnbt.spec.workload import Answer, DataShare
from nnbt.timing.slope import fit
from nnbt.timing.statistics import summarize
from nnbt.verdict.evidence import Evidence
from nnbt.verdict.judge import judge

N = 8192
"""There an H200 has 10.7 correct bits with TF32, and 18 without (relative error 2.6e-4, 1.6e-6)."""


def cuda(name: str, major: int, minor: int) -> dict[str, Any]:
    info = {"compute_capability_major": major, "compute_capability_minor": minor}
    return {"device_name": name, "backend": "cuda", "system": "Linux", "device_info": info}


def apple(name: str, architecture: str, system: str) -> dict[str, Any]:
    info = {"architecture": architecture}
    return {"device_name": name, "backend": "metal", "system": system, "device_info": info}


V100 = cuda("Tesla V100-SXM2-16GB", 7, 0)
A100 = cuda("NVIDIA A100-SXM4-80GB", 8, 0)
H200 = cuda("NVIDIA H200", 9, 0)
M1 = apple("Apple M1", "applegpu_g13g", "macOS 15.6")
M4 = apple("Apple M4 Max", "applegpu_g16s", "macOS 26.4")
M5 = apple("Apple M5", "applegpu_g17g", "macOS 26.2")
M5_OLD = {**M5, "system": "macOS 26.1.1"}
UNNAMED = {"device_name": "Voodoo 2", "backend": "metal", "system": "macOS 26.4"}


@pytest.mark.parametrize(
    ("facts", "tf32", "expected"),
    [
        (V100, True, "full"),
        (A100, True, "TF32"),
        (A100, False, "full"),
        (H200, True, "TF32"),
        (H200, False, "full"),
        (M1, True, "full"),
        (M4, True, "full"),
        (M5, True, "TF32"),
        (M5, False, "full"),
        (M5_OLD, True, "full"),
        ({**M5, "system": "macOS 27.0"}, True, "TF32"),
        ({**M5, "system": "macOS 26"}, True, "full"),
        ({**M5, "system": ""}, True, "unknown"),
        ({**M5, "device_info": {}}, True, "TF32"),  # by its name
        ({**M4, "device_info": {}}, True, "full"),
        (apple("Apple Paravirtual device", "applegpu_paravirtual", "macOS 26.4"), True, "full"),
        (UNNAMED, True, "unknown"),
        (UNNAMED, False, "full"),
    ],
)
def test_what_mlx_does_on_each_device(facts: Mapping[str, Any], tf32: bool, expected: str) -> None:
    assert mlx_precision("float32", "gpu", facts, tf32=tf32) == expected
    assert mlx_precision("float32", "cpu", facts, tf32=tf32) == "full"
    assert mlx_precision("bfloat16", "gpu", facts, tf32=tf32) == ""


def test_complex_products_use_tf32_on_cuda_only() -> None:
    assert mlx_precision("complex64", "gpu", H200, tf32=True) == "TF32"
    assert mlx_precision("complex64", "gpu", M5, tf32=True) == "full"


@pytest.mark.parametrize(
    ("default", "bits", "inner", "name", "mantissa"),
    [
        ("TF32", None, N, "TF32", 11),
        ("TF32", 10.5, N, "TF32", 11),
        ("TF32", 9.2, 512, "TF32", 11),  # an M5
        ("TF32", 8.4, N, "reduced", 11),
        ("TF32", 17.6, N, "full", 24),  # such as a product with one row
        ("TF32", 15.0, 64, "reduced", 24),  # more than TF32 has, less than float32
        ("TF32", 15.0, 1, "TF32", 11),  # a single product may be exact by chance
        ("TF32", 11.0, 2**24, "TF32", 11),  # no shorter than a float32 sum of that length
        ("full", None, N, "full", 24),
        ("full", 17.6, N, "full", 24),
        ("full", 10.5, N, "reduced", 24),
        ("full", 11.0, 2**24, "full", 24),
        ("unknown", None, N, "unknown", 24),
        ("unknown", 17.6, N, "full", 24),
        ("unknown", 10.5, N, "reduced", 24),
        ("full", math.inf, N, "full", 24),
    ],
)
def test_measured_bits(
    default: Any, bits: float | None, inner: int, name: str, mantissa: int
) -> None:
    assert measured_precision(default, 24, bits, inner) == Precision(name, mantissa)  # type: ignore[arg-type]


def test_other_dtypes_are_what_their_name_says() -> None:
    assert measured_precision("", 8, 3.0, N) == Precision("", 8)
    assert measured_precision("", None, None, N) == Precision("", None)


@pytest.mark.parametrize(
    ("name", "bits", "device", "label"),
    [
        ("TF32", 10.6, "gpu", "TF32, 11 bit"), ("full", 20.9, "gpu", "full, 21 bit"),
        ("full", 20.9, "cpu", ""), ("reduced", 9.8, "cpu", "reduced, 10 bit"),
        ("TF32", None, "gpu", "TF32"), ("TF32", math.inf, "gpu", "TF32"), ("", 8.1, "gpu", ""),
    ],
)  # fmt: skip
def test_labels(name: Any, bits: float | None, device: str, label: str) -> None:
    assert Precision(name, 24).label(bits, device=device) == label


@pytest.mark.parametrize(
    ("dtype", "precision", "units"),
    [
        ("float32", "TF32", "tfloat32"), ("float32", "reduced", "tfloat32"),
        ("float32", "full", "float32"), ("float32", "unknown", None),
        ("complex64", "TF32", "tfloat32"), ("complex64", "full", "float32"),
        ("complex64", "", "float32"), ("bfloat16", "", "bfloat16"),
    ],
)  # fmt: skip
def test_the_units_that_limit_a_product(dtype: str, precision: str, units: str | None) -> None:
    assert unit_dtype(dtype, precision) == units


@pytest.mark.parametrize(
    ("mode", "environment", "enabled"),
    [
        ("default", {}, True), ("default", {"MLX_ENABLE_TF32": "0"}, False),
        ("default", {"MLX_ENABLE_TF32": "1"}, True), ("on", {"MLX_ENABLE_TF32": "0"}, True),
        ("off", {}, False),
    ],
)  # fmt: skip
def test_the_switch(mode: str, environment: dict[str, str], enabled: bool) -> None:
    assert tf32_enabled(mode, environment) is enabled


SHARE = DataShare(finite=1.0, zero=0.0, denormal=0.0, rms=1.0, all_finite=True)
CASE = Case("flops", "gpu", "mlx", "float32", N, {"data": "normal"})
LINE = {k: 1e-3 * k for k in (1, 2, 4, 8)}


def codes(precision: Precision, bits: float | None) -> set[str]:
    """Codes of a row with this error, judged by this precision."""
    samples = [1_000_000, 1_001_000, 999_000, 1_000_500, 999_500] * 4
    error = None if bits is None else 2.0 ** -(bits + 1.2)
    answer = Answer("a block", error=error, exact=None if error else True, worst=error,
                    typical=error or 0.0, inputs=SHARE, outputs=SHARE)  # fmt: skip
    evidence = Evidence(
        case=CASE, samples_ns=samples, summary=summarize(samples), rate=1e9, window_s=1.0,
        mantissa=precision.mantissa, inner=N, answer=answer, slope=fit(LINE, 1e-6), floor_s=1e-6,
    )  # fmt: skip
    return {reason.code for reason in judge(evidence)[1]}


@pytest.mark.parametrize(
    ("facts", "tf32", "bits", "label", "peak", "found"),
    [
        (V100, True, 17.6, "full, 18 bit", 15.7e12, set()),
        (V100, True, None, "full", 15.7e12, set()),
        (A100, True, 10.5, "TF32, 10 bit", 156e12, set()),
        (A100, True, None, "TF32", 156e12, set()),
        (A100, False, 17.6, "full, 18 bit", 19.5e12, set()),
        (A100, False, 10.5, "reduced, 10 bit", 156e12, {"REDUCED_PRECISION"}),
        (H200, True, 10.5, "TF32, 10 bit", 494.7e12, set()),
        (H200, True, 17.6, "full, 18 bit", 67e12, set()),
        (H200, False, 17.6, "full, 18 bit", 67e12, set()),
        (H200, False, None, "full", 67e12, set()),
        (H200, True, 8.0, "reduced, 8 bit", 494.7e12, {"REDUCED_PRECISION"}),
        (M1, True, 17.6, "full, 18 bit", 2.617e12, set()),
        (M1, True, None, "full", 2.617e12, set()),
        (M1, True, 10.5, "reduced, 10 bit", None, {"REDUCED_PRECISION"}),
        (M4, True, 17.6, "full, 18 bit", 18.4e12, set()),
        (M5, True, 9.2, "TF32, 9 bit", None, set()),
        (M5, True, None, "TF32", None, set()),
        (M5, False, 17.6, "full, 18 bit", None, set()),
        (M5_OLD, True, 17.6, "full, 18 bit", None, set()),
        (M5_OLD, True, 9.2, "reduced, 9 bit", None, {"REDUCED_PRECISION"}),
        (UNNAMED, True, None, "unknown", None, set()),
    ],
)
def test_label_ceiling_and_check_agree(
    facts: Mapping[str, Any],
    tf32: bool,
    bits: float | None,
    label: str,
    peak: float | None,
    found: set[str],
) -> None:
    default = mlx_precision("float32", "gpu", facts, tf32=tf32)
    precision = measured_precision(default, 24, bits, N)
    assert precision.label(bits, device="gpu") == label
    ceiling = published_ceiling(CASE, facts, precision.name)
    assert (ceiling.rate if ceiling else None) == (peak and pytest.approx(peak, rel=1e-3))
    assert codes(precision, bits) == found


@pytest.mark.parametrize("n", [1, 5, 64, 100, 1024, 2**20, 2**28])
@pytest.mark.parametrize("default", ["TF32", "full", "unknown"])
def test_reduced_is_what_the_check_objects_to(default: Any, n: int) -> None:
    """For any bits the name is `reduced` exactly where REDUCED_PRECISION fails."""
    for tenth in range(10, 240):
        precision = measured_precision(default, 24, tenth / 10, n)
        assert precision.mantissa is not None
        fails = tenth / 10 < expected_bits(precision.mantissa, n) - BITS_MARGIN
        assert fails == (precision.name == "reduced"), tenth / 10


@pytest.mark.parametrize(
    ("facts", "more", "shown"),
    [(H200, {}, "full, 22 bit"), (M1, {}, "full, 22 bit"), (M1, {"checks": False}, "full")],
)
def test_a_row_is_labelled_by_its_bits(
    facts: dict[str, Any], more: dict[str, Any], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CPU run whose precision is asked for as that of a GPU."""
    monkeypatch.setattr(mlx_flops, "relative_error", lambda *_: 2.0**-23.2)
    monkeypatch.setattr(mlx_flops, "element_errors", lambda *_: (2.0**-22, 2.0**-24))
    monkeypatch.setattr(
        mlx_setup,
        "product_precision",
        lambda _, token, __, tf32: mlx_precision(token, "gpu", facts, tf32=tf32),
    )
    label = Precision.label
    monkeypatch.setattr(Precision, "label", lambda self, bits, **_: label(self, bits, device="gpu"))
    measure = FakeMeasure()
    (row,) = nnbt.run(
        "flops", "cpu", "float32", [64], cpu_workers=1, measure=measure, **more
    ).results
    assert row.precision == shown
    assert "REDUCED_PRECISION" not in {reason.code for reason in row.reasons}
