"""The only importer of mlx.core: lazy, and on Linux with the library that fits the machine.

On Linux mlx-cuda-13 can be imported only where an NVIDIA driver is. Elsewhere the CPU library that
this package carries is loaded first: the loader then takes it for MLX's own, by its SONAME.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import platform
import signal
import struct
import sys
import threading
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nnbt import _native
from nnbt._native import Unsupported
from nnbt.machine import cuda as _nvidia
from nnbt.machine.cuda import DriverState, nvidia_driver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

__all__ = [
    "Backend",
    "DriverState",
    "backend",
    "bundled_version",
    "core",
    "nvidia_driver",
    "versions",
]

Backend = Literal["cuda", "metal", "cpu"]

PLATFORMS = {("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")}
DISTRIBUTIONS = ("mlx", "mlx-metal", "mlx-cuda-13", "mlx-cuda-12", "mlx-cpu")
_LIBRARY = "mlx/lib/libmlx.so"
_REINSTALL = "pip install --force-reinstall --no-deps"

_ELF64_HEADER_BYTES = 64

_lock = threading.Lock()
_importer: list[int] = []
"""Process that imported MLX: its threads and streams are missing in a fork of it."""


def core() -> ModuleType:
    """`mlx.core`, imported on the first call; `Unsupported` says what to type where it can't be."""
    if _importer and _importer[0] != os.getpid():
        raise Unsupported(
            "This process was forked from one that had loaded MLX, and MLX's threads are missing "
            "in it: start it with multiprocessing.get_context('spawn'), or as a command."
        )
    with _lock:
        module = _import()
        _importer[:] = [os.getpid()]
        return module


def backend() -> Backend:
    """What MLX computes with in this process; imports it."""
    mx = core()
    if mx.cuda.is_available():
        return "cuda"
    return "metal" if mx.metal.is_available() else "cpu"


def versions() -> dict[str, str]:
    """Versions of MLX's installed distributions, and of `bundled-cpu`, without importing MLX."""
    found = {name: d.version for name in DISTRIBUTIONS if (d := _installed(name))}
    if version := bundled_version():
        found["bundled-cpu"] = version
    return found


def bundled_version() -> str | None:
    """Version of the CPU library that this package carries; None on macOS."""
    try:
        return (_bundle() / "VERSION").read_text(encoding="ascii").strip() or None
    except OSError:
        return None


def _bundle() -> Path:
    # Beside the extension: an editable install keeps the Python sources somewhere else.
    return Path(_native.__file__).parent / "_mlx_cpu"


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


@cache
def _import() -> ModuleType:
    if loaded := sys.modules.get("mlx.core"):
        return _checked(loaded)
    here = (platform.system(), platform.machine())
    if here not in PLATFORMS:
        raise Unsupported(
            f"MLX does not run on {' '.join(here)}: use Linux (x86_64, aarch64), or a native arm64 "
            "Python on a Mac with Apple silicon"
        )
    mlx = _installed("mlx")
    if mlx is None:
        raise Unsupported(f"MLX is not installed: pip install {_requirement('mlx')}")
    if here[0] == "Linux":
        if nvidia_driver().usable:
            _prepare_cuda(mlx)
        else:
            _prepare_cpu(mlx)
    try:
        with _signals_later():
            module = importlib.import_module("mlx.core")
        return _checked(module)
    except Unsupported:
        raise
    except Exception as error:
        # A damaged install fails in any way: a module that is cut short is a SyntaxError.
        raise Unsupported(
            f"MLX {mlx.version} can't be loaded ({error}): {_REINSTALL} {_requirement('mlx')}"
        ) from error


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Keeps Ctrl-C and SIGTERM waiting: within the load of MLX's extension, an exception from a
    handler becomes an ImportError that blames the installation, or aborts the process.

    Blocking the signals in this thread is not enough: the kernel then picks another one (OpenBLAS
    starts some), and Python still runs the handler here.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread only
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # None: set by native code, which Python could not put back.
    kept = {number: handler for number, handler in before.items() if handler is not None}
    for number in kept:
        signal.signal(number, lambda got, _frame: came.append(got))
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        for missed in came:
            signal.raise_signal(missed)


def _checked(module: ModuleType) -> ModuleType:
    # Without its extension module, the folder of type stubs mlx/core imports as an empty package.
    if not hasattr(module, "array"):
        version = ".".join(map(str, sys.version_info[:2]))
        raise Unsupported(
            f"The installed MLX has no extension module for Python {version}: "
            f"{_REINSTALL} {_requirement('mlx')}"
        )
    return module


def _requirement(name: str) -> str:
    version = bundled_version()
    return f"{name}=={version}" if version else name


def _prepare_cuda(mlx: Distribution) -> None:
    """Lets MLX's CUDA library load wherever its NVIDIA libraries lie; refuses a foreign one."""
    wanted = f"{_requirement('mlx')} {_requirement('mlx-cuda-13')}"
    cuda = _installed("mlx-cuda-13")
    if cuda is None and _installed("mlx-cuda-12"):
        raise Unsupported(
            "mlx-cuda-12 is installed, and nnbt needs mlx-cuda-13 on this machine: pip uninstall "
            f"-y mlx-cuda-12 && pip install --force-reinstall {wanted}"
        )
    if cuda is None and _installed("mlx-cpu"):
        return  # chosen by hand: MLX then runs on the CPU, with a GPU or without
    if cuda is None:
        raise Unsupported(
            "This machine has an NVIDIA GPU, and mlx-cuda-13 is not installed: "
            f"pip install {_requirement('mlx-cuda-13')}"
        )
    if cuda.version != mlx.version:
        raise Unsupported(
            f"mlx {mlx.version} and mlx-cuda-13 {cuda.version} do not fit: pip install {wanted}"
        )
    library = Path(str(cuda.locate_file(_LIBRARY)))
    expected = _recorded_size(cuda)
    if not library.is_file() or (expected and library.stat().st_size != expected):
        other = next((name for name in ("mlx-cpu", "mlx-cuda-12") if _installed(name)), None)
        remove = f"pip uninstall -y {other} && " if other else ""
        raise Unsupported(
            f"{library} is not the file of mlx-cuda-13"
            f"{f', since {other} owns the same path' if other else ''}: "
            f"{remove}{_REINSTALL} {_requirement('mlx-cuda-13')}"
        )
    site = library.parents[2]
    _nvidia.preload(site)
    _nvidia.point_to_headers(site)


def _recorded_size(owner: Distribution) -> int | None:
    """Bytes of libmlx.so as its distribution installed it."""
    for line in (owner.read_text("RECORD") or "").splitlines():
        path, _, rest = line.partition(",")
        if path == _LIBRARY:
            size = rest.rpartition(",")[2]
            return int(size) if size.isdigit() else None
    return None


def _prepare_cpu(mlx: Distribution) -> None:
    """Loads the CPU library that this package carries, in place of the CUDA one."""
    version = bundled_version()
    if version is not None and version != mlx.version:
        raise Unsupported(
            f"mlx {mlx.version} is installed, and nnbt carries the CPU library of {version}: "
            f"pip install mlx=={version} mlx-cuda-13=={version}"
        )
    library = _bundle() / _LIBRARY
    try:
        files = [library, *(_bundle() / "mlx_cpu.libs").iterdir()]
        if version is None or not all(map(_is_whole, files)):
            raise OSError("a file is missing or cut short")  # noqa: TRY301
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise Unsupported(
            f"nnbt's own copy of MLX's CPU library, {library}, can't be loaded ({error}): "
            f"{_REINSTALL} nn-backend-test"
        ) from error


def _is_whole(library: Path) -> bool:
    """Whether an ELF file holds all that it maps: one that is cut short kills the process."""
    size = library.stat().st_size
    with library.open("rb") as file:
        header = file.read(_ELF64_HEADER_BYTES)
        if len(header) < _ELF64_HEADER_BYTES or header[:5] != b"\x7fELF\x02":
            return False
        (table,) = struct.unpack_from("<Q", header, 32)
        entry_size, entries = struct.unpack_from("<HH", header, 54)
        file.seek(table)
        rows = file.read(entry_size * entries)
    if len(rows) < entry_size * entries:
        return False
    segments = (struct.unpack_from("<Q16xQ", rows, i * entry_size + 8) for i in range(entries))
    return all(offset + length <= size for offset, length in segments)
