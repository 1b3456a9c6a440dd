"""Checks of the Neural Engine's counters: whether they close, and whose work they counted.

Each function returns the sentence if its check does not pass, else None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nnbt.spec.details import AccountingIdentity, DecodedCounters
    from nnbt.verdict.evidence import Evidence

_OTHERS_CLAIM = "published_closure"
"""Tests what somebody published, not the registers: it contradicts framework_closure."""


def _decoded(e: Evidence) -> DecodedCounters | None:
    return e.details.counters.decoded if e.details.counters is not None else None


def _failing(e: Evidence, scope: str) -> list[AccountingIdentity]:
    """The identities of this scope that do not hold; none where nothing was decoded."""
    decoded = _decoded(e)
    identities = decoded.identities if decoded is not None else ()
    return [row for row in identities if row.scope == scope and not row.holds]


def _told(rows: list[AccountingIdentity]) -> str:
    return "; ".join(
        f"{row.name} ({row.claim}) has {row.left:.4g} against {row.right:.4g}" for row in rows
    )


def numbers_do_not_close(e: Evidence) -> str | None:
    rows = _failing(e, "numbers")
    if not rows:
        return None
    return f"The counters contradict what they should count: {_told(rows)}."


def stalls_do_not_close(e: Evidence) -> str | None:
    rows = [row for row in _failing(e, "breakdown") if row.name != _OTHERS_CLAIM]
    if not rows:
        return None
    return (
        f"The registers for stalls and traffic explain nothing here: {_told(rows)}. Figures that "
        "rest on the nominal cycles are not touched by that."
    )


def other_client(e: Evidence) -> str | None:
    decoded = _decoded(e)
    if decoded is None or not decoded.windows_shared:
        return None
    windows = decoded.windows_shared + decoded.windows_used + decoded.windows_reset
    return (
        f"Another program used the Neural Engine in {decoded.windows_shared} of {windows} windows "
        "of the counters: "
        "end it (photo analysis, dictation, ...) and measure again."
    )
