"""What a run shows while it is in progress, on stderr; results go to stdout."""

import sys
from typing import Any, TextIO

from nnbt.pipeline.listener import Listener
from nnbt.pipeline.plan import Plan
from nnbt.results.result import Result, Run
from nnbt.spec.case import Case
from nnbt.terminal.stream import terminal_width, wrapped
from nnbt.terminal.tables import header_lines, print_rows

_SHOW_AFTER_S = 1.0
_REDRAW_S = 0.5


class Progress:
    """One line with elapsed and expected time, on a terminal only.

    It is drawn between runs, at most twice per second, so that no sample includes it. A thread
    redraws it only during a single long run (`ticking`), once per second.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: Any = None
        self._task: Any = None
        self._drawn_s = float("-inf")

    def show(self, text: str, elapsed_s: float, expected_s: float, *, ticking: bool) -> None:
        """Draws or updates the line."""
        if elapsed_s < self._drawn_s:  # another window
            self._drawn_s = float("-inf")
        if not self._stream.isatty() or elapsed_s < self._drawn_s + _REDRAW_S:
            return
        self._drawn_s = elapsed_s
        if self._bar is None:
            self._start(expected_s, ticking=ticking)
        done = min(elapsed_s, expected_s)
        self._bar.update(self._task, description=text, completed=done, total=expected_s)
        self._bar.refresh()

    def _start(self, expected_s: float, *, ticking: bool) -> None:
        from rich import progress
        from rich.console import Console as RichConsole

        clock: list[progress.ProgressColumn] = [progress.TimeElapsedColumn()] if ticking else []
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(bar_width=20),
            *clock,
            console=RichConsole(file=self._stream),
            transient=True,
            auto_refresh=ticking,
            refresh_per_second=1,
        )
        self._task = self._bar.add_task("", total=expected_s)
        self._bar.start()

    def clear(self) -> None:
        """Removes the line."""
        self._drawn_s = float("-inf")
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class Console(Listener):
    """Prints the header first, each table after its last row, and progress in between."""

    def __init__(
        self, max_seconds: float, runs: int | None = None, out: TextIO | None = None
    ) -> None:
        self._out = out or sys.stdout
        self._progress = Progress(sys.stderr)
        self._max_seconds = max_seconds
        self._runs = runs
        self._text = ""
        self._printed = 0
        self._cases: tuple[Case, ...] = ()
        self._headed = False
        self.run: Run | None = None

    def planned(self, plan: Plan) -> None:
        """Remembers the cases and prints the notes, such as the device that was chosen."""
        self._cases = plan.cases
        for note in plan.notes:
            sys.stderr.write(f"nnbt: {note}\n")

    def started(self, index: int, count: int, case: Case) -> None:
        """Names the case in the progress line."""
        self._text = f"{index + 1}/{count} {case.metric} {case.device} {case.dtype} n={case.n}"

    def progress(self, runs: int, elapsed_s: float) -> None:
        """Updates the line."""
        if elapsed_s > _SHOW_AFTER_S:
            expected_s = self._max_seconds
            if self._runs:
                expected_s = elapsed_s * self._runs / max(runs, 1)
            done = f"{runs} run{'s' * (runs != 1)}, {elapsed_s:.0f} of about {expected_s:.0f} s"
            self._progress.show(f"{self._text}: {done}", elapsed_s, expected_s, ticking=False)

    def once(self, case: Case, expected_s: float) -> None:
        """Announces a long run."""
        about = f"{expected_s:.0f}" if expected_s >= 10 else f"{expected_s:.2g}"
        text = f"{case.metric} {case.dtype} n={case.n}: one run takes about {about} s"
        sys.stderr.write(f"nnbt: {text}, more than --max-seconds, so it is timed once\n")
        sys.stderr.flush()
        self._progress.show(text, 0.0, expected_s, ticking=True)

    def finished(self, result: Result, run: Run) -> None:
        """Prints the table once the next case belongs to another one."""
        del result
        self.run = run
        self._progress.clear()
        done = len(run.results)
        following = self._cases[done] if done < len(self._cases) else None
        last = run.results[-1]
        same = following is not None and (
            (following.metric, following.device, following.engine)
            == (last.case.metric, last.case.device, last.case.engine)
        )
        if not same:
            self.flush(run)

    def flush(self, run: Run) -> None:
        """Prints what is not printed yet."""
        self._progress.clear()
        rows = run.results[self._printed :]
        self._printed = len(run.results)
        if not rows:
            return
        if not self._headed:
            width = terminal_width(self._out)
            lines = [part for line in header_lines(run) for part in wrapped(line, width)]
            self._out.write("\n".join(lines) + "\n")
            self._headed = True
        print_rows(rows, self._out)

    def close(self) -> None:
        """Removes the progress line and prints what is finished, whatever ended the run."""
        self._progress.clear()
        if self.run is not None:
            self.flush(self.run)
