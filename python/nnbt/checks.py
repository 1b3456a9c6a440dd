"""CHECKS: what makes a number believable, one row each, with its threshold and its hazard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nnbt import _native
from nnbt.evidence import LEAST_BITS, Evidence, effective_bits, expected_bits
from nnbt.metrics import METRICS
from nnbt.slope import DOUBLING, HEADLINE_SHARE, headline_share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnbt.workload import DataShare

Severity = Literal["note", "suspect", "invalid"]

FLOOR_SHARE = 0.05
CLOCK_TICKS = 1000
FAULTS_PER_MIB = 1.0
LEAST_FAULTS = 1000
"""Fewer than this (4 MiB) happen in any process, whatever is measured."""
MIN_SAMPLES = 5
DRIFT_SAMPLES = 10
DRIFT_RANK = 0.7
DRIFT_CHANGE = 0.10
INTERVAL_WIDTH = 0.10
MODES_SHARE = 0.2
MODES_DISTANCE = 0.25
MODES_VARIANCE = 0.9
CEILING_SUSPECT = 1.02
CEILING_INVALID = 1.20
UNCLEAR_DOUBLING = 1.4
BENT_RESIDUAL = 0.5
OVERLAP_LEAST = 0.9
STEAL_SHARE = 0.10
OTHER_SHARE = 0.25
SWITCHES_PER_SECOND = 20
NOISE_SECONDS = 0.5
"""In shorter windows the ticks (10 ms a processor) that time is counted in look like neighbours:
11 % of rows of 0.15 s on an idle host."""
ZERO_SHARE = 0.5
ZERO_SIGMAS = 4
"""Standard deviations of the share of heads among so many coins: a sample has 64 rows at most."""
DENORMAL_SHARE = 0.01
RMS_FACTOR = 100.0
WORST_FACTOR = 50.0
BITS_MARGIN = 2.5


@dataclass(frozen=True)
class Check:
    """One row of CHECKS; `test` returns the sentence if the check does not pass, else None."""

    code: str
    severity: Severity
    looks_at: str
    threshold: str
    hazard: str
    test: Callable[[Evidence], str | None]


def _slope(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None:
        return None
    if e.slope.doubling >= DOUBLING[0] or _unclear(e):
        return None
    largest = max(e.slope.seconds)
    return (
        f"{largest} units of work took {e.slope.doubling:.2f} times as long as {largest // 2}: "
        "work was merged, cached or skipped, so the rate is not a rate of this work."
    )


def _unclear(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None:
        return None
    short = _short(e)
    if not short and _neighbour(e) is None:
        return None
    if not UNCLEAR_DOUBLING < e.slope.doubling < DOUBLING[0]:
        return None
    if short:
        meanwhile = f"in {e.window_s * 1e3:.0f} ms, too short to see whether other processes ran"
        advice = "take a larger size or more --max-seconds"
    else:
        meanwhile, advice = "while other processes ran", "try again when idle"
    return (
        f"Doubling the work took {e.slope.doubling:.2f} times as long {meanwhile}: "
        f"that neither proves nor disproves the work; {advice}."
    )


def _short(e: Evidence) -> bool:
    """Whether a neighbour could not have been seen in so short a window."""
    return e.window_s < NOISE_SECONDS and e.case.device != "gpu"


def _off_slope(e: Evidence) -> str | None:
    if e.slope is None:
        return None
    share = headline_share(e.slope, e.units, e.summary.best_s, e.floor_s or 0.0)
    disturbed = _short(e) or _neighbour(e) is not None or _superlinear(e) is not None
    if share is None or share >= HEADLINE_SHARE / (2 if disturbed else 1):
        return None
    return (
        f"The fastest timed run took {max(0.0, share):.2g} times what the slope says of its "
        f"{e.units} units of work: the timed runs did less of it, or the slope was disturbed."
    )


def _bent(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None or e.slope.residual <= BENT_RESIDUAL:
        return None
    times = ", ".join(f"{t * 1e6:.3g}" for t in e.slope.seconds.values())
    return (
        f"Times of {', '.join(map(str, e.slope.seconds))} units of work ({times} us) are up to "
        f"{e.slope.residual:.0%} off a straight line: neither rate holds for both ends."
    )


def _superlinear(e: Evidence) -> str | None:
    if e.slope is None or e.slope.doubling is None or e.slope.doubling <= DOUBLING[1]:
        return None
    largest = max(e.slope.seconds)
    return (
        f"{largest} units of work took {e.slope.doubling:.2f} times as long as {largest // 2}: "
        "the machine slows down under longer work, so neither rate holds for both."
    )


def _slope_missing(e: Evidence) -> str | None:
    if e.slope is None:
        why = e.slope_missing or "it was switched off"
        return f"The slope check was not run ({why})."
    if e.slope.doubling is None:
        return "The slope check can't tell: the work is too short beside an empty evaluation."
    return None


def _no_rate(e: Evidence) -> str | None:
    if not (math.isfinite(e.rate) and e.rate > 0):
        return f"The rate came out as {e.rate:g}: work or time were not counted."
    if e.ceiling is not None and not (math.isfinite(e.ceiling.rate) and e.ceiling.rate > 0):
        return f"The ceiling of the device is {e.ceiling.rate:g} ({e.ceiling.source}): no rate."
    return None


def _shares(e: Evidence) -> list[tuple[str, DataShare]]:
    pairs = [("input", e.answer.inputs), ("output", e.answer.outputs)] if e.answer else []
    return [(name, share) for name, share in pairs if share is not None]


def _wrong(e: Evidence) -> str | None:
    answer = e.answer
    if answer is None:
        return None
    if answer.exact is False or (answer.problem and answer.error is None):
        return f"The output is wrong ({answer.problem or answer.compared})."
    if answer.error is None:
        return None
    parts = (answer.error, answer.typical, answer.worst or 0.0)
    if not all(math.isfinite(part) and part >= 0 for part in parts):
        return f"The output differs from the reference without bound ({answer.compared})."
    bits = effective_bits(answer.error) or 0.0
    least = LEAST_BITS.get(e.mantissa or 24, 8.5)
    if bits < least:
        return (
            f"Only {bits:.1f} bits of the output are right, fewer than {least:g} "
            f"({answer.compared})."
        )
    rounding = 16 * 2.0 ** -expected_bits(e.mantissa or 24, e.inner)
    if answer.worst is not None and answer.worst > max(WORST_FACTOR * answer.typical, rounding):
        return (
            f"One element of the output is off by {answer.worst:.2g} of their RMS where "
            f"{answer.typical:.2g} is usual ({answer.compared})."
        )
    return f"The output is wrong ({answer.problem})." if answer.problem else None


def _unchecked(e: Evidence) -> str | None:
    answer = e.answer
    if answer is None:
        return "The answer was not checked (--no-checks): nothing shows that this work was done."
    if answer.error is None and answer.exact is None and answer.problem is None:
        return f"The answer was not compared with anything ({answer.compared})."
    return None


def _precision(e: Evidence) -> str | None:
    bits = effective_bits(e.answer.error) if e.answer else None
    if bits is None or e.mantissa is None:
        return None
    expected = expected_bits(e.mantissa, e.inner)
    if bits >= expected - BITS_MARGIN:
        return None
    return (
        f"{bits:.1f} bits are right where {e.case.dtype} keeps about {expected:.1f}: it was "
        "computed in a narrower type."
    )


def _non_finite(e: Evidence) -> str | None:
    for name, share in _shares(e):
        if not (share.all_finite and math.isfinite(share.rms)):
            return (
                f"The {name} holds NaN or infinity ({share.finite:.0%} of a sample is finite): "
                "such values take less power, so clocks and rates are higher than for real data."
            )
    return None


def _zeros(e: Evidence) -> str | None:
    for name, share in _shares(e):
        limit = ZERO_SHARE if e.case.dtype != "bool" else 0.9
        if share.zero > limit + ZERO_SIGMAS * 0.5 / math.sqrt(min(64, e.case.n) * e.case.n):
            return f"{share.zero:.0%} of the {name} is zero: hardware may skip or save on it."
        if share.denormal > DENORMAL_SHARE:
            return f"{share.denormal:.0%} of the {name} is denormal: many units slow down on it."
    return None


def _data(e: Evidence) -> str | None:
    if e.random_data:
        return None
    return (
        f"The data is {e.case.params.get('data')}, not random: power, clocks and skipping of "
        "zeros differ from real work."
    )


def _growth(e: Evidence) -> str | None:
    if not METRICS[e.case.metric].chain or e.answer is None:
        return None
    before, after = e.answer.inputs, e.answer.outputs
    if before is None or after is None or e.answer.exact is not None or before.rms == 0:
        return None
    ratio = after.rms / before.rms
    if 1 / RMS_FACTOR <= ratio <= RMS_FACTOR:
        return None
    return f"The chain changed the RMS of its values {ratio:.2g} times: it does not keep its size."


def _alias(e: Evidence) -> str | None:
    if e.answer is None or e.answer.distinct is not False:
        return None
    return "The output shares the buffer of its input: nothing was copied."


def _faults(e: Evidence) -> str | None:
    faults = e.readings.get("minor_faults")
    if faults is None or not e.written_bytes or e.case.device != "cpu":
        return None
    rate = faults / (e.written_bytes / 2**20)
    if rate <= FAULTS_PER_MIB or faults < LEAST_FAULTS:
        return None
    return (
        f"{rate:.0f} page faults a MiB written: the time includes the kernel mapping fresh memory, "
        "not only moving bytes."
    )


def _floor(e: Evidence) -> str | None:
    if e.floor_s is None or e.floor_s <= FLOOR_SHARE * e.summary.median_s:
        return None
    told = e.slope is not None and e.slope.doubling is not None
    return (
        f"An empty evaluation takes {e.floor_s * 1e6:.0f} us, "
        f"{e.floor_s / e.summary.median_s:.0%} of this one: the rate is that of launching; "
        + ("the slope rate is free of it, or " if told else "")
        + "take a larger size."
    )


def _clock(e: Evidence) -> str | None:
    if e.summary.median_s * 1e9 >= CLOCK_TICKS * e.clock_resolution_ns:
        return None
    return (
        f"A run is shorter than {CLOCK_TICKS} ticks of the clock ({e.clock_resolution_ns} ns): "
        "take a larger size."
    )


def rank_correlation(samples: Sequence[int]) -> float:
    """Spearman's rank correlation of the samples with their order; ties share their rank."""
    order = sorted(range(len(samples)), key=samples.__getitem__)
    ranks = [0.0] * len(samples)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and samples[order[end + 1]] == samples[order[start]]:
            end += 1
        for position in range(start, end + 1):
            ranks[order[position]] = (start + end) / 2
        start = end + 1
    middle = (len(samples) - 1) / 2
    across = sum((i - middle) * (r - middle) for i, r in enumerate(ranks))
    along = sum((i - middle) ** 2 for i in range(len(samples)))
    spread = sum((r - middle) ** 2 for r in ranks)
    return across / math.sqrt(along * spread) if spread else 0.0


def _drift(e: Evidence) -> str | None:
    count = len(e.samples_ns)
    if count < DRIFT_SAMPLES:
        return None
    fifth = max(2, count // 5)
    first = _native.median(list(e.samples_ns[:fifth]))
    last = _native.median(list(e.samples_ns[-fifth:]))
    change = last / first - 1
    rank = rank_correlation(e.samples_ns)
    if abs(rank) < DRIFT_RANK or abs(change) < DRIFT_CHANGE or rank * change < 0:
        return None
    word = "slower" if change > 0 else "faster"
    cause = "it throttles or heats up" if change > 0 else "it was still warming up"
    return f"Runs became {abs(change):.0%} {word} from the first fifth to the last: {cause}."


def _spread(e: Evidence) -> str | None:
    if e.summary.interval_s is None:
        return None
    low, high = e.summary.interval_s
    width = (high - low) / 2 / e.summary.median_s
    if width <= INTERVAL_WIDTH:
        return None
    return f"The median is known to ±{width:.0%} only: run times scatter; try again when idle."


def modes(samples: Sequence[int]) -> tuple[float, float] | None:
    """(lower, upper) mean of two groups that explain MODES_VARIANCE of the variance, or None.

    The split is the one that explains most (Otsu's criterion); each group must hold MODES_SHARE
    of the samples and their means be MODES_DISTANCE apart.
    """
    ordered = sorted(samples)
    count = len(ordered)
    total = sum(ordered)
    mean = total / count
    variance = sum((x - mean) ** 2 for x in ordered) / count
    if variance == 0:
        return None
    best = (0.0, 0.0, 0.0)
    below = 0
    for i in range(1, count):
        below += ordered[i - 1]
        if min(i, count - i) < MODES_SHARE * count:
            continue
        low, high = below / i, (total - below) / (count - i)
        best = max(best, (i * (count - i) / count**2 * (high - low) ** 2, low, high))
    between, low, high = best
    if between / variance < MODES_VARIANCE or high < (1 + MODES_DISTANCE) * low:
        return None
    return low, high


def _modes(e: Evidence) -> str | None:
    if len(e.samples_ns) < DRIFT_SAMPLES:
        return None
    found = modes(e.samples_ns)
    if found is None:
        return None
    return (
        f"Run times fall into two groups, around {found[0] * 1e-6:.3g} and {found[1] * 1e-6:.3g} "
        "ms: the median belongs to one of them."
    )


def _ceiling(e: Evidence, low: float, high: float) -> str | None:
    if e.ceiling is None or _no_rate(e) is not None:
        return None
    share = e.rate / e.ceiling.rate
    if not low < share <= high:
        return None
    return f"The rate is {share:.0%} of what the device can do ({e.ceiling.source})."


def _neighbour(e: Evidence) -> str | None:
    if e.window_s < NOISE_SECONDS or e.case.device == "gpu":
        return None
    steal = e.readings.get("steal_time", 0.0) / e.window_s
    other = e.readings.get("other_cpu_time", 0.0) / e.window_s
    switches = e.readings.get("involuntary_switches", 0.0) / e.window_s
    if steal > STEAL_SHARE:
        return f"The host gave {steal:.0%} of a processor's time to other guests meanwhile."
    if other > OTHER_SHARE and switches > SWITCHES_PER_SECOND:
        return (
            f"Other processes used {other:.0%} of a processor meanwhile and interrupted this one "
            f"{switches:.0f} times a second."
        )
    return None


def _overlap(e: Evidence) -> str | None:
    share = e.details.get("hybrid", {}).get("overlap")
    if share is None or share >= OVERLAP_LEAST:
        return None
    return f"CPU and GPU were busy together in {share:.0%} of the window only."


def _placed(e: Evidence, verdicts: tuple[str, ...]) -> str | None:
    placement = e.details.get("placement")
    if placement is None or placement["verdict"] not in verdicts:
        return None
    return f"Placement is {placement['verdict']}: {'; '.join(placement['evidence'])}."


def _few(e: Evidence) -> str | None:
    if e.summary.count >= MIN_SAMPLES:
        return None
    runs = "run" if e.summary.count == 1 else "runs"
    return f"{e.summary.count} {runs}: too few to say how far the number scatters."


def _cache(e: Evidence) -> str | None:
    if e.case.metric != "bandwidth" or e.cache_bytes is None or e.case.device != "cpu":
        return None
    if e.resident_bytes >= 4 * e.cache_bytes:
        return None
    return (
        f"All buffers together are {e.resident_bytes / 2**20:,.0f} MiB, less than 4 times the last "
        f"cache ({e.cache_bytes / 2**20:,.0f} MiB): part of the traffic never reaches memory."
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "WORK_NOT_DONE",
        "invalid",
        "time of K = 1, 2, 4, 8 units of work in one evaluation",
        f"doubling K multiplies the time by at least {DOUBLING[0]} at the largest K",
        "lazy libraries merge equal sub-graphs, cache results or skip unread outputs",
        _slope,
    ),
    Check(
        "SLOPE_UNCLEAR",
        "suspect",
        "the same times, where NOISY_NEIGHBOUR holds or could not be told in so short a window",
        f"doubling K does not fall between {UNCLEAR_DOUBLING} and {DOUBLING[0]}",
        "a benchmark that cries wolf is not believed when there is one",
        _unclear,
    ),
    Check(
        "HEADLINE_OFF_SLOPE",
        "invalid",
        "fastest timed run, less an empty evaluation, over its units of work at the slope's rate",
        f"at least {HEADLINE_SHARE:.2g} where the slope proves the work, half of that where "
        "neighbours are or could not be seen, or longer work is slower (on an H200: at least 0.98)",
        "timed runs that skip what the slope's runs do; the slope alone would look right",
        _off_slope,
    ),
    Check(
        "SLOPE_BENT",
        "suspect",
        "largest distance of a time from the fitted line",
        f"at most {BENT_RESIDUAL:.0%} of it (on an H200: at most 21 %)",
        "some K skip work, which the last doubling does not see",
        _bent,
    ),
    Check(
        "SUPERLINEAR",
        "suspect",
        "time of K = 1, 2, 4, 8 units of work in one evaluation",
        f"doubling K multiplies the time by at most {DOUBLING[1]} at the largest K",
        "short bursts on full clocks or in caches, that longer work does not get",
        _superlinear,
    ),
    Check(
        "SLOPE_UNKNOWN",
        "note",
        "whether the slope could be taken",
        "at least two K within the time and memory of the case",
        "one-point timing can't tell work from overhead",
        _slope_missing,
    ),
    Check(
        "NO_RATE",
        "invalid",
        "the rate, and the ceiling it is set against",
        "positive and finite",
        "zero work, or no time: a comparison with NaN is false, and every check would pass",
        _no_rate,
    ),
    Check(
        "WRONG_ANSWER",
        "invalid",
        "a sampled block (bandwidth: every byte) against NumPy in float64; of a product also "
        "random sums over every row and column",
        f"equal, or at least {LEAST_BITS} right bits by mantissa of the type; worst element at "
        f"most {WORST_FACTOR:g} times the typical error",
        "a kernel that computes something else is often faster",
        _wrong,
    ),
    Check(
        "UNCHECKED",
        "suspect",
        "whether the output was compared with a reference",
        "it was",
        "a time without an answer is a time of anything",
        _unchecked,
    ),
    Check(
        "REDUCED_PRECISION",
        "suspect",
        "right bits of the output",
        f"at most {BITS_MARGIN} bits below what the type keeps in a sum of n products",
        "float32 silently computed as TF32 or bfloat16",
        _precision,
    ),
    Check(
        "NON_FINITE",
        "invalid",
        "every element of inputs and outputs",
        "all finite",
        "overflowed chains compute on NaN, at 63 % of the power of real data on an H200",
        _non_finite,
    ),
    Check(
        "DEGENERATE_DATA",
        "suspect",
        "share of zero and denormal elements in a sample of inputs and outputs",
        f"zero at most {ZERO_SHARE:.0%} and {ZERO_SIGMAS} standard deviations of a coin, denormal "
        f"at most {DENORMAL_SHARE:.0%}",
        "zeros run 21 % faster than random data on an H200; some engines skip them",
        _zeros,
    ),
    Check(
        "NON_RANDOM_DATA",
        "suspect",
        "--data",
        "normal or uniform",
        "the rate is not that of real data",
        _data,
    ),
    Check(
        "CHAIN_CHANGES_SIZE",
        "suspect",
        "RMS of the last output of flops_graph and conv over that of their input",
        f"within a factor of {RMS_FACTOR:g}",
        "a chain that grows overflows, one that shrinks underflows",
        _growth,
    ),
    Check(
        "ALIAS",
        "invalid",
        "memory in use before and after one run",
        "grows by the size of the output",
        "a 'copy' that shares its input's buffer 'moves' 77,000 GB/s",
        _alias,
    ),
    Check(
        "PAGE_FAULTS",
        "suspect",
        "minor page faults of the process",
        f"at most {FAULTS_PER_MIB:g} a MiB written",
        "an allocator that returns memory to the system between runs: 4.5 instead of 18 GB/s",
        _faults,
    ),
    Check(
        "LATENCY_BOUND",
        "suspect",
        "time of an empty evaluation in the same process",
        f"at most {FLOOR_SHARE:.0%} of the median",
        "small sizes measure the launch: bf16 n = 1024 on an H200 40 TFLOP/s alone, 95 in a chain",
        _floor,
    ),
    Check(
        "COARSE_CLOCK",
        "suspect",
        "measured resolution of the clock",
        f"a run takes at least {CLOCK_TICKS} ticks",
        "Apple's clock ticks every 42 ns, virtual machines' more slowly",
        _clock,
    ),
    Check(
        "DRIFT",
        "suspect",
        "rank correlation of run time and order; first against last fifth",
        f"|rank correlation| below {DRIFT_RANK} or change below {DRIFT_CHANGE:.0%}",
        "throttling, or clocks that still rise",
        _drift,
    ),
    Check(
        "WIDE_INTERVAL",
        "suspect",
        "95 % interval of the median",
        f"half-width at most {INTERVAL_WIDTH:.0%} of the median",
        "noise larger than the differences one wants to see",
        _spread,
    ),
    Check(
        "TWO_MODES",
        "suspect",
        "groups of run times",
        f"no two groups of {MODES_SHARE:.0%} each, {MODES_DISTANCE:.0%} apart",
        "clock states, core types or a neighbour that comes and goes",
        _modes,
    ),
    Check(
        "ABOVE_CEILING",
        "suspect",
        "published or clock-derived peak of the device",
        f"rate at most {CEILING_SUSPECT:.0%} of it",
        "operations counted that were not done, or another device than named",
        lambda e: _ceiling(e, CEILING_SUSPECT, CEILING_INVALID),
    ),
    Check(
        "IMPOSSIBLE_RATE",
        "invalid",
        "published or clock-derived peak of the device",
        f"rate at most {CEILING_INVALID:.0%} of it",
        "the same, beyond what clocks and rounding explain",
        lambda e: _ceiling(e, CEILING_INVALID, math.inf),
    ),
    Check(
        "NOISY_NEIGHBOUR",
        "suspect",
        "steal time, processor time of other processes, involuntary context switches",
        f"steal at most {STEAL_SHARE:.0%} and others at most {OTHER_SHARE:.0%} of a processor, or "
        f"at most {SWITCHES_PER_SECOND} involuntary switches a second",
        "other guests or processes take turns with the benchmark",
        _neighbour,
    ),
    Check(
        "LITTLE_OVERLAP",
        "suspect",
        "time stamps of both sides of a hybrid run",
        f"both busy in at least {OVERLAP_LEAST:.0%} of the window",
        "a sum of rates that were never reached together",
        _overlap,
    ),
    Check(
        "NOT_ON_ANE",
        "invalid",
        "the manifest of the compiled chain, and its time on the GPU",
        "nothing says that it ran elsewhere",
        "MPSGraph runs on the GPU without a word when the Neural Engine refuses a graph",
        lambda e: _placed(e, ("not on ANE",)),
    ),
    Check(
        "PLACEMENT_UNPROVEN",
        "suspect",
        "the manifest of the compiled chain, and its time on the GPU",
        "they speak for the Neural Engine",
        "the same",
        lambda e: _placed(e, ("unproven",)),
    ),
    Check(
        "FEW_SAMPLES",
        "suspect",
        "number of timed runs",
        f"at least {MIN_SAMPLES}",
        "one run says nothing about scatter; below this no interval is shown",
        _few,
    ),
    Check(
        "CACHE_RESIDENT",
        "note",
        "bytes of all rotating buffers against the last-level cache",
        "at least 4 times the cache",
        "cache bandwidth sold as memory bandwidth",
        _cache,
    ),
)
