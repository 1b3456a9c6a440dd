"""NVIDIA GPUs through NVML: facts and state, without a CUDA context. Unknown is None, never 0."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from types import ModuleType
from typing import Any, NamedTuple

# Bits of nvmlDeviceGetCurrentClocksThrottleReasons (NVML API reference, "Clocks event reasons").
THROTTLE_REASONS = {
    0x1: "idle",
    0x2: "application clock setting",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock setting",
}


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU; `index` is NVML's, which ignores CUDA_VISIBLE_DEVICES."""

    index: int
    name: str
    driver_version: str | None
    uuid: str | None
    total_memory_bytes: int | None


@dataclass(frozen=True)
class GpuState:
    """Clocks, power, temperature and throttling of a GPU at one moment."""

    free_memory_bytes: int | None
    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    power_w: float | None
    temperature_c: int | None
    throttle_reasons: tuple[str, ...] | None


class _Call(NamedTuple):
    """A function of pynvml, its arguments after the device, and what to make of its answer."""

    function: str
    arguments: tuple[int, ...] = ()
    value: Callable[[Any], object] = lambda answer: answer


def _reasons(bits: int) -> tuple[str, ...]:
    return tuple(text for bit, text in THROTTLE_REASONS.items() if bits & bit)


_SM, _MEMORY = 1, 2  # nvmlClockType_t
_GPU = {
    "name": _Call("nvmlDeviceGetName"),
    "uuid": _Call("nvmlDeviceGetUUID"),
    "total_memory_bytes": _Call("nvmlDeviceGetMemoryInfo", value=attrgetter("total")),
}
_STATE = {
    "free_memory_bytes": _Call("nvmlDeviceGetMemoryInfo", value=attrgetter("free")),
    "sm_clock_mhz": _Call("nvmlDeviceGetClockInfo", (_SM,)),
    "memory_clock_mhz": _Call("nvmlDeviceGetClockInfo", (_MEMORY,)),
    "power_w": _Call("nvmlDeviceGetPowerUsage", value=lambda milliwatts: milliwatts / 1000),
    "temperature_c": _Call("nvmlDeviceGetTemperature", (0,)),
    "throttle_reasons": _Call("nvmlDeviceGetCurrentClocksThrottleReasons", value=_reasons),
}
"""Fields of GpuState: one line for each."""


@cache
def _library() -> ModuleType | None:
    import pynvml  # takes 20 ms

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    module: ModuleType = pynvml
    return module


def _ask(call: _Call, *device: object) -> Any:
    """The value of a call; None if the function is missing or fails."""
    nvml = _library()
    if nvml is None:
        return None
    try:
        return call.value(getattr(nvml, call.function)(*device, *call.arguments))
    except (nvml.NVMLError, UnicodeDecodeError):
        return None


def _device(index: int) -> Any:
    return _ask(_Call("nvmlDeviceGetHandleByIndex", (index,)))


def gpus() -> list[Gpu]:
    """The NVIDIA GPUs of this machine; empty without a driver."""
    driver = _ask(_Call("nvmlSystemGetDriverVersion"))
    found = []
    for index in range(_ask(_Call("nvmlDeviceGetCount")) or 0):
        device = _device(index)
        facts = {field: _ask(call, device) for field, call in _GPU.items() if device}
        if facts.get("name"):
            found.append(Gpu(index, driver_version=driver, **facts))
    return found


def gpu_state(index: int) -> GpuState | None:
    """The state of the GPU with this NVML index now; None without it."""
    device = _device(index)
    if device is None:
        return None
    return GpuState(**{field: _ask(call, device) for field, call in _STATE.items()})
