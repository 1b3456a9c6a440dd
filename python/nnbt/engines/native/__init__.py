"""Engine `native`: CPU ceilings, by own loops and chains of instructions."""

from nnbt import _native
from nnbt.engines.native import steps
from nnbt.spec.cell import Cell, Engine
from nnbt.spec.formulas import no_sizes

OPS = tuple(row.name for row in _native.stream_kernels())

# fmt: off
ENGINE = Engine(
    "native",
    "nnbt's own CPU loops: STREAM, and chains of one instruction on registers",
    (
        Cell("bandwidth", ("cpu",), steps.bandwidth, ("inexact", "exact"), ops=OPS,
            params=("op", "cpu_workers"), default_sizes=steps.default_sizes,
            cache_sizes=steps.cache_sizes, expand=steps.bandwidth_cases,
            thread_sweep=steps.thread_cases,
            explain="memory bandwidth ceiling: loops that only read and write (STREAM)",
            ceiling=True),
        Cell("flops", ("cpu",), steps.flops, dtypes=steps.CHAIN_DTYPES, params=("cpu_workers",),
            sizes=no_sizes, sized=False, expand=steps.flops_cases, thread_sweep=steps.thread_cases,
            explain="compute ceiling: one instruction on registers only", ceiling=True),
    ),
)
# fmt: on
