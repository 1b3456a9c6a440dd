"""CAUSES: why a rung of the ladder may be far below the one above, and what the user can do.

Each row is tested against what was measured; the first that holds explains the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnbt.ladder import tests as loss_tests
from nnbt.ladder.rungs import Ladder, Loss
from nnbt.ladder.tests import LARGE_LOSS, Facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnbt.machine.shared_cores import SharedCores

_MLX = ("mlx", "mlx-compiled")


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


CAUSES: tuple[Cause, ...] = (
    Cause(
        "TF32_OFF",
        ("mlx",),
        "float32 products on the ordinary lanes of a GPU that has TF32",
        "type --tf32 on if 11 bits of mantissa are enough",
        loss_tests.tf32_off,
        always=True,
    ),
    Cause(
        "REFERENCE_BLAS",
        ("mlx",),
        "a BLAS that is correct and slow, in MLX's Linux wheel",
        "install an OpenBLAS (Debian: libopenblas0) and see its effect with --try "
        "/usr/lib/x86_64-linux-gnu/libopenblas.so.0; then set LD_PRELOAD to it",
        loss_tests.reference_blas,
    ),
    Cause(
        "SIMPLE_KERNEL",
        ("mlx",),
        "16-bit types without a kernel made for them",
        "type --dtype float32 with a fast BLAS (--try), or --device gpu",
        loss_tests.own_kernel,
    ),
    Cause(
        "NO_SUCH_PRODUCT",
        ("mlx",),
        "a type that the hardware multiplies and MLX does not",
        "the library rung shows what is there; MLX's own way to it is float16 or bfloat16",
        loss_tests.stand_in,
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
        "take a larger --sizes, or many operations in one evaluation",
        loss_tests.launch_bound,
    ),
    Cause(
        "ONE_THREAD_A_STREAM",
        ("mlx",),
        "element-wise work of an MLX CPU stream has one thread",
        "leave --cpu-workers at 0, and in your program split arrays over several mx.new_stream",
        loss_tests.one_thread,
    ),
    Cause(
        "POWER_CAP",
        ("clock", "native", "library", *_MLX),
        "clocks lowered by power or heat",
        "raise the limit (nvidia-smi -pl, as root) or cool; real data needs more power than zeros",
        loss_tests.throttled,
    ),
    Cause(
        "LOW_CLOCK",
        ("clock",),
        "a clock below the one that the published figure assumes",
        "look at nvidia-smi -q -d CLOCK for application clocks below the maximum",
        loss_tests.low_clock,
    ),
    Cause(
        "WRITE_ALLOCATE",
        ("mlx",),
        "ordinary stores read before they write",
        "nothing in MLX; nnbt --engine native --op copy shows both kinds of stores",
        loss_tests.write_allocate,
    ),
    Cause(
        "OLDER_INSTRUCTIONS",
        ("native",),
        "a chip whose own matrix instructions the kernels don't use yet",
        "take the vendor library, which uses them, as the ceiling of this chip",
        loss_tests.older_instructions,
    ),
    Cause(
        "HIDDEN_SMT",
        ("native",),
        "two processors of this guest are the threads of one core, counted as two cores",
        "nothing within the guest: count half the cores, or take a machine type with whole ones",
        loss_tests.hidden_smt,
    ),
    Cause(
        "FEW_CORES",
        ("native",),
        "the published figure needs more cores than this process has",
        "none on this machine: measure with all cores of the socket",
        loss_tests.few_cores,
    ),
    Cause(
        "NARROW_KERNELS",
        ("library",),
        "a BLAS that does not know this processor",
        "set OPENBLAS_CORETYPE (SkylakeX, SapphireRapids) before Python starts",
        loss_tests.narrow_kernels,
    ),
    Cause(
        "BACKGROUND_LOAD",
        ("native", "library", *_MLX),
        "other work on the same processors",
        "repeat when the machine is idle",
        lambda f: f.reason("BACKGROUND_LOAD") or None,
    ),
    Cause(
        "ONE_BY_ONE",
        ("library", *_MLX),
        "one operation in an evaluation, so that the device is idle from one to the next",
        "evaluate several operations at once: one mx.eval of many outputs",
        loss_tests.one_by_one,
    ),
    Cause(
        "SCATTER",
        ("native", "library", *_MLX),
        "run times that scatter or change, so that a median is far from the fastest run",
        "repeat with a longer --max-seconds, when the machine is idle",
        loss_tests.scatter,
    ),
)
UNKNOWN = "UNKNOWN"


def explain_losses(
    ladder: Ladder,
    *,
    blas: str,
    usable_cpus: int,
    cores: int,
    tensor_float: bool | None,
    shared: SharedCores | None = None,
) -> tuple[Loss, ...]:
    """One Loss for each large loss, and for each cause that is tested always."""
    losses = []
    for rung in ladder.rungs:
        above, share = ladder.above(rung), ladder.share_of_above(rung)
        if above is None or share is None or rung.kind.key == "tried":
            continue
        facts = Facts(ladder, rung, above, blas, usable_cpus, cores, tensor_float, shared)
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
