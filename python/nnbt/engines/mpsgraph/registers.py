"""Every register of the Neural Engine's counters as text, for `nnbt conv --verbose-pmu`."""

from collections.abc import Sequence

from nnbt.results.result import Result
from nnbt.spec.case import Case
from nnbt.spec.details import Counters, RegisterChange

_HEADER = ("", "framework's name", "change", "our reading (unit; confidence)")


def registers_text(rows: Sequence[Result]) -> str:
    """A table for each row that asked for counters; the reason if there are no registers."""
    tables = [_table(row.case, row.details.counters) for row in rows if row.details.counters]
    return "".join(tables) or "\nNo row has counters of the Neural Engine.\n"


def _table(case: Case, counters: Counters) -> str:
    shape = f"{case.dtype} n={case.n} C={case.params['channels']} K={case.params['kernel']}"
    title = f"\nregisters of {case.device} {shape}: change over one evaluation\n"
    decoded = counters.decoded
    if decoded is None or not decoded.registers:
        return f"{title}  none: {counters.sentence}\n"
    lines = [_HEADER, *map(_line, decoded.registers)]
    widths = [max(len(line[i]) for line in lines) for i in range(3)]
    text = "".join(
        f"  {index:>{widths[0]}}  {label:<{widths[1]}}  {change:>{widths[2]}}  {reading}\n"
        for index, label, change, reading in lines
    )
    left_out = decoded.windows_reset + decoded.windows_shared
    more = f", {left_out} left out" if left_out else ""
    evidence = "".join(f"    {line}\n" for line in decoded.layout_evidence)
    layout = decoded.layout or "unknown"
    return (
        f"{title}  {decoded.windows_used} windows used{more}; register layout: {layout}\n"
        f"{evidence}{text}"
    )


def _line(register: RegisterChange) -> tuple[str, str, str, str]:
    reading = register.reading
    return (
        f"[{register.index}]",
        register.label or "-",
        "-" if register.delta is None else f"{register.delta:,}",
        f"{reading.meaning} ({reading.unit}; {reading.confidence})",
    )
