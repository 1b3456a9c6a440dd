"""Evidence -> verdict and reasons, from the CHECKS table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnbt.results.result import Reason, Verdict
from nnbt.verdict.checks import CHECKS, Severity

if TYPE_CHECKING:
    from nnbt.verdict.evidence import Evidence


def judge(evidence: Evidence) -> tuple[Verdict, tuple[Reason, ...]]:
    """The verdict and every reason, worst first; notes do not change the verdict."""
    found = []
    for check in CHECKS:
        sentence = check.test(evidence)
        if sentence is not None:
            found.append(Reason(check.code, sentence, check.severity))
    order = {"invalid": 0, "suspect": 1, "note": 2}
    found.sort(key=lambda reason: order[reason.severity])
    worst = found[0].severity if found else "note"
    verdicts: dict[Severity, Verdict] = {
        "invalid": "INVALID",
        "suspect": "SUSPECT",
        "note": "VALID",
    }
    return verdicts[worst], tuple(found)
