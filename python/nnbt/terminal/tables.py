"""Results -> text: tables for a terminal, aligned columns for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from nnbt.pipeline.matrix import explained
from nnbt.results.columns import Column, chosen, shown
from nnbt.results.result import Result, Run
from nnbt.terminal.stream import can_draw, in_ascii, terminal_width, use_color, wrapped

if TYPE_CHECKING:
    from rich.table import Table

_STYLES = {"VALID": "green", "SUSPECT": "yellow", "INVALID": "bold red", "ERROR": "bold red"}


def title(row: Result) -> str:
    """The heading of the table that this row belongs to: rows with equal titles share one."""
    words = explained(row.case)
    explain = f": {words}" if words else ""
    # Threads of engine native have a column of their own, so that a sweep is one table.
    workers = None if row.case.engine == "native" else row.case.params.get("cpu_workers")
    threads = f", {workers} CPU worker{'s' * (workers != 1)}" if workers else ""
    return f"{row.case.metric} on {row.case.device} ({row.case.engine}{threads}){explain}"


def group_key(row: Result) -> tuple[str, str]:
    """Rows with the same key are in one table: same title, same unit."""
    return title(row), row.unit


def header_lines(run: Run) -> list[str]:
    """Machine, device and library, as the first lines of the output."""
    facts: Mapping[str, Any] = run.machine
    cpu = facts.get("cpu") or "unknown CPU"
    threads = facts.get("allowed_cpus") or facts.get("logical_cpus")
    lines = [f"machine  {cpu}, {threads} CPUs, {facts.get('system', '')}".rstrip(", ")]
    if facts.get("device") != "cpu":
        lines.append(f"device   {facts.get('device_name') or facts.get('cpu') or 'unknown'}")
    lines.append(f"library  MLX {facts.get('mlx', '?')} ({facts.get('backend', '?')} back end)")
    return lines


def _without_largest_rank(columns: list[Column]) -> list[Column] | None:
    """The columns without the last one of the largest rank; None if only rank 0 is left."""
    largest = max(column.rank or 0 for column in columns)
    if largest == 0:
        return None
    last = max(i for i, column in enumerate(columns) if (column.rank or 0) == largest)
    return columns[:last] + columns[last + 1 :]


def _table(rows: Sequence[Result], columns: Sequence[Column], *, boxes: bool) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD if boxes else None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        justify = "left" if column.text else "right"
        table.add_column(column.header, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in rows:
        style = _STYLES.get(row.verdict or row.status, "")
        table.add_row(
            *(
                Text(shown(column, column.value(row)), style if column.key == "verdict" else "")
                for column in columns
            )
        )
    return table


def table_text(rows: Sequence[Result], width: int | None, *, color: bool) -> str:
    """One table with its title and, below it, the reasons in words.

    On a narrow terminal whole columns are dropped by rank, where rich would cut cells. Columns of
    rank 0 may be wider than the terminal, which then breaks the lines.
    """
    from rich.console import Console
    from rich.measure import Measurement
    from rich.text import Text

    wide = Console(
        width=10_000,
        force_terminal=color,
        no_color=not color,
        highlight=False,
        legacy_windows=False,
    )
    columns: list[Column] | None = chosen(rows)
    while columns:
        table = _table(rows, columns, boxes=color)
        needed = Measurement.get(wide, wide.options, table).maximum
        if width is None or needed <= width:
            break
        columns = _without_largest_rank(columns)
    heading = Text(title(rows[0]), "bold")
    with wide.capture() as capture:
        wide.print(heading, width=width or 400)
        wide.print(table, width=max(needed, width or 0))
    lines = [line.rstrip() for line in capture.get().splitlines()]
    return "\n".join([*(line for line in lines if line or color), *_below(rows, width)]) + "\n"


def _below(rows: Sequence[Result], width: int | None) -> list[str]:
    """Reasons and notes, each once, after the rows that have it."""
    notes: dict[str, list[str]] = {}
    for row in rows:
        label = _label(row, rows)
        texts = [f"{why.severity.upper()} {why.code}: {why.sentence}" for why in row.reasons]
        texts += [f"{row.status}: {row.reason}"] if row.reason else []
        texts += [f"note: {note}" for note in row.notes]
        for text in texts:
            notes.setdefault(text, []).append(label)
    everywhere = len({_label(row, rows) for row in rows})
    lines = []
    for text, labels in notes.items():
        prefix = "" if len(set(labels)) == everywhere else f"[{', '.join(labels)}] "
        lines += wrapped(prefix + text, width, "  ")
    return lines


def _label(row: Result, rows: Sequence[Result]) -> str:
    """What distinguishes a row from the others of its table."""
    parts = [f"n={row.case.n}"] if row.case.n else []
    if len({other.case.dtype for other in rows}) > 1:
        parts.insert(0, row.case.dtype)
    for name, value in row.case.params.items():
        if len({other.case.params.get(name) for other in rows}) > 1:
            parts.append(str(value) if name == "data" else f"{name}={value}")
    return " ".join(parts)


def print_rows(rows: Sequence[Result], stream: TextIO | None = None) -> None:
    """Prints the rows as tables, one for each group."""
    stream = stream or sys.stdout
    groups: dict[tuple[str, str], list[Result]] = {}
    for row in rows:
        groups.setdefault(group_key(row), []).append(row)
    for group in groups.values():
        text = table_text(group, terminal_width(stream), color=use_color(stream))
        stream.write("\n" + (text if can_draw(stream) else in_ascii(text)))
    stream.flush()
