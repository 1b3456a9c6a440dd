"""The Objective-C++ runner on Linux, against doubles that compute real convolutions.

Not collected by default: requires a build with NNBT_APPLE_DOUBLES=ON, in the directory
NNBT_DOUBLES_BUILD (`.ci/apple run` does both).
"""

from __future__ import annotations

import gc
import json

import numpy as np
import pytest
from doubles_build import helper, live_objects, native

VARIANTS = ("fp16", "int8", "qdq", "w8a8")


@pytest.fixture(autouse=True)
def no_object_stays():
    yield
    gc.collect()
    assert live_objects() == 0


def spec(**changes):
    values = {"device": "ane", "size": 6, "channels": 3, "layers": 2, "batch": 2}
    return native.ConvSpec(**{**values, **changes})


def made(**changes):
    step = native.make_conv(spec(**changes))
    step.run()
    return step


def same_padding(images, kernel):
    before = (kernel - 1) // 2
    after = kernel - 1 - before
    return np.pad(images, ((0, 0), (0, 0), (before, after), (before, after)))


def convolve(images, weights, padding):
    kernel = weights.shape[2]
    if padding == "same":
        images = same_padding(images, kernel)
    windows = np.lib.stride_tricks.sliding_window_view(images, (kernel, kernel), axis=(2, 3))
    return np.einsum("bchwij,ocij->bohw", windows, weights, optimize=True)


def numpy_chain(conv):
    """The chain in NumPy, written from the definition of each variant; result as NCHW."""
    shape = (conv.batch, conv.channels, conv.size, conv.size)
    kind = np.float16 if conv.variant == "fp16" else np.int8
    images = np.frombuffer(native.conv_input(conv), kind).astype(np.float64)
    if conv.layout == "nhwc":
        images = images.reshape(conv.batch, conv.size, conv.size, -1).transpose(0, 3, 1, 2)
    images = images.reshape(shape)
    step, weight_step = native.conv_scales(conv)
    for layer in range(conv.layers):
        half = conv.variant in ("fp16", "qdq")
        weights = np.frombuffer(
            native.conv_weights(conv, layer), np.float16 if half else np.int8
        ).astype(np.float64)
        weights = weights.reshape(conv.channels, conv.channels, conv.kernel, conv.kernel)
        if conv.variant == "fp16":
            images = convolve(images, weights, conv.padding).astype(np.float16).astype(np.float64)
        elif conv.variant == "int8":
            images = np.clip(convolve(images, weights, conv.padding), -128, 127)
        else:
            real = convolve(images * step, weights * weight_step, conv.padding)
            images = np.clip(np.rint(real.astype(np.float16).astype(np.float64) / step), -128, 127)
    return images


def result(step):
    conv = step.spec
    kind = np.float16 if conv.variant == "fp16" else np.int8
    values = np.frombuffer(step.output(), kind).astype(np.float64)
    size = conv.size if conv.padding == "same" else conv.size - conv.layers * (conv.kernel - 1)
    if conv.layout == "nhwc":
        return values.reshape(conv.batch, size, size, conv.channels).transpose(0, 3, 1, 2)
    return values.reshape(conv.batch, conv.channels, size, size)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("shared", [True, False])
def test_results_equal_numpy(variant, layout, padding, kernel, shared):
    step = made(
        variant=variant, layout=layout, padding=padding, kernel=kernel, shared_weights=shared
    )
    wanted = numpy_chain(step.spec)
    # Single-precision sums in another order can round a float16 or an int8 step differently.
    tolerance = 2e-3 if variant == "fp16" else 0 if variant == "int8" else 1
    np.testing.assert_allclose(result(step), wanted, rtol=tolerance, atol=tolerance)
    assert np.any(wanted != 0)
    check = step.check()
    assert check.ok, check.detail
    exact_int8 = variant == "int8" and kernel == 1
    assert (check.compared > 0) == (variant != "int8" or exact_int8)


@pytest.mark.parametrize("device", ["gpu", "ane"])
def test_fp16_is_one_step_for_the_timing_loop(device):
    step = native.make_conv(spec(device=device))
    assert step.compile_ns > 0
    assert step.device_name == "Double of an Apple GPU"
    samples = native.measure(step, runs=7, warmup=1)
    assert len(samples.samples_ns) == 7
    assert {"thermal_state", "low_power_mode"} <= {r.name for r in samples.readings}


def test_overlapped_submissions_give_the_same_result():
    one, many = made(), made(enqueue=5)
    assert one.output() == many.output()
    assert many.spec.enqueue == 5


def test_zeros_are_a_fill():
    step = made(fill="zeros")
    assert step.spec.fill == "zeros"
    assert step.check().ok
    assert step.check().zero_fraction == 1


def test_int8_on_the_gpu_is_refused_before_mpsgraph_aborts():
    with pytest.raises(native.Unsupported, match="--device ane"):
        native.make_conv(spec(variant="int8", device="gpu"))


def test_two_hundred_runners_leak_nothing():
    for _ in range(200):
        step = made(size=3, channels=2)
        assert live_objects() > 0
    del step
    gc.collect()
    assert live_objects() == 0


# Faults while a step is compiled: the exception, and words of its sentence.
MAKING = {
    "no_metal": (native.Unsupported, "no Metal device"),
    "no_ane": (native.Unsupported, "no Neural Engine.*--device gpu"),
    "no_queue": (RuntimeError, "no command queue"),
    "no_memory": (native.Unsupported, "not enough memory"),
    "small_buffers": (native.Unsupported, "largest buffer of this GPU; use smaller --sizes"),
    "compile_nil": (native.Unsupported, "cannot compile the fp16 chain.*try another --dtype"),
    "compile_exception": (
        RuntimeError,
        "raised NSInvalidArgumentException while compiling the chain: .*told to raise",
    ),
}


@pytest.mark.parametrize("name", MAKING)
def test_failing_to_compile_is_a_sentence(fault, name):
    fault(name)
    kind, words = MAKING[name]
    with pytest.raises(RuntimeError, match=words) as caught:
        native.make_conv(spec())
    assert type(caught.value) is kind


def test_availability_names_the_reason(fault):
    assert native.conv_available() is None
    fault("no_metal")
    assert native.conv_available() == "this machine has no Metal device"


RUNNING = {
    "run_exception": "raised NSInvalidArgumentException while running the chain: .*told to raise",
    "run_error": "failed to run the chain: the device was lost",
    "gpu_fallback,fallback_is_error": "failed to run the chain: ANE fallback is disabled",
    "no_result": "returned no result",
}


@pytest.mark.parametrize("name", RUNNING)
def test_a_failing_run_is_a_runtime_error(fault, name):
    fault(name)
    step = native.make_conv(spec())
    with pytest.raises(RuntimeError, match=RUNNING[name]):
        native.measure(step, runs=1)


def test_a_failing_overlapped_run_is_a_runtime_error(fault):
    fault("run_error")
    step = native.make_conv(spec(enqueue=3))
    with pytest.raises(RuntimeError, match="the device was lost"):
        step.run()


def test_wrong_results_are_detected(fault):
    step = native.make_conv(spec())
    fault("zero_output")
    step.run()
    assert not step.check().ok
    assert "is zero: the work was not done" in step.check().detail
    fault("nan_output")
    step.run()
    assert not step.check().ok
    assert step.check().non_finite == 1


# Faults: the verdict without latencies, and one line of its evidence.
PLACEMENTS = {
    "": ("proven", "manifest flag mps.fullyPlacedOnANE set"),
    "gpu_fallback": ("not on ANE", "manifest flag mps.fullyPlacedOnANE missing"),
    "no_flags": ("likely", "the manifest has no placement attributes (older OS)"),
    "no_flags,no_region,no_private": (
        "unproven",
        "this OS cannot disable fallback to the GPU",
    ),
    "two_regions": ("proven", "2 ANE regions"),
    "no_archive_key": ("proven", "1 ANE region"),
    "no_private": ("proven", "this OS cannot disable fallback to the GPU"),
    "disk_full": ("likely", "no manifest: its manifest.plist is unusable"),
    "disk_full_silent,no_private": ("likely", "no manifest: there is no manifest.plist"),
    "serialise_exception,no_region,no_private": ("unproven", "no manifest: MPSGraph raised"),
}


@pytest.mark.parametrize("names", PLACEMENTS)
def test_placement_is_judged_from_evidence(fault, names):
    fault(names)
    verdict, line = PLACEMENTS[names]
    answer = helper({"device": "ane"})
    assert answer["status"] == "ok", answer
    assert answer["placement"] == verdict, answer["evidence"]
    assert any(text.startswith(line) for text in answer["evidence"]), answer["evidence"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_saved_package_is_complete_and_runs_again(tmp_path, variant):
    step = made(variant=variant)
    target = tmp_path / "new" / "chain.mpsgraphpackage"
    assert step.save_package(str(target)) == ""
    assert {path.name for path in target.iterdir()} == {
        "manifest.plist",
        "original_model_0.mpsgraph",
        "resources.bin",
        "nnbt_conv.json",
        "ane_bundle",
    }
    assert (target / "ane_bundle" / "main_ANE_region_0_0.bc.mlir").is_file()
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    saved = json.loads((target / "nnbt_conv.json").read_text())
    loaded = native.make_conv(native.ConvSpec(**saved), str(target))
    loaded.run()
    assert loaded.output() == step.output()


def test_a_package_saved_before_any_run_is_complete(tmp_path):
    step = native.make_conv(spec())
    assert step.save_package(str(tmp_path / "p")) == ""
    assert (tmp_path / "p" / "ane_bundle").is_dir()


def test_packages_of_the_gpu_have_no_ane_bundle(tmp_path):
    target = tmp_path / "chain.mpsgraphpackage"
    assert made(device="gpu").save_package(str(target)) == ""
    assert not (target / "ane_bundle").exists()


@pytest.mark.parametrize(
    ("names", "note"),
    [("no_region", "no compiled Neural Engine region"), ("two_regions", "2 regions: the graph")],
)
def test_missing_parts_of_a_package_are_reported(tmp_path, fault, names, note):
    fault(names)
    assert note in made().save_package(str(tmp_path / "p"))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("disk_full", "unusable.*is the disk full"),
        ("disk_full_silent", "no manifest.plist"),
        ("disk_full_later", "no model"),
        ("serialise_exception", "told to raise"),
    ],
)
def test_no_partial_package_is_left(tmp_path, fault, names, words):
    fault(names)
    with pytest.raises(native.Unsupported, match=words):
        made().save_package(str(tmp_path / "p"))
    assert list(tmp_path.iterdir()) == []


def test_targets_that_are_not_writable(tmp_path):
    step = made()
    (tmp_path / "file").write_text("kept")
    with pytest.raises(native.Unsupported, match="already exists"):
        step.save_package(str(tmp_path / "file"))
    with pytest.raises(native.Unsupported, match="is not writable"):
        step.save_package(str(tmp_path / "file" / "p"))
    assert (tmp_path / "file").read_text() == "kept"


def test_invalid_packages_never_reach_mpsgraph(tmp_path):
    with pytest.raises(native.Unsupported, match="cannot be loaded as a package: there is no"):
        native.make_conv(spec(), str(tmp_path))
    (tmp_path / "manifest.plist").write_text("<plist>")
    with pytest.raises(native.Unsupported, match="unusable"):
        native.make_conv(spec(), str(tmp_path))


def test_a_package_of_another_shape_is_an_error(tmp_path):
    target = str(tmp_path / "p")
    made().save_package(target)
    with pytest.raises(RuntimeError, match="input type of a package differs"):
        native.make_conv(spec(size=9), target)


def test_the_helper_measures_and_answers_in_one_document(tmp_path, fault):
    fault("print")  # to standard output, which must stay clean
    answer = helper({"device": "ane", "variant": "w8a8", "save_package": str(tmp_path / "p")})
    assert answer["status"] == "ok", answer
    assert len(answer["samples_ns"]) == 3
    assert answer["check"]["ok"]
    assert answer["placement"] == "proven"
    assert answer["package_note"] == ""
    assert answer["spec"]["variant"] == "w8a8"
    assert (tmp_path / "p" / "manifest.plist").is_file()


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        ({"variant": "int8"}, "unsupported", "--device ane"),
        ({"variant": "int4"}, "error", "variant is one of fp16, int8, qdq, w8a8"),
        ({"layer": 2}, "error", "unknown key in the request: layer"),
        ({"size": "8"}, "error", "size must be a number"),
        ({"size": 2.5}, "error", "not an integer"),
        ({"size": [1]}, "error", "neither a number nor text"),
        ({"variant": 8}, "error", "variant must be text"),
        ({"size": 0}, "error", "must be between"),
    ],
)
def test_the_helper_answers_refusals_too(request_, status, words):
    answer = helper(request_)
    assert answer["status"] == status
    assert words in answer["message"]


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [("abort", "unsupported", "aborted the helper"), ("kill", "error", "was killed")],
)
def test_a_helper_that_dies_is_a_status(fault, name, status, words):
    fault(name)
    answer = helper({})
    assert answer["status"] == status
    assert words in answer["message"]


def test_a_missing_or_silent_helper_is_a_sentence(tmp_path):
    from nnbt.engines.mpsgraph.helper import run_helper

    with pytest.raises(native.Unsupported, match="none: use the macOS package"):
        run_helper({}, executable=tmp_path / "none")
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\necho trouble >&2; exit 3\n")
    silent.chmod(0o755)
    assert "3): trouble" in run_helper({}, executable=silent)["message"]
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    assert "0.2 s" in run_helper({}, executable=slow, timeout_s=0.2)["message"]
