"""Whether a case fits into memory, and what to use where it does not."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from nnbt.pipeline.plan import Planned
from nnbt.spec.errors import Refusal
from nnbt.spec.metric import METRICS
from nnbt.spec.options import params_of, spelled


def check_memory(planned: Iterable[Planned], free_bytes: Mapping[str, int]) -> None:
    """Refuses a case whose working set exceeds the free bytes of its device or of the host.

    `free_bytes` holds bytes by device name (cpu, gpu). Raises Refusal with the figures.
    """
    for item in planned:
        case, need = item.case, item.sizes["resident_bytes"]
        # The host makes random inputs and holds the samples that are compared.
        for device in {"cpu": ("cpu",), "gpu": ("gpu",)}.get(case.device, ("cpu", "gpu")):
            free = free_bytes.get(device)
            if free is not None and need > free:
                raise Refusal(
                    f"{case.metric} of {case.dtype} at n = {case.n} needs {need / 2**30:,.1f} GiB "
                    f"but {device} has {free / 2**30:,.1f} GiB free",
                    f"use {_smaller(item, free)} or less",
                )


def _smaller(item: Planned, free: int) -> str:
    """The option and the value with which a case that is too large for `free` bytes fits.

    Of the size and the metric's own numbers it is the one that saves most at its default.
    """
    case = item.case
    defaults = {"sizes": max(METRICS[case.metric].default_sizes)} | {
        name: row.default for name, row in params_of(case.metric).items() if row.kind == "int"
    }

    def need(name: str, value: int) -> int:
        params = case.params if name == "sizes" else {**case.params, name: value}
        changed = replace(case, n=value if name == "sizes" else case.n, params=params)
        return item.changed(changed).sizes["resident_bytes"]

    values = {name: case.n if name == "sizes" else int(case.params[name]) for name in defaults}
    saved = {name: need(name, min(defaults[name], value)) for name, value in values.items()}
    for name in sorted(values, key=lambda name: saved[name]):
        low, high = 0, values[name]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if need(name, middle) <= 0.9 * free else (low, middle)
        if low:
            return spelled(name, low)
    return spelled("sizes", 1)
