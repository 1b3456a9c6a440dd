"""CAUSES: why a rung of the ladder may be far below the one above, and what the user can do.

Each row is tested against what was measured; the first that holds explains the loss.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nnbt.ladder import Ladder, Loss, Rung, gpu_clock_hz

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE_LOSS = 0.8
"""Below this share of the rung above a loss is explained."""
LAUNCH_SHARE = 0.15
"""Constant cost of an evaluation, as a share of the median, that explains a loss by itself."""
WRITE_ALLOCATE_SHARE = 0.6
"""Least share that ordinary stores explain: 2 of 3 bytes count."""
FEW_CORES = 8
"""Cores that may be too few to keep all memory channels of a socket busy."""
_BLAS_TYPES = ("float32", "float64", "complex64")
_FAST_BLAS = re.compile(r"openblas|mkl|blis|armpl|nvpl", re.IGNORECASE)
_NARROW = re.compile(r"\b(Prescott|Nehalem|Sandybridge|Haswell|Zen)\b", re.IGNORECASE)
_HARMLESS = ("idle", "display clock setting")
_MLX = ("mlx", "mlx-compiled")


@dataclass(frozen=True)
class Facts:
    """What a cause is tested against: the loss, and the machine as it was meanwhile.

    `blas` is the file of the BLAS that MLX is linked to (empty: none seen); `tensor_float`
    whether MLX's float32 products on this GPU are TF32.
    """

    ladder: Ladder
    rung: Rung
    above: Rung
    blas: str
    usable_cpus: int
    cores: int
    tensor_float: bool

    def reason(self, code: str) -> str:
        """The sentence of a reason that the rung's result has; empty without it."""
        row = self.rung.row
        reasons = row.reasons if row is not None else ()
        return next((reason.sentence for reason in reasons if reason.code == code), "")


@dataclass(frozen=True)
class Cause:
    """One row of CAUSES; `test` returns a sentence if this is the cause, else None.

    `always` tests it where the loss is small too: a rung may be right and yet not what is meant.
    """

    code: str
    rungs: tuple[str, ...]
    explain: str
    advice: str
    test: Callable[[Facts], str | None]
    always: bool = False


def loaded_blas(maps: Path = Path("/proc/self/maps")) -> str:
    """File name of the BLAS that MLX's CPU library has loaded; empty where none is seen."""
    try:
        lines = maps.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    names = {line.rpartition("/")[2] for line in lines}
    return min((name for name in names if re.match(r"libblas[-.]", name)), default="")


def _reference_blas(f: Facts) -> str | None:
    preloaded = os.environ.get("LD_PRELOAD", "")
    if f.ladder.metric != "flops" or f.ladder.device != "cpu" or not f.blas:
        return None
    if f.ladder.dtype not in _BLAS_TYPES or _FAST_BLAS.search(preloaded):
        return None
    return (
        f"MLX multiplies with {f.blas}, the reference BLAS of its Linux wheel: one thread, no "
        "vector instructions."
    )


def _own_kernel(f: Facts) -> str | None:
    if f.ladder.device != "cpu" or f.ladder.dtype not in ("float16", "bfloat16"):
        return None
    return f"MLX multiplies {f.ladder.dtype} on Linux CPUs with a simple kernel of its own."


def _stand_in(f: Facts) -> str | None:
    row = f.rung.row
    if row is None or f.ladder.dtype in (row.case.dtype, "tfloat32"):
        return None
    return (
        f"MLX has no product of {f.ladder.dtype} matrices; {row.case.dtype}, the nearest, unpacks "
        "its weights and multiplies in floating point."
    )


def _tf32_off(f: Facts) -> str | None:
    if f.tensor_float or f.ladder.device != "gpu" or f.ladder.metric != "flops":
        return None
    if f.ladder.dtype != "float32" or "NVIDIA" not in str(f.above.by + f.rung.by):
        return None
    return "TF32 is off: float32 products don't use the matrix units."


def _launch_bound(f: Facts) -> str | None:
    row = f.rung.row
    if row is None or row.overhead_us is None or not row.median_s:
        return f.reason("LATENCY_BOUND") or None
    share = row.overhead_us * 1e-6 / row.median_s
    if share < LAUNCH_SHARE:
        return f.reason("LATENCY_BOUND") or None
    return (
        f"{row.overhead_us:,.0f} of {row.median_s * 1e6:,.0f} us are the constant cost of an "
        f"evaluation at n = {row.case.n}."
    )


def _one_thread(f: Facts) -> str | None:
    row = f.rung.row
    workers = int(row.case.params.get("cpu_workers", 0)) if row is not None else 0
    if f.ladder.device != "cpu" or not 0 < workers < f.usable_cpus:
        return None
    return f"{workers} of {f.usable_cpus} usable CPUs worked: MLX has one thread a stream."


def _write_allocate(f: Facts) -> str | None:
    share = f.ladder.share_of_above(f.rung) or 0.0
    if f.ladder.metric != "bandwidth" or "nontemporal" not in f.above.by:
        return None
    if share < WRITE_ALLOCATE_SHARE:
        return None  # it explains two thirds, not less
    return (
        "The rung above stores round the caches; MLX's ordinary stores first read what they "
        "overwrite, which for a copy is 3 bytes moved for 2 counted."
    )


def _throttled(f: Facts) -> str | None:
    row = f.rung.row or f.ladder.row("native")
    state = row.details.get("gpu_state", {}) if row is not None else {}
    reasons = [why for why in state.get("throttle_reasons") or () if why not in _HARMLESS]
    if not reasons:
        return None
    return f"The GPU lowered its clocks meanwhile (NVML: {', '.join(reasons)})."


def _low_clock(f: Facts) -> str | None:
    clock_hz = gpu_clock_hz(f.ladder.row("native"))
    if clock_hz is None:
        return None
    return f"The GPU ran at {clock_hz * 1e-6:,.0f} MHz under load, below the published clock."


def _few_cores(f: Facts) -> str | None:
    if f.ladder.metric != "bandwidth" or f.ladder.device != "cpu" or f.cores >= FEW_CORES:
        return None
    if f.above.kind.key != "published":
        return None
    return (
        f"The figure is that of a whole socket, and {f.cores} cores can't keep enough reads in "
        "flight for all its memory channels."
    )


def _narrow_kernels(f: Facts) -> str | None:
    found = _NARROW.search(f.rung.by)
    if found is None or not re.search(r"avx512|amx", f.above.by):
        return None
    return f"The BLAS picked {found[0]} kernels, narrower than the {f.above.by} chain above."


CAUSES: tuple[Cause, ...] = (
    Cause(
        "TF32_OFF",
        ("mlx",),
        "float32 products on the ordinary lanes of a GPU that has TF32",
        "type --tf32 on if 11 bits of mantissa are enough",
        _tf32_off,
        always=True,
    ),
    Cause(
        "REFERENCE_BLAS",
        ("mlx",),
        "a BLAS that is correct and slow, in MLX's Linux wheel",
        "install an OpenBLAS (Debian: libopenblas0) and see its effect with --try "
        "/usr/lib/x86_64-linux-gnu/libopenblas.so.0; then set LD_PRELOAD to it",
        _reference_blas,
    ),
    Cause(
        "SIMPLE_KERNEL",
        ("mlx",),
        "16-bit types without a kernel made for them",
        "type --dtype float32 with a fast BLAS (--try), or --device gpu",
        _own_kernel,
    ),
    Cause(
        "NO_SUCH_PRODUCT",
        ("mlx",),
        "a type that the hardware multiplies and MLX does not",
        "the library rung shows what is there; MLX's own way to it is float16 or bfloat16",
        _stand_in,
    ),
    Cause(
        "PAGE_FAULTS",
        _MLX,
        "outputs whose memory goes back to the system after each run",
        "call mx.set_cache_limit with a large value before computing",
        lambda f: f.reason("PAGE_FAULTS") or None,
    ),
    Cause(
        "LAUNCH_BOUND",
        ("library", *_MLX),
        "sizes so small that launching takes as long as working",
        "take a larger --sizes, or many operations in one evaluation (--metric flops_graph)",
        _launch_bound,
    ),
    Cause(
        "ONE_THREAD_A_STREAM",
        ("mlx",),
        "element-wise work of an MLX CPU stream has one thread",
        "leave --cpu-workers at 0, and in your program split arrays over several mx.new_stream",
        _one_thread,
    ),
    Cause(
        "POWER_CAP",
        ("clock", "native", "library", *_MLX),
        "clocks lowered by power or heat",
        "raise the limit (nvidia-smi -pl, as root) or cool; real data needs more power than zeros",
        _throttled,
    ),
    Cause(
        "LOW_CLOCK",
        ("clock",),
        "a clock below the one that the published figure assumes",
        "look at nvidia-smi -q -d CLOCK for application clocks below the maximum",
        _low_clock,
    ),
    Cause(
        "WRITE_ALLOCATE",
        ("mlx",),
        "ordinary stores read before they write",
        "nothing in MLX; nnbt --engine native --op copy shows both kinds of stores",
        _write_allocate,
    ),
    Cause(
        "FEW_CORES",
        ("native",),
        "the published figure needs more cores than this process has",
        "none on this machine: measure with all cores of the socket",
        _few_cores,
    ),
    Cause(
        "NARROW_KERNELS",
        ("library",),
        "a BLAS that does not know this processor",
        "set OPENBLAS_CORETYPE (SkylakeX, SapphireRapids) before Python starts",
        _narrow_kernels,
    ),
    Cause(
        "NOISY_NEIGHBOUR",
        ("native", "library", *_MLX),
        "other work on the same processors",
        "repeat when the machine is idle",
        lambda f: f.reason("NOISY_NEIGHBOUR") or None,
    ),
)
UNKNOWN = "UNKNOWN"


def explain_losses(
    ladder: Ladder,
    *,
    blas: str,
    usable_cpus: int,
    cores: int,
    tensor_float: bool,
) -> tuple[Loss, ...]:
    """One Loss for each large loss, and for each cause that is tested always."""
    losses = []
    for rung in ladder.rungs:
        above, share = ladder.above(rung), ladder.share_of_above(rung)
        if above is None or share is None or rung.kind.key == "tried":
            continue
        facts = Facts(ladder, rung, above, blas, usable_cpus, cores, tensor_float)
        large = share < LARGE_LOSS
        found = _first(facts, large=large)
        if found is not None:
            cause, sentence = found
            losses.append(
                Loss(rung.kind.key, above.kind.key, share, cause.code, sentence, cause.advice)
            )
        elif large:
            losses.append(_unknown(facts, share))
    return tuple(losses)


def _first(facts: Facts, *, large: bool) -> tuple[Cause, str] | None:
    for cause in CAUSES:
        if facts.rung.kind.key in cause.rungs and (large or cause.always):
            sentence = cause.test(facts)
            if sentence:
                return cause, sentence
    return None


def _unknown(facts: Facts, share: float) -> Loss:
    row, metric = facts.rung.row, facts.ladder.metric
    engine = row.case.engine if row is not None else "native"
    return Loss(
        facts.rung.kind.key,
        facts.above.kind.key,
        share,
        UNKNOWN,
        "None of the known causes holds.",
        f"look at the reasons below the rows of nnbt --metric {metric} --engine {engine}",
    )
