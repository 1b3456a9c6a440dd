"""DEVICES: where work can run, and whether it can here, without importing MLX."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nnbt._nvidia import nvidia_driver

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Device:
    """One row of DEVICES; `missing` returns None where it can be used, else a sentence."""

    name: str
    explain: str
    missing: Callable[[], str | None]


def gpu_missing() -> str | None:
    """None if MLX can reach a GPU here, else why not and what would change it."""
    if sys.platform == "darwin":
        if platform.machine() == "arm64":
            return None
        return "No GPU: MLX needs an Apple silicon Mac; type --device cpu."
    state = nvidia_driver()
    if state.usable:
        return None
    return f"No GPU that MLX can use is visible ({state.reason}): type --device cpu."


def _always() -> str | None:
    return None


DEVICES: dict[str, Device] = {
    row.name: row
    for row in (
        Device("cpu", "the processor, through MLX's CPU back end", _always),
        Device("gpu", "Metal on macOS, CUDA on Linux", gpu_missing),
        Device("hybrid", "CPU and GPU at the same time (bandwidth contention)", gpu_missing),
    )
}


def default_device() -> tuple[str, str]:
    """(name, why) of --device auto: the GPU if one is visible, else the CPU."""
    missing = gpu_missing()
    if missing is None:
        return "gpu", "a GPU is visible"
    return "cpu", missing.split(": type")[0]
