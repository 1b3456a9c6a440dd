"""Measures what the options ask for, prints it, and writes files after each case."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np  # noqa: F401  engines import it later, in the middle of a run

from nnbt.cli import raise_on_interrupt
from nnbt.machine.files import check_writable, is_stream, own_stream, write_atomically
from nnbt.pipeline.plan import Plan
from nnbt.pipeline.session import execute
from nnbt.results.columns import csv_text
from nnbt.results.files import json_text
from nnbt.results.result import Result, Run
from nnbt.spec.errors import Refusal, Unsupported
from nnbt.spec.options import Options, spelled
from nnbt.terminal.progress import Console


class Files:
    """Where the results of a run are written, after each case; checked before the first.

    `writers` make the text of each kind of file (csv, json); None leaves the file unwritten.
    """

    def __init__(
        self, given: Mapping[str, Any], writers: Mapping[str, Callable[[Run], str | None]]
    ) -> None:
        paths = {kind: Path(given[kind]) for kind in writers if kind in given}
        self._writers = [(path, writers[kind]) for kind, path in paths.items()]
        self._problems: dict[Path, str] = {}
        for path in paths.values():
            problem = check_writable(path)
            if problem:
                raise Unsupported(problem)
        if len({os.path.realpath(path) for path in paths.values()}) < len(paths):
            flags = " and ".join(map(spelled, paths))
            raise Refusal(f"{flags} name the same file", "use a separate file for each")

    def write(self, run: Run, *, last: bool = False) -> None:
        """Rewrites every file; a pipe or terminal once, when the run ends (or `last`).

        A file that cannot be written does not end the run: `problem` has the sentence about it.
        """
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
        """Names the files that still hold an earlier run."""
        old = [str(path) for path, _ in self._writers if path.is_file()]
        if old:
            click.echo(f"nnbt: no case was finished; unchanged: {' and '.join(old)}", err=True)

    def problem(self) -> str:
        """What the latest attempts could not write, as a sentence; empty if all went well."""
        joined = "; ".join(self._problems.values())
        return f"{joined}; results are above." if joined else ""

    def complain(self) -> None:
        """Raises ClickException (exit code 1) if a file could not be written."""
        if self._problems:
            raise click.ClickException(self.problem())


class Writing(Console):
    """Writes the files after each case, before anything is printed."""

    def __init__(self, options: Options, files: Files) -> None:
        super().__init__(options.max_seconds, options.runs)
        self._files = files

    def planned(self, plan: Plan) -> None:
        """Everything is loaded."""
        raise_on_interrupt()
        super().planned(plan)

    def finished(self, result: Result, run: Run) -> None:
        """Writes and prints."""
        self.run = run
        self._files.write(run)
        super().finished(result, run)


def measure_and_print(options: Options, given: Mapping[str, Any]) -> Run:
    """All results of an ordinary run; Ctrl-C keeps what is finished."""
    files = Files(given, {"csv": lambda run: csv_text(run.results), "json": json_text})
    console = Writing(options, files)
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
