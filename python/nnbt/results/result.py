"""Result and Run: what was measured; each result is immutable.

A float that may be NaN or infinite is optional: JSON has null for these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nnbt.machine.nvml import GpuState
from nnbt.peaks.published import Ceiling
from nnbt.peaks.reference import PublishedResult
from nnbt.peaks.stored import Measured
from nnbt.spec.case import Case
from nnbt.spec.details import Details
from nnbt.spec.threads import Knee
from nnbt.spec.workload import NO_DETAILS, Answer
from nnbt.timing.slope import Slope
from nnbt.timing.statistics import Summary
from nnbt.timing.window import OtherWindow

SCHEMA = 2  # changes only if a reader of older files would misread newer ones

Status = Literal["OK", "UNSUPPORTED", "ERROR"]
Verdict = Literal["VALID", "SUSPECT", "INVALID"]
Severity = Literal["note", "suspect", "invalid"]


@dataclass(frozen=True)
class Reason:
    """Why a verdict is not VALID, or a note: a code and one sentence."""

    code: str
    sentence: str
    severity: Severity


@dataclass(frozen=True)
class LaunchOverhead:
    """Time of an empty evaluation, in seconds.

    `problem` says why the engine could not run one; `floor_s` is then that of an empty function.
    """

    floor_s: float
    problem: str = ""


@dataclass(frozen=True)
class CheckCost:
    """Seconds that the checks after the timed runs took: comparing the output, then the slope."""

    answer_s: float
    slope_s: float


@dataclass(frozen=True)
class Result:
    """One row. A row without a number has another status than OK, and a sentence in `reason`.

    Times are in seconds. `rate` is in `unit` (B/s, FLOP/s, IOP/s, QOP/s or OP/s) from the median,
    `best_rate` from the fastest run, `slope_rate` without the fixed cost `overhead_us` of an
    evaluation. `interval_s` is the 95 % interval of the median, `interval_coverage` its exact
    probability. `effective_bits` is also None for an exact output. `sizes` are bytes and counts of
    one run (work_bytes or work_ops, matrix_bytes, ...), `readings` those of the probes during the
    timed runs. `details` are added by the engine.
    """

    case: Case
    status: Status = "OK"
    reason: str = ""
    verdict: Verdict | None = None
    reasons: tuple[Reason, ...] = ()
    median_s: float | None = None
    interval_s: tuple[float, float] | None = None
    interval_coverage: float | None = None
    best_s: float | None = None
    rate: float | None = None
    best_rate: float | None = None
    unit: str = ""
    slope_rate: float | None = None
    overhead_us: float | None = None
    effective_bits: float | None = None
    precision: str = ""
    stop: str = ""
    warmup_runs: int = 0
    first_run_s: float | None = None
    window_s: float | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    readings: Mapping[str, float | None] = field(default_factory=dict)
    summary: Summary | None = None
    slope: Slope | None = None
    slope_unit: str = ""
    answer: Answer | None = None
    launch_overhead: LaunchOverhead | None = None
    gpu_state: GpuState | None = None
    other_window: OtherWindow | None = None
    check_cost: CheckCost | None = None
    ceiling: Ceiling | None = None
    measured_ceiling: Measured | None = None
    published: PublishedResult | None = None
    ratio_to_random: float | None = None
    sweep: Knee | None = None
    details: Details = NO_DETAILS
    samples_ns: tuple[int, ...] = ()

    @property
    def runs(self) -> int:
        """Number of timed runs."""
        return len(self.samples_ns)

    def has(self, code: str) -> bool:
        """Whether the check with this code found something."""
        return any(reason.code == code for reason in self.reasons)


@dataclass
class Run:
    """Everything one call measured, in order; grows case by case.

    `ladder` is the picture that `nnbt ladder` made of the results.
    """

    machine: Mapping[str, Any]
    argv: list[str]
    started: str
    results: list[Result] = field(default_factory=list)
    finished: bool = False
    ladder: Mapping[str, Any] | None = None
    schema: int = SCHEMA

    @property
    def failed(self) -> bool:
        """Whether a row is INVALID or ERROR: the command then ends with exit code 1."""
        return any(row.verdict == "INVALID" or row.status == "ERROR" for row in self.results)
