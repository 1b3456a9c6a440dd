"""Builder of metric `conv`, engine `mlx`: a chain of NHWC convolutions, checked in float64."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnbt.engines.mlx.bench import Bench
from nnbt.engines.mlx.data import Split, mlx_dtype, sample_indices, share_of, to_numpy
from nnbt.machine.mlx_runtime import empty_evaluation
from nnbt.spec.comparison import element_errors, relative_error
from nnbt.spec.conv import Chain, border_gains, geometric_mean
from nnbt.spec.options import RANDOM_DATA
from nnbt.spec.workload import Answer, Step, Workload

if TYPE_CHECKING:
    from nnbt.spec.cell import Request

INPUTS = 2
"""Chains start from these in turn, so that no sub-graph is repeated in an evaluation."""
CALIBRATION_N = 16
CALIBRATION_LAYERS = 200
SLOPE_LAYERS = 64
DRAWN_PIXELS = 60
CORNER = 8
"""Pixels a side of the last output that all layers are computed again for."""
CHECKED_LAYERS = 8
STRAY = 0.25
"""Relative error that roundings of any type stay below, over hundreds of layers."""


@dataclass(frozen=True)
class Trace:
    """What one submission leaves behind: activations around its first and its last layer."""

    start: Any
    first: Any
    before: Any
    last: Any
    length: int

    @property
    def outputs(self) -> list[Any]:
        """What has to be evaluated; the last output depends on all others."""
        return [self.first, self.before, self.last]


class _Layers:
    """Inputs and weights on the device, and the lazy graph over them."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.mx = bench.mx
        self.chain = Chain.of(bench.case)
        self.stream = bench.place.streams[0]
        chain = self.chain
        self.inputs = [self._input() for _ in range(INPUTS)]
        self.weights = self._weights()
        self.padding = ([chain.before] * 2, [chain.kernel - 1 - chain.before] * 2)
        if bench.data.mode in RANDOM_DATA:
            self._keep_size()

    def _input(self) -> Any:
        chain = self.chain
        matrix = self.bench.data.matrix(chain.batch * chain.n, chain.n * chain.channels)
        return matrix.reshape(chain.batch, chain.n, chain.n, chain.channels)

    def _weights(self) -> list[Any]:
        chain = self.chain
        shape = (chain.channels, chain.kernel, chain.kernel, chain.channels)
        return [
            self.bench.data.matrix(chain.channels, chain.inner, chain.inner**-0.5).reshape(shape)
            for _ in range(1 if chain.shared else chain.layers)
        ]

    def convolve(self, z: Any, weight: Any) -> Any:
        """One layer; lazy. conv_general, since an even kernel needs unequal padding."""
        return self.mx.conv_general(z, weight, padding=self.padding, stream=self.stream)

    def weight(self, layer: int) -> Any:
        """The weights of a layer; longer chains than asked for (of a slope) begin again."""
        return self.weights[layer % len(self.weights)]

    def trace(self, index: int, length: int) -> Trace:
        """The lazy chain of `length` layers over an input."""
        start = self.inputs[index % INPUTS]
        z = before = first = start
        for layer in range(length):
            before, z = z, self.convolve(z, self.weight(layer))
            first = z if layer == 0 else first
        return Trace(start, first, before, z, length)

    def _keep_size(self) -> None:
        """Scales the weights so that the chain neither vanishes nor overflows in 16 bits.

        Random matrices shrink a signal where channels are few, and one that is applied again and
        again amplifies it (3 % a layer at 128 channels, 80 % at 4). The gain of each layer is
        measured on a small image; what its borders take away is put right for the whole image.
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
        kind = mlx_dtype(mx, self.bench.dtype)
        for layer, weight in enumerate(self.weights):
            gain = mean if chain.shared or layer >= count else excess[layer]
            self.weights[layer] = (weight.astype(mx.float32) / (gain * whole)).astype(kind)
        mx.eval(self.weights)


class _Steps:
    """Steps over the layers; the latest run leaves its last trace behind for the check."""

    def __init__(self, layers: _Layers) -> None:
        self.layers = layers
        self.turn = 0
        self.latest: Trace | None = None

    def lengths(self, k: int) -> list[int]:
        """Layers of each submission that together make k: one, or whole chains in flight."""
        chain = self.layers.chain
        if chain.enqueue == 1:
            return [k]
        whole, rest = divmod(k, chain.layers)
        return [chain.layers] * whole + ([rest] if rest else [])

    def step(self, k: int) -> Step:
        """The Step that builds and evaluates k layers."""
        mx = self.layers.mx

        def run() -> None:
            self.latest = None  # new activations get the buffers of the old ones
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
        """Sampled pixels of the first and the last layer, each from the input it had."""
        trace = self.latest
        if trace is None:
            raise RuntimeError("conv: check comes after a run")
        layers = self.layers
        pairs = [(0, trace.start, trace.first), (trace.length - 1, trace.before, trace.last)]
        blocks, references = [], []
        with np.errstate(all="ignore"):  # an overflowed chain is what the check is to find
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
        """Whether a chain is long and random enough for a layer that was skipped to show."""
        return trace.length > 1 and self.layers.bench.data.mode in RANDOM_DATA

    def _strayed(self, trace: Trace) -> str | None:
        """None if two corners of the last output are what all layers make of the input there.

        They are computed again on their own, from as many pixels around as have a share in them.
        Two ways to the same values differ by rounding only; with a layer left out they are
        unrelated (error 1.4).
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
                    f"the chain is not at the values of {length} layers (relative error "
                    f"{error:.2g})"
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
    """A chain of `layers` convolutions a submission; a unit of work is one layer."""
    bench = Bench.of(request)
    layers = _Layers(bench)
    steps = _Steps(layers)
    chain = layers.chain
    units = chain.layers * chain.enqueue
    notes = []
    if chain.enqueue > 1:
        notes.append(
            f"{chain.enqueue} submissions in flight: dispatch overlaps, the time is of all of them"
        )
    return Workload(
        step=steps.step,
        units=units,
        unit_work=chain.layer_ops,
        largest_k=max(units, SLOPE_LAYERS),
        check=steps.check,
        unit_name="layer",
        floor=empty_evaluation(bench.mx, bench.place.streams),
        sizes=bench.sizes,
        mantissa=bench.dtype.mantissa,
        precision=bench.precision,
        notes=tuple(notes),
    )
