"""Whether a case fits into memory, and what to type where it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nnbt._native import Unsupported
from nnbt.pipeline.matrix import METRICS, sizes_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nnbt.spec.case import Case


def check_memory(cases: Iterable[Case], free: dict[str, int]) -> None:
    """Refuses a case whose working set exceeds the free bytes of its device or of the host.

    `free` holds bytes by device name (cpu, gpu). Raises Unsupported with the figures.
    """
    for case in cases:
        need = sizes_of(case)["resident_bytes"]
        # The host makes random inputs and holds the samples that are compared.
        for device in {"cpu": ("cpu",), "gpu": ("gpu",)}.get(case.device, ("cpu", "gpu")):
            if device in free and need > free[device]:
                raise Unsupported(
                    f"{case.metric} of {case.dtype} at n = {case.n} needs {need / 2**30:,.1f} GiB "
                    f"and {device} has {free[device] / 2**30:,.1f} GiB free: type "
                    f"{_smaller(case, free[device])} or less."
                )


def _smaller(case: Case, free: int) -> str:
    """The option and the value with which a case that is too large for `free` bytes fits.

    Of the size and the metric's own numbers it is the one that saves most at its default.
    """
    metric = METRICS[case.metric]
    defaults = {"n": max(metric.default_sizes)} | {
        name: param.default for name, param in metric.own.items() if isinstance(param.default, int)
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
            option = metric.option("--sizes") if name == "n" else f"--{name}"
            return f"{option} {low}"
    return f"{metric.option('--sizes')} 1"


def _with(case: Case, name: str, value: int) -> Case:
    return replace(case, params={**case.params, name: value})
