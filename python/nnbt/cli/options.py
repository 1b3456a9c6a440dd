"""Options of the commands, made from OPTIONS by click's own classes."""

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

import click

from nnbt.spec.errors import Refusal
from nnbt.spec.options import OPTIONS, Option, options_of, spelled

_METAVARS = {"int": "N", "seconds": "S", "name": "NAME", "path": "PATH"}
_ALIASES = {alias.flag: (row, alias) for row in OPTIONS.values() for alias in row.aliases}
_SPREAD = [row.flags[0] for row in OPTIONS.values() if row.repeatable and row.kind == "int"]
_NUMBER = re.compile(r"-?\d")


class RowOption(click.Option):
    """The option of one row. Without a default: `given` has what the user gave, and no more."""

    def __init__(self, row: Option) -> None:
        flag = row.kind == "flag"
        default = f"  [default: {row.shown_default}]" if row.shown_default else ""
        super().__init__(
            ["/".join(row.flags), row.name],
            type=None if flag else row.parse,
            is_flag=flag,
            multiple=row.repeatable,
            default=None,
            metavar=None if flag else row.metavar or _METAVARS[row.kind],
            help=(row.described() + default).replace("`", ""),
        )
        self.group = row.group


def params(command: str) -> list[click.Parameter]:
    """The click options of one command."""
    return [RowOption(row) for row in options_of(command)]


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the user gave, by the names of OPTIONS."""
    found = {}
    for name, value in values.items():
        row = OPTIONS[name]
        if row.kind == "flag" and len(row.flags) == 1:
            if value:
                found[name] = not row.default
        elif value not in (None, ()):
            found[name] = value
    return found


class Command(click.Command):
    """A command whose --help has a section for each group of options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the sections."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                sections.setdefault(getattr(param, "group", "Other"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class Commands(click.Group, Command):
    """The command with its subcommands; reads aliases, and --sizes with several values."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Hands click the options of this and of every subcommand as it reads them."""
        return super().parse_args(ctx, plain(args, self.commands))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand. Raises Refusal for the name of a metric."""
        from nnbt.spec.metric import METRICS

        if args[0] in METRICS and args[0] not in self.commands:
            raise Refusal(f"{args[0]} is a metric", f"use nnbt {spelled('metric', args[0])}")
        return super().resolve_command(ctx, args)


def plain(args: Sequence[str], commands: Container[str]) -> list[str]:
    """Aliases as what they stand for, and --sizes 1024 2048 as --sizes 1024 --sizes 2048."""
    out: list[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            return [*out, arg, *rest]
        flag, equals, value = arg.partition("=")
        if flag in _ALIASES and not (equals and _ALIASES[flag][1].value):
            row, alias = _ALIASES[flag]
            if alias.deprecated:
                click.echo(f"nnbt: {flag} is deprecated: use {row.flags[0]}.", err=True)
            flag = row.flags[0]
            arg = flag + equals + value
            rest = [alias.value, *rest] if alias.value else rest
        if flag not in _SPREAD:
            out.append(arg)
            continue
        values = [value] if equals else []
        while rest and rest[0] not in commands and _is_value(rest[0]):
            values.append(rest.pop(0))
        numbers = [part for value in values for part in value.split(",") if part]
        if not numbers:
            raise Refusal(f"{flag} needs at least one value", f"use {flag} 1024 2048")
        out += [word for number in numbers for word in (flag, number)]
    return out


def _is_value(arg: str) -> bool:
    return not arg.startswith("-") or bool(_NUMBER.match(arg))
