"""Which parameters make the GPU's bandwidth kernels fastest: short trials, the best ones first.

    python tests/bench/tune_streams.py [--only copy bulk_copy] [--gib 1]

The rate is that of eight launches in one evaluation. Prints one line per trial; the defaults of
nnbt.engines.kernel.sources.streams are from such a table.
"""

import argparse
import itertools
from typing import Any

from nnbt import _native
from nnbt.engines.kernel import launcher
from nnbt.machine import mlx

LAUNCHES = 8
_PLAIN = {"unroll": (1,), "cache": (1, 3), "threads": (128, 256, 512, 1024)}
_BULK = {
    "piece_bytes": (2**13, 2**14, 2**15),
    "stages": (4, 6, 12),
    "blocks_per_multiprocessor": (1, 2, 3),
}
GRIDS: dict[str, dict[str, tuple[int, ...]]] = {
    "copy": _PLAIN, "add": _PLAIN,
    "read": {"unroll": (8, 16), "cache": (1,), "threads": (256, 512, 1024)}, "bulk_read": _BULK,
    "bulk_copy": _BULK,
}  # fmt: skip


def trial(mx: Any, name: str, params: dict[str, int]) -> float:
    """Bytes per second of the fastest of 20 runs. Raises for parameters that do not fit."""
    built = launcher.build(launcher.KERNELS[f"{name}-float32-cuda"], mx, **params)
    samples = _native.measure(built.step(LAUNCHES), warmup=3, runs=20)
    problem = built.check()
    if problem:
        raise ValueError(problem)
    return LAUNCHES * built.work.bytes / min(samples.samples_ns) * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(GRIDS), choices=list(GRIDS))
    parser.add_argument("--gib", type=int, default=1, help="size of an array")
    options = parser.parse_args()
    mx = mlx.core()
    for name in options.only:
        rates = {}
        for values in itertools.product(*GRIDS[name].values()):
            params = dict(zip(GRIDS[name], values, strict=True))
            try:
                rates[values] = trial(mx, name, {**params, "array_bytes": options.gib * 2**30})
            except (ValueError, RuntimeError) as error:
                print(f"{name} {params}: {error}")
            mx.clear_cache()
        for values, rate in sorted(rates.items(), key=lambda item: -item[1]):
            print(f"{name} {dict(zip(GRIDS[name], values, strict=True))}: {rate * 1e-9:,.0f} GB/s")


if __name__ == "__main__":
    main()
