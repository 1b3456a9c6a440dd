"""The ladder: where the speed goes between what was published and what MLX delivers.

One row a rung, each from results of ordinary runs: published peak, clock-derived peak, native
kernel, vendor library, MLX eager, MLX compiled. A rung that can't be has a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nnbt.peaks import published as ceilings
from nnbt.results.ceiling import ceiling_rate, described
from nnbt.spec.case import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nnbt._native import Unsupported
    from nnbt.results.result import Result, Run
    from nnbt.spec.options import Options

METRICS_WITH_LADDER = ("flops", "bandwidth")
ENGINES = {"cpu": "native", "gpu": "kernel"}
"""The engine of rung `native` by device."""
SIZES = {
    ("flops", "cpu"): (1024,),
    ("flops", "gpu"): (8192,),
    ("bandwidth", "cpu"): (4096,),
    ("bandwidth", "gpu"): (16384,),
}
"""The n of products and MLX's copies where none is named: large, yet seconds on a slow BLAS."""
NEAREST = {"int8": "q8", "float8_e4m3": "mxfp8", "tfloat32": "float32"}
"""What MLX multiplies instead of types that it can't multiply."""
MAX_SECONDS = 1.0


@dataclass(frozen=True)
class Kind:
    """A row of RUNGS. `engine` measures it (empty: it is computed); `without` says why a metric
    has no such engine."""

    key: str
    label: str
    explain: str
    engine: str = ""
    without: str = ""


RUNGS = {
    row.key: row
    for row in (
        Kind("published", "published peak", "the maker's figure, from data/chips.toml"),
        Kind("clock", "clock-derived peak", "units x operations a cycle x the measured clock"),
        Kind(
            "native",
            "native kernel",
            "the best of engine native or kernel, its fastest run: what the hardware does",
            "native",
        ),
        Kind(
            "library",
            "vendor library",
            "the best product of BLAS or cuBLASLt",
            "library",
            "There is no vendor library that only moves memory.",
        ),
        Kind("mlx", "MLX eager", "one operation of MLX in one evaluation", "mlx"),
        Kind("mlx-compiled", "MLX compiled", "the same under mx.compile", "mlx-compiled"),
        Kind("tried", "MLX, library preloaded", "MLX eager in a process with --try preloaded"),
    )
}


@dataclass(frozen=True)
class Rung:
    """One rung: a rate in `unit` with what reached it, or the reason why there is none.

    `row` is the result behind it; computed rungs have none.
    """

    kind: Kind
    rate: float | None = None
    unit: str = ""
    by: str = ""
    reason: str = ""
    verdict: str = ""
    row: Result | None = None


@dataclass(frozen=True)
class Loss:
    """What is lost from the rung above: `share` is what is left; cause, sentence and advice."""

    rung: str
    above: str
    share: float
    cause: str
    sentence: str
    advice: str


class GpuClock(NamedTuple):
    """A clock of the GPU's multiprocessors, and who counted it."""

    hz: float
    by: str


def gpu_clock(row: Result | None) -> GpuClock | None:
    """The clock that the row's own kernel counted, else NVML's right after the timed runs.

    NVML's is the higher one under load: 9 % on an H200's tensor cores. None where neither is told.
    """
    if row is None:
        return None
    if row.details.chip_clock_hz:
        return GpuClock(row.details.chip_clock_hz, "its own counter")
    mhz = row.gpu_state.sm_clock_mhz if row.gpu_state is not None else None
    return GpuClock(mhz * 1e6, "NVML") if mhz else None


@dataclass(frozen=True)
class Ladder:
    """All rungs from the top down, and what is known about large losses."""

    metric: str
    device: str
    dtype: str
    unit: str
    rungs: tuple[Rung, ...]
    losses: tuple[Loss, ...] = ()

    def row(self, key: str) -> Result | None:
        """The result behind a rung; None for a computed one and for one without a rate."""
        return next((rung.row for rung in self.rungs if rung.kind.key == key), None)

    def above(self, rung: Rung) -> Rung | None:
        """The next rung above that has a rate."""
        higher = self.rungs[: self.rungs.index(rung)]
        if rung.kind.key == "tried":  # the same program with another library: not below the others
            higher = tuple(other for other in higher if other.kind.key != "mlx-compiled")
        return next((other for other in reversed(higher) if other.rate), None)

    def share_of_above(self, rung: Rung) -> float | None:
        """Rate over that of the rung above; None at the top and without a rate."""
        above = self.above(rung)
        return rung.rate / above.rate if rung.rate and above and above.rate else None

    def share_of_top(self, rung: Rung) -> float | None:
        """Rate over that of the highest rung with a rate."""
        top = next((other.rate for other in self.rungs if other.rate), None)
        return rung.rate / top if rung.rate and top else None

    def as_dict(self) -> dict[str, Any]:
        """The form of the JSON file."""
        return {
            "metric": self.metric,
            "device": self.device,
            "dtype": self.dtype,
            "unit": self.unit,
            "rungs": [
                {
                    "rung": rung.kind.key,
                    "rate": rung.rate,
                    "by": rung.by,
                    "reason": rung.reason,
                    "verdict": rung.verdict or None,
                    "share_of_above": self.share_of_above(rung),
                    "share_of_top": self.share_of_top(rung),
                }
                for rung in self.rungs
            ],
            "losses": [vars(loss) for loss in self.losses],
        }


def rung_options(
    options: Options, device: str, kind: Kind, *, tensor_float: bool = False
) -> Options | None:
    """The options of the ordinary run that measures a rung; None for a computed one.

    `tensor_float` says that MLX's float32 products are TF32, so that the rungs above are of that.
    """
    metric, (token,) = options.metrics[0], options.dtypes
    if not kind.engine:
        return None
    mlx = kind.engine.startswith("mlx")
    if mlx and metric == "flops":
        token = NEAREST.get(token, token)
    elif not mlx and token == "float32" and tensor_float and metric == "flops":
        token = "tfloat32"
    engine = ENGINES[device] if kind.key == "native" else kind.engine
    sizes: tuple[int, ...] | None = options.sizes or SIZES[metric, device]
    if kind.key == "native":  # peaks have no size; streams have their own where none is named
        sizes = options.sizes if metric == "bandwidth" else None
    return replace(options, device=device, engines=(engine,), dtypes=(token,), sizes=sizes)


def best_of(kind: Kind, run: Run) -> Rung:
    """The rung that the results of one engine make: the highest rate that is not INVALID."""
    rate_of: Callable[[Result], float] = (
        ceiling_rate if kind.key == "native" else lambda row: row.rate or 0.0
    )
    good = [row for row in run.results if row.rate and row.verdict != "INVALID"]
    if good:
        row = max(good, key=rate_of)
        return Rung(kind, rate_of(row), row.unit, described_row(row), "", row.verdict or "", row)
    sentences = dict.fromkeys(
        sentence
        for row in run.results
        for sentence in (row.reason, *(r.sentence for r in row.reasons if r.severity == "invalid"))
        if sentence
    )
    status = next((row.verdict or row.status for row in run.results), "")
    return Rung(kind, reason=" ".join(sentences), verdict=status)


def described_row(row: Result) -> str:
    """What reached the rate: chain, operation, library or size."""
    case = row.case
    if case.engine == "library":
        return row.notes[0] if row.notes else case.engine
    what = described(row) if case.engine in ENGINES.values() else f"{case.dtype} n = {case.n}"
    if any(reason.code == "CACHE_RESIDENT" for reason in row.reasons):
        level = row.details.fits_in or "memory"
        what += f", in {level}" if level != "memory" else ", partly in the last cache"
    return f"{what} ({row.precision})" if row.precision else what


def published(metric: str, device: str, token: str, facts: Mapping[str, Any]) -> Rung:
    """The maker's figure, or a sentence."""
    kind = RUNGS["published"]
    case = Case(metric, device, "", token, 0)
    unit = "B/s" if metric == "bandwidth" else ""
    known = ceilings.published_ceiling(case, facts, "")
    if metric == "bandwidth" and device == "cpu":
        known = ceilings.published_memory(facts)
    if known is not None:
        return Rung(kind, known.rate, unit, known.source)
    name = facts.get("device_name") if device == "gpu" else facts.get("cpu")
    if device == "cpu" and metric == "flops":
        reason = (
            "Processors are published by operations a cycle, at clocks that change: the next rung "
            "takes the measured one."
        )
        if not ceilings.known_processor(facts):
            reason += f" data/chips.toml has no row of {name!r}."
    else:
        reason = f"data/chips.toml has no {token if metric == 'flops' else 'memory'} of {name!r}."
    return Rung(kind, reason=reason)


def clock_derived(
    metric: str,
    token: str,
    native: Run | None,
    best: Result | None,
    gpu_peak: Callable[[str, float], float | None],
) -> Rung:
    """Units x operations a cycle x the clock under load, or a sentence.

    `best` is the row of rung `native`; `gpu_peak(token, clock_hz)` is that of the GPU, or None.
    Chains of a processor differ in their instructions, so the largest peak is its own. Kernels of a
    GPU share its units and differ in their clock, which is higher under a lighter load: there the
    peak is that of `best` alone.
    """
    kind = RUNGS["clock"]
    if metric == "bandwidth":
        return Rung(kind, reason="Memory has no operations a cycle: its peak is the published one.")
    rows = [best] if best is not None and best.case.device == "gpu" else _rows(native)
    peaks = [row.details.clock_peak for row in rows if row.details.clock_peak is not None]
    if peaks:
        peak = max(peaks, key=lambda peak: peak.rate)
        return Rung(kind, peak.rate, "", peak.source)
    clock = gpu_clock(best)
    if clock is not None:
        rate = gpu_peak(token, clock.hz)
        if rate is not None:
            by = f"at {clock.hz * 1e-6:,.0f} MHz under load by {clock.by}"
            return Rung(kind, rate, "", by)
        return Rung(kind, reason=f"The {token} operations a clock of this chip are not known.")
    reason = next((row.reason for row in _rows(native) if row.reason), "")
    return Rung(kind, reason=reason or "The clock or the operations a cycle could not be measured.")


def _rows(run: Run | None) -> Sequence[Result]:
    return run.results if run is not None else ()


def refused(kind: Kind, error: Unsupported) -> Rung:
    """A rung that can't be measured here."""
    reason = str(error)
    if "--engine" in reason:  # an option that a ladder does not have
        reason = reason.partition(": type ")[0] + "."
    return Rung(kind, reason=reason, verdict="UNSUPPORTED")
