"""Climbs the ladder that the options ask for, prints it, and writes files."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from nnbt.cli import raise_on_interrupt
from nnbt.cli.run import Files
from nnbt.ladder.files import ladder_csv
from nnbt.ladder.run import measure_ladder
from nnbt.ladder.rungs import Ladder
from nnbt.pipeline.plan import Plan
from nnbt.pipeline.session import now
from nnbt.results.files import json_text
from nnbt.results.result import Result, Run
from nnbt.spec.options import Options
from nnbt.terminal.ladder_picture import ladder_text
from nnbt.terminal.progress import Console
from nnbt.terminal.stream import can_draw, in_ascii, terminal_width, wrapped
from nnbt.terminal.tables import header_lines


class Climbing(Console):
    """Shows progress only: the ladder is printed at the end. `so_far` has all cases."""

    def __init__(self, options: Options) -> None:
        super().__init__(options.max_seconds, options.runs)
        self.so_far = Run({}, sys.argv[1:], now())

    def planned(self, plan: Plan) -> None:
        """Everything is loaded."""
        raise_on_interrupt()
        super().planned(plan)

    def finished(self, result: Result, run: Run) -> None:
        """Keeps the case."""
        self._progress.clear()
        self.so_far.machine = run.machine
        self.so_far.results.append(result)


def climb_and_print(options: Options, given: Mapping[str, Any]) -> Run:
    """All results behind a ladder; Ctrl-C prints those that are finished."""
    found: list[Ladder] = []
    files = Files(
        given,
        {
            "csv": lambda _: ladder_csv(found[0]) if found else None,
            "json": lambda run: json_text(run, found[0].as_dict() if found else None),
        },
    )
    console = Climbing(options)
    try:
        ladder, run = measure_ladder(
            options, library=given.get("library"), listener=console, argv=sys.argv[1:]
        )
    except KeyboardInterrupt:
        console.run = console.so_far
        console.close()
        if console.so_far.results:
            files.write(console.so_far, last=True)
        raise
    found.append(ladder)
    files.write(run)
    width = terminal_width(sys.stdout)
    lines = [part for line in header_lines(run) for part in wrapped(line, width)]
    click.echo("\n".join(lines) + "\n")
    draws = can_draw(sys.stdout)
    text = ladder_text(ladder, width, ascii_only=not draws)
    click.echo(text if draws else in_ascii(text), nl=False)
    files.complain()
    return run
