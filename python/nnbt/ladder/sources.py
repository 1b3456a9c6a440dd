"""Where each rung comes from: the run that measures it, its best row, or a published figure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from nnbt.ladder.rungs import RUNGS, Rung, RungKind
from nnbt.peaks import published as peaks
from nnbt.peaks.chips import chip
from nnbt.pipeline.matrix import engines_of
from nnbt.results.ceiling import ceiling_rate, described
from nnbt.results.result import Result, Run
from nnbt.spec.case import Case
from nnbt.spec.errors import Refusal, Unsupported
from nnbt.spec.options import Options
from nnbt.spec.precision import unit_dtype

SIZES = {
    ("flops", "cpu"): (1024,),
    ("flops", "gpu"): (8192,),
    ("bandwidth", "cpu"): (4096,),
    ("bandwidth", "gpu"): (16384,),
}
"""The default n of products and of MLX's copies: large, yet seconds with a slow BLAS."""
NEAREST = {"int8": "q8", "float8_e4m3": "mxfp8", "tfloat32": "float32"}
"""What MLX multiplies instead of dtypes that it cannot multiply."""
_MLX = ("mlx", "mlx-compiled")


def ceiling_engines(metric: str) -> dict[str, str]:
    """The engine whose rates are ceilings of a metric, by device; empty for no ladder."""
    return {
        device: engine
        for engine, cells in engines_of(metric).items()
        for cell in cells
        if cell.ceiling
        for device in cell.devices
    }


def rung_options(
    options: Options, device: str, kind: RungKind, *, tf32: bool = False
) -> Options | None:
    """The options of the run that measures a rung; None for a computed one.

    `tf32`: MLX computes float32 products as TF32, so the rungs above are of that dtype.
    """
    metric, (token,) = options.metrics[0], options.dtypes
    if kind.computed:
        return None
    if kind.engine in _MLX and metric == "flops":
        token = NEAREST.get(token, token)
    elif token == "float32" and tf32 and metric == "flops":
        token = "tfloat32"
    engine = ceiling_engines(metric)[device] if kind.ceiling else kind.engine
    sizes: tuple[int, ...] | None = options.sizes or SIZES[metric, device]
    if kind.ceiling:  # peaks have no size, and streams a default of their own
        sizes = options.sizes if metric == "bandwidth" else None
    return replace(options, device=device, engines=(engine,), dtypes=(token,), sizes=sizes)


def best_of(kind: RungKind, run: Run) -> Rung:
    """The rung of the row with the highest rate that is not INVALID, or the reason for none."""
    rate_of: Callable[[Result], float] = (
        ceiling_rate if kind.ceiling else lambda row: row.rate or 0.0
    )
    good = [row for row in run.results if row.rate and row.verdict != "INVALID"]
    if good:
        row = max(good, key=rate_of)
        by = _by(row, ceiling=kind.ceiling)
        return Rung(kind, rate_of(row), row.unit, by, "", row.verdict or "", row)
    sentences = dict.fromkeys(
        sentence
        for row in run.results
        for sentence in (row.reason, *(r.sentence for r in row.reasons if r.severity == "invalid"))
        if sentence
    )
    status = next((row.verdict or row.status for row in run.results), "")
    return Rung(kind, reason=" ".join(sentences), verdict=status)


def _by(row: Result, *, ceiling: bool) -> str:
    """What reached the rate: chain, operation, library or size."""
    case, library = row.case, row.details.library
    if library is not None:
        return f"{library.label}, n = {case.n}"
    what = described(row) if ceiling else f"{case.dtype} n = {case.n}"
    if row.has("CACHE_RESIDENT"):
        level = row.details.fits_in or "memory"
        what += f", in {level}" if level != "memory" else ", partly in the last cache"
    return f"{what} ({row.precision})" if row.precision else what


def refused(kind: RungKind, error: Unsupported) -> Rung:
    """A rung that cannot be measured here; what to use instead are options of other commands."""
    reason = f"{error.problem}." if isinstance(error, Refusal) else str(error)
    return Rung(kind, reason=reason, verdict="UNSUPPORTED")


def published(metric: str, device: str, token: str, facts: Mapping[str, Any]) -> Rung:
    """The vendor's figure, or why there is none."""
    kind = RUNGS["published"]
    if metric == "bandwidth" and device == "cpu":
        known = peaks.published_memory(facts)
    else:
        known = peaks.published_ceiling(Case(metric, device, "", token, 0), facts, "")
    if known is not None:
        return Rung(kind, known.rate, "B/s" if metric == "bandwidth" else "", known.source)
    name = facts.get("device_name") if device == "gpu" else facts.get("cpu")
    if device == "cpu" and metric == "flops":
        reason = "CPUs have published operations per cycle; the next rung uses the measured clock."
        if not peaks.known_processor(facts):
            reason += f" data/chips.toml has no entry for {name!r}."
    else:
        figure = f"{token} peak" if metric == "flops" else "memory bandwidth"
        reason = f"No published {figure} is known for {name!r} (data/chips.toml)."
    return Rung(kind, reason=reason)


class GpuClock(NamedTuple):
    """A clock of the GPU's multiprocessors, and what reported it."""

    hz: float
    source: str

    @property
    def label(self) -> str:
        """Such as `1,785 MHz under load (NVML)`."""
        return f"{self.hz * 1e-6:,.0f} MHz under load ({self.source})"


def gpu_clock(row: Result | None) -> GpuClock | None:
    """The clock that the row's kernel counted, else NVML's right after the timed runs, if known.

    NVML's is higher under load: by 9 % on an H200's tensor cores.
    """
    if row is None:
        return None
    if row.details.chip_clock_hz:
        return GpuClock(row.details.chip_clock_hz, "counted by the kernel")
    mhz = row.gpu_state.sm_clock_mhz if row.gpu_state is not None else None
    return GpuClock(mhz * 1e6, "NVML") if mhz else None


def clock_derived(
    metric: str, token: str, native: Run | None, best: Result | None, facts: Mapping[str, Any]
) -> Rung:
    """Units x operations per cycle x the clock under load, or why it is unknown.

    `native` and `best` are the run and the row of rung `native`. The chains of a CPU differ in
    their instructions, so the largest peak of all rows counts. The kernels of a GPU share its units
    and differ in their clock, which is higher under a lighter load, so the peak of `best` counts.
    """
    kind = RUNGS["clock"]
    if metric == "bandwidth":
        return Rung(kind, reason="Memory has no operations per cycle; see the published peak.")
    all_rows: Sequence[Result] = native.results if native is not None else ()
    rows = [best] if best is not None and best.case.device == "gpu" else all_rows
    found = [row.details.clock_peak for row in rows if row.details.clock_peak is not None]
    if found:
        peak = max(found, key=lambda peak: peak.rate)
        return Rung(kind, peak.rate, "", peak.source)
    clock = gpu_clock(best)
    if best is not None and clock is not None:
        rate = _gpu_peak(token, clock.hz, best.details.ops_per_clock, facts)
        if rate is not None:
            return Rung(kind, rate, "", f"at {clock.label}")
        return Rung(kind, reason=f"The {token} operations per clock of this chip are unknown.")
    reason = next((row.reason for row in all_rows if row.reason), "")
    return Rung(kind, reason=reason or "The clock or the operations per cycle are unknown.")


def _gpu_peak(
    token: str, clock_hz: float, ops_per_clock: int | None, facts: Mapping[str, Any]
) -> float | None:
    """From the GPU's own multiprocessors, else from the chip's entry in data/chips.toml."""
    if ops_per_clock:
        return ops_per_clock * clock_hz
    known, computed = chip(str(facts.get("device_name", ""))), unit_dtype(token, "") or token
    peak = known and known.ceiling(peaks.PEAK_TYPE.get(computed, computed), clock_hz)
    return peak or None
