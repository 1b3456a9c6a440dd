"""Every register of the Neural Engine's counters as text, for `nnbt conv --verbose-pmu`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnbt.results.result import Result

_HEADER = ("", "framework's name", "a run", "our reading (unit; confidence)")


def registers_text(rows: Sequence[Result]) -> str:
    """A table for each row that was asked for counters; its reason where there are no registers."""
    asked = [row for row in rows if row.details.counters is not None]
    if not asked:
        return "\nno row has counters of the Neural Engine\n"
    return "".join(_table(row, row.details.counters or {}) for row in asked)


def _table(row: Result, pmu: Mapping[str, Any]) -> str:
    case = row.case
    shape = f"{case.dtype} n={case.n} C={case.params['channels']} K={case.params['kernel']}"
    title = f"registers of {case.device} {shape}: change over one evaluation"
    found = pmu.get("registers")
    if not found:
        return f"\n{title}\n  none: {pmu['sentence']}\n"
    decoded = pmu["decoded"]
    lines = [_HEADER, *map(_line, found)]
    widths = [max(len(line[i]) for line in lines) for i in range(3)]
    text = "".join(
        f"  {index:>{widths[0]}}  {label:<{widths[1]}}  {change:>{widths[2]}}  {reading}\n"
        for index, label, change, reading in lines
    )
    windows = f"{decoded['windows_used']} windows used"
    left_out = decoded["windows_reset"] + decoded["windows_shared"]
    if left_out:
        windows += f", {left_out} left out"
    evidence = "".join(f"    {line}\n" for line in decoded["layout_evidence"])
    layout = decoded["layout"] or "unknown"
    return f"\n{title}\n  {windows}; order of registers: {layout}\n{evidence}{text}"


def _line(register: Mapping[str, Any]) -> tuple[str, str, str, str]:
    change = register["per_evaluation"]
    return (
        f"[{register['index']}]",
        str(register["label"]) or "-",
        "-" if change is None else f"{change:,}",
        f"{register['reading']} ({register['unit']}; {register['confidence']})",
    )
