"""NVIDIA's driver, its devices and the libraries of the NVIDIA wheels, without MLX."""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import UUID

from nnbt._native import Unsupported

MINIMUM_CUDA = (13, 0)  # the CUDA version that a driver must support for mlx-cuda-13

# What libmlx.so of mlx-cuda-13 needs, directly or not, each after its own dependencies, with the
# distribution that has it. Libraries that these open later (parts of cuDNN, NVRTC's built-ins) are
# found beside them.
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
    3: "CUDA is not initialized",
    34: "libcuda.so.1 is the stub for linking; put the real one first on the library path",
    100: "no CUDA device is visible",
    101: "invalid device number",
    802: "the system is not ready; start nvidia-fabricmanager",
    803: "the driver and its kernel module have different versions; reboot or reinstall the driver",
    804: "this device does not support the forward-compatible libcuda; remove cuda-compat",
    999: "unknown error of the driver; check that the nvidia kernel module is loaded",
}

# CUdevice_attribute in cuda.h
_MULTIPROCESSOR_COUNT = 16
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76


@dataclass(frozen=True)
class DriverState:
    """Number of CUDA devices that this process can use; `reason` says why there are none."""

    devices: int
    reason: str | None = None
    found: bool = True  # whether there is a driver at all

    @property
    def usable(self) -> bool:
        """Whether MLX's CUDA library can be loaded here."""
        return self.devices > 0


def nvidia_driver() -> DriverState:
    """The state of libcuda.so.1, which reads CUDA_VISIBLE_DEVICES."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return DriverState(0, "no NVIDIA driver: libcuda.so.1 was not found", found=False)
    version = ctypes.c_int(0)
    if cuda.cuDriverGetVersion(ctypes.byref(version)) == 0:
        supported = (version.value // 1000, version.value % 1000 // 10)
        if supported < MINIMUM_CUDA:
            return DriverState(
                0,
                f"the NVIDIA driver supports CUDA {_dotted(supported)}, MLX needs "
                f"{_dotted(MINIMUM_CUDA)}; update the driver to 580 or later",
            )
    count = ctypes.c_int(0)
    error = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    if error or count.value == 0:
        return DriverState(0, _no_device(error or 100))
    return DriverState(count.value)


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _no_device(error: int) -> str:
    text = _INIT_ERRORS.get(error, "see CUresult in the documentation of the CUDA driver API")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and error in {100, 101}:
        text += f", with CUDA_VISIBLE_DEVICES={visible!r}"
    return f"CUDA error {error} from the NVIDIA driver: {text}"


@dataclass(frozen=True)
class CudaDevice:
    """A CUDA device that this process can use; `index` counts within CUDA_VISIBLE_DEVICES."""

    index: int
    name: str
    uuid: str  # as NVML and MLX spell it: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
    total_memory_bytes: int  # what CUDA can use of it; NVML's figure includes what the driver keeps
    compute_capability: tuple[int, int]
    multiprocessors: int


@cache
def cuda_devices() -> tuple[CudaDevice, ...]:
    """The CUDA devices in the driver's order; empty without a usable driver.

    Raises Unsupported where the driver does not describe a device.
    """
    return tuple(_describe(index) for index in range(nvidia_driver().devices))


def _describe(index: int) -> CudaDevice:
    device, number, memory = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    name, uuid = ctypes.create_string_buffer(256), ctypes.create_string_buffer(16)
    _call("cuDeviceGet", ctypes.byref(device), index)
    _call("cuDeviceGetName", name, len(name), device)
    _call("cuDeviceGetUuid_v2", uuid, device)
    _call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
    attributes = {}
    for which in (_MULTIPROCESSOR_COUNT, _CAPABILITY_MAJOR, _CAPABILITY_MINOR):
        _call("cuDeviceGetAttribute", ctypes.byref(number), which, device)
        attributes[which] = number.value
    return CudaDevice(
        index=index,
        name=name.value.decode(errors="replace"),
        uuid=f"GPU-{UUID(bytes=uuid.raw)}",
        total_memory_bytes=memory.value,
        compute_capability=(attributes[_CAPABILITY_MAJOR], attributes[_CAPABILITY_MINOR]),
        multiprocessors=attributes[_MULTIPROCESSOR_COUNT],
    )


def _call(function: str, *arguments: object) -> None:
    if error := getattr(ctypes.CDLL("libcuda.so.1"), function)(*arguments):
        raise Unsupported(f"{function} of the CUDA driver returned error {error}.")


def multiprocessors(device: int = 0) -> int:
    """Streaming multiprocessors of a CUDA device. Raises Unsupported where there is none."""
    devices = cuda_devices()
    if device >= len(devices):
        raise Unsupported(f"No CUDA device {device}: {len(devices)} are visible.")
    return devices[device].multiprocessors


def _wheel_folders(beside: Path | None, name: str) -> Iterator[Path]:
    """Folders nvidia/*/<name>: those beside MLX first, then those on sys.path.

    cuda-pathfinder is no substitute: it searches site.getsitepackages() alone, so that neither
    PYTHONPATH nor the folder beside MLX comes first, and it takes a library of CUDA 12 for one of
    13 where PyTorch has loaded or installed that.
    """
    roots = [beside] if beside else []
    roots += [Path(entry or ".") for entry in sys.path]
    seen: set[Path] = set()
    for root in roots:
        for folder in sorted(root.glob(f"nvidia/*/{name}")):
            if folder not in seen:
                seen.add(folder)
                yield folder


def find_library(soname: str, beside: Path | None = None) -> Path | None:
    """The file of an NVIDIA wheel in this environment, such as libcublasLt.so.13, or None."""
    folders = _wheel_folders(beside, "lib")
    return next((path for folder in folders if (path := folder / soname).is_file()), None)


def preload(site: Path, load: Callable[[str, int], object] = ctypes.CDLL) -> None:
    """Loads the dependencies of MLX's CUDA library from wherever this environment has them.

    Its RPATH finds the NVIDIA wheels in its own site-packages folder `site` only; a library that
    the process has loaded already is found by its SONAME. Raises Unsupported.
    """
    for soname, distribution in LIBRARIES.items():
        try:
            load(soname, os.RTLD_NOLOAD | os.RTLD_GLOBAL)
        except OSError:
            pass
        else:
            continue  # by PyTorch, say: a second copy would only cost memory
        path = find_library(soname, site)
        try:
            load(str(path) if path else soname, os.RTLD_GLOBAL | os.RTLD_NOW)
        except OSError as error:
            raise Unsupported(
                f"{soname}, which MLX needs on an NVIDIA GPU, cannot be loaded ({error}): "
                f"pip install --force-reinstall --no-deps {distribution}"
            ) from error


def point_to_headers(site: Path) -> None:
    """Sets CUDA_HOME where MLX would find no CUDA headers, so that it can compile kernels.

    MLX looks in nvidia/cu13/include beside itself, CUDA_HOME, CUDA_PATH and /usr/local/cuda.
    """
    if "CUDA_HOME" in os.environ or "CUDA_PATH" in os.environ:
        return
    for folder in _wheel_folders(site, "include"):
        if (folder / "cuda_runtime.h").is_file():
            if folder != site / "nvidia" / "cu13" / "include":
                os.environ["CUDA_HOME"] = str(folder.parent)
            return
