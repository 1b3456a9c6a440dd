"""Results -> text: tables for a terminal, aligned columns for a pipe."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any, TextIO

from nnbt.pipeline.matrix import explained
from nnbt.results.columns import ASCII_SYMBOLS, chosen, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnbt.results.column import Column
    from nnbt.results.result import Result, Run

_STYLES = {"VALID": "green", "SUSPECT": "yellow", "INVALID": "bold red", "ERROR": "bold red"}


def title(row: Result) -> str:
    """The heading of the table that this row belongs to: rows with equal titles share one."""
    words = explained(row.case)
    explain = f": {words}" if words else ""
    # Those of engine native have a column of their own, so that a sweep stands in one table.
    workers = None if row.case.engine == "native" else row.case.params.get("cpu_workers")
    threads = f", {workers} CPU worker{'s' * (workers != 1)}" if workers else ""
    return f"{row.case.metric} on {row.case.device} ({row.case.engine}{threads}){explain}"


def group_key(row: Result) -> tuple[str, str]:
    """Rows with the same key stand in one table: same title, same unit."""
    return title(row), row.unit


def header_lines(run: Run) -> list[str]:
    """Machine, device, library and threads, as the first lines of the output."""
    facts: Mapping[str, Any] = run.machine
    gpu = facts.get("device") != "cpu"
    name = facts.get("device_name") or facts.get("cpu") or "unknown"
    cpu = facts.get("cpu") or "unknown processor"
    threads = facts.get("allowed_cpus") or facts.get("logical_cpus")
    lines = [f"machine  {cpu}, {threads} CPUs, {facts.get('system', '')}".rstrip(", ")]
    if gpu:
        lines.append(f"device   {name}")
    lines.append(f"library  MLX {facts.get('mlx', '?')} ({facts.get('backend', '?')} back end)")
    return lines


def _fitting(
    columns: list[Column], cells: list[list[str]], width: int | None, gap: int
) -> list[int]:
    """Indices of the columns that fit into `width`, dropping the largest ranks first.

    `gap` is what stands between two columns.
    """
    keep = list(range(len(columns)))
    if width is None:
        return keep
    widths = [
        max(len(column.header), *(len(line[i]) for line in cells))
        for i, column in enumerate(columns)
    ]
    while sum(widths[i] + gap for i in keep) + 1 > width:
        largest = max(columns[i].rank or 0 for i in keep)
        if largest == 0:
            break
        last = [i for i in keep if (columns[i].rank or 0) == largest]
        keep.remove(last[-1])
    return keep


def table_text(rows: Sequence[Result], width: int | None, *, color: bool) -> str:
    """One table with its title and, below it, the reasons in words."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    columns = chosen(rows)
    cells = [[shown(column, column.value(row)) for column in columns] for row in rows]
    gap = 3 if color else 2
    keep = _fitting(columns, cells, width, gap)
    # What always stays may be wider than the terminal, which then breaks the line: nothing is cut.
    needed = 1 + sum(
        gap + max(len(columns[i].header), *(len(line[i]) for line in cells)) for i in keep
    )
    table = Table(box=box.SIMPLE_HEAD if color else None, pad_edge=False, padding=(0, 2, 0, 0))
    for i in keep:
        justify = "left" if columns[i].text else "right"
        table.add_column(columns[i].header, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for line, row in zip(cells, rows, strict=True):
        style = _STYLES.get(row.verdict or row.status, "")
        table.add_row(*(Text(line[i], style if columns[i].key == "verdict" else "") for i in keep))
    console = Console(
        file=None,
        width=max(width or 400, needed),
        force_terminal=color,
        no_color=not color,
        highlight=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        console.print(Text(title(rows[0]), "bold"))
        console.print(table)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    return "\n".join([*(line for line in lines if line or color), *_below(rows, width)]) + "\n"


def _below(rows: Sequence[Result], width: int | None) -> list[str]:
    notes: dict[str, list[str]] = {}
    for row in rows:
        label = _label(row, rows)
        for reason in row.reasons:
            prefix = f"{reason.severity.upper()} {reason.code}"
            notes.setdefault(f"{prefix}: {reason.sentence}", []).append(label)
        if row.reason:
            notes.setdefault(f"{row.status}: {row.reason}", []).append(label)
        for note in row.notes:
            notes.setdefault(f"note: {note}", []).append(label)
    everywhere = len({_label(row, rows) for row in rows})
    lines = []
    for text, labels in notes.items():
        prefix = "" if len(set(labels)) == everywhere else f"[{', '.join(labels)}] "
        lines += wrapped(prefix + text, width, "  ")
    return lines


def wrapped(text: str, width: int | None, indent: str = "") -> list[str]:
    """Lines of a terminal's width; one line for a pipe."""
    if width is None:
        return [indent + text]
    return textwrap.wrap(
        text,
        max(width - 1, 40),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
    )


def _label(row: Result, rows: Sequence[Result]) -> str:
    parts = [f"n={row.case.n}"] if row.case.n else []
    if len({other.case.dtype for other in rows}) > 1:
        parts.insert(0, row.case.dtype)
    for name, value in row.case.params.items():
        if len({other.case.params.get(name) for other in rows}) > 1:
            parts.append(str(value) if name == "data" else f"{name}={value}")
    return " ".join(parts)


def use_color(stream: TextIO) -> bool:
    """Color and boxes only on a terminal that wants them (NO_COLOR, TERM=dumb)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_draw(stream: TextIO) -> bool:
    """Whether the stream can show bars and the verdicts' symbols."""
    try:
        "█▏✓✗".encode(stream.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def in_ascii(text: str) -> str:
    """The text with the verdicts' symbols in ASCII."""
    return text.translate({ord(symbol): plain for symbol, plain in ASCII_SYMBOLS.items()})


def terminal_width(stream: TextIO) -> int | None:
    """Columns of the terminal, None for a pipe or file: nothing is cut there."""
    if not stream.isatty():
        return None
    try:
        return int(os.environ.get("COLUMNS", "")) or os.get_terminal_size(stream.fileno()).columns
    except (ValueError, OSError):
        try:
            return os.get_terminal_size(stream.fileno()).columns
        except (ValueError, OSError):
            return 80


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
