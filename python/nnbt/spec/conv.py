"""Arithmetic of metric `conv`: L chained 2-D convolutions, square images and kernels, stride 1.

Each layer has `channels` input and output channels and keeps the size of the image (padding SAME:
(K - 1) // 2 of the K - 1 rows and columns come before the image).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nnbt.spec.case import Case
from nnbt.spec.dtypes import dtype

VARIANTS = {"fp16": "float16", "int8": "int8", "qdq": "qdq", "w8a8": "w8a8"}
"""Names of the native part for what is computed, and the type of DTYPES that each is."""
MLX_DTYPES = ("float16", "bfloat16", "float32")
GPU_DTYPES = ("float16", "qdq", "w8a8")
ANE_DTYPES = ("float16", "int8", "qdq", "w8a8")
PROBE_OPS = {"cpu": 3e8, "gpu": 3e11}
"""Operations of the small chain that predicts the time of a large one: 0.15 s on two CPUs."""


@dataclass(frozen=True)
class Chain:
    """The parameters of a case as numbers."""

    n: int
    batch: int
    channels: int
    layers: int
    kernel: int
    enqueue: int
    shared: bool

    @classmethod
    def of(cls, case: Case) -> Chain:
        """The chain of a case."""
        counts = {name: int(case.params[name]) for name in ("batch", "channels", "layers")}
        return cls(
            case.n,
            **counts,
            kernel=int(case.params["kernel"]),
            enqueue=int(case.params["enqueue"]),
            shared=case.params["weights"] == "shared",
        )

    @property
    def inner(self) -> int:
        """Products in the sum of one output element."""
        return self.channels * self.kernel**2

    @property
    def before(self) -> int:
        """Rows of padding above the image; `kernel` - 1 - `before` are below."""
        return (self.kernel - 1) // 2

    @property
    def elements(self) -> int:
        """Elements of the activations between two layers."""
        return self.batch * self.n**2 * self.channels

    @property
    def layer_ops(self) -> int:
        """2 B H W Cin Cout K K: the usual count, products with padding included."""
        return 2 * self.elements * self.inner

    @property
    def exact_layer_ops(self) -> int:
        """`layer_ops` without products with padding."""
        return 2 * self.batch * self.channels**2 * taps_inside(self.n, self.kernel) ** 2


def taps_inside(n: int, kernel: int) -> int:
    """Taps along one axis that are inside the image, summed over its `n` outputs."""
    before = (kernel - 1) // 2
    return sum(max(0, n - abs(tap - before)) for tap in range(kernel))


def conv_sizes(case: Case) -> dict[str, int]:
    """Bytes and operations of one run: `enqueue` submissions of the whole chain."""
    chain = Chain.of(case)
    itemsize = dtype(case.dtype).itemsize
    activations = chain.elements * itemsize
    constants = 1 if chain.shared else chain.layers
    weights = constants * chain.channels * chain.inner * itemsize
    layers = chain.layers * chain.enqueue
    # On the CPU, MLX first copies patches of the image into a float32 matrix.
    patches = chain.elements * chain.kernel**2 * 4 if case.device == "cpu" else 0
    return {
        "n": case.n,
        "act_bytes": activations,
        "weight_bytes": weights,
        "work_ops": layers * chain.layer_ops,
        "exact_ops": layers * chain.exact_layer_ops,
        "inner": chain.inner,
        # Two inputs, four activations for the check, and the buffers of a layer.
        "resident_bytes": weights + (8 + chain.enqueue) * activations + patches,
        "unit_bytes": 2 * activations,
    }


def smaller(case: Case, device: str) -> dict[str, int]:
    """Parameters, including `n`, of a chain of one layer that predicts the time of this case."""
    chain = Chain.of(case)
    pixels = PROBE_OPS[device] / (2 * chain.channels * chain.inner)
    n = max(1, min(case.n, math.isqrt(int(pixels))))
    return {"n": n, "batch": 1, "layers": 1, "enqueue": 1}


def border_gains(n: int, kernel: int, layers: int) -> list[float]:
    """RMS of each layer's output over that of its input, as expected from padding alone.

    With weights of variance 1 / channels / kernel^2, an image without borders would keep its RMS;
    the zeros around it reduce it. Rows and columns separate.
    """
    before = (kernel - 1) // 2
    power = [1.0] * n
    gains = []
    for _ in range(layers):
        sums = [0.0]
        for value in power:
            sums.append(sums[-1] + value)
        following = [
            (sums[min(n, i - before + kernel)] - sums[max(0, i - before)]) / kernel
            for i in range(n)
        ]
        # The mean square over rows and columns is the square of the mean square over rows.
        gains.append(sum(following) / sum(power))
        scale = n / sum(following)
        power = [value * scale for value in following]
    return gains


def geometric_mean(values: list[float]) -> float:
    """exp of the mean logarithm."""
    return math.exp(sum(map(math.log, values)) / len(values))
