"""Launches of GPU kernels that each keep one unit of the chip busy.

They run through mx.fast.cuda_kernel and mx.fast.metal_kernel: compiled on this machine, timed like
any MLX operation. `mx` is mlx.core.
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from nnbt.engines.kernel.sources.chip_clock import ChipClock, chip_clock
from nnbt.engines.kernel.sources.compute import COMPUTE
from nnbt.engines.kernel.sources.rows import Kernel, Launch, MlxArray, Work
from nnbt.engines.kernel.sources.streams import STREAMS
from nnbt.machine.cuda import multiprocessors
from nnbt.spec.errors import Refusal

__all__ = [
    "KERNELS", "OPS_PER_CLOCK", "Built", "build", "compute_capability", "multiprocessors",
    "ops_per_clock", "refusal",
]  # fmt: skip

KERNELS: dict[str, Kernel] = {row.key: row for row in (*STREAMS, *COMPUTE)}


class Built(NamedTuple):
    """A kernel with its inputs.

    `step(k)` returns a callable that makes k launches, each with its own inputs and output, and
    waits for them; `work` is that of one launch; `check()` returns what is wrong with the last
    output of the latest run (or of one launch, if none came before), or None. `chip_clock()` is the
    clock that the chip counted during the latest run; None where the kernel does not stamp it,
    nothing ran, or the stamps do not tell.
    """

    step: Callable[[int], Callable[[], None]]
    work: Work
    check: Callable[[], str | None]
    chip_clock: Callable[[], ChipClock | None]

    def clock_hz(self) -> float | None:
        """The clock in Hz: NVML's was 9 % higher under tensor load (H200)."""
        clock = self.chip_clock()
        return clock.hz if clock is not None else None


def compute_capability(mx: ModuleType) -> tuple[int, int] | None:
    """NVIDIA compute capability of MLX's GPU; None on any other GPU."""
    if not mx.cuda.is_available():
        return None
    facts = mx.device_info(mx.gpu)
    return (int(facts["compute_capability_major"]), int(facts["compute_capability_minor"]))


# Dense operations per multiprocessor and cycle; a multiply-add is two. From the boost clocks and
# rates in NVIDIA's data sheets of A100, H100 and B200: 989.4 TFLOP/s = 132 x 4096 x 1.83 GHz. 8.6,
# 8.9 and 12.0 are missing: GeForce and professional cards of one compute capability differ by two.
OPS_PER_CLOCK: dict[tuple[int, int], dict[str, int]] = {
    (8, 0): {"float32": 128, "tfloat32": 1024, "float16": 2048, "bfloat16": 2048, "int8": 4096},
    (9, 0): {"float32": 256, "tfloat32": 2048, "float16": 4096, "bfloat16": 4096, "int8": 8192,
             "float8_e4m3": 8192},
    (10, 0): {"float32": 256, "tfloat32": 4096, "float16": 8192, "bfloat16": 8192, "int8": 16384,
              "float8_e4m3": 16384},
}  # fmt: skip


def ops_per_clock(dtype: str, capability: tuple[int, int]) -> int | None:
    """Operations of the whole GPU per clock cycle; None where they are not known."""
    per_clock = OPS_PER_CLOCK.get(capability, {}).get(dtype)
    return per_clock * multiprocessors() if per_clock else None


def refusal(row: Kernel, mx: ModuleType) -> Refusal | None:
    """Why this row cannot run on MLX's GPU; None if it can."""
    kernel = f"Kernel {row.name} ({row.dtype})"
    if row.language == "metal":
        there = mx.metal.is_available()
        return None if there else Refusal(f"{kernel} is written in Metal", "use an Apple GPU")
    capability = compute_capability(mx)
    if capability is None:
        return Refusal(f"{kernel} is written in CUDA", "use an NVIDIA GPU")
    here = f"this GPU has {_dotted(capability)}"
    if row.minimum is not None and capability < row.minimum:
        return Refusal(f"{kernel} needs compute capability {_dotted(row.minimum)}, {here}")
    if row.maximum is not None and capability > row.maximum:
        last = f"compute capability {_dotted(row.maximum)} is the last with its instruction"
        return Refusal(f"{kernel}: {last}, {here}", "use mma_sync")
    if capability in row.missing:
        return Refusal(f"{kernel} has no instruction of this dtype, {here}", "use mma_sync")
    if capability[0] in row.emulated:
        return Refusal(f"{kernel} would be emulated with other instructions, {here}")
    return None


def _dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


def build(row: Kernel, mx: ModuleType, **params: object) -> Built:
    """Makes the inputs; the first run compiles the kernel.

    Parameters are those of `row.defaults`, `launches` (most that a step may make, default 8),
    `seed`, `blocks` (0: fill the chip once) and `compiled` (default True: the launches of a step
    are one mx.compile call, since building the graph anew takes the host some 20 us per launch,
    which is visible in short kernels). Raises Unsupported where the GPU lacks the unit, ValueError
    for invalid parameters.
    """
    if refused := refusal(row, mx):
        raise refused
    known: dict[str, Any] = {
        "launches": 8,
        "seed": 1,
        "blocks": 0,
        "compiled": True,
        **row.defaults,
    }
    if unknown := set(params) - set(known):
        raise ValueError(f"{row.name} has no parameter {', '.join(sorted(unknown))}")
    values = {**known, **params}
    if per_multiprocessor := values.get("blocks_per_multiprocessor"):
        values["blocks"] = values["blocks"] or per_multiprocessor * multiprocessors()
    prepared = row.prepare(row, mx, values)
    mx.eval(prepared.inputs)
    call, width = _caller(row, mx, prepared.launch), len(row.inputs)

    outputs_of_one = len(row.outputs(prepared.launch))
    latest: list[tuple[MlxArray, int]] = []
    stamps: list[MlxArray] = []

    def launch_all(*arrays: MlxArray) -> list[MlxArray]:
        return [out for i in range(0, len(arrays), width) for out in call(arrays[i : i + width])]

    def step(count: int) -> Callable[[], None]:
        if not 1 <= count <= len(prepared.inputs):
            raise ValueError(f"{row.name} has inputs for 1 to {len(prepared.inputs)} launches")
        function = mx.compile(launch_all) if values["compiled"] else launch_all
        flat = [array for operands in prepared.inputs[:count] for array in operands]

        def run() -> None:
            outputs = function(*flat)
            mx.eval(outputs)
            latest[:] = [(outputs[-outputs_of_one], count - 1)]
            stamps[:] = outputs[1::outputs_of_one] if row.clocks else ()

        return run

    def check() -> str | None:
        if not latest:
            step(1)()
        return prepared.wrong(*latest[0])

    def clock() -> ChipClock | None:
        return chip_clock([np.array(launch) for launch in stamps])

    return Built(step, prepared.work, check, clock)


def _caller(
    row: Kernel, mx: ModuleType, launch: Launch
) -> Callable[[Sequence[MlxArray]], list[MlxArray]]:
    outputs = row.outputs(launch)
    options: dict[str, Any] = {
        "name": f"nnbt_{row.name}_{row.dtype}",
        "input_names": list(row.inputs),
        "output_names": [output.name for output in outputs],
        "source": row.body,
        "header": row.source,
    }
    if row.language == "metal":
        kernel = mx.fast.metal_kernel(**options)
    else:
        kernel = mx.fast.cuda_kernel(**options, shared_memory=launch.shared_memory)

    def call(inputs: Sequence[MlxArray]) -> list[MlxArray]:
        arrays: list[MlxArray] = kernel(
            inputs=list(inputs),
            template=launch.template,
            grid=(launch.blocks * launch.threads, 1, 1),
            threadgroup=(launch.threads, 1, 1),
            output_shapes=[output.shape for output in outputs],
            output_dtypes=[getattr(mx, output.dtype) for output in outputs],
            stream=mx.gpu,
        )
        return arrays

    return call
