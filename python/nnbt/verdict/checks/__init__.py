"""CHECKS: what makes a number believable, one row each, with its threshold and its hazard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nnbt.timing.slope import DOUBLING, HEADLINE_SHARE
from nnbt.verdict.checks import counters, timing, values, work
from nnbt.verdict.evidence import LEAST_BITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnbt.verdict.evidence import Evidence

Severity = Literal["note", "suspect", "invalid"]
CEILING_SUSPECT = 1.02
CEILING_INVALID = 1.20


def _least_bits() -> str:
    return ", ".join(f"{least:g} of {bits}" for bits, least in LEAST_BITS.items())


@dataclass(frozen=True)
class Check:
    """One row of CHECKS; `test` returns the sentence if the check does not pass, else None."""

    code: str
    severity: Severity
    looks_at: str
    threshold: str
    hazard: str
    test: Callable[[Evidence], str | None]


CHECKS: tuple[Check, ...] = (
    Check(
        "WORK_NOT_DONE",
        "invalid",
        "time of K = 1, 2, 4, 8 units of work in one evaluation",
        f"doubling K multiplies the time by at least {DOUBLING[0]} at the largest K",
        "lazy libraries merge equal sub-graphs, cache results or skip unread outputs",
        work.work_not_done,
    ),
    Check(
        "SLOPE_UNCLEAR",
        "suspect",
        "the same times, where NOISY_NEIGHBOUR holds or could not be told in so short a window",
        f"doubling K does not fall between {work.UNCLEAR_DOUBLING} and {DOUBLING[0]}",
        "a benchmark that cries wolf is not believed when there is one",
        work.slope_unclear,
    ),
    Check(
        "HEADLINE_OFF_SLOPE",
        "invalid",
        "fastest timed run, less its constant cost, over its units of work at the slope's rate",
        f"at least {HEADLINE_SHARE:.2g} where the slope proves the work, half of that where longer "
        "work is slower, and of the median run where neighbours are or could not be seen (on an "
        "H200: at least 0.98)",
        "timed runs that skip what the slope's runs do; the slope alone would look right",
        work.headline_off_slope,
    ),
    Check(
        "MEDIAN_OFF_SLOPE",
        "suspect",
        "median run over the constant cost and its units of work at the slope's rate",
        f"at most {work.MEDIAN_RATIO:.2g}",
        "a window in which the machine was slow throughout, such as beside a neighbour",
        work.median_off_slope,
    ),
    Check(
        "SLOPE_BENT",
        "suspect",
        "largest distance of a time from the fitted line",
        f"at most {work.BENT_RESIDUAL:.0%} of it (on an H200: at most 21 %)",
        "some K skip work, which the last doubling does not see",
        work.slope_bent,
    ),
    Check(
        "SUPERLINEAR",
        "suspect",
        "time of K = 1, 2, 4, 8 units of work in one evaluation",
        f"doubling K multiplies the time by at most {DOUBLING[1]} at the largest K",
        "short bursts on full clocks or in caches, that longer work does not get",
        work.superlinear,
    ),
    Check(
        "SLOPE_UNKNOWN",
        "note",
        "whether the slope could be taken",
        "at least two K within the time and memory of the case",
        "one-point timing can't tell work from overhead",
        work.slope_unknown,
    ),
    Check(
        "NO_RATE",
        "invalid",
        "the rate, and the ceiling it is set against",
        "positive and finite",
        "zero work, or no time: a comparison with NaN is false, and every check would pass",
        work.no_rate,
    ),
    Check(
        "WRONG_ANSWER",
        "invalid",
        "a sampled block (bandwidth: every byte) against NumPy in float64; of a product also "
        "random sums over every row and column",
        f"equal, or at least {_least_bits()} right bits by mantissa of the type; worst element at "
        f"most {values.WORST_FACTOR:g} times the typical error",
        "a kernel that computes something else is often faster",
        values.wrong_answer,
    ),
    Check(
        "UNCHECKED",
        "suspect",
        "whether the output was compared with a reference",
        "it was",
        "a time without an answer is a time of anything",
        values.unchecked,
    ),
    Check(
        "REDUCED_PRECISION",
        "suspect",
        "right bits of the output",
        f"at most {values.BITS_MARGIN} bits below what the type keeps in a sum of n products",
        "float32 silently computed as TF32 or bfloat16",
        values.reduced_precision,
    ),
    Check(
        "NON_FINITE",
        "invalid",
        "every element of inputs and outputs",
        "all finite",
        "overflowed chains compute on NaN, at 63 % of the power of real data on an H200",
        values.non_finite,
    ),
    Check(
        "DEGENERATE_DATA",
        "suspect",
        "share of zero and denormal elements in a sample of inputs and outputs",
        f"zero at most {values.ZERO_SHARE:.0%} and {values.ZERO_SIGMAS} standard deviations of a "
        f"coin, denormal at most {values.DENORMAL_SHARE:.0%}",
        "zeros run 21 % faster than random data on an H200; some engines skip them",
        values.degenerate_data,
    ),
    Check(
        "NON_RANDOM_DATA",
        "suspect",
        "--data",
        "normal or uniform",
        "the rate is not that of real data",
        values.non_random_data,
    ),
    Check(
        "MOSTLY_PADDING",
        "suspect",
        "products of conv without padding over the usual count",
        f"at least {values.LEAST_EXACT:.0%}",
        "a 61 x 61 kernel on an 8 x 8 image counts 58 times the products that meet the image",
        values.mostly_padding,
    ),
    Check(
        "CHAIN_CHANGES_SIZE",
        "suspect",
        "RMS of the last output of flops_graph and conv over that of their input",
        f"within a factor of {values.RMS_FACTOR:g}",
        "a chain that grows overflows, one that shrinks underflows",
        values.chain_changes_size,
    ),
    Check(
        "ALIAS",
        "invalid",
        "memory in use before and after one run",
        "grows by the size of the output",
        "a 'copy' that shares its input's buffer 'moves' 77,000 GB/s",
        work.alias,
    ),
    Check(
        "PAGE_FAULTS",
        "suspect",
        "minor page faults of the process",
        f"at most {timing.FAULTS_PER_MIB:g} a MiB written",
        "an allocator that returns memory to the system between runs: 4.5 instead of 18 GB/s",
        timing.page_faults,
    ),
    Check(
        "LATENCY_BOUND",
        "suspect",
        "time of an empty evaluation in the same process",
        f"at most {timing.FLOOR_SHARE:.0%} of the median",
        "small sizes measure the launch: bf16 n = 1024 on an H200 40 TFLOP/s alone, 95 in a chain",
        timing.latency_bound,
    ),
    Check(
        "COARSE_CLOCK",
        "suspect",
        "measured resolution of the clock",
        f"a run takes at least {timing.CLOCK_TICKS} ticks",
        "Apple's clock ticks every 42 ns, virtual machines' more slowly",
        timing.coarse_clock,
    ),
    Check(
        "DRIFT",
        "suspect",
        "rank correlation of run time and order; first against last fifth",
        f"|rank correlation| below {timing.DRIFT_RANK} or change below {timing.DRIFT_CHANGE:.0%}",
        "throttling, or clocks that still rise",
        lambda e: timing.drift(e.samples_ns),
    ),
    Check(
        "WIDE_INTERVAL",
        "suspect",
        "95 % interval of the median",
        f"half-width at most {timing.INTERVAL_WIDTH:.0%} of the median",
        "noise larger than the differences one wants to see",
        lambda e: timing.wide_interval(e.summary),
    ),
    Check(
        "TWO_MODES",
        "suspect",
        "groups of run times",
        f"no two groups of {timing.MODES_SHARE:.0%} each, {timing.MODES_DISTANCE:.0%} apart",
        "clock states, core types or a neighbour that comes and goes",
        lambda e: timing.two_modes(e.samples_ns),
    ),
    Check(
        "ABOVE_CEILING",
        "suspect",
        "published or clock-derived peak of the device",
        f"rate at most {CEILING_SUSPECT:.0%} of it",
        "operations counted that were not done, or another device than named",
        lambda e: work.above_ceiling(e, CEILING_SUSPECT, CEILING_INVALID),
    ),
    Check(
        "SLOPE_ABOVE_CEILING",
        "suspect",
        "published or clock-derived peak of the device",
        f"slope rate at most {CEILING_SUSPECT:.0%} of it",
        "a slope out of a few runs, shown with as many digits as a median of hundreds",
        lambda e: work.slope_above_ceiling(e, CEILING_SUSPECT),
    ),
    Check(
        "IMPOSSIBLE_RATE",
        "invalid",
        "published or clock-derived peak of the device",
        f"rate at most {CEILING_INVALID:.0%} of it",
        "the same, beyond what clocks and rounding explain",
        lambda e: work.above_ceiling(e, CEILING_INVALID, math.inf),
    ),
    Check(
        "NOISY_NEIGHBOUR",
        "suspect",
        "steal time, processor time of this and other processes, involuntary context switches",
        f"steal at most {timing.STEAL_SHARE:.0%}, others at most {timing.OTHER_SHARE:.0%} of a "
        f"processor; or, for others, {timing.SWITCHES_PER_SECOND} involuntary switches a second at "
        f"most and {1 - timing.BUSY_SHARE:.0%} of all processors idle",
        "other guests or processes take turns with the benchmark",
        timing.noisy_neighbour,
    ),
    Check(
        "LITTLE_OVERLAP",
        "suspect",
        "time stamps of both sides of a hybrid run",
        f"both busy in at least {timing.OVERLAP_LEAST:.0%} of the window",
        "a sum of rates that were never reached together",
        timing.little_overlap,
    ),
    Check(
        "NOT_ON_ANE",
        "invalid",
        "the manifest of the compiled chain, and its time on the GPU",
        "nothing says that it ran elsewhere",
        "MPSGraph runs on the GPU without a word when the Neural Engine refuses a graph",
        lambda e: work.placed(e, ("not on ANE",)),
    ),
    Check(
        "PLACEMENT_UNPROVEN",
        "suspect",
        "the manifest of the compiled chain, and its time on the GPU",
        "they speak for the Neural Engine",
        "the same",
        lambda e: work.placed(e, ("unproven",)),
    ),
    Check(
        "COUNTERS_DO_NOT_CLOSE",
        "suspect",
        "accounting identities of the Neural Engine's counters that headline figures rest on",
        "hardware time within wall time, clock from 0.3 to 4 GHz, multiplies within the lanes",
        "a wrong register, another program's work, or a chain that is not the one that is named",
        counters.numbers_do_not_close,
    ),
    Check(
        "STALLS_DO_NOT_CLOSE",
        "note",
        "identities of the registers for stalls and memory traffic",
        "they add up to the nominal cycles, and traffic lies within the bounds of the work",
        "stall shares that explain nothing: on M4 they add up to 66, 84 and 81 % of the cycles",
        counters.stalls_do_not_close,
    ),
    Check(
        "OTHER_ANE_CLIENT",
        "suspect",
        "nominal cycles of each window of the counters",
        "no window is left out since another program used the Neural Engine",
        "counters belong to the engine, not to the process; times suffer as well",
        counters.other_client,
    ),
    Check(
        "FEW_SAMPLES",
        "suspect",
        "number of timed runs",
        f"at least {timing.MIN_SAMPLES}",
        "one run says nothing about scatter; below this no interval is shown",
        timing.few_samples,
    ),
    Check(
        "CACHE_RESIDENT",
        "note",
        "bytes of all rotating buffers, of each array of engine native, against the last cache",
        "at least 4 times the cache",
        "cache bandwidth sold as memory bandwidth",
        work.cache_resident,
    ),
)
