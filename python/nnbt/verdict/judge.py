"""Evidence to verdict and reasons, by the CHECKS table."""

from nnbt.results.result import Reason, Severity, Verdict
from nnbt.verdict.checks import CHECKS
from nnbt.verdict.evidence import Evidence

_WORST_FIRST: dict[Severity, Verdict] = {
    "invalid": "INVALID",
    "suspect": "SUSPECT",
    "note": "VALID",
}


def judge(evidence: Evidence) -> tuple[Verdict, tuple[Reason, ...]]:
    """The verdict and all reasons, worst first; notes do not change the verdict."""
    found = [
        Reason(check.code, sentence, check.severity)
        for check in CHECKS
        if (sentence := check.test(evidence)) is not None
    ]
    order = list(_WORST_FIRST)
    found.sort(key=lambda reason: order.index(reason.severity))
    return _WORST_FIRST[found[0].severity if found else "note"], tuple(found)
