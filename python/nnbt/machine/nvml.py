"""NVIDIA GPUs through NVML (libnvidia-ml.so.1, opened at run time): facts, not CUDA contexts."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

_SM_CLOCK, _MEMORY_CLOCK = 1, 2

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
    """One NVIDIA GPU; `index` is NVML's, which knows nothing of CUDA_VISIBLE_DEVICES."""

    index: int
    name: str
    driver_version: str | None
    uuid: str | None
    total_memory_bytes: int | None


@dataclass(frozen=True)
class GpuState:
    """What a GPU does right now; None is what it does not tell."""

    free_memory_bytes: int | None
    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    power_w: float | None
    temperature_c: int | None
    throttle_reasons: tuple[str, ...] | None


class _Memory(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("total", "free", "used"))


@cache
def _library() -> ctypes.CDLL | None:
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        return nvml if nvml.nvmlInit_v2() == 0 else None
    except (OSError, AttributeError):
        return None


def _ask(function: str, *arguments: object) -> bool:
    """Calls a function of NVML; False if it is missing or does not succeed."""
    call = getattr(_library(), function, None)
    return call is not None and call(*arguments) == 0


def _text(function: str, *arguments: object) -> str | None:
    buffer = ctypes.create_string_buffer(96)
    size = ctypes.c_uint(len(buffer))
    return buffer.value.decode() if _ask(function, *arguments, buffer, size) else None


def _number(function: str, device: ctypes.c_void_p, *arguments: object) -> int | None:
    value = ctypes.c_ulonglong(0)  # wide enough for each: the others fill its low half
    return value.value if _ask(function, device, *arguments, ctypes.byref(value)) else None


def _memory(device: ctypes.c_void_p) -> _Memory | None:
    memory = _Memory()
    return memory if _ask("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory)) else None


def _device(index: int) -> ctypes.c_void_p | None:
    device = ctypes.c_void_p()
    asked = _ask("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device))
    return device if asked else None


def gpus() -> list[Gpu]:
    """The NVIDIA GPUs of this machine; empty without a driver."""
    count = ctypes.c_uint(0)
    if not _ask("nvmlDeviceGetCount_v2", ctypes.byref(count)):
        return []
    driver = _text("nvmlSystemGetDriverVersion")
    found = []
    for index in range(count.value):
        device = _device(index)
        name = _text("nvmlDeviceGetName", device) if device else None
        if device and name:
            memory = _memory(device)
            uuid = _text("nvmlDeviceGetUUID", device)
            found.append(Gpu(index, name, driver, uuid, memory.total if memory else None))
    return found


def gpu_state(index: int) -> GpuState | None:
    """Clocks, power, temperature and throttling of a GPU at this moment; None without it."""
    device = _device(index)
    if device is None:
        return None
    memory = _memory(device)
    power_mw = _number("nvmlDeviceGetPowerUsage", device)
    bits = _number("nvmlDeviceGetCurrentClocksThrottleReasons", device)
    return GpuState(
        free_memory_bytes=memory.free if memory else None,
        sm_clock_mhz=_number("nvmlDeviceGetClockInfo", device, _SM_CLOCK),
        memory_clock_mhz=_number("nvmlDeviceGetClockInfo", device, _MEMORY_CLOCK),
        power_w=None if power_mw is None else power_mw / 1000,
        temperature_c=_number("nvmlDeviceGetTemperature", device, 0),
        throttle_reasons=None
        if bits is None
        else tuple(text for bit, text in THROTTLE_REASONS.items() if bits & bit),
    )
