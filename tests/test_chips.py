"""Every figure has a source and multiplies out; real device names find their row or none."""

import math
import re

import pytest

from nnbt.peaks import chips

CHIPS = {row.id: row for row in chips.chips()}
ALL_PEAKS = [
    (row.id, peak)
    for row in chips.chips()
    for engine in row.engines.values()
    for peak in engine.peaks
] + [(row.id, peak) for row in (*chips.isas(), *chips.cpus()) for peak in row.peaks]
ALL_FIGURES = [
    figure
    for row in chips.chips()
    for figure in (*(f for _, f in row.memory), row.cache_bytes)
    if figure is not None
] + [row.memory_bytes_per_s for row in chips.cpus() if row.memory_bytes_per_s]

DTYPES = {"float64", "float32", "tf32", "bfloat16", "float16", "float8", "float4", "int8"}


def test_what_the_table_must_hold():
    assert len(CHIPS) == len(chips.chips())
    families = [f"apple-m{g}{v}" for g in (1, 2, 3, 4, 5) for v in ("", "-pro", "-max")]
    wanted = ["h100-sxm", "h200-sxm", "a100-80-sxm", "b200", "l4", "l40s", "rtx-4090", "rtx-5090"]
    assert set(CHIPS) >= {*families, *wanted, "gb10", "apple-m1-ultra"}
    for family in families:
        assert {"gpu", "ane", "cpu_vector"} <= set(CHIPS[family].engines)


def test_every_row_has_memory_and_an_engine():
    for row in CHIPS.values():
        assert row.memory, row.id
        assert row.engines, row.id
        assert all(engine.peaks for engine in row.engines.values()), row.id


@pytest.mark.parametrize(("owner", "peak"), ALL_PEAKS)
def test_every_peak_has_source_confidence_and_a_sane_size(owner, peak):
    assert peak.source in chips.sources(), owner
    assert peak.confidence in chips.CONFIDENCES
    assert peak.dtype in DTYPES
    assert peak.unit == ("OP/s" if peak.dtype == "int8" else "FLOP/s")
    assert peak.per_s is not None or peak.per_clock is not None
    assert peak.per_s is None or 1e12 <= peak.per_s <= 2e16
    assert peak.per_clock is None or math.log2(peak.per_clock).is_integer()
    assert peak.clock_hz is None or 1e9 <= peak.clock_hz <= 3e9


@pytest.mark.parametrize("figure", ALL_FIGURES)
def test_every_figure_has_source_confidence_and_a_sane_size(figure):
    assert figure.source in chips.sources()
    assert figure.confidence in chips.CONFIDENCES
    low, high = {"B/s": (60e9, 10e12), "B": (4 * 2**20, 200 * 2**20)}[figure.unit]
    assert low <= figure.value <= high


def test_sources_are_used_and_named():
    used = {peak.source for _, peak in ALL_PEAKS} | {figure.source for figure in ALL_FIGURES}
    assert used == set(chips.sources())
    for source in chips.sources().values():
        assert source.title
        assert source.url.startswith("https://")


def test_published_peaks_are_units_times_clock():
    checked = 0
    for row in CHIPS.values():
        for engine in row.engines.values():
            for peak in engine.peaks:
                if None in {peak.per_s, peak.per_clock, peak.clock_hz, engine.units}:
                    continue
                computed = engine.peak_at(peak.clock_hz, peak.dtype)
                # A rounded datasheet (B200's 80 TFLOP/s) is off by up to 7 %, and says so.
                tolerance = 0.02 if peak.confidence == "high" else 0.07
                assert computed == pytest.approx(peak.per_s, rel=tolerance), (row.id, peak.dtype)
                checked += 1
    assert checked > 100


def test_narrow_types_are_no_slower():
    order = ("float32", "tf32", "bfloat16", "float8")
    for row in CHIPS.values():
        if row.vendor == "nvidia":
            rates = [p.per_s for d in order if (p := row.peak("gpu", d)) and p.per_s]
            assert rates == sorted(rates), row.id


NAMES = {
    "NVIDIA H200": "h200-sxm",
    "NVIDIA H200 NVL": "h200-nvl",
    "NVIDIA H100 80GB HBM3": "h100-sxm",
    "NVIDIA H100 PCIe": "h100-pcie",
    "NVIDIA H100 NVL": "h100-nvl",
    "NVIDIA GH200 480GB": "gh200",
    "NVIDIA GH200 144G HBM3e": "gh200",
    "NVIDIA A100-SXM4-80GB": "a100-80-sxm",
    "NVIDIA A100 80GB PCIe": "a100-80-pcie",
    "NVIDIA A100-SXM4-40GB": "a100-40",
    "NVIDIA A100-PCIE-40GB": "a100-40",
    "NVIDIA B200": "b200",
    "NVIDIA B300 SXM6 AC": "b300",
    "NVIDIA GB200": "gb200",
    "NVIDIA L4": "l4",
    "NVIDIA L40": "l40",
    "NVIDIA L40S": "l40s",
    "NVIDIA A10": "a10",
    "NVIDIA A30": "a30",
    "NVIDIA A40": "a40",
    "Tesla T4": "t4",
    "Tesla V100-SXM2-16GB": "v100-sxm2",
    "NVIDIA GeForce RTX 3090": "rtx-3090",
    "NVIDIA GeForce RTX 4090": "rtx-4090",
    "NVIDIA GeForce RTX 5090": "rtx-5090",
    "nvidia  geforce rtx 5090": "rtx-5090",
    "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada",
    "NVIDIA GB10": "gb10",
    "Apple M1": "apple-m1",
    "Apple M1 Pro": "apple-m1-pro",
    "Apple M2 Ultra": "apple-m2-ultra",
    "Apple M3 Max": "apple-m3-max",
    "Apple M4": "apple-m4",
    "Apple M4 Pro": "apple-m4-pro",
    "M4 Max": "apple-m4-max",
    "Apple M5": "apple-m5",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_that_systems_report(name):
    assert chips.chip(name).id == NAMES[name]


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 5090 D",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA A100-40C",
        "GRID T4-16Q",
        "NVIDIA A10G",
        "NVIDIA H20",
        "Tesla M4",
        "Tesla V100S-PCIE-32GB",
        "Apple M14",
        "Apple M9 Pro",
        "Apple Paravirtual device",
        "Apple M1 (Virtual)",
        "AMD Instinct MI300X",
        "Intel(R) Xeon(R) Platinum 8480+",
    ],
)
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


def test_inherited_peaks_keep_their_source():
    h100, h200 = CHIPS["h100-sxm"], CHIPS["h200-sxm"]
    assert h200.engines == h100.engines
    assert h200.peak("gpu", "bfloat16").source == "h100"
    assert h200.memory_bytes_per_s().value == 4.8e12
    assert h200.memory_bytes_per_s().source == "h200"


def test_peak_at_a_measured_clock():
    h100 = CHIPS["h100-sxm"]
    assert h100.peak_at(1.83e9, "bfloat16") == 132 * 4096 * 1.83e9
    assert h100.peak_at(1.83e9, "bfloat16", units=100) == 100 * 4096 * 1.83e9
    assert h100.peak_at(1.83e9, "float4") is None
    assert h100.peak_at(1.83e9, "bfloat16", engine="ane") is None
    assert CHIPS["gb200"].peak_at(1.8e9, "bfloat16") is None  # no count of SMs
    # M4 Pro: 38 TOPS is 8,192 multiply-adds at 2.32 GHz, and 2.362 GHz were measured.
    m4 = CHIPS["apple-m4-pro"]
    assert m4.peak_at(2.362e9, "int8", engine="ane") / 1e12 == pytest.approx(38.7, abs=0.01)
    assert m4.peak_at(2.362e9, "float16", engine="ane") / 1e12 == pytest.approx(19.35, abs=0.01)
    assert m4.peak("ane", "int8").per_s == 38e12
    assert m4.peak("npu", "int8") is None


def test_ceiling_prefers_the_measured_clock():
    rtx = CHIPS["rtx-4090"]
    assert rtx.ceiling("bfloat16").value == 165.2e12
    boosted = rtx.ceiling("bfloat16", clock_hz=2.7e9)
    assert boosted.value == 128 * 512 * 2.7e9
    assert boosted.note == "512 a unit and clock at 2.70 GHz"
    assert boosted.unit == "FLOP/s"
    assert CHIPS["gb200"].ceiling("bfloat16", clock_hz=1.8e9).value == 2500e12
    assert rtx.ceiling("float4") is None
    assert CHIPS["apple-m5"].ceiling("float16") is None  # measured a clock only, never published
    assert CHIPS["apple-m5"].ceiling("float16", clock_hz=1.5e9).value == 10 * 1024 * 1.5e9


def test_bandwidth_of_a_version():
    m4_max = CHIPS["apple-m4-max"]
    assert m4_max.memory_bytes_per_s(32).value == 410e9
    assert m4_max.memory_bytes_per_s(40).value == 546e9
    assert m4_max.memory_bytes_per_s().value == 546e9  # a ceiling must not be too low


def test_int8_doubles_from_h16_on():
    for row in CHIPS.values():
        if row.vendor == "apple":
            ane = row.engines["ane"]
            ratio = ane.peak("int8").per_clock / ane.peak("float16").per_clock
            assert ratio == (2 if ane.architecture >= "h16" else 1), row.id


AVX512 = ["avx2", "fma", "avx512f", "avx512_vnni"]
SAPPHIRE_RAPIDS = [*AVX512, "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8"]


def test_cpu_peaks_by_flags():
    peaks = chips.cpu_peaks(SAPPHIRE_RAPIDS)
    per_clock = {dtype: peak.per_clock for dtype, peak in peaks.items()}
    assert per_clock == {
        "float64": 32,
        "float32": 64,
        "float16": 128,
        "bfloat16": 1024,
        "int8": 2048,
    }
    assert chips.cpu_peaks(["avx2", "fma"])["float32"].per_clock == 32
    assert chips.cpu_peaks(["asimd", "fp"])["float32"].per_clock == 32
    assert chips.cpu_peaks(["sse2"]) == {}


def test_a_family_can_be_slower_than_its_flags():
    assert chips.cpu_peaks(AVX512)["float32"].per_clock == 64
    assert chips.cpu_peaks(AVX512, "AMD EPYC 9654 96-Core Processor")["float32"].per_clock == 32
    assert chips.cpu_peaks(AVX512, "AMD EPYC 9655 96-Core Processor")["float32"].per_clock == 64
    assert chips.cpu_peaks(["asimd"], "Neoverse-N1")["float32"].per_clock == 16


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
    assert found.memory_bytes_per_s.value == pytest.approx(gb_per_s * 1e9)


@pytest.mark.parametrize(
    "name", [None, "", "Intel(R) Core(TM) i7-8565U", "AMD Ryzen 9 7950X", "Intel(R) Xeon(R) CPU"]
)
def test_cpus_that_are_not_in_the_table(name):
    assert chips.cpu(name) is None
