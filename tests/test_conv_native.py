"""The convolution seam from Python, on any system: arithmetic, data, the check and refusals.

The runner itself is tested on doubles by `.ci/apple run`.
"""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnbt import _native

VARIANTS = ("fp16", "int8", "qdq", "w8a8")


def convolve(images, weights):
    """SAME convolution in float64: images as channel, row, column."""
    kernel = weights.shape[2]
    before = (kernel - 1) // 2
    edges = (before, kernel - 1 - before)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(images, ((0, 0), edges, edges)), (kernel, kernel), axis=(1, 2)
    )
    return np.einsum("chwij,ocij->ohw", windows, weights, optimize=True)


def fp16_chain(spec):
    """Every layer's output of a float16 chain, in float64."""
    shape = (spec.channels, spec.size, spec.size)
    images = np.frombuffer(_native.conv_input(spec), np.float16).astype(np.float64).reshape(shape)
    shape = (spec.channels, spec.channels, spec.kernel, spec.kernel)
    for layer in range(spec.layers):
        weights = np.frombuffer(_native.conv_weights(spec, layer), np.float16)
        images = convolve(images, weights.astype(np.float64).reshape(shape))
        yield images


@pytest.mark.parametrize("word", ["variant", "device", "fill", "padding", "layout"])
def test_unknown_names_list_the_known_ones(word):
    with pytest.raises(ValueError, match=f"^{word} is one of .*"):
        _native.ConvSpec(**{word: "other"})


def test_the_json_of_a_spec_makes_the_same_spec():
    spec = _native.ConvSpec(
        variant="w8a8", device="ane", size=12, layers=3, layout="nhwc", shared_weights=False, seed=7
    )
    values = json.loads(spec.to_json())
    assert json.loads(_native.ConvSpec(**values).to_json()) == values
    assert values["layout"] == "nhwc"
    assert values["optimization_level"] == 1


@given(
    size=st.integers(1, 9), kernel=st.integers(1, 5), channels=st.integers(1, 4),
    layers=st.integers(1, 3), batch=st.integers(1, 3),
)  # fmt: skip
def test_exact_operations_are_the_taps_inside_the_image(size, kernel, channels, layers, batch):
    spec = _native.ConvSpec(size=size, kernel=kernel, channels=channels, layers=layers, batch=batch)
    work = _native.conv_work(spec)
    ones = np.ones((1, size, size))
    taps = convolve(ones, np.ones((1, 1, kernel, kernel))).sum()
    assert work.exact_ops == 2 * batch * channels**2 * layers * taps
    assert work.ops == 2 * batch * channels**2 * layers * (size * kernel) ** 2
    assert work.exact_ops <= work.ops


def test_specs_that_make_no_convolution_are_value_errors():
    with pytest.raises(ValueError, match="must be between"):
        _native.ConvSpec(layers=0).validate()
    with pytest.raises(ValueError, match="too small for so many layers"):
        _native.ConvSpec(size=8, layers=4, padding="valid").validate()
    with pytest.raises(_native.Unsupported, match="--device ane"):
        _native.ConvSpec(variant="int8", device="gpu").validate()


@pytest.mark.parametrize("channels", [64, 128])
def test_fifty_shared_layers_stay_inside_float16(channels):
    spec = _native.ConvSpec(channels=channels, size=12, layers=50)
    for images in fp16_chain(spec):
        assert np.sqrt(np.mean(images**2)) > 0.01
        assert np.abs(images).max() < 10_000


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_data_are_not_zero_unless_asked(variant):
    kind = np.float16 if variant == "fp16" else np.int8
    spec = _native.ConvSpec(variant=variant, size=16, channels=8)
    assert np.all(np.frombuffer(_native.conv_input(spec), kind) != 0)
    zeros = _native.ConvSpec(variant=variant, size=16, channels=8, fill="zeros")
    assert not any(_native.conv_input(zeros))
    assert not any(_native.conv_weights(zeros))


def test_the_check_accepts_numpy_and_refuses_what_is_wrong():
    spec = _native.ConvSpec(channels=6, size=9, layers=3)
    *_, images = fp16_chain(spec)
    right = images.astype(np.float16)
    check = _native.check_conv(spec, right.tobytes())
    assert check.ok, check.detail
    assert check.compared == 4 * 6
    assert check.relative_error < 2e-3
    for wrong in (right[::-1], -right, np.roll(right, 1, axis=2), right * np.float16(1.1)):
        assert not _native.check_conv(spec, wrong.tobytes()).ok
    assert not _native.check_conv(spec, bytes(right.nbytes)).ok
    broken = right.copy()
    broken[0, 4, 4] = np.nan
    assert _native.check_conv(spec, broken.tobytes()).non_finite == 1
    with pytest.raises(ValueError, match="the size of the spec"):
        _native.check_conv(spec, b"")


def test_without_an_apple_machine_the_refusal_says_what_to_do():
    reason = _native.conv_available()
    if reason is None:  # a Mac: the smallest chain must then run and be right
        step = _native.make_conv(_native.ConvSpec(channels=8, size=8, layers=2))
        step.run()
        assert step.check().ok
        return
    assert "--engine mlx" in reason or "Metal" in reason
    with pytest.raises(_native.Unsupported):
        _native.make_conv(_native.ConvSpec())
