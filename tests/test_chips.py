"""Every figure has a source and multiplies out; real device names find their row or none."""

import math
import re

import pytest

from nnbt.peaks import chips

CHIPS = {row.id: row for row in chips.chips()}
DATA = chips.read_data("chips.toml")
PEAKS = [(row, peak) for row in DATA["chip"] for peak in row.get("peaks", ())]
FIGURES = [(row, row["memory"]) for row in (*DATA["chip"], *DATA["cpu"])]
DTYPES = {"float64", "float32", "tf32", "bfloat16", "float16", "float8", "int8"}
CONFIDENCES = {"high", "medium", "low"}


def of(row, own, key):
    """A figure's own source or confidence, else that of its row."""
    return own.get(key, row[key])


def test_what_the_table_must_hold():
    assert len(CHIPS) == len(DATA["chip"])
    families = [f"apple-m{g}{v}" for g in (1, 2, 3, 4, 5) for v in ("", "-pro", "-max")]
    wanted = ["h100-sxm", "h200-sxm", "a100-80-sxm", "b200", "l4", "l40s", "rtx-4090", "rtx-5090"]
    assert set(CHIPS) >= {*families, *wanted, "gb10", "apple-m1-ultra"}


def test_every_row_has_memory_and_peaks():
    for row in CHIPS.values():
        assert row.memory.bytes_per_s, row.id
        assert row.peaks, row.id


@pytest.mark.parametrize(("row", "peak"), PEAKS, ids=lambda item: item.get("id", item.get("dtype")))
def test_every_peak_has_source_confidence_and_a_sane_size(row, peak):
    assert of(row, peak, "source") in DATA["sources"]
    assert of(row, peak, "confidence") in CONFIDENCES
    assert peak["dtype"] in DTYPES
    per_s, per_clock = peak.get("per_s"), peak.get("per_clock")
    clock_hz = peak.get("clock_hz", row.get("clock_hz"))
    assert per_s is not None or per_clock is not None
    assert per_s is None or 1e12 <= per_s <= 2e16
    assert per_clock is None or math.log2(per_clock).is_integer()
    assert clock_hz is None or 1e9 <= clock_hz <= 3e9


@pytest.mark.parametrize(("row", "memory"), FIGURES, ids=lambda item: item.get("id", ""))
def test_every_bandwidth_has_source_confidence_and_a_sane_size(row, memory):
    assert of(row, memory, "source") in DATA["sources"]
    assert of(row, memory, "confidence") in CONFIDENCES
    assert 60e9 <= memory["bytes_per_s"] <= 10e12


def test_sources_are_used_and_named():
    used = {of(row, figure, "source") for row, figure in (*PEAKS, *FIGURES)}
    assert used == set(DATA["sources"])
    for source in DATA["sources"].values():
        assert source["title"]
        assert source["url"].startswith("https://")


def test_published_peaks_are_units_times_clock():
    confidence = {(row["id"], peak["dtype"]): of(row, peak, "confidence") for row, peak in PEAKS}
    checked = 0
    for row in CHIPS.values():
        for dtype, peak in row.peaks.items():
            if None in {peak.per_s, peak.per_clock, peak.clock_hz, row.units}:
                continue
            # A rounded datasheet (B200's 80 TFLOP/s) is off by up to 7 %, and says so.
            tolerance = 0.02 if confidence.get((row.id, dtype), "high") == "high" else 0.07
            computed = row.peak_at(peak.clock_hz, dtype)
            assert computed == pytest.approx(peak.per_s, rel=tolerance), (row.id, dtype)
            checked += 1
    assert checked > 100


def test_narrow_types_are_no_slower():
    order = ("float32", "tf32", "bfloat16", "float8")
    for row in CHIPS.values():
        if row.vendor == "nvidia":
            rates = [p.per_s for d in order if (p := row.peaks.get(d)) and p.per_s]
            assert rates == sorted(rates), row.id


NAMES = {
    "NVIDIA H200": "h200-sxm", "NVIDIA H200 NVL": "h200-nvl", "NVIDIA H100 80GB HBM3": "h100-sxm",
    "NVIDIA H100 PCIe": "h100-pcie", "NVIDIA H100 NVL": "h100-nvl", "NVIDIA GH200 480GB": "gh200",
    "NVIDIA GH200 144G HBM3e": "gh200", "NVIDIA A100-SXM4-80GB": "a100-80-sxm",
    "NVIDIA A100 80GB PCIe": "a100-80-pcie", "NVIDIA A100-SXM4-40GB": "a100-40",
    "NVIDIA A100-PCIE-40GB": "a100-40", "NVIDIA B200": "b200", "NVIDIA B300 SXM6 AC": "b300",
    "NVIDIA GB200": "gb200", "NVIDIA L4": "l4", "NVIDIA L40": "l40", "NVIDIA L40S": "l40s",
    "NVIDIA A10": "a10", "NVIDIA A30": "a30", "NVIDIA A40": "a40", "Tesla T4": "t4",
    "Tesla V100-SXM2-16GB": "v100-sxm2", "NVIDIA GeForce RTX 3090": "rtx-3090",
    "NVIDIA GeForce RTX 4090": "rtx-4090", "NVIDIA GeForce RTX 5090": "rtx-5090",
    "nvidia  geforce rtx 5090": "rtx-5090", "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada",
    "NVIDIA GB10": "gb10", "Apple M1": "apple-m1", "Apple M1 Pro": "apple-m1-pro",
    "Apple M2 Ultra": "apple-m2-ultra", "Apple M3 Max": "apple-m3-max", "Apple M4": "apple-m4",
    "Apple M4 Pro": "apple-m4-pro", "M4 Max": "apple-m4-max", "Apple M5": "apple-m5",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_that_systems_report(name):
    assert chips.chip(name).id == NAMES[name]


@pytest.mark.parametrize(
    "name",
    [
        None, "", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 5090 D", "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A100-40C", "GRID T4-16Q", "NVIDIA A10G",
        "NVIDIA H20", "Tesla M4", "Tesla V100S-PCIE-32GB", "Apple M14", "Apple M9 Pro",
        "Apple Paravirtual device", "Apple M1 (Virtual)", "AMD Instinct MI300X",
        "Intel(R) Xeon(R) Platinum 8480+",
    ],
)  # fmt: skip
def test_names_that_are_not_in_the_table(name):
    assert chips.chip(name) is None


def test_no_name_matches_two_rows():
    for name, expected in NAMES.items():
        found = [
            row.id
            for row in CHIPS.values()
            if not re.search(row.unless, name, re.IGNORECASE)
            and re.search(row.match, " ".join(name.split()), re.IGNORECASE)
        ]
        assert found == [expected]


def test_inherited_peaks():
    h100, h200 = CHIPS["h100-sxm"], CHIPS["h200-sxm"]
    assert (h200.peaks, h200.units) == (h100.peaks, h100.units)
    assert h200.memory.bytes_per_s == 4.8e12
    assert "PCIe" not in h200.unless


def test_peak_at_a_measured_clock():
    h100 = CHIPS["h100-sxm"]
    assert h100.peak_at(1.83e9, "bfloat16") == 132 * 4096 * 1.83e9
    assert h100.peak_at(1.83e9, "float4") is None
    assert CHIPS["gb200"].peak_at(1.8e9, "bfloat16") is None  # no count of SMs


def test_ceiling_prefers_the_measured_clock():
    rtx = CHIPS["rtx-4090"]
    assert rtx.ceiling("bfloat16") == 165.2e12
    assert rtx.ceiling("bfloat16", 2.7e9) == 128 * 512 * 2.7e9
    assert CHIPS["gb200"].ceiling("bfloat16", 1.8e9) == 2500e12
    assert rtx.ceiling("float4") is None
    assert CHIPS["apple-m5"].ceiling("float16") is None  # measured a clock only, never published
    assert CHIPS["apple-m5"].ceiling("float16", 1.5e9) == 10 * 1024 * 1.5e9


def test_of_several_bandwidths_the_highest_counts():
    assert CHIPS["apple-m4-max"].memory.bytes_per_s == 546e9  # a ceiling must not be too low


@pytest.mark.parametrize(
    ("name", "family", "gb_per_s"),
    [
        ("Intel(R) Xeon(R) Platinum 8480+", "xeon-4", 307.2),
        ("Intel Xeon Processor (SapphireRapids)", "xeon-4", 307.2),
        ("INTEL(R) XEON(R) PLATINUM 8592+", "xeon-5", 358.4),
        ("Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", "xeon-3", 204.8),
        ("Intel(R) Xeon(R) Platinum 8275CL CPU @ 3.00GHz", "xeon-2", 140.8),
        ("Intel(R) Xeon(R) 6980P", "xeon-6-p", 844.8),
        ("AMD EPYC 9654 96-Core Processor", "epyc-zen4", 460.8),
        ("AMD EPYC 9575F 64-Core Processor", "epyc-zen5", 614.4),
        ("AMD EPYC 7763 64-Core Processor", "epyc-zen3", 204.8),
        ("AMD EPYC 7R13 Processor", "epyc-zen3", 204.8),
        ("AMD EPYC 7742 64-Core Processor", "epyc-zen2", 204.8),
    ],
)
def test_cpu_families(name, family, gb_per_s):
    found = chips.cpu(name)
    assert found.id == family
    assert found.memory.bytes_per_s == pytest.approx(gb_per_s * 1e9)


@pytest.mark.parametrize(
    "name", [None, "", "Intel(R) Core(TM) i7-8565U", "AMD Ryzen 9 7950X", "Intel(R) Xeon(R) CPU"]
)
def test_cpus_that_are_not_in_the_table(name):
    assert chips.cpu(name) is None
