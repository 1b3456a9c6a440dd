"""Builders of engine `native`: CPU ceilings, by own loops and chains of instructions."""

import math
from dataclasses import replace
from typing import Any

from nnbt import _native
from nnbt.machine.chains import CLOCK_CHAIN
from nnbt.spec.case import Case
from nnbt.spec.cell import Request
from nnbt.spec.details import ClockPeak, Details
from nnbt.spec.dtypes import dtype
from nnbt.spec.options import Options
from nnbt.spec.threads import THREADS, thread_counts, threads_text
from nnbt.spec.workload import After, Step, Workload, self_checked

CHAIN_DTYPES = tuple(
    dict.fromkeys(row.dtype for row in _native.peak_chains() if row.name != CLOCK_CHAIN)
)
STORES = ("ordinary", "nontemporal")
NO_STORES = "none"
CACHES = 4  # STREAM's rule: each array has at least this many times the bytes of the last cache
SLOPE_PASSES = 8
_LEAST_ARRAY_BYTES = 2**26
_LINE = 64


def default_sizes(case: Case) -> tuple[int, ...]:
    """The n whose array is CACHES times the last cache (64 MiB where that is unknown)."""
    caches: dict[int, int] = _native.cache_bytes()
    array = max(CACHES * max(caches.values(), default=0), _LEAST_ARRAY_BYTES)
    n = math.isqrt(array // dtype(case.dtype).itemsize - 1) + 1
    return (-(-n // _LINE) * _LINE,)


def cache_sizes(case: Case) -> tuple[int, ...]:
    """The n of arrays from half of the first cache to CACHES times the last, in steps of 2."""
    caches: dict[int, int] = _native.cache_bytes()
    (largest,) = default_sizes(case)
    itemsize = dtype(case.dtype).itemsize
    array = min(caches.values(), default=2**15) // 2
    sizes = []
    while array * 2 < largest * largest * itemsize:
        sizes.append(math.isqrt(array // itemsize))
        array *= 2
    return (*sizes, largest)


def fits_in(working_set_bytes: int, threads: int) -> str:
    """The cache that holds the working set; the last one is shared by all threads."""
    caches: dict[int, int] = _native.cache_bytes()
    last = max(caches, default=0)
    for level, size in sorted(caches.items()):
        if working_set_bytes <= size * (1 if level == last else threads):
            return f"L{level}"
    return "memory"


def bandwidth_cases(case: Case, options: Options) -> list[Case]:
    """One case per STREAM kernel (of --op) and kind of stores."""
    rows = [row for row in _native.stream_kernels() if options.op in (None, row.name)]
    return [
        replace(case, params={**case.params, "op": row.name, "stores": stores})
        for row in rows
        for stores in (STORES if row.nontemporal else (NO_STORES,))
    ]


def flops_cases(case: Case, options: Options) -> list[Case]:
    """One case per peak chain of the dtype, including those that this CPU lacks."""
    del options
    return [
        replace(case, params={**case.params, "chain": row.name})
        for row in _native.peak_chains()
        if row.dtype == case.dtype and row.name != CLOCK_CHAIN
    ]


def thread_cases(case: Case) -> list[Case]:
    """The case on 1, 2, 4, ... up to its own number of threads; unchanged if it cannot run here."""
    most, name = int(case.params[THREADS]), case.params.get("chain")
    if any(row.name == name and row.reason for row in _native.peak_chains()):
        return [case]
    counts = thread_counts(most, _native.allowed_cores())
    return [replace(case, params={**case.params, THREADS: count}) for count in counts]


def _repeated(step: Any, k: int) -> Step:
    """`k` runs of a native Step; for one run the Step itself, which is timed without Python."""
    if k == 1:
        once: Step = step
        return once

    def run() -> None:
        for _ in range(k):
            step.run()

    return run


def _workload(step: Any, workers: int, compared: str, **more: Any) -> Workload:
    """The Workload of a native Step; `compared` says how the Step checks itself."""
    return Workload(
        step=lambda k: _repeated(step, k),
        units=1,
        largest_k=SLOPE_PASSES,
        check=lambda: self_checked(compared, step.verify()),
        unit_name="run",
        floor=_native.make_peak(CLOCK_CHAIN, workers, 1),  # wakes the threads, does almost nothing
        **more,
    )


def bandwidth(request: Request) -> Workload:
    """Passes of a STREAM kernel over arrays with the bytes of n x n elements of the case's dtype.

    The elements are float64, as in STREAM.
    """
    params = request.case.params
    workers, stores = int(params[THREADS]), str(params["stores"])
    step = _native.make_stream(
        str(params["op"]), request.sizes["matrix_bytes"], workers, stores == "nontemporal"
    )
    kernel = step.kernel
    elements = step.work_bytes // kernel.counted_bytes
    sizes = {
        **request.sizes,
        "matrix_bytes": step.array_bytes,
        "io_bytes": step.work_bytes,
        "work_bytes": step.work_bytes,
        "traffic_bytes": step.traffic_bytes,
        "element_bytes": kernel.counted_bytes,
        "written_bytes": kernel.writes * step.array_bytes * step.passes,
        "passes": step.passes,
        "threads": step.threads,
    }
    if kernel.bcopy_bytes is not None:
        sizes["bcopy_bytes"] = elements * kernel.bcopy_bytes
    step.run()
    huge = min(1.0, step.huge_page_bytes / step.working_set_bytes)
    return _workload(
        step,
        workers,
        "every element with the closed form",
        unit_work=step.work_bytes,
        sizes=sizes,
        notes=(
            f"{step.isa} loops on float64, {threads_text(step.threads)}, {huge:.0%} huge pages",
        ),
        resident_bytes=step.working_set_bytes,
        array_bytes=step.array_bytes,
        after=lambda: After(details=Details(fits_in=fits_in(step.working_set_bytes, step.threads))),
    )


def flops(request: Request) -> Workload:
    """A chain of one instruction on registers, on all threads at once."""
    params = request.case.params
    workers, name = int(params[THREADS]), str(params["chain"])
    step = _native.make_peak(name, workers)
    chain = step.chain
    per_cycle = chain.operations_per_cycle
    sizes = {**request.sizes, "work_ops": step.work_ops, "threads": step.threads}

    def after() -> After:
        """The clock under this load, and the peak of all cores at that clock."""
        try:
            clock_hz = _native.core_clock_hz(step.threads, name)
        except _native.Unsupported as error:
            return After((str(error),))
        peak = None
        if per_cycle is not None:
            cores = min(step.threads, _native.allowed_cores())
            source = (
                f"{cores} cores x {per_cycle:g} operations per cycle x {clock_hz * 1e-9:.2f} GHz"
            )
            peak = ClockPeak(cores * per_cycle * clock_hz, source)
        return After(details=Details(core_clock_hz=clock_hz, clock_peak=peak))

    return _workload(
        step,
        workers,
        "all sums of all runs with the closed form",
        unit_work=step.work_ops,
        sizes=sizes,
        notes=(f"{chain.isa}, sums in {chain.accumulator}, {threads_text(step.threads)}",),
        after=after,
    )
