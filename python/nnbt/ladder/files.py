"""A ladder as CSV: one line per rung under one header, rates in the base unit."""

import csv
import io
from typing import Any

from nnbt.ladder.rungs import Ladder

_COLUMNS = (
    "metric", "device", "dtype", "rung", "rate", "unit", "share_of_above", "share_of_top",
    "verdict", "by", "reason", "cause",
)  # fmt: skip


def ladder_csv(ladder: Ladder) -> str:
    """The text of the file."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    causes = {loss.rung: loss.cause for loss in ladder.losses}
    for row in ladder.rows():
        line = {**ladder.heading, **row, "cause": causes.get(row["rung"], "")}
        writer.writerow({name: _plain(value) for name, value in line.items()})
    return stream.getvalue()


def _plain(value: Any) -> Any:
    return f"{value:.9g}" if isinstance(value, float) else value
