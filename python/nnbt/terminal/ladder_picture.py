"""A ladder as text: bars to scale, then one sentence for each large loss."""

from nnbt.ladder.rungs import Ladder, Loss, Rung
from nnbt.results.columns import VERDICT_SYMBOLS
from nnbt.results.numbers import rate_text
from nnbt.terminal.stream import wrapped

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
    """The picture, then the causes of large losses."""
    largest = max((rung.rate or 0.0 for rung in ladder.rungs), default=0.0)
    labels = max(len(rung.kind.label) for rung in ladder.rungs)
    title = f"ladder of {ladder.metric}, {ladder.dtype}, on {ladder.device}"
    head = f"  {'':{labels}}  {'':{BAR_CELLS}}  {'rate':>13}  {'of above':>8}  {'of top':>6}  by"
    lines = [title, head.rstrip()]
    for rung in ladder.rungs:
        label = f"  {rung.kind.label:{labels}}  "
        if rung.rate is None:
            why = f"{rung.verdict}: {rung.reason}" if rung.verdict else rung.reason
            lines += wrapped(f"{label.strip():{labels}}  - {why}", width, "  ")
            continue
        drawn = bar(rung.rate / largest, ascii_only=ascii_only)
        lines.append(
            f"{label}{drawn:{BAR_CELLS}}  {rate_text(rung.rate, ladder.unit):>13}  "
            f"{_percent(ladder.share_of_above(rung)):>8}  "
            f"{_percent(ladder.share_of_top(rung)):>6}  {_by(rung)}".rstrip()
        )
    sentences = [*(_sentence(ladder, loss) for loss in ladder.losses), _effect(ladder)]
    for sentence in filter(None, sentences):
        lines += wrapped(sentence, width, "  ")
    return "\n".join(lines) + "\n"


def _by(rung: Rung) -> str:
    symbol = VERDICT_SYMBOLS.get(rung.verdict, "")
    if rung.verdict in ("", "VALID"):
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


def _effect(ladder: Ladder) -> str:
    """What the library of --try does for MLX eager."""
    tried, eager = ladder.rung("tried"), ladder.rung("mlx")
    if tried is None or eager is None or not tried.rate or not eager.rate:
        return ""
    return (
        f"--try: {tried.by} makes MLX {tried.rate / eager.rate:.2g} times as fast "
        f"({rate_text(eager.rate, ladder.unit)} -> {rate_text(tried.rate, ladder.unit)})."
    )
