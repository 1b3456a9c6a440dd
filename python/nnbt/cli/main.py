"""The commands: options are parsed and handed on; nothing is decided here."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from nnbt.cli import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_TERMINATED, EXIT_USAGE
from nnbt.cli.helper import sign_helper
from nnbt.cli.options import Command, Commands, given, params
from nnbt.spec.errors import Refusal, Unsupported
from nnbt.spec.options import OPTIONS, make_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnbt.results.result import Run


class Terminated(KeyboardInterrupt):
    """SIGTERM, which keeps the finished cases as Ctrl-C does."""


def _terminate(*_: object) -> NoReturn:
    raise Terminated


def _end(ctx: click.Context, run: Run, asked: dict[str, Any]) -> None:
    if run.failed and asked.get("fail", True):
        ctx.exit(EXIT_FAILED)


@click.group(
    cls=Commands,
    params=params("run"),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="nn-backend-test", message="nnbt %(version)s")
@click.pass_context
def cli(ctx: click.Context, /, **values: Any) -> None:
    """Measure memory bandwidth and matrix throughput, and say which numbers to believe.

    Without a command, measures bandwidth on the best device of this machine.
    """
    asked = given(values)
    command = ctx.invoked_subcommand
    if command is not None:
        if asked:
            flag = OPTIONS[next(iter(asked))].flags[0]
            raise Refusal(
                f"{flag} has no effect before {command}",
                f"use nnbt {command} {flag} ... if nnbt {command} --help lists it",
            )
        return
    options = make_options(asked, "run")
    from nnbt.cli.run import measure_and_print

    _end(ctx, measure_and_print(options, asked), asked)


@cli.command(cls=Command, params=params("conv"))
@click.pass_context
def conv(ctx: click.Context, /, **values: Any) -> None:
    """Measure chains of 2-D convolutions: TOPS of CPU, GPU and Apple's Neural Engine.

    Without options: 20 layers of 3 x 3 kernels, 128 channels, images of 256 x 256.
    """
    from nnbt.cli.conv import conv_options
    from nnbt.cli.run import measure_and_print

    asked = given(values)
    run = measure_and_print(conv_options(asked), asked)
    if "verbose_pmu" in asked:
        from nnbt.engines.mpsgraph.registers import registers_text

        click.echo(registers_text(run.results), nl=False)
    _end(ctx, run, asked)


@cli.command(cls=Command, params=params("ladder"))
@click.pass_context
def ladder(ctx: click.Context, /, **values: Any) -> None:
    """Show where the speed goes, from the published peak down to MLX.

    One rung each: published peak, clock-derived peak, native kernel, vendor library, MLX eager,
    MLX compiled; below them the causes of large losses and what you can do about them.
    """
    asked = given(values)
    options = make_options(asked, "ladder")
    from nnbt.cli.ladder import climb_and_print

    _end(ctx, climb_and_print(options, asked), asked)


@cli.command()
@click.argument("topic", required=False, default=None)
@click.option(
    "--explain",
    is_flag=False,
    flag_value="all",
    default=None,
    metavar="[TOPIC]",
    help="Print one table in words, or all of them; nnbt info lists the topics.",
)
def info(topic: str | None, explain: str | None) -> None:
    """Show what each device can do, and how to enable a device that is not available.

    nnbt info ane says more about the Neural Engine, and which of its counters can be read.
    """
    from nnbt.cli import info as facts

    if explain is not None:
        click.echo(facts.explain(topic or explain))
    elif topic is not None:
        click.echo(facts.about(topic))
    else:
        click.echo(facts.overview())


cli.add_command(sign_helper)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Entry point of `nnbt`: one sentence and exit code 2 for what cannot be done."""
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
    except click.UsageError as error:
        sentence = error.format_message()
        end = "" if sentence.endswith((".", "?", ")")) else "."
        command = error.ctx.command_path if error.ctx else "nnbt"
        return _complain(f"{sentence}{end} See {command} --help.", EXIT_USAGE)
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except Unsupported as error:
        return _complain(str(error), EXIT_USAGE)
    except (click.Abort, KeyboardInterrupt) as error:
        if isinstance(error, Terminated) or isinstance(error.__cause__, Terminated):
            return _complain(f"terminated{_kept(args)}.", EXIT_TERMINATED)
        return _complain(f"interrupted{_kept(args)}.", EXIT_INTERRUPTED)
    except (BrokenPipeError, SystemExit):
        # The reader of stdout has gone (| head): not an error. Click makes it SystemExit.
        _drop_stdout()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        _drop_stdout()
        return _complain(f"The output could not be written ({error.strerror}).", EXIT_FAILED)
    return code if isinstance(code, int) else 0


def _kept(args: list[str]) -> str:
    """What remains of a command that ended early."""
    command = args[0] if args and args[0] in cli.commands else ""
    left = {"": "the finished cases are kept", "conv": "the finished cases are kept"}
    left["ladder"] = "the finished cases are printed and in the --json file, without rungs"
    return f"; {left[command]}" if command in left else ""


def _open_streams() -> None:
    """Makes every write possible: a closed stream discards it, an ASCII one shows `?`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_stdout() -> None:
    """Discards what is still buffered; Python would complain at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(sentence: str, code: int) -> int:
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        click.echo(f"nnbt: {sentence}", err=True)
    return code
