"""Options that several commands of the command line have, and how numbers are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Number(click.ParamType[Any]):
    """A whole or decimal number, refused by a sentence that shows a right one."""

    def __init__(self, kind: type[int] | type[float], example: str) -> None:
        self.kind = kind
        self.name = "number"
        self.example = example

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | float:
        """The number, or click.UsageError."""
        try:
            return self.kind(str(value).replace("_", ""))
        except ValueError:
            option = param.opts[0] if param else "this option"
            raise click.UsageError(
                f"{option} {str(value)!r} is not a {'whole ' if self.kind is int else ''}number: "
                f"type {option} {self.example}.",
                ctx,
            ) from None


def with_options(options: Sequence[Decorator]) -> Decorator:
    """Gives a command these options, in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


COUNT = Number(int, "8")
TF32 = click.option(
    "--tf32",
    default="default",
    show_default=True,
    metavar="MODE",
    help="float32 products on GPUs with TF32: on, off or default (MLX's choice).",
)
WARMUP = click.option(
    "--warmup",
    type=COUNT,
    default=2,
    show_default=True,
    metavar="N",
    help="Runs before timing, at least; 0 for none.",
)
MAX_SECONDS = click.option(
    "--max-seconds",
    type=Number(float, "3"),
    default=3.0,
    show_default=True,
    metavar="S",
    help="Time budget of a case whose runs are not counted out.",
)
CSV = click.option("--csv", "csv_path", default=None, metavar="PATH", help="Write all rows as CSV.")
JSON = click.option(
    "--json",
    "json_path",
    default=None,
    metavar="PATH",
    help="Write everything, each sample included, as JSON.",
)
NO_CHECKS = click.option("--no-checks", is_flag=True, help="Time only: no answer check, no slope.")
NO_FAIL = click.option(
    "--no-fail", is_flag=True, help="Exit with 0 even if a row is INVALID or ERROR."
)
