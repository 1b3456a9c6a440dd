"""The only importer of mlx.core, on the first use, with the library that this machine can load.

On Linux mlx-cuda-13 needs an NVIDIA driver. Without one, the CPU library that nnbt contains is
loaded first: the loader then takes it for MLX's own, because it has the same SONAME.
"""

import contextlib
import ctypes
import os
import platform
import signal
import struct
import sys
import threading
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Literal

from nnbt import _native
from nnbt._native import Unsupported
from nnbt.machine import cuda

Backend = Literal["cuda", "metal", "cpu"]

PLATFORMS = {("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")}
DISTRIBUTIONS = ("mlx", "mlx-metal", "mlx-cuda-13", "mlx-cuda-12", "mlx-cpu")
_LIBRARY = "mlx/lib/libmlx.so"
_REINSTALL = "pip install --force-reinstall --no-deps"

_ELF64_HEADER_BYTES = 64

_lock = threading.Lock()
_importer: list[int] = []  # process that imported MLX: a fork of it lacks MLX's threads


def core() -> ModuleType:
    """`mlx.core`, imported on the first call. Raises Unsupported with the command that fixes it."""
    if _importer and _importer[0] != os.getpid():
        raise Unsupported(
            "This process was forked after MLX was loaded, so MLX's threads are missing: use "
            "multiprocessing.get_context('spawn') or start a new process."
        )
    with _lock:
        module = _import()
        _importer[:] = [os.getpid()]
        return module


def backend() -> Backend:
    """What MLX uses in this process; imports it."""
    mx = core()
    if mx.cuda.is_available():
        return "cuda"
    return "metal" if mx.metal.is_available() else "cpu"


def versions() -> dict[str, str]:
    """Versions of MLX's distributions and of `bundled-cpu`, without importing MLX."""
    found = {name: d.version for name in DISTRIBUTIONS if (d := _installed(name))}
    if version := bundled_version():
        found["bundled-cpu"] = version
    return found


def bundled_version() -> str | None:
    """Version of the CPU library that nnbt contains; None on macOS."""
    try:
        return (_bundle() / "VERSION").read_text(encoding="ascii").strip() or None
    except OSError:
        return None


def _bundle() -> Path:
    # Beside the extension: an editable install has the Python sources elsewhere.
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
            f"MLX does not support {' '.join(here)}: use Linux (x86_64, aarch64) or a native arm64 "
            "Python on a Mac with Apple silicon."
        )
    mlx = _installed("mlx")
    if mlx is None:
        raise Unsupported(f"MLX is not installed: pip install {_requirement('mlx')}")
    if here[0] == "Linux":
        if cuda.nvidia_driver().usable:
            _prepare_cuda(mlx)
        else:
            _prepare_cpu(mlx)
    try:
        with _signals_later():
            import mlx.core as module
        return _checked(module)
    except Unsupported:
        raise
    except Exception as error:
        # A damaged install can fail in any way: a truncated module is a SyntaxError.
        raise Unsupported(
            f"MLX {mlx.version} cannot be loaded ({error}): {_REINSTALL} {_requirement('mlx')}"
        ) from error


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Delays Ctrl-C and SIGTERM: while MLX's extension loads, an exception from a handler becomes
    an ImportError that blames the installation, or aborts the process.

    Blocking the signals in this thread is not enough: the kernel delivers them to another one
    (OpenBLAS starts some), and Python still runs the handler here.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread only
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # None: a handler of native code, which Python cannot restore.
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
    # Without the extension module, the folder of type stubs mlx/core imports as an empty package.
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
    """Loads the NVIDIA libraries of MLX's CUDA library. Raises Unsupported for a foreign one."""
    wanted = f"{_requirement('mlx')} {_requirement('mlx-cuda-13')}"
    owner = _installed("mlx-cuda-13")
    if owner is None and _installed("mlx-cuda-12"):
        raise Unsupported(
            "mlx-cuda-12 is installed, but nnbt needs mlx-cuda-13 here: pip uninstall -y "
            f"mlx-cuda-12 && pip install --force-reinstall {wanted}"
        )
    if owner is None and _installed("mlx-cpu"):
        return  # the user's choice: MLX then runs on the CPU, with a GPU or without
    if owner is None:
        raise Unsupported(
            "This machine has an NVIDIA GPU, but mlx-cuda-13 is not installed: "
            f"pip install {_requirement('mlx-cuda-13')}"
        )
    if owner.version != mlx.version:
        raise Unsupported(
            f"mlx {mlx.version} and mlx-cuda-13 {owner.version} must be the same version: "
            f"pip install {wanted}"
        )
    library = Path(str(owner.locate_file(_LIBRARY)))
    expected = _recorded_size(owner)
    if not library.is_file() or (expected and library.stat().st_size != expected):
        other = next((name for name in ("mlx-cpu", "mlx-cuda-12") if _installed(name)), None)
        remove = f"pip uninstall -y {other} && " if other else ""
        raise Unsupported(
            f"{library} is not the file that mlx-cuda-13 installed"
            f"{f' ({other} installs the same path)' if other else ''}: "
            f"{remove}{_REINSTALL} {_requirement('mlx-cuda-13')}"
        )
    site = library.parents[2]
    cuda.preload(site)
    cuda.point_to_headers(site)


def _recorded_size(owner: Distribution) -> int | None:
    """Bytes of libmlx.so as its distribution installed it."""
    return next((file.size for file in owner.files or () if str(file) == _LIBRARY), None)


def _prepare_cpu(mlx: Distribution) -> None:
    """Loads the CPU library that nnbt contains in place of the CUDA one. Raises Unsupported."""
    version = bundled_version()
    if version is not None and version != mlx.version:
        raise Unsupported(
            f"mlx {mlx.version} is installed, but nnbt contains the CPU library of {version}: "
            f"pip install mlx=={version} mlx-cuda-13=={version}"
        )
    library = _bundle() / _LIBRARY
    try:
        files = [library, *(_bundle() / "mlx_cpu.libs").iterdir()]
        if version is None or not all(map(_is_whole, files)):
            raise OSError("a file is missing or truncated")  # noqa: TRY301
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise Unsupported(
            f"nnbt's copy of MLX's CPU library, {library}, cannot be loaded ({error}): "
            f"{_REINSTALL} nn-backend-test"
        ) from error


def _is_whole(library: Path) -> bool:
    """Whether an ELF file has all bytes that it maps: a truncated one kills the process."""
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
