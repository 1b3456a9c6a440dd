"""CAUSES: why a rung may be far below the one above, and what the user can do about it.

The first row whose condition applies explains the loss.
"""

from collections.abc import Callable
from dataclasses import dataclass

from nnbt.ladder import conditions
from nnbt.ladder.conditions import Gap, Host
from nnbt.ladder.rungs import LARGE_LOSS, Ladder, Loss

_MLX = ("mlx", "mlx-compiled")
_MEASURED = ("native", "library", *_MLX)


@dataclass(frozen=True)
class Cause:
    """One row of CAUSES. `condition` returns a sentence if the cause applies, else None.

    `always`: reported for small losses too, where the rung is not what the user may expect.
    """

    code: str
    rungs: tuple[str, ...]
    condition: Callable[[Gap], str | None]
    explain: str
    advice: str
    always: bool = False


# fmt: off
CAUSES: tuple[Cause, ...] = (
    Cause("TF32_OFF", ("mlx",), conditions.tf32_off,
        "float32 products outside the matrix units, on a GPU with TF32",
        "use --tf32 on if 11 mantissa bits are enough",
        always=True),
    Cause("REFERENCE_BLAS", ("mlx",), conditions.reference_blas,
        "the slow reference BLAS in MLX's Linux wheel",
        "install OpenBLAS (Debian: libopenblas0), measure its effect with --try "
        "/usr/lib/x86_64-linux-gnu/libopenblas.so.0, then set LD_PRELOAD to it"),
    Cause("SIMPLE_KERNEL", ("mlx",), conditions.simple_kernel,
        "16-bit dtypes, for which MLX has no optimized CPU kernel",
        "use --dtype float32 with a fast BLAS (--try), or --device gpu"),
    Cause("NO_SUCH_PRODUCT", ("mlx",), conditions.nearest_dtype,
        "a dtype that the hardware multiplies and MLX does not",
        "use float16 or bfloat16 in MLX; the library rung shows what the hardware can do"),
    Cause("PAGE_FAULTS", _MLX, conditions.page_faults,
        "output memory that goes back to the system after each run",
        "call mx.set_cache_limit with a large value before computing"),
    Cause("LAUNCH_BOUND", ("library", *_MLX), conditions.launch_bound,
        "sizes so small that fixed cost dominates",
        "use larger --sizes, or more operations per evaluation"),
    Cause("ONE_THREAD_PER_STREAM", ("mlx",), conditions.one_thread,
        "fewer MLX CPU streams than CPUs; element-wise work uses one thread per stream",
        "leave --cpu-workers at 0; in your program, split arrays over several mx.new_stream"),
    Cause("POWER_CAP", ("clock", *_MEASURED), conditions.throttled,
        "clocks lowered by power or temperature",
        "raise the power limit (nvidia-smi -pl, as root) or improve cooling; random data draws "
        "more power than zeros"),
    Cause("LOW_CLOCK", ("clock",), conditions.low_clock,
        "a clock below the one that the published peak assumes",
        "check nvidia-smi -q -d CLOCK for application clocks below the maximum"),
    Cause("WRITE_ALLOCATE", ("mlx",), conditions.write_allocate,
        "ordinary stores, which read each cache line before they overwrite it",
        "nothing in MLX; nnbt --engine native --op copy measures both kinds of stores"),
    Cause("OLDER_INSTRUCTIONS", ("native",), conditions.older_instructions,
        "a chip whose newest matrix instructions the kernels do not use yet",
        "take the vendor library, which uses them, as the ceiling"),
    Cause("HIDDEN_SMT", ("native",), conditions.hidden_smt,
        "two CPUs of a guest that are threads of one core, though shown as two cores",
        "nothing inside the guest: count half the cores, or choose a machine type with whole "
        "cores"),
    Cause("FEW_CORES", ("native",), conditions.few_cores,
        "fewer cores than the published figure needs",
        "nothing on this machine; on a larger one, use all cores of the socket"),
    Cause("NARROW_KERNELS", ("library",), conditions.narrow_kernels,
        "a BLAS that does not recognize this CPU",
        "set OPENBLAS_CORETYPE (SkylakeX, SapphireRapids) before Python starts"),
    Cause("BACKGROUND_LOAD", _MEASURED, conditions.background_load,
        "other processes on the same CPUs",
        "repeat on an idle machine"),
    Cause("ONE_BY_ONE", ("library", *_MLX), conditions.one_by_one,
        "one operation per evaluation, with the device idle in between",
        "evaluate several outputs with one mx.eval"),
    Cause("SCATTER", _MEASURED, conditions.slow_median,
        "noisy run times: the median is far from the fastest run",
        "repeat on an idle machine, with a longer --max-seconds"),
)
# fmt: on
UNKNOWN = "UNKNOWN"


def explain_losses(ladder: Ladder, host: Host) -> tuple[Loss, ...]:
    """A Loss for each rung far below the one above, and for each cause that is always reported."""
    losses = []
    for rung in ladder.rungs:
        above, share = ladder.above(rung), ladder.share_of_above(rung)
        if above is None or share is None or rung.kind.key == "tried":
            continue
        gap = Gap(ladder, rung, above, host)
        found = _cause(gap, large=share < LARGE_LOSS)
        if found is not None:
            losses.append(Loss(rung.kind.key, above.kind.key, share, *found))
    return tuple(losses)


def _cause(gap: Gap, *, large: bool) -> tuple[str, str, str] | None:
    """(code, sentence, advice) of the first cause that applies; UNKNOWN for other large losses."""
    for cause in CAUSES:
        if gap.rung.kind.key in cause.rungs and (large or cause.always):
            sentence = cause.condition(gap)
            if sentence:
                return cause.code, sentence, cause.advice
    if not large:
        return None
    row, metric = gap.rung.row, gap.ladder.metric
    command = f"nnbt --metric {metric} --engine {row.case.engine if row is not None else 'native'}"
    return UNKNOWN, "No known cause applies.", f"check the reasons below the rows of {command}"
