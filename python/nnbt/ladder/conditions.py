"""The condition of each cause: a function that returns a sentence if the cause applies, else None.

Conditions look at typed facts: results of the two rungs, and the Host.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from nnbt.ladder.rungs import LARGE_LOSS, Ladder, Rung
from nnbt.ladder.sources import gpu_clock
from nnbt.machine.shared_cores import SharedCores
from nnbt.results.numbers import rate_text

LAUNCH_SHARE = 0.15
"""Fixed cost of an evaluation, as a share of the median, that explains a loss by itself."""
WRITE_ALLOCATE_SHARE = 0.6  # ordinary stores explain no lower share than this: 2 of 3 bytes count
MOST_OF_PEAK = 1.03  # a rate above this share of the peak of some cores needed more cores
FEW_CORES = 8  # fewer cores may not keep all memory channels of a socket busy
_BLAS_TYPES = ("float32", "float64", "complex64")
_FAST_BLAS = re.compile(r"openblas|mkl|blis|armpl|nvpl", re.IGNORECASE)
_NARROW_KERNELS = {"prescott", "nehalem", "sandybridge", "haswell", "zen"}
_WIDE_CHAINS = ("avx512_", "amx_")
_HARMLESS = ("idle", "display clock setting")


@dataclass(frozen=True)
class Host:
    """What conditions need to know about the machine.

    `mlx_blas` is the file name of the BLAS that MLX loaded (empty: none seen), `preloaded` the
    value of LD_PRELOAD. `tf32` is whether MLX computes float32 products as TF32 (None: no such
    units). `shared` holds CPUs that share a core without the system showing it, if there is
    evidence.
    """

    usable_cpus: int
    cores: int
    mlx_blas: str = ""
    preloaded: str = ""
    tf32: bool | None = None
    shared: SharedCores | None = None


@dataclass(frozen=True)
class Gap:
    """A rung, the one above it, and the host on which both were measured."""

    ladder: Ladder
    rung: Rung
    above: Rung
    host: Host

    def reason(self, code: str) -> str | None:
        """The sentence of a reason that the rung's result has."""
        reasons = self.rung.row.reasons if self.rung.row is not None else ()
        return next((reason.sentence for reason in reasons if reason.code == code), None)


def loaded_blas(maps: Path = Path("/proc/self/maps")) -> str:
    """File name of the BLAS that MLX's CPU library has loaded; empty if none is seen."""
    try:
        lines = maps.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    names = {line.rpartition("/")[2] for line in lines}
    return min((name for name in names if re.match(r"libblas[-.]", name)), default="")


def preloaded() -> str:
    """The libraries that the loader was told to load first."""
    return os.environ.get("LD_PRELOAD", "")


def page_faults(gap: Gap) -> str | None:
    return gap.reason("PAGE_FAULTS")


def background_load(gap: Gap) -> str | None:
    return gap.reason("BACKGROUND_LOAD")


def reference_blas(gap: Gap) -> str | None:
    ladder, host = gap.ladder, gap.host
    if ladder.metric != "flops" or ladder.device != "cpu" or not host.mlx_blas:
        return None
    if ladder.dtype not in _BLAS_TYPES or _FAST_BLAS.search(host.preloaded):
        return None
    return (
        f"MLX uses {host.mlx_blas}, the reference BLAS of its Linux wheel: one thread, no vector "
        "instructions."
    )


def simple_kernel(gap: Gap) -> str | None:
    if gap.ladder.device != "cpu" or gap.ladder.dtype not in ("float16", "bfloat16"):
        return None
    return f"On Linux CPUs MLX multiplies {gap.ladder.dtype} with a simple kernel of its own."


def nearest_dtype(gap: Gap) -> str | None:
    row = gap.rung.row
    if row is None or gap.ladder.dtype in (row.case.dtype, "tfloat32"):
        return None
    return (
        f"MLX has no {gap.ladder.dtype} product. The nearest is {row.case.dtype}, which unpacks "
        "its weights and multiplies in floating point."
    )


def tf32_off(gap: Gap) -> str | None:
    if gap.host.tf32 is not False or gap.ladder.device != "gpu":
        return None
    if gap.ladder.metric != "flops" or gap.ladder.dtype != "float32":
        return None
    return "TF32 is off, so float32 products do not use the matrix units."


def launch_bound(gap: Gap) -> str | None:
    row = gap.rung.row
    if row is None or row.overhead_us is None or not row.median_s:
        return gap.reason("LAUNCH_BOUND")
    if row.overhead_us * 1e-6 < LAUNCH_SHARE * row.median_s:
        return gap.reason("LAUNCH_BOUND")
    return (
        f"{row.overhead_us:,.0f} of {row.median_s * 1e6:,.0f} us are fixed cost of an evaluation "
        f"at n = {row.case.n}."
    )


def one_by_one(gap: Gap) -> str | None:
    row, above = gap.rung.row, gap.above.rate
    if gap.ladder.device != "gpu" or row is None or not row.slope_rate or not above:
        return None
    if row.slope_rate < LARGE_LOSS * above:
        return None
    return (
        "With one operation per evaluation the GPU idles in between; several per evaluation reach "
        f"{rate_text(row.slope_rate, gap.ladder.unit)} (slope at n = {row.case.n})."
    )


def one_thread(gap: Gap) -> str | None:
    row = gap.rung.row
    workers = int(row.case.params.get("cpu_workers", 0)) if row is not None else 0
    if gap.ladder.device != "cpu" or not 0 < workers < gap.host.usable_cpus:
        return None
    return (
        f"MLX runs one thread per stream, and {workers} of {gap.host.usable_cpus} usable CPUs had "
        "one."
    )


def older_instructions(gap: Gap) -> str | None:
    row = gap.rung.row
    return (row.details.not_a_ceiling or None) if row is not None else None


def hidden_smt(gap: Gap) -> str | None:
    shared = gap.host.shared
    if shared is None or gap.ladder.device != "cpu" or gap.ladder.metric != "flops":
        return None
    if gap.above.kind.key != "clock" or not gap.rung.rate or not gap.above.rate:
        return None
    peak = gap.above.rate * shared.cores / shared.cpus
    if gap.rung.rate > MOST_OF_PEAK * peak:
        return None  # by now the host gives them cores of their own
    return (
        f"{shared.sentence}. With {shared.cores} instead of {shared.cpus} cores the peak is "
        f"{rate_text(peak, gap.ladder.unit)}; this rung reaches {gap.rung.rate / peak:.0%} of it."
    )


def slow_median(gap: Gap) -> str | None:
    row, above = gap.rung.row, gap.above.row
    best = above.best_rate if above is not None else gap.above.rate
    if row is None or not row.best_rate or not best or row.best_rate < LARGE_LOSS * best:
        return None
    return (
        f"The fastest run reached {rate_text(row.best_rate, gap.ladder.unit)} (rung above: "
        f"{rate_text(best, gap.ladder.unit)}); only the median is slow."
    )


def write_allocate(gap: Gap) -> str | None:
    above, share = gap.above.row, gap.ladder.share_of_above(gap.rung) or 0.0
    if gap.ladder.metric != "bandwidth" or above is None:
        return None
    if above.case.params.get("stores") != "nontemporal" or share < WRITE_ALLOCATE_SHARE:
        return None
    return (
        "The rung above uses non-temporal stores. MLX's ordinary stores first read each cache line "
        "(write-allocate), so a copy moves 3 bytes for every 2 it counts."
    )


def throttled(gap: Gap) -> str | None:
    row = gap.rung.row or gap.ladder.row("native")
    state = row.gpu_state if row is not None else None
    reasons = [why for why in (state and state.throttle_reasons) or () if why not in _HARMLESS]
    if not reasons:
        return None
    return f"The GPU lowered its clocks during the runs (NVML: {', '.join(reasons)})."


def low_clock(gap: Gap) -> str | None:
    clock = gpu_clock(gap.ladder.row("native"))
    if clock is None:
        return None
    return f"The GPU ran at {clock.label}, below the clock of the published peak."


def few_cores(gap: Gap) -> str | None:
    ladder, cores = gap.ladder, gap.host.cores
    if ladder.metric != "bandwidth" or ladder.device != "cpu" or cores >= FEW_CORES:
        return None
    if gap.above.kind.key != "published":
        return None
    return (
        f"The published figure is for a whole socket; {cores} cores cannot keep all its memory "
        "channels busy."
    )


def narrow_kernels(gap: Gap) -> str | None:
    row, above = gap.rung.row, gap.above.row
    library = row.details.library if row is not None else None
    chain = str(above.case.params.get("chain", "")) if above is not None else ""
    if library is None or library.kernels.lower() not in _NARROW_KERNELS:
        return None
    if not chain.startswith(_WIDE_CHAINS):
        return None
    return (
        f"The BLAS chose its {library.kernels} kernels, with narrower vectors than chain {chain}."
    )
