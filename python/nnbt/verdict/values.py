"""Checks of values: what went in, and whether the right result came out.

Each function returns the sentence if its check fails, else None.
"""

import math

from nnbt.spec.precision import BITS_MARGIN, LEAST_BITS, effective_bits, expected_bits
from nnbt.spec.workload import DataShare
from nnbt.verdict.evidence import Evidence

ZERO_SHARE = 0.5
ZERO_SIGMAS = 4
"""Standard errors of the share of zeros in a sample, of which 64 rows at most are drawn."""
DENORMAL_SHARE = 0.01
LEAST_EXACT = 0.5
RMS_FACTOR = 100.0
WORST_FACTOR = 50.0


def _shares(e: Evidence) -> list[tuple[str, DataShare]]:
    pairs = [("input", e.answer.inputs), ("output", e.answer.outputs)] if e.answer else []
    return [(name, share) for name, share in pairs if share is not None]


def wrong_answer(e: Evidence) -> str | None:
    answer = e.answer
    if answer is None:
        return None
    if answer.exact is False or (answer.problem and answer.error is None):
        return f"The output is wrong ({answer.problem or answer.compared})."
    if answer.error is None:
        return None
    typical = answer.typical or 0.0
    parts = (answer.error, typical, answer.worst or 0.0)
    if not all(math.isfinite(part) and part >= 0 for part in parts):
        return f"The error of the output is not a finite number ({answer.compared})."
    bits = effective_bits(answer.error) or 0.0
    least = LEAST_BITS.get(e.mantissa or 24, 8.5)
    if bits < least:
        return (
            f"Only {bits:.1f} bits of the output are correct, fewer than {least:g} "
            f"({answer.compared})."
        )
    rounding = 16 * 2.0 ** -expected_bits(e.mantissa or 24, e.inner)
    if answer.worst is not None and answer.worst > max(WORST_FACTOR * typical, rounding):
        return (
            f"One element of the output is off by {answer.worst:.2g} of the RMS, where "
            f"{typical:.2g} is typical ({answer.compared})."
        )
    return f"The output is wrong ({answer.problem})." if answer.problem else None


def unchecked(e: Evidence) -> str | None:
    answer = e.answer
    if answer is None:
        return "The output was not checked (--no-checks): nothing shows that the work was done."
    if answer.error is None and answer.exact is None and answer.problem is None:
        return f"The output was not compared with a reference ({answer.compared})."
    return None


def reduced_precision(e: Evidence) -> str | None:
    bits = effective_bits(e.answer.error) if e.answer else None
    if bits is None or e.mantissa is None:
        return None
    expected = expected_bits(e.mantissa, e.inner)
    if bits >= expected - BITS_MARGIN:
        return None
    return (
        f"{bits:.1f} bits of the output are correct, where {e.case.dtype} should keep about "
        f"{expected:.1f}: it was computed in a narrower type."
    )


def non_finite(e: Evidence) -> str | None:
    for name, share in _shares(e):
        if not (share.all_finite and math.isfinite(0.0 if share.rms is None else share.rms)):
            return (
                f"The {name} contains NaN or infinity ({share.finite:.0%} of a sample is finite), "
                "which takes less power: clocks and rates are higher than on real data."
            )
    return None


def degenerate_data(e: Evidence) -> str | None:
    for name, share in _shares(e):
        limit = ZERO_SHARE if e.case.dtype != "bool" else 0.9
        if share.zero > limit + ZERO_SIGMAS * 0.5 / math.sqrt(min(64, e.case.n) * e.case.n):
            return f"{share.zero:.0%} of the {name} is zero, which hardware may skip."
        if share.denormal > DENORMAL_SHARE:
            return f"{share.denormal:.0%} of the {name} is denormal, which is slow on many units."
    return None


def mostly_padding(e: Evidence) -> str | None:
    if e.exact_share >= LEAST_EXACT:
        return None
    return (
        f"{1 - e.exact_share:.0%} of the counted products are with padding, which hardware may "
        "skip: compare exact GOPS, or use a larger image or a smaller kernel."
    )


def non_random_data(e: Evidence) -> str | None:
    if e.random_data:
        return None
    return (
        f"The data is {e.case.params.get('data')}, not random: power and clocks differ from those "
        "of real work, and zeros may be skipped."
    )


def chain_changes_size(e: Evidence) -> str | None:
    if not e.keeps_size or e.answer is None:
        return None
    before, after = e.answer.inputs, e.answer.outputs
    if before is None or after is None or e.answer.exact is not None:
        return None
    if not before.rms or after.rms is None:
        return None
    ratio = after.rms / before.rms
    if 1 / RMS_FACTOR <= ratio <= RMS_FACTOR:
        return None
    return f"The RMS of the output is {ratio:.2g} times that of the input of the chain."


def alias(e: Evidence) -> str | None:
    if e.answer is None or e.answer.distinct is not False:
        return None
    return "The output shares the buffer of the input: nothing was copied."
