"""Checks of the Neural Engine's counters: whether they close, and whose work they counted.

Each function returns the sentence if its check does not pass, else None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nnbt.verdict.evidence import Evidence

_OTHERS_CLAIM = "published_closure"
"""Tests what somebody published, not the registers: it contradicts framework_closure."""


def _failing(e: Evidence, scope: str) -> list[dict[str, Any]]:
    """The identities of this scope that do not hold; none where nothing was decoded."""
    decoded = (e.details.counters or {}).get("decoded") or {}
    return [
        row for row in decoded.get("identities", ()) if row["scope"] == scope and not row["holds"]
    ]


def _told(rows: list[dict[str, Any]]) -> str:
    return "; ".join(
        f"{row['name']} ({row['claim']}) has {row['left']:.4g} against {row['right']:.4g}"
        for row in rows
    )


def numbers_do_not_close(e: Evidence) -> str | None:
    rows = _failing(e, "numbers")
    if not rows:
        return None
    return f"The counters contradict what they should count: {_told(rows)}."


def stalls_do_not_close(e: Evidence) -> str | None:
    rows = [row for row in _failing(e, "breakdown") if row["name"] != _OTHERS_CLAIM]
    if not rows:
        return None
    return (
        f"The registers for stalls and traffic explain nothing here: {_told(rows)}. Figures that "
        "rest on the nominal cycles are not touched by that."
    )


def other_client(e: Evidence) -> str | None:
    decoded = (e.details.counters or {}).get("decoded") or {}
    shared = decoded.get("windows_shared", 0)
    if not shared:
        return None
    return (
        f"Another program used the Neural Engine in {shared} of "
        f"{shared + decoded['windows_used'] + decoded['windows_reset']} windows of the counters: "
        "end it (photo analysis, dictation, ...) and measure again."
    )
