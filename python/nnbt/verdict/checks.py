"""CHECKS: what makes a number valid. One row per check, with its threshold and its hazard."""

from collections.abc import Callable
from dataclasses import dataclass

from nnbt.results.result import Severity
from nnbt.spec.precision import BITS_MARGIN, LEAST_BITS
from nnbt.timing import scatter
from nnbt.timing.slope import DOUBLING, HEADLINE_SHARE
from nnbt.timing.statistics import MIN_SAMPLES
from nnbt.verdict import ane, background, rates, slope, times, values
from nnbt.verdict.evidence import Evidence


def _least_bits() -> str:
    return ", ".join(f"{least:g} of {bits}" for bits, least in LEAST_BITS.items())


@dataclass(frozen=True)
class Check:
    """One row of CHECKS. `test` returns the sentence of the reason if the check fails, else None.

    `looks_at`, `threshold` and `hazard` are printed by `nnbt info --explain checks`.
    """

    code: str
    severity: Severity
    test: Callable[[Evidence], str | None]
    looks_at: str
    threshold: str
    hazard: str


# fmt: off
CHECKS: tuple[Check, ...] = (
    Check("WORK_NOT_DONE", "invalid", slope.work_not_done,
        "run time with K = 1, 2, 4, 8 units of work in one evaluation",
        f"doubling K multiplies the time by at least {DOUBLING[0]} at the largest K",
        "lazy libraries merge equal expressions, cache results or skip outputs that nobody reads"),
    Check("HEADLINE_OFF_SLOPE", "invalid", slope.headline_off_slope,
        "time of the fastest run, without its fixed cost, over the time that the slope predicts",
        f"at least {HEADLINE_SHARE:.2g} (on an H200: at least 0.98); half of that where longer "
        "work is slower; half of that, for the median run, under background load or in a window "
        "too short to detect it",
        "timed runs that skip work which the runs of the slope do: the slope alone looks right"),
    Check("SLOPE_DISAGREES", "suspect", slope.slope_disagrees,
        "whether all K and the timed runs agree with one line",
        f"doubling K multiplies the time by at most {DOUBLING[1]} at the largest K, and not by "
        f"{slope.UNCLEAR_DOUBLING} to {DOUBLING[0]} under background load or in a window too short "
        f"to detect it; each K is at most {slope.BENT_RESIDUAL:.0%} off the line (on an H200: "
        f"21 %); the median run takes at most {slope.MEDIAN_RATIO:.2g} times what it predicts",
        "longer work that is slower, work that some K skip, a window that was slow throughout"),
    Check("SLOPE_UNKNOWN", "note", slope.slope_unknown,
        "whether the slope could be measured",
        "at least two values of K fit in the time and memory of the case",
        "a single K cannot tell work from launch overhead"),
    Check("NO_RATE", "invalid", rates.no_rate,
        "the rate, and the ceiling that it is compared with",
        "positive and finite",
        "no work or no time: every comparison with NaN is false, so all other checks would pass"),
    Check("WRONG_ANSWER", "invalid", values.wrong_answer,
        "a sampled block (bandwidth: every byte) against a float64 reference; of a product also "
        "random sums over every row and column",
        f"equal, or at least {_least_bits()} correct bits by mantissa bits of the dtype; largest "
        f"error of an element at most {values.WORST_FACTOR:g} times the typical one",
        "a kernel that computes something else is often faster"),
    Check("UNCHECKED", "suspect", values.unchecked,
        "whether the output was compared with a reference",
        "it was",
        "the time of a wrong result is meaningless"),
    Check("REDUCED_PRECISION", "suspect", values.reduced_precision,
        "correct bits of the output",
        f"at most {BITS_MARGIN} bits fewer than the dtype keeps in a sum of n products (TF32: of "
        "its 11, where MLX uses it by default)",
        "float32 silently computed as TF32 or bfloat16"),
    Check("NON_FINITE", "invalid", values.non_finite,
        "every element of inputs and outputs",
        "all finite",
        "an overflowed chain computes on NaN, at 63 % of the power of real data on an H200"),
    Check("DEGENERATE_DATA", "suspect", values.degenerate_data,
        "share of zero and of denormal elements in a sample of inputs and outputs",
        f"at most {values.ZERO_SHARE:.0%} zero, plus {values.ZERO_SIGMAS} standard errors of the "
        f"sample; at most {values.DENORMAL_SHARE:.0%} denormal",
        "zeros run 21 % faster than random data on an H200, and some engines skip them"),
    Check("NON_RANDOM_DATA", "suspect", values.non_random_data, "--data", "normal or uniform",
        "power, and so clocks, depend on the values"),
    Check("MOSTLY_PADDING", "suspect", values.mostly_padding,
        "products of a convolution without padding, over the usual count",
        f"at least {values.LEAST_EXACT:.0%}",
        "with a 61 x 61 kernel on an 8 x 8 image only one product in 58 meets the image"),
    Check("CHAIN_CHANGES_SIZE", "suspect", values.chain_changes_size,
        "RMS of the last output of a chain over that of its input",
        f"within a factor of {values.RMS_FACTOR:g}",
        "a growing chain overflows, a shrinking one underflows"),
    Check("ALIAS", "invalid", values.alias,
        "memory in use before and after one run",
        "grows by the size of the output",
        "a 'copy' that shares the buffer of its input 'runs' at 77,000 GB/s"),
    Check("PAGE_FAULTS", "suspect", times.page_faults,
        "minor page faults of the process",
        f"at most {times.FAULTS_PER_MIB:g} per MiB written",
        "an allocator that returns memory to the system between runs: 4.5 instead of 18 GB/s"),
    Check("LAUNCH_BOUND", "suspect", times.launch_bound,
        "launch overhead: the time of an empty evaluation in the same process",
        f"at most {times.FLOOR_SHARE:.0%} of the median",
        "small sizes measure the launch: bfloat16 n = 1024 on an H200 gives 40 TFLOP/s alone, 95 "
        "in a chain"),
    Check("COARSE_CLOCK", "suspect", times.coarse_clock,
        "measured resolution of the clock",
        f"a run takes at least {times.CLOCK_TICKS} ticks",
        "Apple's clock ticks every 42 ns, that of virtual machines may be coarser"),
    Check("DRIFT", "suspect", times.drift,
        "rank correlation of run time and order; first fifth of the runs against the last",
        f"|rank correlation| below {scatter.DRIFT_RANK} or change below {scatter.DRIFT_CHANGE:.0%}",
        "throttling, or clocks that are still rising"),
    Check("WIDE_INTERVAL", "suspect", times.wide_interval,
        "95 % confidence interval of the median",
        f"half-width at most {scatter.INTERVAL_WIDTH:.0%} of the median",
        "noise larger than the differences of interest"),
    Check("BIMODAL", "suspect", times.bimodal, "groups of run times",
        f"no two groups of at least {scatter.MODES_SHARE:.0%} of the runs each, "
        f"{scatter.MODES_DISTANCE:.0%} apart",
        "two clock states or types of core, or intermittent background load"),
    Check("ABOVE_CEILING", "suspect", rates.above_ceiling,
        "rate over the published or clock-derived peak",
        f"at most {rates.CEILING_SUSPECT:.0%}",
        "operations that were counted but not done, or a device other than its name says"),
    Check("SLOPE_ABOVE_CEILING", "suspect", rates.slope_above_ceiling,
        "slope rate over the published or clock-derived peak",
        f"at most {rates.CEILING_SUSPECT:.0%}",
        "a slope comes from a few runs, but is printed with as many digits as a median of "
        "hundreds"),
    Check("IMPOSSIBLE_RATE", "invalid", rates.impossible_rate,
        "rate over the published or clock-derived peak",
        f"at most {rates.CEILING_INVALID:.0%}",
        "the same as ABOVE_CEILING, by more than clocks and rounding explain"),
    Check("BACKGROUND_LOAD", "suspect", background.background_load,
        "steal time, CPU time of this and of other processes, involuntary context switches",
        f"steal time at most {background.STEAL_SHARE:.2g} CPUs; other processes at most "
        f"{background.OTHER_SHARE:.2g} CPUs, or at most {background.SWITCHES_PER_SECOND} "
        f"involuntary switches per second and {1 - background.BUSY_SHARE:.0%} of all CPU time idle",
        "other guests or processes take CPU time from the benchmark"),
    Check("LITTLE_OVERLAP", "suspect", background.little_overlap,
        "time stamps of both sides of a hybrid run",
        f"both sides busy in at least {background.OVERLAP_LEAST:.0%} of the window",
        "a sum of two rates that did not occur at the same time"),
    Check("NOT_ON_ANE", "invalid", ane.not_on_ane,
        "the manifest of the compiled chain, and its time on the GPU",
        "nothing shows that it ran elsewhere",
        "a graph that the Neural Engine refuses runs on the GPU without an error"),
    Check("PLACEMENT_UNPROVEN", "suspect", ane.placement_unproven,
        "the manifest of the compiled chain, and its time on the GPU",
        "they show that it ran on the Neural Engine",
        "the same as NOT_ON_ANE"),
    Check("COUNTERS_INCONSISTENT", "suspect", ane.counters_inconsistent,
        "accounting identities of the Neural Engine's counters that headline figures rest on",
        "hardware time within wall time, clock from 0.3 to 4 GHz, multiplies within the lanes",
        "a wrong register, the work of another program, or a chain other than the stated one"),
    Check("STALLS_INCONSISTENT", "note", ane.stalls_inconsistent,
        "identities of the registers for stalls and memory traffic",
        "stalls add up to the nominal cycles, and traffic is within the bounds of the work",
        "stall shares that explain nothing: on M4 they add up to 66, 84 and 81 % of the cycles"),
    Check("OTHER_ANE_CLIENT", "suspect", ane.other_client,
        "nominal cycles of each window of the counters",
        "no window is left out because another program used the Neural Engine",
        "counters belong to the engine, not to the process, and times suffer as well"),
    Check("FEW_SAMPLES", "suspect", times.few_samples, "number of timed runs",
        f"at least {MIN_SAMPLES}",
        "a few runs do not show how noisy they are: there is no confidence interval"),
    Check("CACHE_RESIDENT", "note", rates.cache_resident,
        "working set, or each array where STREAM's rule applies, against the last-level cache",
        f"at least {rates.CACHE_FACTOR} times the cache",
        "cache bandwidth taken for memory bandwidth"),
)
# fmt: on
