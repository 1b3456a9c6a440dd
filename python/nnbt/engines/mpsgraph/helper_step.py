"""HelperStep: a chain that is compiled, run and timed in the helper process.

Everything on the Neural Engine, and int8 between layers on any device, runs there: MPSGraph can
abort the process that it runs in, and one row must not end the others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nnbt import _native
from nnbt.engines.mpsgraph import helper
from nnbt.engines.mpsgraph.helper import MISREAD, HelperError

SERIES_S = 0.15
SERIES_RUNS = (3, 30)  # least and most runs of the series that single runs are taken from
SECONDS_PER_OP = 1e-11  # upper bound of a run: 0.01 s per GOP, a hundred times what an M1 takes
LEAST_RUN_S = 1.0
LEAST_RUNS = 5
_LONGEST_NS = 2**63 - 1
BUDGETS = 5.0  # budgets of its case that the helper may take before it is stopped


@dataclass(frozen=True)
class HelperReading:
    """What a probe in the helper process read."""

    name: str
    unit: str
    value: float


@dataclass
class HelperSamples:
    """Samples in a helper's document."""

    samples_ns: list[int]
    first_run_ns: int
    warmup_runs: int
    window_ns: int
    stop: str
    readings: list[HelperReading] = field(default_factory=list)


def samples_of(document: Mapping[str, Any], *, warmup: int, runs: int) -> HelperSamples:
    """The samples in a helper's document. Raises HelperError if it has none."""
    try:
        samples = [int(sample) for sample in document["samples_ns"]]
        readings = [
            HelperReading(str(row["name"]), str(row.get("unit", "")), float(row["value"]))
            for row in document.get("readings", ())
            if row["value"] is not None
        ]
        found = HelperSamples(
            samples_ns=samples,
            first_run_ns=int(document.get("first_run_ns", 0)),
            warmup_runs=int(document.get("warmup_runs", warmup)),
            window_ns=int(document.get("window_ns", sum(samples))),
            stop=str(document.get("stop", "runs" if runs else "budget")),
            readings=readings,
        )
    except MISREAD as error:
        raise HelperError(f"The helper's document cannot be read ({error!r}).") from error
    if not samples:
        raise HelperError("The helper's document has no samples.")
    impossible = next((ns for ns in samples if not 0 < ns <= _LONGEST_NS), None)
    if impossible is not None:
        raise HelperError(f"The helper's document has a run of {impossible} ns.")
    return found


def time_limit_s(ops: float, runs: int, budget_s: float) -> float:
    """Seconds after which a helper is stopped: many times what its budget or runs should take.

    `ops` are the operations of one of `runs` runs; 0 runs: as many as fit into the budget.
    """
    run_s = max(LEAST_RUN_S, ops * SECONDS_PER_OP)
    work_s = runs * run_s if runs else max(BUDGETS * budget_s, LEAST_RUNS * run_s)
    return helper.START_S + work_s


@dataclass
class HelperStep:
    """A chain that the helper process compiles and measures; each call of `measure` is a process.

    `spec` has the keys of a request that name the chain, `more` further ones (packages), and `ops`
    is the operations of a run. `optional` keys are left out in a second attempt if a process that
    got them failed. `document` is the answer to the latest `measure`.
    """

    spec: Mapping[str, object]
    ops: float
    more: Mapping[str, object] = field(default_factory=dict)
    optional: Mapping[str, object] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    _series: list[int] = field(default_factory=list)
    _next: int = 0

    def run(self) -> None:
        """One run, as for any Step."""
        self.measure(warmup=0, runs=1)

    def measure(
        self,
        *,
        warmup: int = 2,
        runs: int = 0,
        budget_s: float = 3.0,
        min_window_s: float = 0.0,
        min_runs: int = 5,
        max_runs: int = 1_000_000,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> HelperSamples:
        """What nnbt.measure does, in the helper process. Raises Unsupported or HelperError."""
        del on_progress  # the helper answers at the end only
        request = {
            **self.spec,
            "warmup": warmup,
            "runs": runs,
            "min_runs": min_runs,
            "max_runs": max_runs,
            "budget_s": budget_s,
            "min_window_s": min_window_s,
            **self.more,
        }
        timeout_s = time_limit_s(self.ops, runs, budget_s)
        try:
            document = helper.answer({**request, **self.optional}, timeout_s=timeout_s)
        except (HelperError, _native.Unsupported):
            if not self.optional:
                raise
            document = helper.answer(request, timeout_s=timeout_s)
        samples = samples_of(document, warmup=warmup, runs=runs)
        self.document = document
        return samples

    def timed(self, **options: Any) -> HelperSamples:
        """See nnbt.timing.loop; single runs come from a series."""
        single = (
            options.get("runs") == 1 and options.get("warmup") == 0 and "budget_s" not in options
        )
        return self.single() if single else self.measure(**options)

    def single(self) -> HelperSamples:
        """The next run of a series that one process measured, over and over.

        A process for each run would compile the chain again, which takes seconds.
        """
        if not self._series:
            least, most = SERIES_RUNS
            series = HelperStep(self.spec, self.ops, _without_files(self.more)).measure(
                warmup=1, budget_s=SERIES_S, min_window_s=SERIES_S, min_runs=least, max_runs=most
            )
            self._series = series.samples_ns
        sample = self._series[self._next % len(self._series)]
        self._next += 1
        return HelperSamples([sample], sample, 0, sample, "runs")


def _without_files(more: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in more.items() if key != "save_package"}
