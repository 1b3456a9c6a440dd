"""The helper's replay with counters, on a scripted double of the Neural Engine.

Run like check_doubles.py. The double computes the real convolution through the caller's surfaces,
raises if the caller violates a rule of the framework, and counts what NNBT_DOUBLE_ANE defines.
"""

from __future__ import annotations

import pytest
from doubles_build import WITHOUT_ANE, helper

from nnbt.engines.mpsgraph import ane

MIB = 2**20
STANDARD_MACS = 193_273_528_320
VARIANTS = ("fp16", "int8", "qdq", "w8a8")


def replayed(**request):
    answer = helper({"device": "ane", "pmu": 1, **request})
    assert answer["status"] == "ok", answer
    return answer["pmu"]


def windows_of(pmu):
    return [ane.Window(**window) for window in pmu["windows"]]


def decoded_status(pmu):
    return ane.decode_windows(windows_of(pmu)).status if pmu["status"] == "ok" else pmu["status"]


# The standard benchmark on an M4 Pro: changes of registers 10, 13, 15 and 21, times in ns,
# multiplies per cycle and core and MiB of traffic as printed, bytes of a tensor and of weights.
# fmt: off
STANDARD = {
    "fp16": (778_700_758, 157_200, 503_317_431, 10_494_464, 20_410_000, 248.2, 640.5,
             16, 294_912),
    "int8": (409_477_814, 105_045_873, 233_509_350, 5_247_232, 10_600_000, 472.0, 320.3,
             8, 147_456),
}
# fmt: on


@pytest.mark.parametrize("variant", STANDARD)
def test_m4_counters_give_the_published_figures(script, variant):
    nominal, r13, r15, lines, hw_ns, core, traffic, tensor, weights = STANDARD[variant]
    script({10: nominal, 13: r13, 15: r15, 21: lines, 22: lines // 2}, hw_ns=hw_ns)
    pmu = replayed(variant=variant, runs=4)
    assert (pmu["status"], pmu["architecture"], pmu["cores"]) == ("ok", "h16g", 16)
    assert pmu["fully_placed"] is True
    assert len(pmu["windows"]) == 5
    assert {len(window["before"]) for window in pmu["windows"]} == {29}
    assert {window["evaluations"] for window in pmu["windows"]} == {4}
    assert pmu["hw_samples_ns"] == [hw_ns] * 20
    assert len(pmu["wall_samples_ns"]) == 20
    decoded = ane.decode_windows(
        windows_of(pmu),
        macs=STANDARD_MACS,
        cores=pmu["cores"],
        architecture=pmu["architecture"],
        precision=variant,
        traffic_bytes=ane.conv_traffic_bytes(
            input_bytes=tensor * MIB, output_bytes=tensor * MIB, weight_bytes=weights, layers=20
        ),
        layout="dma21",
    )
    assert decoded.status == "ok"
    assert round(decoded.macs_per_cycle_core, 1) == core
    assert round(decoded.macs_per_cycle_chip / 16, 1) == core
    assert round(decoded.dma_bytes / MIB, 1) == traffic
    assert decoded.clock_hz == pytest.approx(nominal / (hw_ns * 1e-9 * 16))
    assert decoded.windows_used == 5
    assert not {"FEW_WINDOWS", "OTHER_ANE_CLIENT", "COUNTER_RESET"} & set(decoded.reasons)


@pytest.mark.parametrize("registers", [24, 27])
def test_m1_counters_have_their_own_layout(script, registers):
    # ResNet-50 on an M1, per inference, as published.
    changes = [47_296_257, 929, 21_764_999, 6_598_489, 1_021_325, 1_588_918, 58, 928_512, 884_576,
               38_393_741_721]  # fmt: skip
    script(dict(enumerate(changes, 10)), registers=registers, architecture="h13g", hw_ns=2_000_000)
    pmu = replayed()
    assert pmu["architecture"] == "h13g"
    decoded = ane.decode_windows(windows_of(pmu), architecture=pmu["architecture"])
    assert len(decoded.registers) == len(pmu["labels"]) == registers
    assert decoded.layout == "dma17"
    assert [r.delta for r in decoded.registers[10:20]] == changes
    assert decoded.energy_units == 38_393_741_721


def test_labels_are_the_frameworks_own():
    labels = replayed()["labels"]
    assert labels[6] == "kANE_FP16_CYCLES"  # without its colon
    assert labels[10] == "kANE_NE_NOMINAL_CYCLES"
    assert labels[28] == "kANE_UKNOWN"


def test_engines_have_separate_counters(script):
    script({10: 1}, cores=16, engines=2)
    assert replayed()["cores"] == 32


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("size", [5, 32])
def test_the_replay_computes_the_convolution_through_padded_rows(variant, layout, size):
    pmu = replayed(variant=variant, layout=layout, size=size, batch=2, padding="valid")
    assert pmu["status"] == "ok", pmu["detail"]
    assert pmu["check"]["ok"]
    assert pmu["check"]["zero_fraction"] < 1
    assert (pmu["check"]["compared"] > 0) == (variant != "int8")


# Faults of the double: the resulting status, and words of its detail.
GATES = {
    "no_engine": ("no_ane", ""),
    "virtual_machine": ("no_ane", ""),
    "ane_virtual": ("no_ane", ""),
    "no_evaluate": (
        "framework_missing",
        "missing: -[_ANEClient evaluateWithModel:options:request:qos:error:]",
    ),
    "no_counter_method": (
        "framework_missing",
        "missing: -[_ANEPerformanceStats perfCounterData]",
    ),
    "device_exception": ("framework_missing", "raised NSInvalidArgumentException while querying"),
    "two_regions": ("not_placed_on_ane", "the graph was split"),
    "gpu_fallback": ("not_placed_on_ane", "no compiled Neural Engine region"),
    "no_region": ("no_region", "no compiled Neural Engine region"),
    "disk_full": ("no_region", "is the disk full"),
    "load_fails": (
        "load_failed",
        "com.apple.appleneuralengine 6: Program load failure (H11ANEIn 0xe00002c7: ",
    ),
    "load_exception": ("load_failed", "AppleNeuralEngine raised NSInvalidArgumentException while"),
    "no_connection": ("load_failed", "cannot be reached"),
    "mask_zeroed": ("locked_mask_zeroed", ""),
    "evaluation_fails": (
        "evaluation_failed",
        "an evaluation failed: com.apple.appleneuralengine 8: inference error",
    ),
    "evaluation_fails_later": ("evaluation_failed", "inference error"),
    "evaluation_error_only": ("evaluation_failed", "com.apple.appleneuralengine 3: timeout"),
    "evaluation_exception": ("evaluation_failed", "raised NSInvalidArgumentException while"),
    "counters_exception": ("evaluation_failed", "while reading the counters"),
    "no_attributes": ("evaluation_failed", "does not list exactly one input and one output"),
    "two_inputs": ("evaluation_failed", "does not list exactly one input and one output"),
    "odd_type": ("evaluation_failed", "unknown type 'Float8'"),
    "odd_width": ("evaluation_failed", "the convolution's has"),
    "interleaved": ("evaluation_failed", "interleaved by 4"),
    "no_surface": ("evaluation_failed", "no surface of"),
    "no_lock": ("evaluation_failed", "cannot be locked"),
    "invalid_request": ("evaluation_failed", "rejected the request as invalid"),
    "ane_zero_output": ("evaluation_failed", "the result of the replay is wrong"),
    "no_stats": ("locked_no_stats", ""),
    "no_stats_surface": ("locked_no_stats", ""),
    "no_counter_data": ("locked_no_counters", ""),
    "odd_counters": ("unknown_format", "the counter data has 229 bytes"),
}


@pytest.mark.parametrize("name", GATES)
def test_every_obstacle_has_its_status(fault, name):
    fault(name)
    status, words = GATES[name]
    answer = helper({"device": "ane", "pmu": 1})
    assert answer["status"] == "ok", answer
    assert answer["pmu"]["status"] == status, answer["pmu"]
    assert words in answer["pmu"]["detail"]
    assert status in ane.STATUSES
    # The MPSGraph row is not affected.
    assert len(answer["samples_ns"]) == 3


def test_a_framework_without_the_classes_is_missing():
    pmu = helper({"device": "ane", "pmu": 1}, executable=WITHOUT_ANE)["pmu"]
    assert pmu["status"] == "framework_missing"
    assert "_ANEClient, " in pmu["detail"]


@pytest.mark.parametrize("name", ["mask_zeroed", "no_stats", "no_counter_data", "odd_counters"])
def test_times_are_kept_without_counters(fault, name):
    fault(name)
    pmu = replayed(pmu_windows=3)
    assert len(pmu["wall_samples_ns"]) == 9
    assert len(pmu["hw_samples_ns"]) == (9 if name in ("no_counter_data", "odd_counters") else 0)
    assert len(pmu["windows"]) == (3 if name == "odd_counters" else 0)


@pytest.mark.parametrize(
    ("registers", "status"), [(20, "locked_no_counters"), (64, "ok"), (65, "unknown_format")]
)
def test_the_length_of_the_data_decides_the_status(script, registers, status):
    script({10: 1_000_000}, registers=registers)
    pmu = replayed()
    assert pmu["status"] == status
    assert len(pmu["windows"][0]["after"]) == registers  # raw nevertheless


@pytest.mark.parametrize(
    ("name", "status"),
    [("", "ok"), ("zero_counters", "zeros"), ("frozen", "frozen"), ("reset", "reset")],
)
def test_present_counters_are_judged_by_decoding(fault, name, status):
    fault(name)
    pmu = replayed()
    assert pmu["status"] == "ok"
    assert decoded_status(pmu) == status


def test_impossible_clocks_are_implausible(script):
    script({10: 1_000_000_000}, hw_ns=1000)
    assert decoded_status(replayed()) == "implausible"


@pytest.mark.parametrize(
    ("name", "reason", "field"),
    [
        ("reset_once", "COUNTER_RESET", "windows_reset"),
        ("second_client", "OTHER_ANE_CLIENT", "windows_shared"),
    ],
)
def test_one_bad_window_of_five_is_not_used(fault, name, reason, field):
    fault(name)
    decoded = ane.decode_windows(windows_of(replayed(runs=6)))
    assert decoded.status == "ok"
    assert reason in decoded.reasons
    assert getattr(decoded, field) == 1
    assert decoded.windows_used == 4
    assert decoded.registers[10].delta == 1_000_000


# Older and newer systems that can be measured, and what they report.
SYSTEMS = {
    "older_model": "",
    "sparse_list": "",
    "no_mask": "",
    "no_options": "",
    "unload_exception": "",
    "no_hw_time": "",
    "newer_driver": "",
    "no_driver": "",
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_other_releases_are_measured_too(fault, name):
    fault(name)
    pmu = replayed()
    assert pmu["status"] == "ok", pmu
    assert pmu["detail"] == SYSTEMS[name]
    assert (pmu["hw_samples_ns"] == []) == (name == "no_hw_time")
    assert (pmu["windows"][0]["hw_ns"] is None) == (name == "no_hw_time")


def test_a_refused_mask_is_dropped_and_reported(fault):
    fault("load_fails_with_mask")
    pmu = replayed()
    assert pmu["status"] == "locked_mask_zeroed"
    assert pmu["detail"].startswith(
        "loaded without counters, because loading with counters failed: com.apple"
    )
    assert len(pmu["wall_samples_ns"]) == 15


def test_a_saved_package_is_replayed_in_place(tmp_path):
    target = tmp_path / "chain.mpsgraphpackage"
    answer = helper({"device": "ane", "pmu": 1, "save_package": str(target)})
    assert answer["pmu"]["status"] == "ok"
    assert (target / "ane_bundle").is_dir()
