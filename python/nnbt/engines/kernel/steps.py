"""Builders of engine `kernel`: GPU ceilings, by kernels that keep one unit of the chip busy."""

import math
import sys
from dataclasses import replace

from nnbt.engines.kernel import launcher as gpu_kernels
from nnbt.engines.kernel.launcher import Built
from nnbt.engines.kernel.sources.chip_clock import ChipClock
from nnbt.engines.kernel.sources.instructions import UNTRIED, has_tcgen05, successor_note
from nnbt.engines.kernel.sources.rows import Kernel
from nnbt.machine import mlx
from nnbt.machine.mlx_runtime import default_stream, empty_evaluation
from nnbt.spec.case import Case
from nnbt.spec.cell import Request
from nnbt.spec.details import ClockPeak, Details
from nnbt.spec.dtypes import dtype
from nnbt.spec.errors import Refusal
from nnbt.spec.metric import METRICS
from nnbt.spec.options import Options
from nnbt.spec.workload import After, Answer, Workload, self_checked

LAUNCHES = 8  # launches in the longest evaluation of a slope, each with its own inputs and outputs
MOST_LAUNCHES = 64
UNITS = 4  # launches in one timed run, so that launch overhead is a small part of it
RUN_BYTES = 2**29
"""Least bytes that the launches of a run move together: more than fits in the caches of a GPU."""
LEAST_SHARE, MOST_SHARE = 0.05, 1.1
"""Limits of rate over peak at the chip's own clock: outside of them, the clock is wrong."""


def _language() -> str:
    return "metal" if sys.platform == "darwin" else "cuda"


def kernels(metric: str, token: str | None = None) -> list[Kernel]:
    """The rows of a metric, and of a dtype if one is given, in this system's language."""
    return [
        row
        for row in gpu_kernels.KERNELS.values()
        if row.metric == metric and row.language == _language() and token in (None, row.dtype)
    ]


def default_sizes(case: Case) -> tuple[int, ...]:
    """The n whose array has the size that the kernels were tuned with."""
    array = max(int(row.defaults["array_bytes"]) for row in kernels("bandwidth"))
    return (math.isqrt(array // dtype(case.dtype).itemsize),)


def cases(case: Case, options: Options) -> list[Case]:
    """One case per kernel of the metric: those of --op, or of the dtype; the chip may lack some."""
    if case.metric == "bandwidth":
        rows = [row for row in kernels("bandwidth") if options.op in (None, row.name)]
        return [replace(case, params={**case.params, "op": row.name}) for row in rows]
    rows = kernels("flops", case.dtype)
    return [replace(case, params={**case.params, "chain": row.name}) for row in rows]


def _chip_clock(
    clock: ChipClock | None, built: Built, row: Kernel, capability: tuple[int, int]
) -> tuple[str, Details]:
    """The clock that the blocks counted, as a note and with the peak at that clock."""
    ops_per_clock = gpu_kernels.ops_per_clock(row.dtype, capability)
    known = Details(ops_per_clock=ops_per_clock)
    if clock is None:
        return "the chip's own clock could not be read, so NVML's is used", known
    mhz = clock.hz * 1e-6
    note = f"chip clock {mhz:,.0f} MHz by its own counter"
    if ops_per_clock is None:
        return note, Details(chip_clock_hz=clock.hz)
    peak, units = ops_per_clock * clock.hz, gpu_kernels.multiprocessors()
    source = (
        f"{units} SM x {ops_per_clock // units:,} operations per clock x {mhz:,.0f} MHz, counted "
        "on the chip"
    )
    share = clock.launches * built.work.ops / clock.span_s / peak
    if not LEAST_SHARE < share < MOST_SHARE:
        return f"the chip's own counter is wrong ({note}), so NVML's clock is used", known
    details = replace(known, chip_clock_hz=clock.hz, clock_peak=ClockPeak(peak, source))
    return f"{note}; the last run reached {share:.1%} of the peak at that clock", details


def _workload(request: Request, row: Kernel, launches: int, **params: object) -> Workload:
    mx = mlx.core()
    try:
        built = gpu_kernels.build(row, mx, launches=launches, **params)
    except ValueError as error:  # parameters come from n alone
        raise Refusal(str(error), "use larger --sizes") from error
    units = min(launches, max(UNITS, launches // 2))
    work = int(built.work.bytes if row.metric == "bandwidth" else built.work.ops)
    sizes = {**request.sizes, METRICS[row.metric].work: units * work, "launches": units}
    if row.metric == "bandwidth":
        sizes["io_bytes"] = units * work
    notes = [f"kernel {row.name} ({row.dtype}, {row.language}), {units} launches per run"]
    not_a_ceiling = ""
    capability = gpu_kernels.compute_capability(mx)
    if row.name == "mma_sync" and capability is not None:
        note = successor_note(capability, row.dtype)
        notes += filter(None, [note])
        not_a_ceiling = note if has_tcgen05(capability, row.dtype) else ""
    if row.name == "tcgen05":
        notes.append(UNTRIED)
    timed: list[ChipClock | None] = []

    def check() -> Answer:
        # Now, after the timed runs: the short runs of the slope leave power for a higher clock.
        timed.append(built.chip_clock())
        return self_checked("the output of the last launch", built.check())

    def after() -> After:
        if not row.clocks or capability is None:
            return After(details=Details(not_a_ceiling=not_a_ceiling))
        clock = timed[0] if timed else built.chip_clock()
        note, found = _chip_clock(clock, built, row, capability)
        return After((note,), replace(found, not_a_ceiling=not_a_ceiling))

    return Workload(
        step=built.step,
        units=units,
        unit_work=work,
        largest_k=launches,
        check=check,
        unit_name="launch",
        floor=empty_evaluation(mx, [default_stream(mx, request.case.device)]),
        sizes=sizes,
        notes=tuple(notes),
        after=after,
    )


def bandwidth(request: Request) -> Workload:
    """Arrays with the bytes of n x n elements of the case's dtype, moved as 16-byte words."""
    rows = {row.name: row for row in kernels("bandwidth")}
    row = rows[str(request.case.params["op"])]
    wanted = min(MOST_LAUNCHES, max(LAUNCHES, 2 * RUN_BYTES // request.sizes["work_bytes"]))
    launches = wanted if wanted > LAUNCHES else min(LAUNCHES, request.rotation)
    return _workload(request, row, launches, array_bytes=request.sizes["matrix_bytes"])


def flops(request: Request) -> Workload:
    """Instructions on registers or shared memory, with random operands and exact sums."""
    rows = {row.name: row for row in kernels("flops", request.case.dtype)}
    return _workload(request, rows[str(request.case.params["chain"])], LAUNCHES)
