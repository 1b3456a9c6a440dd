"""The command line: options are parsed and handed on; nothing is decided here."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from nnbt.cli.conv import conv
from nnbt.cli.helper import sign_helper
from nnbt.cli.ladder import ladder
from nnbt.cli.options import (
    COUNT,
    CSV,
    JSON,
    MAX_SECONDS,
    NO_CHECKS,
    NO_FAIL,
    TF32,
    WARMUP,
    Number,
    with_options,
)
from nnbt.cli.run import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    EXIT_USAGE,
    Files,
    measure_and_print,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_NUMBER = re.compile(r"-?\d")


class Terminated(KeyboardInterrupt):
    """SIGTERM, which keeps the finished cases as Ctrl-C does."""


def _terminate(*_: object) -> NoReturn:
    raise Terminated


class _SpreadSizes(click.Group):
    """Lets --sizes take several values: --sizes 1024 2048 is --sizes 1024 --sizes 2048."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Spreads the values out before click reads them."""
        spread: list[str] = []
        rest = list(args)
        while rest:
            arg = rest.pop(0)
            if arg != "--sizes" and not arg.startswith("--sizes="):
                spread.append(arg)
                continue
            values = arg.split("=", 1)[1:]
            while rest and rest[0] not in self.commands and _is_value(rest[0]):
                values.append(rest.pop(0))
            sizes = [part for value in values for part in value.split(",") if part]
            if not sizes:
                raise click.UsageError(
                    "--sizes needs at least one matrix size: type --sizes 1024 2048.", ctx
                )
            for size in sizes:
                spread += ["--sizes", size]
        return super().parse_args(ctx, spread)


def _is_value(arg: str) -> bool:
    return not arg.startswith("-") or bool(_NUMBER.match(arg))


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"nnbt {version('nn-backend-test')}")
        ctx.exit()


def _deprecated_streams(
    ctx: click.Context, _param: click.Parameter, value: int | None
) -> int | None:
    if value is not None:
        click.echo("nnbt: --cpu-streams is deprecated: type --cpu-workers.", err=True)
        ctx.ensure_object(dict)["cpu_streams"] = value
    return value


_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option(
        "--metric",
        "metrics",
        multiple=True,
        default=("bandwidth",),
        show_default=True,
        metavar="NAME",
        help="bandwidth, flops, flops_graph or conv (see nnbt conv); repeatable.",
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="auto, cpu, gpu, ane (see nnbt conv), or hybrid (bandwidth: CPU and GPU together).",
    ),
    click.option(
        "--engine",
        "engines",
        multiple=True,
        default=("mlx",),
        show_default=True,
        metavar="NAME",
        help="What does the work: mlx, mlx-compiled, native (CPU), kernel (GPU), library or "
        "mpsgraph; repeatable.",
    ),
    click.option(
        "--sizes",
        multiple=True,
        type=Number(int, "1024 2048"),
        default=None,
        show_default="1024 2048 4096",
        metavar="N ...",
        help="Sizes of the n x n matrices or images, separated by spaces.",
    ),
    click.option(
        "--ladder-sizes",
        is_flag=True,
        help="Sizes from the first cache to 4 times the last (bandwidth by engine native).",
    ),
    click.option(
        "--dtype",
        "dtypes",
        multiple=True,
        default=("float32",),
        show_default=True,
        metavar="NAME",
        help="A type of MLX (float32, bfloat16, int8, complex64, ...) or quantised: "
        "q2 q3 q4 q5 q6 q8 mxfp4 mxfp8 nvfp4; repeatable.",
    ),
    click.option(
        "--op",
        default=None,
        metavar="NAME",
        help="Bandwidth operation: copy or add; native and kernel also read, write, triad, ...  "
        "[default: copy; add on CUDA; all of native and kernel]",
    ),
    click.option(
        "--data",
        multiple=True,
        default=("normal",),
        show_default=True,
        metavar="NAME",
        help="What the inputs hold: normal, uniform, zeros, ones, sparse50, nan; repeatable.",
    ),
    TF32,
    click.option(
        "--graph-steps",
        type=COUNT,
        default=4,
        show_default=True,
        metavar="N",
        help="Products in one evaluation of flops_graph.",
    ),
    WARMUP,
    click.option(
        "--runs",
        type=COUNT,
        default=None,
        metavar="N",
        help="Exactly N timed runs.  [default: until the median is known to 1 %, at least 5]",
    ),
    MAX_SECONDS,
    click.option(
        "--cpu-workers",
        type=COUNT,
        default=0,
        show_default=True,
        metavar="N",
        help="Limit of CPU parallelism, one MLX stream each (0: all CPUs).",
    ),
    click.option(
        "--thread-sweep",
        is_flag=True,
        help="1, 2, 4, ... threads up to --cpu-workers, and the knee (engine native).",
    ),
    click.option(
        "--cpu-streams",
        type=COUNT,
        default=None,
        hidden=True,
        expose_value=False,
        callback=_deprecated_streams,
        metavar="N",
    ),
    CSV,
    JSON,
    NO_CHECKS,
    NO_FAIL,
    click.option(
        "--version",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_version,
        help="Print the version and exit.",
    ),
)


@click.group(
    cls=_SpreadSizes,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@with_options(_OPTIONS)
@click.pass_context
def cli(ctx: click.Context, /, **values: Any) -> None:
    """Measure memory bandwidth and matrix throughput, and say which numbers to believe.

    Without a command, runs the benchmark: bandwidth on the best device that is there.
    """
    if ctx.invoked_subcommand is not None:
        _refuse_options_before(ctx, ctx.invoked_subcommand)
        return
    from nnbt.spec.options import Options

    streams = ctx.ensure_object(dict).get("cpu_streams")
    options = Options(
        metrics=values["metrics"],
        device=values["device"],
        engines=values["engines"],
        dtypes=values["dtypes"],
        sizes=values["sizes"] or None,
        ladder_sizes=values["ladder_sizes"],
        op=values["op"],
        data=values["data"],
        tf32=values["tf32"],
        graph_steps=values["graph_steps"],
        warmup=values["warmup"],
        runs=values["runs"],
        max_seconds=values["max_seconds"],
        cpu_workers=values["cpu_workers"] or streams or 0,
        thread_sweep=values["thread_sweep"],
        checks=not values["no_checks"],
    )
    files = Files(values["csv_path"], values["json_path"])
    run = measure_and_print(options, files)
    if run.failed and not values["no_fail"]:
        ctx.exit(EXIT_FAILED)


def _refuse_options_before(ctx: click.Context, command: str) -> None:
    typed = [
        param.opts[0]
        for param in ctx.command.params
        if param.name and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    ]
    if typed:
        raise click.UsageError(
            f"{typed[0]} stands before {command} and would count for nothing: type nnbt {command} "
            f"{typed[0]} ..., as far as nnbt {command} --help lists it.",
            ctx,
        )


@cli.command()
@click.argument("topic", required=False, default=None)
@click.option(
    "--explain",
    is_flag=False,
    flag_value="all",
    default=None,
    metavar="[TOPIC]",
    help="Print a table in words: formulas, checks, columns, dtypes, devices, engines, ladder, "
    "data, probes.",
)
def info(topic: str | None, explain: str | None) -> None:
    """Say what each device can do and, where it can't, the command that would change it.

    nnbt info ane says more about the Neural Engine, and which of its counters can be read.
    """
    from nnbt.cli import info as facts

    if explain is not None:
        click.echo(facts.explain(topic or explain))
    elif topic is not None:
        click.echo(facts.about(topic))
    else:
        click.echo(facts.overview())


cli.add_command(conv)
cli.add_command(ladder)
cli.add_command(sign_helper)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Entry point of `nnbt`: one sentence and exit code 2 for what was typed wrong."""
    before = signal.getsignal(signal.SIGTERM)
    mine = before is signal.SIG_DFL and threading.current_thread() is threading.main_thread()
    if mine:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        code = _run(list(sys.argv[1:] if args is None else args))
    finally:
        if mine:
            signal.signal(signal.SIGTERM, before)
    sys.exit(code)


def _run(args: list[str]) -> int:
    _open_streams()
    try:
        code = cli.main(args, prog_name="nnbt", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        sentence = error.format_message()
        if isinstance(error, click.UsageError) and "type " not in sentence.lower():
            sentence = f"{sentence} Type nnbt --help for what there is."
        return _complain(sentence, error.exit_code or EXIT_USAGE)
    except (click.Abort, KeyboardInterrupt) as error:
        if isinstance(error, Terminated) or isinstance(error.__cause__, Terminated):
            return _complain(f"terminated{_kept(args)}.", EXIT_TERMINATED)
        return _complain(f"interrupted{_kept(args)}.", EXIT_INTERRUPTED)
    except (BrokenPipeError, SystemExit):
        # Nobody reads stdout any more (| head): not an error. Click makes it SystemExit.
        _drop_stdout()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        _drop_stdout()
        return _complain(f"The output could not be written ({error.strerror}).", EXIT_FAILED)
    except RuntimeError as error:
        from nnbt._native import Unsupported

        if not isinstance(error, Unsupported):
            raise
        return _complain(str(error), EXIT_USAGE)
    return code if isinstance(code, int) else 0


def _kept(args: list[str]) -> str:
    """What is left of a command that ended early."""
    command = args[0] if args and args[0] in cli.commands else ""
    left = {"": "the finished cases are kept", "conv": "the finished cases are kept"}
    left["ladder"] = "the finished cases are shown, and in --json's file; rungs need all"
    return f"; {left[command]}" if command in left else ""


def _open_streams() -> None:
    """Makes every write possible: a closed stream takes it, an ASCII one shows `?`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_stdout() -> None:
    """Lets what is still buffered go nowhere; Python would complain at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(sentence: str, code: int) -> int:
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        click.echo(f"nnbt: {sentence}", err=True)
    return code
