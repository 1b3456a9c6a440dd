"""Whether a case fits into memory, and which option makes it fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nnbt.pipeline.matrix import METRICS, sizes_of
from nnbt.spec.errors import Refusal
from nnbt.spec.options import params_of, spelled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nnbt.spec.case import Case


def check_memory(cases: Iterable[Case], free: dict[str, int]) -> None:
    """Refuses a case whose working set exceeds the free bytes of its device or of the host.

    `free` holds bytes by device name (cpu, gpu). Raises Refusal with the figures.
    """
    for case in cases:
        need = sizes_of(case)["resident_bytes"]
        # The host makes random inputs and holds the samples that are compared.
        for device in {"cpu": ("cpu",), "gpu": ("gpu",)}.get(case.device, ("cpu", "gpu")):
            if device in free and need > free[device]:
                raise Refusal(
                    f"{case.metric} of {case.dtype} at n = {case.n} needs {need / 2**30:,.1f} GiB "
                    f"and {device} has {free[device] / 2**30:,.1f} GiB free",
                    f"use {_smaller(case, free[device])} or less",
                )


def _smaller(case: Case, free: int) -> str:
    """The option and the value with which a case that is too large for `free` bytes fits.

    Of the size and the metric's own numbers it is the one that saves most at its default.
    """
    defaults = {"n": max(METRICS[case.metric].default_sizes)} | {
        name: row.default for name, row in params_of(case.metric).items() if row.kind == "int"
    }

    def need(name: str, value: int) -> int:
        changed = replace(case, n=value) if name == "n" else _with(case, name, value)
        return sizes_of(changed)["resident_bytes"]

    values = {name: case.n if name == "n" else int(case.params[name]) for name in defaults}
    saved = {name: need(name, min(defaults[name], value)) for name, value in values.items()}
    for name in sorted(values, key=lambda name: saved[name]):
        low, high = 0, values[name]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if need(name, middle) <= 0.9 * free else (low, middle)
        if low:
            return spelled("sizes" if name == "n" else name, low)
    return spelled("sizes", 1)


def _with(case: Case, name: str, value: int) -> Case:
    return replace(case, params={**case.params, name: value})
