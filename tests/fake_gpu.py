"""A GPU that isn't there: MLX on the CPU whose custom kernels are NumPy, by the kernel's name."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from nnbt.spec.formats import FORMATS


def _block_sums(call: dict[str, Any]) -> Any:
    words = np.array(call["inputs"][0]).view(np.uint32)
    blocks = call["grid"][0] // call["threadgroup"][0]
    template = dict(call["template"])
    pieces = template.get("PIECES") or template.get("CHUNKS") or blocks
    sums = words.reshape(pieces, -1).sum(axis=1, dtype=np.uint64)
    totals = [int(sums[block::blocks].sum()) % 2**32 for block in range(blocks)]
    return np.array(totals, np.uint32)


def _write(call: dict[str, Any]) -> Any:
    seed = int(np.array(call["inputs"][0])[0])
    index = np.arange(call["output_shapes"][0][0], dtype=np.uint64)
    return ((index * 2654435761 + seed) % 2**32).astype(np.uint32)


def _values(words: Any, dtype: str) -> Any:
    bits = np.array(words)
    if dtype == bits.dtype.name and bits.dtype.kind == "f":
        return bits.astype(np.float64)  # Metal takes the dtype itself
    row = FORMATS[dtype]
    return row.decode(bits.view(np.dtype(f"uint{row.bits}")))


def _products(call: dict[str, Any]) -> Any:
    a, b = (_values(words, call["dtype"]) for words in call["inputs"][:2])
    passes = int(np.array(call["inputs"][2])[0]) * dict(call["template"])["PASSES"]
    sums = passes * (a @ b.swapaxes(1, 2))
    return np.broadcast_to(sums, call["output_shapes"][0])


def _fma(call: dict[str, Any]) -> Any:
    p, q, r, start = (np.array(values).astype(np.float64) for values in call["inputs"][:4])
    passes = int(np.array(call["inputs"][4])[0]) * dict(call["template"])["PASSES"]
    sums = start + passes * (p * (q - r)).sum(axis=1, keepdims=True)
    return np.broadcast_to(sums, call["output_shapes"][0])


def _sum(scalar: float) -> Callable[[dict[str, Any]], Any]:
    return lambda call: (
        np.array(call["inputs"][0]) + np.float32(scalar) * np.array(call["inputs"][1])
    )


KERNELS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "read": _block_sums, "bulk_read": _block_sums, "write": _write,
    "copy": lambda call: np.array(call["inputs"][0]),
    "bulk_copy": lambda call: np.array(call["inputs"][0]), "add": _sum(1.0), "triad": _sum(0.5),
    "fma": _fma, "wgmma": _products, "wgmma_registers": _products, "tcgen05": _products,
    "mma_sync": _products, "simdgroup": _products,
}  # fmt: skip


def chip_stamps(blocks: int, words: int) -> Any:
    """What blocks write that start 1 us after one another and run for 10 ms at 1.785 GHz."""
    start_ns = 10**9 + 1000 * np.arange(blocks, dtype=np.uint64)
    stamps = np.empty((blocks, words), np.uint64)
    for at, ns in ((0, start_ns), (2, start_ns + 10**7)):
        stamps[:, at + 1] = ns
        stamps[:, at] = 1785 * (ns // 1000)
    return stamps


class FakeGpu:
    """Stands for mlx.core. `spoil` changes results, `run` makes all outputs, `stamps` the clocks
    of blocks; `calls` are kept."""

    def __init__(
        self,
        mx: Any,
        capability: tuple[int, int] | None = (9, 0),
        spoil: Callable[[Any], Any] = lambda output: output,
        run: Callable[[dict[str, Any]], list[Any]] | None = None,
        stamps: Callable[[int, int], Any] = chip_stamps,
    ) -> None:
        self._mx, self._spoil, self._run, self.stamps = mx, spoil, run, stamps
        self.calls: list[dict[str, Any]] = []
        self.gpu = mx.cpu
        self.cuda = SimpleNamespace(is_available=lambda: capability is not None)
        self.metal = SimpleNamespace(is_available=lambda: capability is None)
        major, minor = capability or (0, 0)
        self._facts = {"compute_capability_major": major, "compute_capability_minor": minor}
        self.fast = SimpleNamespace(cuda_kernel=self._kernel, metal_kernel=self._kernel)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mx, name)

    def device_info(self, _: Any) -> dict[str, int]:
        return self._facts

    def _kernel(self, *, name: str, **_: Any) -> Callable[..., Any]:
        kind, dtype = re.fullmatch(
            rf"nnbt_({'|'.join(sorted(KERNELS, key=len, reverse=True))})_(.*)", name
        ).groups()

        def call(**options: Any) -> list[Any]:
            self.calls.append(options)
            if self._run is not None:
                outputs = self._run(options)
            else:
                outputs = [KERNELS[kind]({**options, "dtype": dtype})]
                outputs += [self.stamps(*shape) for shape in options["output_shapes"][1:]]
            outputs[0] = self._spoil(np.array(outputs[0]))
            return [
                self._mx.array(output).astype(as_type)
                for output, as_type in zip(outputs, options["output_dtypes"], strict=True)
            ]

        return call
