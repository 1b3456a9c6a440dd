"""DEVICES: where work can run, and whether it can here, without importing MLX."""

import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nnbt.machine.cuda import nvidia_driver
from nnbt.spec.errors import Refusal

_USE_CPU = "use --device cpu"


@dataclass(frozen=True)
class Device:
    """One row of DEVICES.

    `missing` returns None where it can be used, else the Refusal to raise; `remedy` the command
    that makes it available, or None; `needs` is the other device that it depends on.
    """

    name: str
    explain: str
    missing: Callable[[], Refusal | None]
    remedy: Callable[[], str | None] = lambda: None
    needs: str | None = None


def gpu_missing() -> Refusal | None:
    """None if MLX can use a GPU here."""
    if sys.platform == "darwin":
        return None if platform.machine() == "arm64" else Refusal("MLX has no GPU here", _USE_CPU)
    state = nvidia_driver()
    if state.usable:
        return None
    if not state.found and _nvidia_hardware() is False:
        return Refusal("No NVIDIA GPU in this machine", _USE_CPU)
    return Refusal(f"No GPU is visible ({state.reason})", _USE_CPU)


def gpu_remedy() -> str | None:
    """The command that makes a GPU available; None where there is no such command."""
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


def _nvidia_hardware(root: Path = Path("/sys/bus/pci/devices")) -> bool | None:
    """Whether a display controller (class 03) of vendor 10de is on the PCI bus; None: unknown."""
    found = None
    for device in root.glob("*"):
        try:
            vendor = (device / "vendor").read_text(encoding="ascii").strip()
            kind = (device / "class").read_text(encoding="ascii").strip()
        except OSError:
            continue
        found = found or (vendor == "0x10de" and kind.startswith("0x03"))
    return found


def ane_missing() -> Refusal | None:
    """None on Apple silicon."""
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return None
    return Refusal("Only Apple silicon has a Neural Engine", _USE_CPU)


# fmt: off
DEVICES: dict[str, Device] = {
    row.name: row
    for row in (
        Device("cpu", "CPUs of this machine", lambda: None),
        Device("gpu", "Metal on macOS, CUDA on Linux", gpu_missing, gpu_remedy),
        Device("ane", "Apple Neural Engine (conv through MPSGraph; not yet run on Apple hardware)",
            ane_missing),
        Device("hybrid", "CPU and GPU at the same time (bandwidth contention)", gpu_missing,
            gpu_remedy, needs="gpu"),
    )
}
# fmt: on


def default_device() -> tuple[str, str]:
    """(name, why) of --device auto: the GPU if one is visible, else the CPU."""
    missing = gpu_missing()
    return ("gpu", "a GPU is visible") if missing is None else ("cpu", missing.problem)
