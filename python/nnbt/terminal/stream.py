"""What an output stream can show: its width, colors and symbols."""

import os
import textwrap
from typing import TextIO

from nnbt.results.columns import ASCII_SYMBOLS


def use_color(stream: TextIO) -> bool:
    """Colors and boxes only on a terminal that wants them (NO_COLOR, TERM=dumb)."""
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
    """Columns of the terminal; None for a pipe or file, where nothing is cut."""
    if not stream.isatty():
        return None
    try:
        named = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        named = 0
    try:
        return named or os.get_terminal_size(stream.fileno()).columns
    except (ValueError, OSError):
        return 80


def wrapped(text: str, width: int | None, indent: str = "") -> list[str]:
    """Lines of a terminal's width with a hanging indent, which rich lacks; one line for a pipe."""
    if width is None:
        return [indent + text]
    return textwrap.wrap(
        text,
        max(width - 1, 40),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
    )
