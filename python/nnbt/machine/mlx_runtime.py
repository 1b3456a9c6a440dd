"""What engines that use MLX share: loading it for a run, streams, an empty evaluation."""

import os
import sys
from collections.abc import Sequence
from typing import Any

from nnbt.machine import mlx
from nnbt.machine.facts import machine
from nnbt.spec.case import Case
from nnbt.spec.cell import Load, Runtime
from nnbt.spec.errors import Refusal
from nnbt.spec.precision import PrecisionName, mlx_precision
from nnbt.spec.workload import Step

_LEAST_CACHE_BYTES = 2**31
_UNKNOWN_ROOM = 2**33


def load_mlx(load: Load) -> Runtime:
    """MLX with its facts. Raises Unsupported if it cannot be loaded, or not with this TF32 mode."""
    set_tf32(load.options.tf32)
    mx = mlx.core()
    free = _free_bytes(mx, load.device)
    # MLX's CPU allocator caches 32 MiB by default and frees the rest: larger outputs then fault in
    # every page of every run (4.5 instead of 18 GB/s).
    room = max(free.values(), default=_UNKNOWN_ROOM) // 2
    mx.set_cache_limit(min(room, max(_LEAST_CACHE_BYTES, 20 * load.resident_bytes)))

    def scope(case: Case) -> Any:
        return mx.stream(default_stream(mx, case.device))

    return Runtime(_facts(mx, load.device), free, scope, release=mx.clear_cache)


def default_stream(mx: Any, device: str) -> Any:
    """The default stream of a device; of the GPU for `hybrid`."""
    return mx.default_stream(mx.cpu if device == "cpu" else mx.gpu)


def empty_evaluation(mx: Any, streams: Sequence[Any]) -> Step:
    """A Step that adds one element on each stream; its time is the launch overhead."""
    tiny = mx.zeros((1,))
    mx.eval(tiny)

    def step() -> None:
        mx.eval([mx.add(tiny, tiny, stream=stream) for stream in streams])

    return step


def _free_bytes(mx: Any, device: str) -> dict[str, int]:
    free = {}
    host = machine().available_memory_bytes
    if host is not None:
        free["cpu"] = host
    if device != "cpu":
        info = mx.device_info(mx.gpu)
        room = info.get("free_memory") or info.get("max_recommended_working_set_size")
        if room:
            free["gpu"] = int(room)
    return free


def _facts(mx: Any, device: str) -> dict[str, Any]:
    """Facts about the device, MLX and its backend."""
    info = mx.device_info(mx.cpu if device == "cpu" else mx.gpu)
    facts: dict[str, Any] = {
        "device_name": str(info.get("device_name", "")),
        "device_uuid": info.get("uuid"),
    }
    if device != "cpu":
        facts["device_info"] = {
            key: value for key, value in info.items() if key not in ("uuid", "free_memory")
        }
    return {**facts, "mlx": mx.__version__, "backend": mlx.backend()}


def product_precision(mx: Any, dtype: str, device: str, *, tf32: bool) -> PrecisionName:
    """How MLX multiplies this dtype on this device, before anything was measured."""
    facts = {} if device == "cpu" else {"system": machine().system, **_facts(mx, device)}
    return mlx_precision(dtype, device, facts, tf32=tf32)


def set_tf32(mode: str) -> None:
    """Sets MLX's TF32 switch, which MLX reads once per process, at the first product."""
    if mode == "default":
        return
    value = {"on": "1", "off": "0"}[mode]
    if "mlx.core" in sys.modules and os.environ.get("MLX_ENABLE_TF32", "1") != value:
        raise Refusal(
            "MLX is already loaded and reads its TF32 switch only once",
            f"set MLX_ENABLE_TF32={value} before Python starts, or measure in a new process",
        )
    os.environ["MLX_ENABLE_TF32"] = value
