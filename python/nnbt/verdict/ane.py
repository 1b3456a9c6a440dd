"""Checks of the Neural Engine: whether the chain ran there, and whether its counters agree.

Each function returns the sentence if its check fails, else None.
"""

from collections.abc import Iterable

from nnbt.spec.details import AccountingIdentity, DecodedCounters
from nnbt.verdict.evidence import Evidence

_PUBLISHED_CLAIM = "published_closure"
"""Tests what somebody published, not the registers: it contradicts framework_closure."""


def not_on_ane(e: Evidence) -> str | None:
    return _placed(e, "not on ANE")


def placement_unproven(e: Evidence) -> str | None:
    return _placed(e, "unproven")


def _placed(e: Evidence, verdict: str) -> str | None:
    placement = e.details.placement
    if placement is None or placement.verdict != verdict:
        return None
    return f"Placement is {verdict}: {'; '.join(placement.evidence)}."


def _decoded(e: Evidence) -> DecodedCounters | None:
    return e.details.counters.decoded if e.details.counters is not None else None


def _failing(e: Evidence, scope: str) -> list[AccountingIdentity]:
    decoded = _decoded(e)
    identities = decoded.identities if decoded is not None else ()
    return [row for row in identities if row.scope == scope and not row.holds]


def _listed(rows: Iterable[AccountingIdentity]) -> str:
    return "; ".join(
        f"{row.name} ({row.claim}) gives {row.left:.4g} and {row.right:.4g}" for row in rows
    )


def counters_inconsistent(e: Evidence) -> str | None:
    rows = _failing(e, "numbers")
    return f"The counters contradict each other: {_listed(rows)}." if rows else None


def stalls_inconsistent(e: Evidence) -> str | None:
    rows = [row for row in _failing(e, "breakdown") if row.name != _PUBLISHED_CLAIM]
    if not rows:
        return None
    return (
        f"The registers for stalls and traffic do not explain the cycles: {_listed(rows)}. "
        "Figures that rest on the nominal cycles are not affected."
    )


def other_client(e: Evidence) -> str | None:
    decoded = _decoded(e)
    if decoded is None or not decoded.windows_shared:
        return None
    shared = decoded.windows_shared
    windows = shared + decoded.windows_used + decoded.windows_reset
    return (
        f"Another program used the Neural Engine in {shared} of {windows} windows of the counters: "
        "close it (photo analysis, dictation, ...) and measure again."
    )
