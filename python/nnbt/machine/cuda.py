"""NVIDIA's driver and run-time libraries, through ctypes alone: nothing here imports MLX."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nnbt._native import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MINIMUM_CUDA = (13, 0)
"""The CUDA version that a driver must support for mlx-cuda-13."""

# What libmlx.so of mlx-cuda-13 needs, directly or not, each after the libraries that it needs
# itself, with the distribution that brings it. The ones that these open later (parts of cuDNN,
# NVRTC's built-ins) lie in the same folder, where they are looked for.
LIBRARIES = {
    "libcublasLt.so.13": "nvidia-cublas",
    "libcublas.so.13": "nvidia-cublas",
    "libnvJitLink.so.13": "nvidia-nvjitlink",
    "libcusparse.so.12": "nvidia-cusparse",
    "libcusolver.so.12": "nvidia-cusolver",
    "libcufft.so.12": "nvidia-cufft",
    "libnvrtc.so.13": "nvidia-cuda-nvrtc",
    "libnccl.so.2": "nvidia-nccl-cu13",
    "libcudnn.so.9": "nvidia-cudnn-cu13",
}

# CUresult values that a user can do something about.
_INIT_ERRORS = {
    3: "CUDA is not initialised",
    34: "the driver is a stub for building only: run where the real libcuda.so.1 is",
    100: "no CUDA device is visible",
    101: "the device number is not valid",
    802: "the system is not ready: start nvidia-fabricmanager",
    803: "the driver and its kernel module do not match: reboot, or reinstall the driver",
    804: "this device can't use the forward-compatible libcuda: remove cuda-compat",
    999: "the driver failed (unknown error): is the nvidia kernel module loaded?",
}


@dataclass(frozen=True)
class DriverState:
    """What the NVIDIA driver offers to this process; `reason` says why there is no device."""

    devices: int
    reason: str | None = None

    @property
    def usable(self) -> bool:
        """Whether MLX's CUDA library can be loaded here."""
        return self.devices > 0


def nvidia_driver() -> DriverState:
    """Asks libcuda.so.1 for its devices; CUDA_VISIBLE_DEVICES counts. Does not import MLX."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return DriverState(0, "there is no NVIDIA driver (libcuda.so.1 was not found)")
    version = ctypes.c_int(0)
    if cuda.cuDriverGetVersion(ctypes.byref(version)) == 0:
        supported = (version.value // 1000, version.value % 1000 // 10)
        if supported < MINIMUM_CUDA:
            return DriverState(
                0,
                f"the NVIDIA driver supports CUDA {_dotted(supported)}, and MLX needs "
                f"{_dotted(MINIMUM_CUDA)}: update the driver to 580 or later",
            )
    count = ctypes.c_int(0)
    error = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    if error or count.value == 0:
        return DriverState(0, _no_device(error or 100))
    return DriverState(count.value)


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _no_device(error: int) -> str:
    text = _INIT_ERRORS.get(error, "see the CUresult values of the CUDA driver API")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and error in {100, 101}:
        text += f", since CUDA_VISIBLE_DEVICES is {visible!r}"
    return f"the NVIDIA driver answered with CUDA error {error}: {text}"


def _wheel_folders(beside: Path | None, name: str) -> Iterator[Path]:
    """Folders nvidia/*/<name>: those beside MLX first, then those on sys.path."""
    roots = [beside] if beside else []
    roots += [Path(entry or ".") for entry in sys.path]
    seen: set[Path] = set()
    for root in roots:
        for folder in sorted(root.glob(f"nvidia/*/{name}")):
            if folder not in seen:
                seen.add(folder)
                yield folder


def find_library(soname: str, beside: Path | None = None) -> Path | None:
    """The file of an NVIDIA wheel in this environment, such as libcublasLt.so.13."""
    folders = _wheel_folders(beside, "lib")
    return next((path for folder in folders if (path := folder / soname).is_file()), None)


def preload(site: Path, load: Callable[[str, int], object] = ctypes.CDLL) -> None:
    """Loads what MLX's CUDA library needs, from wherever this environment has it.

    The library finds the NVIDIA wheels only in its own site-packages folder `site` (by an RPATH),
    and the loader takes a library by its name once it is in the process.
    """
    for soname, distribution in LIBRARIES.items():
        try:
            load(soname, os.RTLD_NOLOAD | os.RTLD_GLOBAL)
        except OSError:
            pass
        else:
            continue  # PyTorch, say, came first: a second copy would only cost memory
        path = find_library(soname, site)
        try:
            load(str(path) if path else soname, os.RTLD_GLOBAL | os.RTLD_NOW)
        except OSError as error:
            raise Unsupported(
                f"{soname}, which MLX needs on an NVIDIA GPU, can't be loaded ({error}): "
                f"pip install --force-reinstall --no-deps {distribution}"
            ) from error


def point_to_headers(site: Path) -> None:
    """Lets MLX compile kernels without a CUDA toolkit: sets CUDA_HOME where nothing else does.

    MLX looks into nvidia/cu13/include beside itself, then into CUDA_HOME, CUDA_PATH and
    /usr/local/cuda.
    """
    if "CUDA_HOME" in os.environ or "CUDA_PATH" in os.environ:
        return
    for folder in _wheel_folders(site, "include"):
        if (folder / "cuda_runtime.h").is_file():
            if folder != site / "nvidia" / "cu13" / "include":
                os.environ["CUDA_HOME"] = str(folder.parent)
            return
