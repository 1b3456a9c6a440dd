"""Prints what the native loop costs a run, beside a Python loop with a clock and timeit.

Not a test, since timings are of the machine they are taken on:
    python tests/bench/overhead.py
The bar: the native loop costs at most 60 ns a run more than the call itself.
"""

import statistics
import time
import timeit
from collections.abc import Callable

from nnbt import _native

RUNS = 4_000  # a fraction of a millisecond, so that few rounds are interrupted
ROUNDS = 301
BAR_NS = 60


def nothing() -> None:
    """The callable: as little as Python can call."""


def bare_calls() -> float:
    """The call itself, eight in a row so that the loop's own cost hardly counts."""
    start = time.perf_counter_ns()
    for _ in range(RUNS // 8):
        nothing()
        nothing()
        nothing()
        nothing()
        nothing()
        nothing()
        nothing()
        nothing()
    return (time.perf_counter_ns() - start) / RUNS


def native_loop() -> float:
    """Wall time a run of the native loop: the call, two clock readings, the bookkeeping."""
    return _native.measure(nothing, warmup=0, runs=RUNS).window_ns / RUNS


def native_step() -> float:
    """The native loop around a step without work."""
    return _native.measure(_native.empty_step(), warmup=0, runs=RUNS).window_ns / RUNS


def python_loop() -> float:
    """One sample a run with time.perf_counter_ns, the garbage collector off as in timeit."""
    samples = [0] * RUNS
    clock = time.perf_counter_ns
    start = clock()
    for i in range(RUNS):
        before = clock()
        nothing()
        samples[i] = clock() - before
    return (clock() - start) / RUNS


def timeit_loop() -> float:
    """timeit's loop: no samples, the mean of all runs."""
    return timeit.timeit(nothing, number=RUNS) / RUNS * 1e9


LOOPS: tuple[tuple[str, Callable[[], float]], ...] = (
    ("call itself", bare_calls), ("native loop", native_loop),
    ("native loop, native empty step", native_step),
    ("Python loop with perf_counter_ns", python_loop), ("timeit (no samples)", timeit_loop),
)  # fmt: skip


def main() -> None:
    """Takes the loops in turn, so that a change of the machine's speed meets all of them."""
    clock = _native.calibrate_clock()
    print(f"clock: {clock.cost_ns:.1f} ns a reading, resolution {clock.resolution_ns} ns")
    times = {name: [] for name, _ in LOOPS}
    for _ in range(ROUNDS):
        for name, loop in LOOPS:
            times[name].append(loop())
    call = statistics.median(times["call itself"])
    print(f"{'ns a run, median of ' + str(ROUNDS):<36}{'total':>8}{'overhead':>10}")
    for name, _ in LOOPS:
        total = statistics.median(times[name])
        print(f"{name:<36}{total:8.1f}{total - call:10.1f}")
    over = statistics.median(
        n - c for n, c in zip(times["native loop"], times["call itself"], strict=True)
    )
    verdict = "within" if over <= BAR_NS else "OVER"
    print(f"native loop: {over:.1f} ns a run more than the call, {verdict} the bar of {BAR_NS} ns")


if __name__ == "__main__":
    main()
