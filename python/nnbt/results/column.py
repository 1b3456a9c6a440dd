"""Column: one column of the output, for the tables in `columns`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnbt.results.result import Result

Value = float | int | str | None


@dataclass(frozen=True)
class Column:
    """One column. `key` names it in CSV with its unit, `header` on a terminal.

    A column is shown where a row has a value for it that is not `usual`. On a narrow terminal
    those with the largest `rank` go first; rank 0 always stays, rank None is for CSV only.
    """

    key: str
    header: str
    explain: str
    value: Callable[[Result], Value]
    rank: int | None = 0
    text: bool = False
    usual: Value = None
    """A column whose rows all hold this is not shown."""
