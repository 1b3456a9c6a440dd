"""What the commands share: a run is measured, printed, and written to files case by case."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnbt.results.result import Run


EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Files:
    """Where the results of a run are written, after each case; checked before the first."""

    def __init__(
        self,
        csv_path: str | None,
        json_path: str | None,
        *,
        as_csv: Callable[[Run], str | None] | None = None,
        as_json: Callable[[Run], str] | None = None,
    ) -> None:
        from nnbt.machine.files import check_writable
        from nnbt.results.columns import csv_text
        from nnbt.results.files import json_text

        self._writers: list[tuple[Path, Callable[[Run], str | None]]] = []
        self._problems: dict[Path, str] = {}
        for option, typed in (("--csv", csv_path), ("--json", json_path)):
            if typed == "":
                raise click.UsageError(f"{option} names no file: type {option} results.txt.")
        if csv_path is not None:
            as_csv = as_csv or (lambda run: csv_text(run.results))
            self._writers.append((Path(csv_path), as_csv))
        if json_path is not None:
            self._writers.append((Path(json_path), as_json or json_text))
        if csv_path and json_path and os.path.realpath(csv_path) == os.path.realpath(json_path):
            raise click.UsageError(
                f"--csv and --json both name {csv_path}: give each a file of its own."
            )
        for path, _ in self._writers:
            problem = check_writable(path)
            if problem:
                raise click.UsageError(problem)

    def write(self, run: Run, *, last: bool = False) -> None:
        """Writes every file anew; a pipe or terminal once, when the run ends (or `last`).

        A file that can't be written doesn't end the run: `problem` has the sentence about it.
        """
        from nnbt.machine.files import is_stream, own_stream, write_atomically

        for path, text in self._writers:
            if is_stream(path) and not (run.finished or last):
                continue
            content = text(run)
            if content is None:
                continue
            self._problems.pop(path, None)
            try:
                write_atomically(path, content)
            except OSError as error:
                if own_stream(path) is not None:
                    raise
                self._problems[path] = f"{path} could not be written ({error.strerror})"

    def tell_untouched(self) -> None:
        """Says of files of an earlier run that nothing of this one is in them."""
        old = [str(path) for path, _ in self._writers if path.is_file()]
        if old:
            which = " and ".join(old)
            click.echo(f"nnbt: no case was finished; {which}: still of an earlier run", err=True)

    def problem(self) -> str:
        """What the latest attempts could not write, as a sentence; empty if all went well."""
        joined = "; ".join(self._problems.values())
        return f"{joined}; results are above." if joined else ""

    def complain(self) -> None:
        """Raises ClickException (exit code 1) if a file could not be written."""
        if self._problems:
            raise click.ClickException(self.problem())


def measure_and_print(options: Any, files: Files) -> Run:
    """The main job: runs, prints and writes; Ctrl-C keeps what is finished."""
    from nnbt.pipeline.session import execute
    from nnbt.terminal.progress import Console

    class Writing(Console):
        """Writes the files after each case, before anything is printed."""

        def finished(self, result: Any, run: Run) -> None:
            self.run = run
            files.write(run)
            super().finished(result, run)

    console = Writing(options.max_seconds, options.runs)
    try:
        run = execute(options, listener=console, argv=sys.argv[1:])
    except KeyboardInterrupt:
        if console.run is None:
            files.tell_untouched()
        else:  # interrupted while writing: the last case is still missing
            files.write(console.run, last=True)
            console.close()
            if files.problem():
                click.echo(f"nnbt: {files.problem()}", err=True)
        raise
    finally:
        console.close()
    files.complain()
    return run
