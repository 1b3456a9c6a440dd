"""Steps that run in the helper process.

Everything on the Neural Engine, and int8 between layers on any device, runs there: MPSGraph can
abort the process that it runs in, and one row must not end the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nnbt import _native
from nnbt.engines.mpsgraph import helper
from nnbt.engines.mpsgraph.helper import HelperError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SERIES_S = 0.15
SERIES_RUNS = (3, 30)
"""Least and most runs of the series that single runs are handed out of."""
SECONDS_PER_OP = 1e-11
"""What a run may take: a hundredth of a second a GOP is a hundred times what an M1 takes."""
LEAST_RUN_S = 1.0
LEAST_RUNS = 5
_LONGEST_NS = 2**63 - 1
BUDGETS = 5.0
"""Budgets of its case that the helper may take before it is given up."""


@dataclass(frozen=True)
class RemoteReading:
    """What a probe of the helper process saw."""

    name: str
    unit: str
    value: float


@dataclass
class RemoteSamples:
    """Samples as the helper's document gives them."""

    samples_ns: list[int]
    first_run_ns: int
    warmup_runs: int
    window_ns: int
    stop: str
    readings: list[RemoteReading] = field(default_factory=list)


def samples_of(document: Mapping[str, Any], *, warmup: int, runs: int) -> RemoteSamples:
    """The samples of a document of `measure`. Raises HelperError for one without any."""
    try:
        samples = [int(sample) for sample in document["samples_ns"]]
        readings = [
            RemoteReading(str(row["name"]), str(row.get("unit", "")), float(row["value"]))
            for row in document.get("readings", ())
            if row["value"] is not None
        ]
        found = RemoteSamples(
            samples_ns=samples,
            first_run_ns=int(document.get("first_run_ns", 0)),
            warmup_runs=int(document.get("warmup_runs", warmup)),
            window_ns=int(document.get("window_ns", sum(samples))),
            stop=str(document.get("stop", "runs" if runs else "budget")),
            readings=readings,
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise HelperError(f"The helper's document can't be read ({error!r}).") from error
    if not samples:
        raise HelperError("The helper's document has no samples.")
    impossible = next((ns for ns in samples if not 0 < ns <= _LONGEST_NS), None)
    if impossible is not None:
        raise HelperError(f"The helper's document has a run of {impossible} ns.")
    return found


def patience_s(ops: float, runs: int, budget_s: float) -> float:
    """Seconds after which a helper is given up: what its budget or runs should take, many times.

    `ops` are the operations of one of `runs` runs; 0 runs: as many as fit into the budget.
    """
    run_s = max(LEAST_RUN_S, ops * SECONDS_PER_OP)
    work_s = runs * run_s if runs else max(BUDGETS * budget_s, LEAST_RUNS * run_s)
    return helper.START_S + work_s


@dataclass
class RemoteStep:
    """A chain that the helper process compiles and measures; each call of `measure` is a process.

    `spec` names the chain in the keys of a request, `ops` the operations of a run, `more` further
    keys (packages). `optional` is asked for as well and left out in a second try if a process that
    was asked for it failed. `document` is what the latest `measure` brought back.
    """

    spec: Mapping[str, object]
    ops: float
    more: Mapping[str, object] = field(default_factory=dict)
    optional: Mapping[str, object] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    _series: list[int] = field(default_factory=list)
    _next: int = 0

    def run(self) -> None:
        """One run, as of any Step."""
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
    ) -> RemoteSamples:
        """What nnbt.measure does, in the helper process. Raises Unsupported or HelperError."""
        del on_progress  # nothing comes back before the end
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
        timeout_s = patience_s(self.ops, runs, budget_s)
        try:
            document = helper.answer({**request, **self.optional}, timeout_s=timeout_s)
        except (HelperError, _native.Unsupported):
            if not self.optional:
                raise
            document = helper.answer(request, timeout_s=timeout_s)
        samples = samples_of(document, warmup=warmup, runs=runs)
        self.document = document
        return samples

    def timed(self, **options: Any) -> RemoteSamples:
        """See nnbt.timing.loop: single runs are handed out of a series."""
        single = (
            options.get("runs") == 1 and options.get("warmup") == 0 and "budget_s" not in options
        )
        return self.single() if single else self.measure(**options)

    def single(self) -> RemoteSamples:
        """The next run of a series that was measured in one process, in turns.

        A process of its own for each would compile the chain again, which takes seconds.
        """
        if not self._series:
            least, most = SERIES_RUNS
            series = RemoteStep(self.spec, self.ops, _without_files(self.more)).measure(
                warmup=1,
                budget_s=SERIES_S,
                min_window_s=SERIES_S,
                min_runs=least,
                max_runs=most,
            )
            self._series = series.samples_ns
        sample = self._series[self._next % len(self._series)]
        self._next += 1
        return RemoteSamples([sample], sample, 0, sample, "runs")


def _without_files(more: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in more.items() if key != "save_package"}
