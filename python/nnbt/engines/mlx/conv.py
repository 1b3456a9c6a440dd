"""Builder of conv, engine `mlx`: a chain of NHWC convolutions, compared with float64."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nnbt.engines.mlx.data import Split, mlx_dtype, sample_indices, share_of, to_numpy
from nnbt.engines.mlx.setup import Setup
from nnbt.machine.mlx_runtime import empty_evaluation
from nnbt.spec.cell import Request
from nnbt.spec.comparison import element_errors, relative_error
from nnbt.spec.conv import Chain, border_gains, geometric_mean
from nnbt.spec.options import RANDOM_DATA
from nnbt.spec.workload import Answer, Step, Workload

INPUTS = 2  # chains alternate between these, so that an evaluation contains no equal sub-graphs
CALIBRATION_N = 16
CALIBRATION_LAYERS = 200
SLOPE_LAYERS = 64
DRAWN_PIXELS = 60
CORNER = 8
"""Pixels per side of the corners of the last output that are computed again through all layers."""
CHECKED_LAYERS = 8
STRAY = 0.25
"""Rounding errors are below this relative error with any dtype, over hundreds of layers."""


@dataclass(frozen=True)
class Trace:
    """Activations before and after the first and the last layer of one submission."""

    start: Any
    first: Any
    before: Any
    last: Any
    length: int

    @property
    def outputs(self) -> list[Any]:
        """What is evaluated; the last output depends on all others."""
        return [self.first, self.before, self.last]


class _Layers:
    """Inputs and weights on the device, and the lazy graph over them."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.mx = setup.mx
        self.chain = Chain.of(setup.case)
        self.stream = setup.place.streams[0]
        chain = self.chain
        self.inputs = [self._input() for _ in range(INPUTS)]
        self.weights = self._weights()
        self.padding = ([chain.before] * 2, [chain.kernel - 1 - chain.before] * 2)
        if setup.data.mode in RANDOM_DATA:
            self._keep_size()

    def _input(self) -> Any:
        chain = self.chain
        matrix = self.setup.data.matrix(chain.batch * chain.n, chain.n * chain.channels)
        return matrix.reshape(chain.batch, chain.n, chain.n, chain.channels)

    def _weights(self) -> list[Any]:
        chain = self.chain
        shape = (chain.channels, chain.kernel, chain.kernel, chain.channels)
        return [
            self.setup.data.matrix(chain.channels, chain.inner, chain.inner**-0.5).reshape(shape)
            for _ in range(1 if chain.shared else chain.layers)
        ]

    def convolve(self, z: Any, weight: Any) -> Any:
        """One lazy layer; conv_general, since an even kernel needs unequal padding."""
        return self.mx.conv_general(z, weight, padding=self.padding, stream=self.stream)

    def weight(self, layer: int) -> Any:
        """The weights of a layer; the longer chains of a slope reuse them from the first."""
        return self.weights[layer % len(self.weights)]

    def trace(self, index: int, length: int) -> Trace:
        """The lazy chain of `length` layers on an input."""
        start = self.inputs[index % INPUTS]
        z = before = first = start
        for layer in range(length):
            before, z = z, self.convolve(z, self.weight(layer))
            first = z if layer == 0 else first
        return Trace(start, first, before, z, length)

    def _keep_size(self) -> None:
        """Scales the weights so that the chain neither vanishes nor overflows in 16 bits.

        Random weights shrink a signal if there are few channels, and amplify it if all layers share
        them (by 3 % per layer at 128 channels, 80 % at 4). The gain of each layer is measured on a
        small image and corrected for the difference between its borders and those of the image.
        """
        mx, chain = self.mx, self.chain
        n = min(chain.n, CALIBRATION_N)
        count = min(chain.layers, CALIBRATION_LAYERS)
        z = self.inputs[0][:1, :n, :n].astype(mx.float32)
        z = z / mx.sqrt(mx.mean(mx.square(z)))
        excess = []
        for layer, expected in enumerate(border_gains(n, chain.kernel, count)):
            z = self.convolve(z, self.weight(layer).astype(mx.float32))
            gain = float(mx.sqrt(mx.mean(mx.square(z))).item())
            z = z / gain
            excess.append(gain / expected)
        whole = geometric_mean(border_gains(chain.n, chain.kernel, count))
        mean = geometric_mean(excess)
        kind = mlx_dtype(mx, self.setup.dtype)
        for layer, weight in enumerate(self.weights):
            gain = mean if chain.shared or layer >= count else excess[layer]
            self.weights[layer] = (weight.astype(mx.float32) / (gain * whole)).astype(kind)
        mx.eval(self.weights)


class _Steps:
    """Steps of the chain; `latest` is the last trace of the latest run, for the check."""

    def __init__(self, layers: _Layers) -> None:
        self.layers = layers
        self.turn = 0
        self.latest: Trace | None = None

    def lengths(self, k: int) -> list[int]:
        """Layers of each submission, k in total: one submission, or whole chains in flight."""
        chain = self.layers.chain
        if chain.enqueue == 1:
            return [k]
        whole, rest = divmod(k, chain.layers)
        return [chain.layers] * whole + ([rest] if rest else [])

    def step(self, k: int) -> Step:
        """The Step that builds and evaluates k layers."""
        mx = self.layers.mx

        def run() -> None:
            self.latest = None  # frees its buffers for the new activations
            lengths = self.lengths(k)
            traces = []
            for length in lengths:
                traces.append(self.layers.trace(self.turn, length))
                self.turn += 1
                if len(lengths) > 1:
                    mx.async_eval(traces[-1].last)
            mx.eval([trace.last for trace in traces], traces[-1].outputs)
            self.latest = traces[-1]

        return run

    def check(self) -> Answer:
        """Sampled pixels of the first and the last layer, computed from the inputs of these."""
        trace = self.latest
        if trace is None:
            raise RuntimeError("conv: check needs a run before it")
        layers = self.layers
        pairs = [(0, trace.start, trace.first), (trace.length - 1, trace.before, trace.last)]
        blocks, references = [], []
        with np.errstate(all="ignore"):  # the check reports a chain that overflowed
            for layer, source, output in pairs[: trace.length]:
                block, reference = _compare(layers, layers.chain, layer, source, output)
                scale = float(np.sqrt(np.mean(np.square(reference)))) or 1.0
                blocks.append(block / scale)
                references.append(reference / scale)
            block, reference = np.concatenate(blocks), np.concatenate(references)
            error = relative_error(block, reference)
            worst, typical = element_errors(block, reference)
            problem = self._strayed(trace)
        names = "the first and the last layer" if len(blocks) > 1 else "the layer"
        pixels, channels = blocks[0].shape
        return Answer(
            compared=f"{pixels} pixels x {channels} channels of {names} with float64 NumPy"
            + (", two corners through all layers" if self._random(trace) else ""),
            error=error,
            worst=worst,
            typical=typical,
            inputs=_share(layers, trace.start),
            outputs=_share(layers, trace.last),
            problem=problem,
        )

    def _random(self, trace: Trace) -> bool:
        """Whether a skipped layer would change the values: not in one layer or constant data."""
        return trace.length > 1 and self.layers.setup.data.mode in RANDOM_DATA

    def _strayed(self, trace: Trace) -> str | None:
        """None if two corners of the last output agree with all layers.

        They are computed again from those pixels of the input that they depend on. Without a
        skipped layer, both differ by rounding only; a skipped layer makes them unrelated (error
        1.4).
        """
        layers, length = self.layers, trace.length
        if not self._random(trace):
            return None
        chain = layers.chain
        side = min(chain.n, CORNER + length * (chain.kernel - 1))
        ends = (slice(None, side), slice(None, CORNER)), (slice(-side, None), slice(-CORNER, None))
        for image, (around, corner) in zip((slice(0, 1), slice(-1, None)), ends, strict=True):
            z = trace.start[image, around, around]
            for layer in range(length):
                before, z = z, layers.convolve(z, layers.weight(layer))
                if layer in sample_indices(length, 5, CHECKED_LAYERS):
                    part = replace(chain, n=side, batch=1)
                    error = relative_error(*_compare(layers, part, layer, before, z))
                    if not error <= STRAY:
                        return f"layer {layer} does not convolve (relative error {error:.2g})"
            expected = to_numpy(layers.mx, z[:, corner, corner])
            error = relative_error(to_numpy(layers.mx, trace.last[image, corner, corner]), expected)
            if not error <= STRAY:
                return (
                    f"the chain is not the output of {length} layers (relative error {error:.2g})"
                )
        return None


def _share(layers: _Layers, image: Any) -> Any:
    chain = layers.chain
    rows = image.reshape(chain.batch * chain.n, chain.n * chain.channels)
    return share_of(layers.mx, Split((rows,)))


def sample_pixels(chain: Chain, seed: int) -> list[int]:
    """Indices of pixels over all images: the corners of the first, and others at random."""
    n = chain.n
    corners = {0, n - 1, n * (n - 1), n * n - 1}
    drawn = np.random.default_rng(seed).integers(chain.batch * n * n, size=DRAWN_PIXELS)
    return sorted(corners | {int(pixel) for pixel in drawn})


def patches(chain: Chain, pixels: list[int]) -> tuple[Any, Any]:
    """(indices, inside) of shape pixels x kernel^2: the input pixels under each tap."""
    n = chain.n
    index = np.array(pixels, dtype=np.int64)[:, None]
    taps = np.arange(chain.kernel**2)[None, :]
    rows = index // n % n + taps // chain.kernel - chain.before
    columns = index % n + taps % chain.kernel - chain.before
    inside = (rows >= 0) & (rows < n) & (columns >= 0) & (columns < n)
    image = index // (n * n)
    return np.where(inside, (image * n + rows) * n + columns, 0), inside


def _compare(
    layers: _Layers, chain: Chain, layer: int, source: Any, output: Any
) -> tuple[Any, Any]:
    """(block, reference) of sampled pixels and channels of one layer, in float64."""
    mx = layers.mx
    pixels = sample_pixels(chain, 3)
    channels = mx.array(list(sample_indices(chain.channels, 4)))
    indices, inside = patches(chain, pixels)
    flat = source.reshape(-1, chain.channels)[mx.array(indices.reshape(-1))]
    values = to_numpy(mx, flat).reshape(*indices.shape, chain.channels)
    values = np.where(inside[:, :, None], values, 0.0)
    weight = to_numpy(mx, layers.weight(layer)[channels])
    reference = values.reshape(len(pixels), -1) @ weight.reshape(len(weight), -1).T
    block = to_numpy(mx, output.reshape(-1, chain.channels)[mx.array(pixels)][:, channels])
    return block, reference


def conv(request: Request) -> Workload:
    """Submissions of a chain of `layers` convolutions; a unit of work is one layer."""
    setup = Setup(request)
    layers = _Layers(setup)
    steps = _Steps(layers)
    chain = layers.chain
    units = chain.layers * chain.enqueue
    notes = []
    if chain.enqueue > 1:
        notes.append(
            f"{chain.enqueue} submissions in flight: dispatch overlaps, the time is that of all"
        )
    return Workload(
        step=steps.step,
        units=units,
        unit_work=chain.layer_ops,
        largest_k=max(units, SLOPE_LAYERS),
        check=steps.check,
        unit_name="layer",
        floor=empty_evaluation(setup.mx, setup.place.streams),
        sizes=setup.sizes,
        mantissa=setup.dtype.mantissa,
        precision=setup.precision,
        notes=tuple(notes),
    )
