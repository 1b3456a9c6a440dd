"""Faults that a benchmark can have, each with the check that must see it.

A fault gets a MonkeyPatch and the FakeMeasure of its run, changes one of them, and may return
arguments of nnbt.run that differ from those of the clean twin.
"""

import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from fake_measure import FLOOR, STEADY, FakeMeasure, FakeSamples, units_of
from nnbt import _native
from nnbt.engines.mlx import bandwidth as mlx_bandwidth
from nnbt.engines.mlx import flops as mlx_flops
from nnbt.engines.mlx import integers as mlx_integers
from nnbt.engines.mlx.bandwidth import OPS
from nnbt.engines.mlx.data import Data, sample_indices
from nnbt.engines.mlx.setup import Graph, Setup
from nnbt.engines.mpsgraph import counters
from nnbt.machine import mlx
from nnbt.machine.facts import machine
from nnbt.peaks.published import Ceiling
from nnbt.pipeline import case as case_runner
from nnbt.pipeline import session as runner
from nnbt.spec.cell import Request
from nnbt.spec.details import Details, EvaluationWork, Placement, SharedWindow, SideRates
from nnbt.spec.workload import After, SamplesLike, Workload

Plant = Callable[[pytest.MonkeyPatch, FakeMeasure], dict[str, Any] | None]


@dataclass(frozen=True)
class Fault:
    """`case` holds arguments of nnbt.run for both twins.

    `finding` is the one of slope.DISAGREEMENTS that must see it, for the check of these.
    """

    code: str
    plant: Plant
    case: dict[str, Any] = field(default_factory=dict)
    marks: tuple[pytest.MarkDecorator, ...] = ()
    finding: str = ""

    @property
    def name(self) -> str:
        return f"{self.code}-{self.plant.__name__}"


FAULTS: list[Fault] = []
BANDWIDTH = mlx_bandwidth.bandwidth
FLOPS, FLOPS_GRAPH, PRODUCT = mlx_flops.flops, mlx_flops.flops_graph, mlx_flops._product


def fault(
    code: str, *marks: pytest.MarkDecorator, finding: str = "", **case: Any
) -> Callable[[Plant], Plant]:
    """Registers the decorated function as a fault that the check `code` must see."""

    def register(plant: Plant) -> Plant:
        FAULTS.append(Fault(code, plant, case, marks, finding))
        return plant

    return register


FEW_MS = 192 if sys.platform == "linux" else 1024
"""n of a product that takes a millisecond or more, by reference BLAS and by Accelerate."""


@fault("WORK_NOT_DONE", metric="flops", sizes=[FEW_MS])
def equal_products_merged_by_compile(
    patch: pytest.MonkeyPatch, measure: FakeMeasure
) -> dict[str, Any]:
    """K equal products under mx.compile, really timed: MLX runs one of them, in 20 times the
    evaluation that the scripted floor is, even where its BLAS is fast."""

    def builder(request: Request) -> Workload:
        bench = Setup(request)
        bench.prepare(1)
        mx = bench.mx
        honest = FLOPS(request)
        a, b = bench.input(0).blocks[0], bench.data.matrix(bench.n, bench.n)

        def step(k: int) -> Callable[[], None]:
            @mx.compile
            def rows(a: Any, b: Any) -> Any:
                return mx.concatenate([(a @ b)[:1] for _ in range(k)])

            return lambda: mx.eval(rows(a, b))

        # The answer is that of the honest step: merging does not make it wrong.
        honest.step(1)()
        return replace(honest, step=step)

    patch.setattr(mlx_flops, "flops", builder)

    def timed(step: Any, **more: Any) -> SamplesLike:
        """Processor time, and the floor of an idle machine: on a busy one, the wall time of two
        equal evaluations can differ twofold."""
        if (more.get("warmup"), more.get("runs")) == FLOOR:
            return measure(step, **more)
        for _ in range(more.get("warmup", 0)):
            step()
        samples = []
        for _ in range(more["runs"]):
            started = time.process_time_ns()
            step()
            samples.append(time.process_time_ns() - started)
        return FakeSamples(samples, sum(samples), 0, "runs", [])

    return {"measure": timed, "runs": 600}


def bench_of(patch: pytest.MonkeyPatch, request: Request) -> Setup:
    """The bench that the builders of flops make of this request from now on."""
    bench = Setup(request)
    patch.setattr(mlx_flops, "Setup", lambda _: bench)
    return bench


def with_flops(patch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Other fields of the Workload of flops."""
    patch.setattr(mlx_flops, "flops", lambda request: replace(FLOPS(request), **changes))


@fault("SLOPE_DISAGREES", finding="bent", metric="flops")
def one_unit_for_the_price_of_four(_: object, measure: FakeMeasure) -> dict[str, Any]:
    """Only K = 1 is off the line: the doubling from 4 to 8 does not see it."""
    measure.window_ns = 5_000_000_000

    def timed(step: Any, **more: Any) -> SamplesLike:
        if units_of(step) == 1 and (more.get("warmup"), more.get("runs")) != FLOOR:
            return replace(measure, unit_ns=4 * measure.unit_ns)(step, **more)
        return measure(step, **more)

    return {"measure": timed}


def with_product(
    patch: pytest.MonkeyPatch, change: Callable[[Setup, Callable[[Any, Any], Any]], Any]
) -> None:
    """Replaces multiply(block, stream) of the flops builders; the reference stays."""

    def product(bench: Setup, steps: int = 1) -> Any:
        multiply, columns = PRODUCT(bench, steps)
        return change(bench, multiply), columns

    patch.setattr(mlx_flops, "_product", product)


def with_multiply(patch: pytest.MonkeyPatch, change: Callable[[Any, Setup], Any]) -> None:
    with_product(patch, lambda bench, multiply: change(multiply, bench))


def kept(multiply: Callable[[Any, Any], Any], mask: Any) -> Callable[[Any, Any], Any]:
    """The product times a mask of ones and zeros."""
    return lambda block, stream: multiply(block, stream) * mask.astype(block.dtype)


def every_second(multiply: Callable[[Any, Any], Any], _: Setup) -> Callable[[Any, Any], Any]:
    calls = itertools.count()
    return lambda z, stream: multiply(z, stream) if next(calls) % 2 else z


def with_integers(patch: pytest.MonkeyPatch, change: Callable[..., Any]) -> None:
    kernel = mlx_integers._kernel

    def wrong(bench: Setup, z: Any, operand: Any, stream: Any) -> Any:
        return change(bench.mx, kernel(bench, z, operand, stream), z, bench)

    patch.setattr(mlx_integers, "_kernel", wrong)


def middle_rows(mx: Any, done: Any, before: Any, bench: Setup) -> Any:
    """Half of them, and the first and the last."""
    row = mx.arange(bench.n)[:, None]
    right = (row == 0) | (row == bench.n - 1) | ((row >= 831) & (row < 1855))
    return mx.where(right, done, before)


def with_data(patch: pytest.MonkeyPatch, factor: float) -> None:
    draw = Data._draw
    patch.setattr(Data, "_draw", lambda data, *shape: draw(data, *shape) * factor)


def sampled(bench: Setup) -> tuple[int, int]:
    """An element of the block that is compared."""
    return sample_indices(bench.n, 3)[5], sample_indices(bench.n, 4)[7]


@fault("WRONG_ANSWER", metric="flops_graph")
def half_of_the_chain_skipped(patch: pytest.MonkeyPatch, _: object) -> None:
    step = Setup.step

    def half(bench: Setup, graph: Graph, k: int, **more: Any) -> Callable[[], None]:
        run = step(bench, graph, k // 2, **more)

        def pretending() -> None:
            run()
            bench.latest_k = k

        return pretending

    patch.setattr(Setup, "step", half)


@fault("REDUCED_PRECISION", metric="flops")
def inputs_rounded_to_10_bits(patch: pytest.MonkeyPatch, _: object) -> None:
    """What TF32 does to both operands; here to the left one, and to the product."""

    def change(bench: Setup, multiply: Callable[[Any, Any], Any]) -> Any:
        mx = bench.mx

        def rounded(values: Any) -> Any:
            bits = values.view(mx.uint32) + mx.array(0x1000, mx.uint32)
            return (bits & mx.array(0xFFFFE000, mx.uint32)).view(mx.float32)

        return lambda block, stream: multiply(rounded(block), stream)

    with_product(patch, change)


@fault("NON_FINITE", metric="flops_graph", graph_steps=100, sizes=[160])
def a_chain_of_100_unscaled_steps(patch: pytest.MonkeyPatch, _: object) -> None:
    """z = z @ b + z, as the original has it."""

    def change(bench: Setup, __: object) -> Any:
        right = bench.data.matrix(bench.n, bench.n)
        return lambda z, stream: bench.mx.add(bench.mx.matmul(z, right, stream=stream), z)

    with_product(patch, change)


@fault("CHAIN_CHANGES_SIZE", metric="flops_graph")
def a_chain_that_grows_fourfold(patch: pytest.MonkeyPatch, _: object) -> None:
    """By a power of two, so that the answer stays right; 4 steps make 256."""

    def product(bench: Setup, steps: int = 1) -> Any:
        multiply, columns = PRODUCT(bench, steps)
        return (
            lambda block, stream: multiply(block * 4, stream),
            lambda indices: columns(indices) * 4,
        )

    patch.setattr(mlx_flops, "_product", product)


def with_copy(patch: pytest.MonkeyPatch, build: Callable[[Any, list[Any], Any], Any]) -> None:
    patch.setitem(OPS, "copy", replace(OPS["copy"], build=build))


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only MLX's Linux allocator is known to")


@fault("PAGE_FAULTS", LINUX)
def an_allocator_that_gives_memory_back(patch: pytest.MonkeyPatch, _: object) -> dict[str, Any]:
    """Real: outputs of 36 MiB, and MLX may keep none of their memory between runs."""
    mx = mlx.core()
    limit = mx.set_cache_limit
    patch.setattr(mx, "set_cache_limit", lambda _: limit(0))
    return {"measure": _native.measure, "sizes": [3072], "runs": 5, "checks": False}


@fault("CACHE_RESIDENT")
def buffers_that_fit_into_the_cache(patch: pytest.MonkeyPatch, _: object) -> None:
    patch.setattr(runner, "last_cache_bytes", lambda: 2**30)


@fault("COARSE_CLOCK")
def a_clock_that_ticks_every_10_us(patch: pytest.MonkeyPatch, _: object) -> None:
    clock = SimpleNamespace(resolution_ns=10_000, cost_ns=20.0)
    patch.setattr(_native, "calibrate_clock", lambda: clock)


def with_peak(patch: pytest.MonkeyPatch, rate: float) -> None:
    """A pretend device with this peak; a product of 64 x 64 takes 1.02 ms: 514 MFLOP/s."""
    patch.setattr(case_runner, "published_ceiling", lambda *_: Ceiling(rate, "a pretend device"))


@fault("BACKGROUND_LOAD")
def a_process_that_has_the_other_processor(patch: pytest.MonkeyPatch, measure: FakeMeasure) -> None:
    """Seen beside a compiler: 0.9 of two processors gone, 10 interruptions a second."""
    here = replace(machine(), logical_cpus=2)
    patch.setattr(case_runner, "machine", lambda: here)
    window_s = measure.window_ns * 1e-9
    measure.readings = {
        "other_cpu_time": 0.9 * window_s, "involuntary_switches": 10 * window_s,
        "user_time": 0.9 * window_s, "system_time": 0.15 * window_s,
    }  # fmt: skip


def with_details(patch: pytest.MonkeyPatch, **details: Any) -> None:
    """What a builder that pairs devices, or one of the Neural Engine, reports at its end."""

    def builder(request: Request) -> Workload:
        return replace(BANDWIDTH(request), after=lambda: After(details=Details(**details)))

    patch.setattr(mlx_bandwidth, "bandwidth", builder)


def with_counters(patch: pytest.MonkeyPatch, **changes: float) -> None:
    """Counters of three windows, decoded for real: 100 runs of 16 cores, registers as on an M4."""
    numbers = {"nominal": 40e6, "stalls": 10e6, "hw_ns": 1e6, "second_window": 1.0} | changes
    per_run = {10: round(numbers["nominal"])}
    per_run |= dict.fromkeys((13, 14, 15, 16), round(numbers["stalls"]))
    # Traffic within its bounds, half of it reads, and an accumulator that is too large for cycles.
    per_run |= {21: 2**14, 22: 2**13, 23: round(800 * numbers["nominal"])}
    windows, before = [], [0] * 29
    for factor in (1.0, numbers["second_window"], 1.0, 1.0):
        after = [n + round(100 * factor * per_run.get(i, 0)) for i, n in enumerate(before)]
        windows.append(
            {
                "before": before, "after": after, "evaluations": 100, "wall_ns": 1.1e6,
                "hw_ns": numbers["hw_ns"],
            }
        )  # fmt: skip
        before = after
    work = EvaluationWork(9_000_000_000, (2**18, 2**22), "fp16")
    pmu = {"status": "ok", "architecture": "h16g", "cores": 16, "windows": windows}
    with_details(patch, counters=counters.decoded_counters({"status": "ok", "pmu": pmu}, work))


def faulty(
    code: str,
    name: str,
    plant: Callable[..., Any] | None = None,
    *cases: dict[str, Any],
    finding: str = "",
    run: dict[str, Any] | None = None,
    **changes: Any,
) -> None:
    """Registers plant(patch, **changes), or these changes of the FakeMeasure, for each case.

    `run` has the arguments of nnbt.run that differ from those of the clean twin.
    """

    def planted(patch: pytest.MonkeyPatch, measure: FakeMeasure) -> dict[str, Any] | None:
        if plant:
            plant(patch, **changes)
        else:
            vars(measure).update(changes)
        return run

    planted.__name__ = name
    FAULTS.extend(Fault(code, planted, case, (), finding) for case in cases or ({},))


FLOPS_CASE, GRAPH_CASE = {"metric": "flops"}, {"metric": "flops_graph"}
SMALL, MEDIUM = FLOPS_CASE | {"sizes": [64]}, FLOPS_CASE | {"sizes": [200]}
SCATTERED = [1 + i / 10 for i in (3, 11, 0, 7, 5, 9, 1, 10, 2, 6, 8, 4)]
TWO_STATES = [1.0, 1.01, 1.5, 1.0, 1.51, 1.01, 1.0, 1.5, 1.0, 1.01, 1.0, 1.5] * 3
BESIDE_OTHERS = {"other_cpu_time": 0.45, "involuntary_switches": 100}
"""In the half second that the FakeMeasure pretends."""

# fmt: off
# Times
faulty("WORK_NOT_DONE", "one_unit_whatever_is_asked_for", None, FLOPS_CASE, power=0.0)
faulty("WORK_NOT_DONE", "half_of_each_doubling", None, {"metric": "bandwidth"},
       power=0.58)  # 2 ** 0.58 = 1.5
faulty("NO_RATE", "work_that_counts_as_nothing", with_flops, FLOPS_CASE, unit_work=0)
# Series take a tenth of what single runs of the slope take.
faulty("HEADLINE_OFF_SLOPE", "timed_runs_that_spin", None, GRAPH_CASE,
       pattern=[factor / 10 for factor in STEADY])
faulty("SLOPE_DISAGREES", "a_doubling_of_1_6_in_a_short_window", None, FLOPS_CASE,
       finding="unclear", power=0.68, window_ns=90_000_000)
faulty("SLOPE_DISAGREES", "a_doubling_of_1_6_among_other_processes", None, FLOPS_CASE,
       finding="unclear", power=0.68, readings=BESIDE_OTHERS)
faulty("SLOPE_DISAGREES", "longer_work_is_slower", None, FLOPS_CASE,
       finding="superlinear", power=1.3)
faulty("SLOPE_DISAGREES", "a_window_that_was_slow_throughout", None, SMALL,
       finding="median", pattern=[1.9 * factor for factor in STEADY])
faulty("SLOPE_UNKNOWN", "no_time_for_a_slope", None, FLOPS_CASE, window_ns=1_000_000)
faulty("PAGE_FAULTS", "page_faults_that_a_probe_saw", readings={"minor_faults": 256.0 * 1000})
faulty("LAUNCH_BOUND", "an_evaluation_that_costs_a_sixth", floor_ns=200_000)
faulty("DRIFT", "a_step_that_gets_slower", pattern=[1 + i / 100 for i in range(20)])
faulty("DRIFT", "a_step_that_gets_faster", pattern=[1.4 - i / 100 for i in range(20)])
faulty("WIDE_INTERVAL", "times_that_scatter", pattern=SCATTERED)
faulty("BIMODAL", "two_clock_states", pattern=TWO_STATES)
faulty("FEW_SAMPLES", "three_runs", run={"runs": 3})
faulty("BACKGROUND_LOAD", "a_host_that_steals_time", readings={"steal_time": 0.075})
faulty("BACKGROUND_LOAD", "other_processes", readings=BESIDE_OTHERS)

# The data is not what it should be
faulty("NON_FINITE", "nan_data", None, FLOPS_CASE, {"metric": "bandwidth"}, run={"data": "nan"})
faulty("UNCHECKED", "an_answer_that_nobody_looked_at", run={"checks": False})
faulty("NON_RANDOM_DATA", "data_of_ones", None, FLOPS_CASE, {}, run={"data": "ones"})
faulty("NON_RANDOM_DATA", "zeros_data", run={"data": "zeros"})
faulty("DEGENERATE_DATA", "data_of_zeros_that_is_called_normal", with_data, {}, FLOPS_CASE,
       factor=0)
faulty("DEGENERATE_DATA", "denormal_data", with_data, factor=1e-40)
faulty("MOSTLY_PADDING", "a_kernel_larger_than_the_image", None,
       {"metric": "conv", "dtype": "float32", "sizes": [8],
        "params": {"channels": 4, "layers": 2, "kernel": 3}},
       run={"params": {"channels": 4, "layers": 2, "kernel": 31}})

# The answer is wrong: change(multiply, bench) is multiply(block, stream) from then on.
faulty("WRONG_ANSWER", "one_wrong_element_in_the_sampled_block", with_multiply, FLOPS_CASE,
       change=lambda multiply, bench: lambda *of: multiply(*of).at[sampled(bench)].add(0.01))
faulty("WRONG_ANSWER", "half_of_the_rows_skipped", with_multiply, FLOPS_CASE,
       change=lambda multiply, bench: lambda block, stream: bench.mx.pad(
           multiply(block[: bench.n // 2], stream), [(0, bench.n // 2), (0, 0)]))
faulty("WRONG_ANSWER", "every_eighth_row_only", with_multiply,
       MEDIUM, MEDIUM | {"dtype": "bfloat16"},
       change=lambda multiply, bench: kept(
           multiply, bench.mx.array(([1.0] + [0.0] * 7) * (bench.n // 8))[:, None]))
faulty("WRONG_ANSWER", "a_huge_first_element", with_multiply,
       MEDIUM, FLOPS_CASE | {"sizes": [256], "dtype": "q8"},
       change=lambda multiply, _: lambda *of: multiply(*of).at[0, 0].add(1e9))
faulty("WRONG_ANSWER", "one_column_off_the_sample_is_zero", with_multiply,
       MEDIUM | {"dtype": "complex64"}, MEDIUM | {"dtype": "float64"},
       MEDIUM | GRAPH_CASE | {"dtype": "float16"},
       change=lambda multiply, bench: kept(
           multiply, bench.mx.array([1.0] * 198 + [float(198 in sample_indices(bench.n, 4)), 1.0])))
faulty("WRONG_ANSWER", "a_multiply_that_returns_zeros", with_multiply,
       GRAPH_CASE, GRAPH_CASE | {"graph_steps": 100},
       change=lambda _, bench: lambda block, __: bench.mx.zeros_like(block))
faulty("WRONG_ANSWER", "every_second_multiply_skipped", with_multiply,
       GRAPH_CASE, GRAPH_CASE | {"graph_steps": 7}, change=every_second)

# change(mx, done, before, bench) is what a kernel of integers gives.
faulty("WRONG_ANSWER", "one_wrong_integer", with_integers, FLOPS_CASE | {"dtype": "int16"},
       change=lambda _, done, __, bench: done.at[sampled(bench)].add(1))
faulty("WRONG_ANSWER", "one_wrong_integer_at_the_end", with_integers,
       MEDIUM | {"dtype": "int32"}, MEDIUM | GRAPH_CASE | {"dtype": "uint8"},
       change=lambda _, done, *__: done.at[-1, -1].add(1))
faulty("WRONG_ANSWER", "rows_in_the_middle_only", with_integers,
       FLOPS_CASE | {"dtype": "int64", "sizes": [2048]}, change=middle_rows)

# build(mx, blocks, stream) is what a copy gives.
COPY = {"op": "copy"}
faulty("WRONG_ANSWER", "one_wrong_element_in_a_copy", with_copy, COPY, COPY | {"dtype": "float16"},
       build=lambda mx, blocks, _: mx.array(blocks[0]).at[-1, -1].add(1))
faulty("WRONG_ANSWER", "a_copy_of_the_first_quarter", with_copy,
       COPY | {"sizes": [2048]}, COPY | {"sizes": [64]},
       build=lambda mx, blocks, _: mx.array(blocks[0][: blocks[0].shape[0] // 4]))
faulty("ALIAS", "a_contiguous_that_copies_nothing", with_copy, COPY,
       build=lambda mx, blocks, _: mx.contiguous(blocks[0]))
faulty("ALIAS", "a_slice_that_copies_nothing", with_copy, COPY,
       build=lambda _, blocks, __: blocks[0][:])

# The machine
faulty("ABOVE_CEILING", "a_device_whose_peak_is_exceeded_by_10_percent", with_peak, SMALL,
       rate=514e6 / 1.1)
# The rate is at 101 %, and the slope, without the 2 % of an evaluation, at 103.
faulty("SLOPE_ABOVE_CEILING", "a_device_whose_peak_the_slope_exceeds_alone", with_peak, SMALL,
       rate=514e6 / 1.01)
faulty("IMPOSSIBLE_RATE", "a_device_whose_peak_is_half_the_rate", with_peak, SMALL,
       rate=514e6 / 2)
faulty("LITTLE_OVERLAP", "sides_that_were_rarely_busy_together", with_details,
       shared_window=SharedWindow(0.5, *[SideRates(1e9, 5e8, 2.0, 10)] * 2))
faulty("NOT_ON_ANE", "a_chain_that_a_gpu_ran", with_details,
       placement=Placement("not on ANE", ("The GPU ran it.",)))
faulty("PLACEMENT_UNPROVEN", "a_chain_that_ran_somewhere", with_details,
       placement=Placement("unproven", ("Nothing tells.",)))
faulty("COUNTERS_INCONSISTENT", "hardware_time_above_wall_time", with_counters, hw_ns=1.2e6)
faulty("COUNTERS_INCONSISTENT", "a_clock_of_7_ghz", with_counters, nominal=120e6, stalls=30e6)
faulty("COUNTERS_INCONSISTENT", "more_multiplies_than_lanes", with_counters,
       nominal=20e6, stalls=5e6)
faulty("STALLS_INCONSISTENT", "stalls_of_half_of_the_cycles", with_counters, stalls=5e6)
faulty("OTHER_ANE_CLIENT", "a_window_with_twice_the_cycles", with_counters, second_window=2.0)
