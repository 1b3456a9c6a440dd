"""What explains a rung far below the one above: one function a cause, and the facts they look at.

Each returns a sentence if its cause holds for these facts, else None.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nnbt.ladder.rungs import Ladder, Rung, gpu_clock
from nnbt.results.columns import rate_text

if TYPE_CHECKING:
    from nnbt.machine.shared_cores import SharedCores

LARGE_LOSS = 0.8
"""Below this share of the rung above a loss is explained."""
LAUNCH_SHARE = 0.15
"""Constant cost of an evaluation, as a share of the median, that explains a loss by itself."""
WRITE_ALLOCATE_SHARE = 0.6
"""Least share that ordinary stores explain: 2 of 3 bytes count."""
MOST_OF_PEAK = 1.03
"""A rate above that of so many cores is no rate of so many."""
FEW_CORES = 8
"""Cores that may be too few to keep all memory channels of a socket busy."""
_BLAS_TYPES = ("float32", "float64", "complex64")
_FAST_BLAS = re.compile(r"openblas|mkl|blis|armpl|nvpl", re.IGNORECASE)
_NARROW = re.compile(r"\b(Prescott|Nehalem|Sandybridge|Haswell|Zen)\b", re.IGNORECASE)
_HARMLESS = ("idle", "display clock setting")


@dataclass(frozen=True)
class Facts:
    """What a cause is tested against: the loss, and the machine as it was meanwhile.

    `blas` is the file of the BLAS that MLX is linked to (empty: none seen); `tensor_float`
    whether MLX's float32 products on this GPU are TF32 (None: it has no such units); `shared` the
    processors that share cores without the system showing it (None: no evidence of that).
    """

    ladder: Ladder
    rung: Rung
    above: Rung
    blas: str
    usable_cpus: int
    cores: int
    tensor_float: bool | None
    shared: SharedCores | None = None

    def reason(self, code: str) -> str:
        """The sentence of a reason that the rung's result has; empty without it."""
        row = self.rung.row
        reasons = row.reasons if row is not None else ()
        return next((reason.sentence for reason in reasons if reason.code == code), "")


def loaded_blas(maps: Path = Path("/proc/self/maps")) -> str:
    """File name of the BLAS that MLX's CPU library has loaded; empty where none is seen."""
    try:
        lines = maps.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    names = {line.rpartition("/")[2] for line in lines}
    return min((name for name in names if re.match(r"libblas[-.]", name)), default="")


def reference_blas(f: Facts) -> str | None:
    preloaded = os.environ.get("LD_PRELOAD", "")
    if f.ladder.metric != "flops" or f.ladder.device != "cpu" or not f.blas:
        return None
    if f.ladder.dtype not in _BLAS_TYPES or _FAST_BLAS.search(preloaded):
        return None
    return (
        f"MLX multiplies with {f.blas}, the reference BLAS of its Linux wheel: one thread, no "
        "vector instructions."
    )


def own_kernel(f: Facts) -> str | None:
    if f.ladder.device != "cpu" or f.ladder.dtype not in ("float16", "bfloat16"):
        return None
    return f"MLX multiplies {f.ladder.dtype} on Linux CPUs with a simple kernel of its own."


def stand_in(f: Facts) -> str | None:
    row = f.rung.row
    if row is None or f.ladder.dtype in (row.case.dtype, "tfloat32"):
        return None
    return (
        f"MLX has no product of {f.ladder.dtype} matrices; {row.case.dtype}, the nearest, unpacks "
        "its weights and multiplies in floating point."
    )


def tf32_off(f: Facts) -> str | None:
    if f.tensor_float is not False or f.ladder.device != "gpu" or f.ladder.metric != "flops":
        return None
    if f.ladder.dtype != "float32" or "NVIDIA" not in str(f.above.by + f.rung.by):
        return None
    return "TF32 is off: float32 products don't use the matrix units."


def launch_bound(f: Facts) -> str | None:
    row = f.rung.row
    if row is None or row.overhead_us is None or not row.median_s:
        return f.reason("LAUNCH_BOUND") or None
    share = row.overhead_us * 1e-6 / row.median_s
    if share < LAUNCH_SHARE:
        return f.reason("LAUNCH_BOUND") or None
    return (
        f"{row.overhead_us:,.0f} of {row.median_s * 1e6:,.0f} us are the constant cost of an "
        f"evaluation at n = {row.case.n}."
    )


def one_by_one(f: Facts) -> str | None:
    row, above = f.rung.row, f.above.rate
    if f.ladder.device != "gpu" or row is None or not row.slope_rate or not above:
        return None
    if row.slope_rate < LARGE_LOSS * above:
        return None
    return (
        "One operation an evaluation leaves the device idle in between: several in one run at "
        f"{rate_text(row.slope_rate, f.ladder.unit)} (the slope at n = {row.case.n})."
    )


def one_thread(f: Facts) -> str | None:
    row = f.rung.row
    workers = int(row.case.params.get("cpu_workers", 0)) if row is not None else 0
    if f.ladder.device != "cpu" or not 0 < workers < f.usable_cpus:
        return None
    return f"{workers} of {f.usable_cpus} usable CPUs worked: MLX has one thread a stream."


def older_instructions(f: Facts) -> str | None:
    return (f.rung.row.details.not_a_ceiling if f.rung.row is not None else "") or None


def hidden_smt(f: Facts) -> str | None:
    if f.shared is None or f.ladder.device != "cpu" or f.ladder.metric != "flops":
        return None
    if f.above.kind.key != "clock" or not f.rung.rate or not f.above.rate:
        return None
    peak = f.above.rate * f.shared.cores / f.shared.cpus
    if f.rung.rate > MOST_OF_PEAK * peak:
        return None  # the host has since given them cores of their own
    return (
        f"{f.shared.sentence}. Of {f.shared.cores} instead of {f.shared.cpus} cores the peak is "
        f"{rate_text(peak, f.ladder.unit)}, and this is {f.rung.rate / peak:.0%} of it."
    )


def scatter(f: Facts) -> str | None:
    row, above = f.rung.row, f.above.row
    if row is None:
        return None
    best = above.best_rate if above is not None else f.above.rate
    if row.best_rate and best and row.best_rate >= LARGE_LOSS * best > 0:
        return (
            f"The fastest run did {rate_text(row.best_rate, f.ladder.unit)}, that of the rung "
            f"above {rate_text(best, f.ladder.unit)}: it is the median run that is slow."
        )
    return None


def write_allocate(f: Facts) -> str | None:
    share = f.ladder.share_of_above(f.rung) or 0.0
    if f.ladder.metric != "bandwidth" or "nontemporal" not in f.above.by:
        return None
    if share < WRITE_ALLOCATE_SHARE:
        return None  # it explains two thirds, not less
    return (
        "The rung above stores round the caches; MLX's ordinary stores first read what they "
        "overwrite, which for a copy is 3 bytes moved for 2 counted."
    )


def throttled(f: Facts) -> str | None:
    row = f.rung.row or f.ladder.row("native")
    state = row.gpu_state if row is not None else None
    reasons = [why for why in (state and state.throttle_reasons) or () if why not in _HARMLESS]
    if not reasons:
        return None
    return f"The GPU lowered its clocks meanwhile (NVML: {', '.join(reasons)})."


def low_clock(f: Facts) -> str | None:
    clock = gpu_clock(f.ladder.row("native"))
    if clock is None:
        return None
    return (
        f"The GPU ran at {clock.hz * 1e-6:,.0f} MHz under load by {clock.by}, below the published "
        "clock."
    )


def few_cores(f: Facts) -> str | None:
    if f.ladder.metric != "bandwidth" or f.ladder.device != "cpu" or f.cores >= FEW_CORES:
        return None
    if f.above.kind.key != "published":
        return None
    return (
        f"The figure is that of a whole socket, and {f.cores} cores can't keep enough reads in "
        "flight for all its memory channels."
    )


def narrow_kernels(f: Facts) -> str | None:
    found = _NARROW.search(f.rung.by)
    if found is None or not re.search(r"avx512|amx", f.above.by):
        return None
    return f"The BLAS picked {found[0]} kernels, narrower than the {f.above.by} chain above."
