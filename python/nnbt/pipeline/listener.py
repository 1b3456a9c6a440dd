"""Listener: what is called during a run."""

from nnbt.pipeline.plan import Plan
from nnbt.results.result import Result, Run
from nnbt.spec.case import Case


class Listener:
    """Called during a run, for example to show progress; override any method."""

    def planned(self, plan: Plan) -> None:
        """Before the first case."""

    def started(self, index: int, count: int, case: Case) -> None:
        """Before a case is built."""

    def progress(self, runs: int, elapsed_s: float) -> None:
        """Between timed runs, at most every 50 ms."""

    def once(self, case: Case, expected_s: float) -> None:
        """If one run is predicted to take longer than --max-seconds."""

    def finished(self, result: Result, run: Run) -> None:
        """After each case; `run` has all results so far."""
