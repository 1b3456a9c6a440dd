"""A ladder as text: bars to scale, then one sentence for each large loss; and as CSV."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from nnbt.results.columns import VERDICT_SYMBOLS, rate_text
from nnbt.terminal.tables import wrapped

if TYPE_CHECKING:
    from nnbt.ladder.rungs import Ladder, Loss, Rung

BAR_CELLS = 32
_EIGHTHS = " ▏▎▍▌▋▊▉"
_TINY = 1 / 8


def bar(share: float, cells: int = BAR_CELLS, *, ascii_only: bool = False) -> str:
    """A bar of `share` of `cells`, to an eighth of a cell; at least an eighth for any rate."""
    length = max(_TINY, min(share, 1.0) * cells) if share > 0 else 0.0
    if ascii_only:
        return "#" * max(1, round(length)) if length else ""
    whole, eighths = divmod(round(length * 8), 8)
    return "█" * whole + (_EIGHTHS[eighths] if eighths else "")


def _percent(share: float | None) -> str:
    if share is None:
        return "-"
    if share < 0.001:
        return "<0.1%"
    return f"{share:.1%}" if share < 0.0995 else f"{share:.0%}"


def ladder_text(ladder: Ladder, width: int | None, *, ascii_only: bool = False) -> str:
    """The picture, then what is lost where."""
    largest = max((rung.rate or 0.0 for rung in ladder.rungs), default=0.0)
    labels = max(len(rung.kind.label) for rung in ladder.rungs)
    title = f"ladder of {ladder.metric}, {ladder.dtype}, on {ladder.device}"
    head = f"  {'':{labels}}  {'':{BAR_CELLS}}  {'rate':>13}  {'of above':>8}  {'of top':>6}  by"
    lines = [title, head.rstrip()]
    for rung in ladder.rungs:
        label = f"  {rung.kind.label:{labels}}  "
        if rung.rate is None:
            lines += wrapped(f"{label.strip():{labels}}  - {_without(rung)}", width, "  ")
            continue
        drawn = bar(rung.rate / largest, ascii_only=ascii_only)
        lines.append(
            f"{label}{drawn:{BAR_CELLS}}  {rate_text(rung.rate, ladder.unit):>13}  "
            f"{_percent(ladder.share_of_above(rung)):>8}  "
            f"{_percent(ladder.share_of_top(rung)):>6}  {_by(rung)}".rstrip()
        )
    for loss in ladder.losses:
        lines += wrapped(_sentence(ladder, loss), width, "  ")
    tried = next((rung for rung in ladder.rungs if rung.kind.key == "tried" and rung.rate), None)
    if tried is not None:
        lines += wrapped(_effect(ladder, tried), width, "  ")
    return "\n".join(lines) + "\n"


def _without(rung: Rung) -> str:
    return f"{rung.verdict}: {rung.reason}" if rung.verdict else rung.reason


def _by(rung: Rung) -> str:
    symbol = VERDICT_SYMBOLS.get(rung.verdict, "")
    if symbol in ("", "✓"):
        return rung.by
    reasons = rung.row.reasons if rung.row is not None else ()
    codes = [reason.code for reason in reasons if reason.severity != "note"]
    return f"{symbol} {rung.by}" + (f" ({', '.join(codes)})" if codes else "")


def _sentence(ladder: Ladder, loss: Loss) -> str:
    labels = {rung.kind.key: rung.kind.label for rung in ladder.rungs}
    return (
        f"{loss.cause} ({labels[loss.rung]} is {_percent(loss.share)} of {labels[loss.above]}): "
        f"{loss.sentence} What you can do: {loss.advice}."
    )


def _effect(ladder: Ladder, tried: Rung) -> str:
    eager = next((rung for rung in ladder.rungs if rung.kind.key == "mlx"), None)
    if eager is None or not eager.rate or not tried.rate:
        return ""
    return (
        f"--try: {tried.by} makes MLX {tried.rate / eager.rate:.2g} times as fast "
        f"({rate_text(eager.rate, ladder.unit)} -> {rate_text(tried.rate, ladder.unit)})."
    )


def ladder_csv(ladder: Ladder) -> str:
    """One line a rung under one header; rates in the base unit."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        ["metric", "device", "dtype", "rung", "rate", "unit", "share_of_above", "share_of_top",
         "verdict", "by", "reason", "cause"]
    )  # fmt: skip
    causes = {loss.rung: loss.cause for loss in ladder.losses}
    for rung in ladder.rungs:
        numbers = (rung.rate, ladder.share_of_above(rung), ladder.share_of_top(rung))
        rate, above, top = ("" if value is None else f"{value:.9g}" for value in numbers)
        writer.writerow(
            [ladder.metric, ladder.device, ladder.dtype, rung.kind.key, rate, ladder.unit, above,
             top, rung.verdict, rung.by, rung.reason, causes.get(rung.kind.key, "")]
        )  # fmt: skip
    return stream.getvalue()
