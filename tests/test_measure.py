"""nnbt.measure: the native loop around Python callables and native steps."""

import functools
import gc
import itertools
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import pytest

import nnbt
from nnbt import _native


def nothing() -> None:
    pass


def fail() -> None:
    raise LookupError("the step failed")


@pytest.mark.parametrize("runs", [1, 2, 17, 3000])
def test_runs_is_exact(runs: int) -> None:
    calls: list[int] = []
    samples = nnbt.measure(lambda: calls.append(1), warmup=0, runs=runs)
    assert len(calls) == len(samples.samples_ns) == runs
    assert samples.stop == "runs"
    assert samples.warmup_runs == 0
    assert all(sample >= 0 for sample in samples.samples_ns)
    assert sum(samples.samples_ns) <= samples.window_ns


def test_warmup_is_counted_and_not_sampled() -> None:
    calls: list[int] = []
    samples = nnbt.measure(lambda: calls.append(1), warmup=3, runs=4, budget_s=0)
    assert samples.warmup_runs == 3
    assert len(samples.samples_ns) == 4
    assert len(calls) == 7
    assert samples.first_run_ns > 0


def test_adaptive_stops_with_the_budget() -> None:
    samples = nnbt.measure(
        functools.partial(time.sleep, 0.001), warmup=0, budget_s=0.05, relative_interval=0
    )
    assert samples.stop in {"budget", "precise"}
    assert len(samples.samples_ns) >= 5


def test_adaptive_stops_with_the_most_runs() -> None:
    durations = iter(range(10_000))
    samples = nnbt.measure(
        lambda: sum(range(next(durations) * 50)), warmup=0, max_runs=9, relative_interval=0
    )
    assert (samples.stop, len(samples.samples_ns)) == ("max_runs", 9)


@pytest.mark.parametrize("warmup", [0, 2])
def test_what_a_callable_raises_comes_through(warmup: int) -> None:
    with pytest.raises(LookupError, match="the step failed"):
        nnbt.measure(fail, warmup=warmup, runs=3)


def test_an_exception_in_the_middle_keeps_its_type_and_ends_the_runs() -> None:
    calls: list[int] = []

    def third_fails() -> None:
        calls.append(1)
        if len(calls) == 3:
            fail()

    with pytest.raises(LookupError):
        nnbt.measure(third_fails, warmup=0, runs=10)
    assert len(calls) == 3


@pytest.mark.parametrize("step", [None, 3, "step", [nothing]])
def test_what_is_not_callable_is_refused(step: object) -> None:
    with pytest.raises(TypeError, match="Step"):
        nnbt.measure(step, runs=1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"runs": -1}, "warmup and runs must be 0 or more"),
        ({"warmup": -1}, "warmup and runs must be 0 or more"),
        ({"min_runs": 0}, "min_runs and max_runs must be 1 or more"),
        ({"max_runs": 0}, "min_runs and max_runs must be 1 or more"),
        ({"budget_s": -1.0}, "must be 0 or more"),
        ({"budget_s": float("nan")}, "must be 0 or more"),
        ({"relative_interval": -0.1}, "must be 0 or more"),
    ],
)
def test_options_without_sense_are_refused(options: dict[str, float], text: str) -> None:
    calls: list[int] = []
    with pytest.raises(ValueError, match=text):
        nnbt.measure(lambda: calls.append(1), **options)
    assert calls == []


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_off_while_timing_and_as_before_afterwards(enabled: bool) -> None:
    seen: set[bool] = set()
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        nnbt.measure(lambda: seen.add(gc.isenabled()), runs=3)
        after = gc.isenabled()
        with pytest.raises(LookupError):
            nnbt.measure(fail, runs=3)
        after_failure = gc.isenabled()
    finally:
        (gc.enable if was else gc.disable)()
    assert seen == {False}
    assert after is enabled
    assert after_failure is enabled


class Work:
    """A callable that a weak reference can watch, with a result for every call."""

    def __init__(self) -> None:
        self.results: list[weakref.ref[Work]] = []

    def __call__(self) -> object:
        result = Work()
        self.results.append(weakref.ref(result))
        return result


def test_no_reference_leaks() -> None:
    work = Work()
    before = sys.getrefcount(work)
    for _ in range(3):
        nnbt.measure(work, warmup=1, runs=50, budget_s=0)
    assert sys.getrefcount(work) == before
    assert len(work.results) == 3 * 51
    assert all(result() is None for result in work.results)


def test_no_reference_leaks_through_exceptions() -> None:
    class FailureError(Exception):
        """Weak references to built-in exceptions can't be had."""

    def raising() -> None:
        raise FailureError

    seen: list[weakref.ref[BaseException]] = []
    before = sys.getrefcount(raising)
    for _ in range(20):
        with pytest.raises(FailureError) as caught:
            nnbt.measure(raising, runs=1)
        seen.append(weakref.ref(caught.value))
        del caught
    gc.collect()
    assert sys.getrefcount(raising) == before
    assert [ref() for ref in seen] == [None] * 20


def test_progress_is_told_between_runs() -> None:
    told: list[tuple[int, int]] = []
    samples = nnbt.measure(
        functools.partial(time.sleep, 0.06), warmup=1, runs=3, budget_s=0,
        on_progress=lambda runs, elapsed_ns: told.append((runs, elapsed_ns)),
    )  # fmt: skip
    assert [runs for runs, _ in told] == [0, 1, 2]
    assert [elapsed for _, elapsed in told] == sorted(elapsed for _, elapsed in told)
    assert told[0][1] >= 60_000_000
    assert len(samples.samples_ns) == 3


@pytest.mark.parametrize("make", [lambda: functools.partial(abs, 1), _native.empty_step])
def test_progress_ends_the_measurement_by_raising(make: Callable[[], object]) -> None:
    def stop(runs: int, _elapsed_ns: int) -> None:
        raise InterruptedError(f"after {runs}")

    with pytest.raises(InterruptedError, match="after "):
        nnbt.measure(make(), warmup=0, runs=50_000_000, on_progress=stop)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Python's own handler: a shell has its background jobs start with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def counting(count: Iterator[int]) -> Callable[[], object]:
    return lambda: next(count)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(
    "make",
    [
        counting, lambda count: count.__next__, lambda _: functools.partial(time.sleep, 0.01),
        lambda _: _native.empty_step(),
    ],
    ids=["python", "builtin", "sleeping", "native"],
)  # fmt: skip
def test_ctrl_c_ends_any_step(make: Callable[[Iterator[int]], object]) -> None:
    runs = 50_000_000
    count = itertools.count()
    killer = f"import os, time; time.sleep(0.2); os.kill({os.getpid()}, {signal.SIGINT:d})"
    with subprocess.Popen([sys.executable, "-S", "-c", killer]), pytest.raises(KeyboardInterrupt):
        nnbt.measure(make(count), warmup=0, runs=runs)
    assert next(count) < runs


@pytest.mark.usefixtures("ctrl_c")
def test_a_callable_that_keeps_the_gil_leaves_other_threads_their_turn() -> None:
    """Else the thread would send its signal only when all runs are over."""
    runs = 50_000_000
    count = itertools.count()
    thread = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        nnbt.measure(count.__next__, warmup=0, runs=runs)
    thread.join()
    assert next(count) < runs


@pytest.fixture
def no_switching() -> Iterator[None]:
    """Threads get the GIL only where another one gives it up by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("no_switching")
def test_a_native_step_runs_without_the_gil() -> None:
    started, ended = threading.Event(), threading.Event()

    def work() -> None:
        started.wait()
        ended.set()

    def see(_runs: int, _elapsed_ns: int) -> None:
        started.set()
        if ended.is_set():
            raise InterruptedError

    thread = threading.Thread(target=work)
    thread.start()
    with pytest.raises(InterruptedError):
        nnbt.measure(_native.empty_step(), warmup=0, runs=50_000_000, on_progress=see)
    thread.join()


def test_native_step_runs_by_itself_and_in_the_loop() -> None:
    step = _native.empty_step()
    step.run()
    samples = nnbt.measure(step, warmup=2, runs=10, budget_s=0)
    assert len(samples.samples_ns) == 10
    assert samples.warmup_runs == 2


def test_readings_come_from_the_probes_of_this_platform() -> None:
    names = [name for name, _ in _native.probes()]
    assert names[0] == "process"
    samples = nnbt.measure(nothing, runs=5)
    units = {reading.name: reading.unit for reading in samples.readings}
    assert units["minor_faults"] == "count"
    assert units["user_time"] == "s"
    assert all(reading.value >= 0 for reading in samples.readings)


def test_page_faults_of_the_step_are_counted() -> None:
    pages = 32

    def touch() -> None:
        with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
            for page in range(pages):
                memory[page * mmap.PAGESIZE] = 1

    def faults(step: Callable[[], object]) -> float:
        samples = nnbt.measure(step, warmup=2, runs=20, budget_s=0)
        return {reading.name: reading.value for reading in samples.readings}["minor_faults"]

    assert faults(touch) >= 20  # at least one for each new mapping, whatever the page size
    assert faults(nothing) < 20


def test_clock() -> None:
    clock = _native.calibrate_clock()
    assert 1 <= clock.resolution_ns < 1_000_000
    assert clock.cost_ns > 0
