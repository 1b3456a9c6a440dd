"""`nnbt ladder`: options are parsed and handed on; the picture comes from results of runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from nnbt.cli.options import COUNT, CSV, JSON, NO_FAIL, TF32, WARMUP, Number, with_options
from nnbt.cli.run import EXIT_FAILED, Files

if TYPE_CHECKING:
    from nnbt.ladder.rungs import Ladder

_OPTIONS = (
    click.option(
        "--metric", default="flops", show_default=True, metavar="NAME", help="flops or bandwidth."
    ),
    click.option(
        "--device", default="auto", show_default=True, metavar="NAME", help="auto, cpu or gpu."
    ),
    click.option(
        "--dtype",
        default="float32",
        show_default=True,
        metavar="NAME",
        help="Element type; int8 and float8_e4m3 end in MLX's q8 and mxfp8.",
    ),
    click.option(
        "--sizes",
        multiple=True,
        type=Number(int, "1024 2048"),
        metavar="N ...",
        help="Sizes of products and copies, of which the best counts.  [default: one by device]",
    ),
    click.option(
        "--try",
        "library",
        default=None,
        metavar="PATH",
        help="A BLAS to preload into a process of its own, to see what it does for MLX.",
    ),
    TF32,
    WARMUP,
    click.option(
        "--runs",
        type=COUNT,
        default=None,
        metavar="N",
        help="Exactly N timed runs of each case.  [default: until the median is known to 1 %]",
    ),
    click.option(
        "--max-seconds",
        type=Number(float, "1"),
        default=1.0,
        show_default=True,
        metavar="S",
        help="Time budget of a case; a rung is the best of up to a dozen.",
    ),
    click.option(
        "--cpu-workers",
        type=COUNT,
        default=0,
        show_default=True,
        metavar="N",
        help="Limit of CPU parallelism of every rung (0: all CPUs).",
    ),
    CSV,
    JSON,
    NO_FAIL,
)


@click.command()
@with_options(_OPTIONS)
@click.pass_context
def ladder(ctx: click.Context, /, **values: Any) -> None:
    """Show where the speed goes, from the published peak down to MLX.

    One rung each: published peak, clock-derived peak, native kernel, vendor library, MLX eager,
    MLX compiled; below them what explains large losses and what can be done about them.
    """
    from nnbt.ladder.files import ladder_csv
    from nnbt.ladder.run import measure_ladder
    from nnbt.pipeline.session import now
    from nnbt.results.files import json_text
    from nnbt.results.result import Run
    from nnbt.spec.options import Options
    from nnbt.terminal.ladder_picture import ladder_text
    from nnbt.terminal.progress import Console
    from nnbt.terminal.stream import can_draw, in_ascii, terminal_width, wrapped
    from nnbt.terminal.tables import header_lines

    class Climbing(Console):
        """Shows what is going on; the picture is printed at the end. `so_far` has all cases."""

        so_far = Run({}, sys.argv[1:], now())

        def finished(self, result: Any, run: Run) -> None:
            self._progress.clear()
            self.so_far.machine = run.machine
            self.so_far.results.append(result)

    found: list[Ladder] = []
    files = Files(
        values["csv_path"],
        values["json_path"],
        as_csv=lambda _: ladder_csv(found[0]) if found else None,
        as_json=lambda run: json_text(run, found[0].as_dict() if found else None),
    )
    options = Options(
        metrics=(values["metric"],),
        device=values["device"],
        dtypes=(values["dtype"],),
        sizes=values["sizes"] or None,
        tf32=values["tf32"],
        warmup=values["warmup"],
        runs=values["runs"],
        max_seconds=values["max_seconds"],
        cpu_workers=values["cpu_workers"],
    )
    climbing = Climbing(options.max_seconds, options.runs)
    try:
        picture, run = measure_ladder(
            options, library=values["library"], listener=climbing, argv=sys.argv[1:]
        )
    except KeyboardInterrupt:
        climbing.run = climbing.so_far
        climbing.close()
        if climbing.so_far.results:
            files.write(climbing.so_far, last=True)
        raise
    found.append(picture)
    files.write(run)
    width = terminal_width(sys.stdout)
    lines = [part for line in header_lines(run) for part in wrapped(line, width)]
    click.echo("\n".join(lines) + "\n")
    draws = can_draw(sys.stdout)
    text = ladder_text(picture, width, ascii_only=not draws)
    click.echo(text if draws else in_ascii(text), nl=False)
    files.complain()
    if run.failed and not values["no_fail"]:
        ctx.exit(EXIT_FAILED)
