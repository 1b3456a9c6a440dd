"""DEVICES: where work can run, and whether it can here, without importing MLX."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nnbt.machine.cuda import nvidia_driver

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


def gpu_remedy() -> str | None:
    """The one command that would bring the GPU, if there is one; None where nothing would."""
    if sys.platform == "darwin" or nvidia_driver().usable:
        return None
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return "unset CUDA_VISIBLE_DEVICES"
    if not _nvidia_hardware():
        return None
    if shutil.which("ubuntu-drivers"):
        return "sudo ubuntu-drivers install"
    if shutil.which("apt-get"):
        return "sudo apt-get install nvidia-driver"
    if shutil.which("dnf"):
        return "sudo dnf install akmod-nvidia"
    return "install NVIDIA's driver 580 or later from nvidia.com/drivers"


def _nvidia_hardware(root: Path = Path("/sys/bus/pci/devices")) -> bool:
    """Whether a display controller (class 03) of vendor 10de is on the PCI bus."""
    for device in root.glob("*"):
        try:
            vendor = (device / "vendor").read_text().strip()
            kind = (device / "class").read_text().strip()
        except OSError:
            continue
        if vendor == "0x10de" and kind.startswith("0x03"):
            return True
    return False


def ane_missing() -> str | None:
    """None on Apple silicon, else the sentence that says so."""
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return None
    return "No Apple Neural Engine: it is in Apple silicon only: type --device cpu."


def _always() -> str | None:
    return None


DEVICES: dict[str, Device] = {
    row.name: row
    for row in (
        Device("cpu", "the processor, through MLX's CPU back end", _always),
        Device("gpu", "Metal on macOS, CUDA on Linux", gpu_missing),
        Device(
            "ane",
            "the Apple Neural Engine (conv through MPSGraph; not run on Apple hardware yet)",
            ane_missing,
        ),
        Device("hybrid", "CPU and GPU at the same time (bandwidth contention)", gpu_missing),
    )
}


def default_device() -> tuple[str, str]:
    """(name, why) of --device auto: the GPU if one is visible, else the CPU."""
    missing = gpu_missing()
    if missing is None:
        return "gpu", "a GPU is visible"
    return "cpu", missing.split(": type")[0]
