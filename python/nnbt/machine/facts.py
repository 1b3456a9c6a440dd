"""Facts about this machine, found without MLX in a few milliseconds. Unknown is None, not zero."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import resource
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from nnbt.machine import cgroup as _cgroup
from nnbt.machine.nvml import Gpu, GpuState, gpu_state, gpus

__all__ = ["Gpu", "GpuState", "Machine", "available_memory_bytes", "gpu_state", "gpus", "machine"]


@dataclass(frozen=True)
class Machine:
    """Hardware first, then what this process may use of it, then software."""

    cpu: str | None
    architecture: str
    physical_cpus: int | None
    logical_cpus: int | None
    total_memory_bytes: int | None
    gpus: tuple[Gpu, ...]
    allowed_cpus: int | None
    """CPUs in the affinity mask of this process."""
    cpu_quota: float | None
    """CPUs' worth of time that the control group grants; None without a limit."""
    memory_limit_bytes: int | None
    """The control group's limit; None without one."""
    available_memory_bytes: int | None
    """What can be allocated now without swapping or hitting the limit."""
    system: str
    kernel: str
    python: str

    @property
    def usable_cpus(self) -> int:
        """How many threads can run at the same time: affinity and quota, at least 1."""
        counts = [c for c in (self.allowed_cpus, self.logical_cpus) if c]
        quota = [max(1, int(self.cpu_quota))] if self.cpu_quota else []
        return min([*counts, *quota], default=1)

    @property
    def fingerprint(self) -> str:
        """12 hexadecimal digits of the hardware alone: same digits, same machine or its twin."""
        memory = self.total_memory_bytes
        facts = [
            self.cpu,
            self.architecture,
            self.physical_cpus,
            self.logical_cpus,
            # Kernels reserve a few MiB more or less of the same memory.
            None if memory is None else round(memory / 2**30),
            [gpu.name for gpu in self.gpus],
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON, the fingerprint first."""
        return {"fingerprint": self.fingerprint, **asdict(self)}


def machine() -> Machine:
    """The machine as it is now."""
    find = _darwin if sys.platform == "darwin" else _linux
    return find()


def available_memory_bytes() -> int | None:
    """Host memory that can be allocated now, within the control group's limit."""
    return machine().available_memory_bytes


def _linux(root: Path = Path("/")) -> Machine:
    memory = _meminfo(root / "proc/meminfo")
    limit, headroom = _cgroup.memory(root)
    rooms = (memory.get("MemAvailable"), headroom, _address_space(root / "proc/self/statm"))
    free = [n for n in rooms if n is not None]
    return _build(
        cpu=_cpu_model(root / "proc/cpuinfo"),
        physical_cpus=_physical_cpus(root / "sys/devices/system/cpu"),
        total_memory_bytes=memory.get("MemTotal"),
        allowed_cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        cpu_quota=_cgroup.cpu_quota(root),
        memory_limit_bytes=limit,
        available_memory_bytes=min(free, default=None),
        system=_release_name(root / "etc/os-release"),
    )


def _darwin() -> Machine:
    number = partial(_sysctl_number, ctypes.CDLL(None))
    total = number("hw.memsize")
    free_percent = number("kern.memorystatus_level")  # what memory_pressure(1) prints
    return _build(
        cpu=_sysctl_text(ctypes.CDLL(None), "machdep.cpu.brand_string"),
        physical_cpus=number("hw.physicalcpu"),
        total_memory_bytes=total,
        allowed_cpus=None,
        cpu_quota=None,
        memory_limit_bytes=None,
        available_memory_bytes=total * free_percent // 100 if total and free_percent else None,
        system=f"macOS {platform.mac_ver()[0]}",
    )


def _build(
    *,
    cpu: str | None,
    physical_cpus: int | None,
    total_memory_bytes: int | None,
    allowed_cpus: int | None,
    cpu_quota: float | None,
    memory_limit_bytes: int | None,
    available_memory_bytes: int | None,
    system: str,
) -> Machine:
    return Machine(
        cpu=cpu,
        architecture=platform.machine(),
        physical_cpus=physical_cpus,
        logical_cpus=os.cpu_count(),
        total_memory_bytes=total_memory_bytes,
        gpus=tuple(gpus()),
        allowed_cpus=allowed_cpus,
        cpu_quota=cpu_quota,
        memory_limit_bytes=memory_limit_bytes,
        available_memory_bytes=available_memory_bytes,
        system=system,
        kernel=platform.release(),
        python=platform.python_version(),
    )


def _meminfo(path: Path) -> dict[str, int]:
    """Bytes by name; the file counts in KiB."""
    try:
        rows = (line.split() for line in path.read_text().splitlines())
        return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows}
    except (OSError, ValueError, IndexError):
        return {}


_THREAD_SPACE = 72 * 2**20
"""Address space of a thread: glibc reserves 8 MiB of stack and 64 MiB for small objects."""


def _address_space(statm: Path) -> int | None:
    """Bytes that `ulimit -v` leaves this process, less what its threads will reserve.

    MLX ends the process where an allocation fails on a thread of its own. None without a limit.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        used = int(statm.read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        used = 0
    return max(0, limit - used - (os.cpu_count() or 1) * _THREAD_SPACE)


def _cpu_model(path: Path) -> str | None:
    """The first processor's name; on Arm, which has none, the numbers of its maker and part."""
    rows: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    return value.strip()
                if not line.strip() and rows:
                    break
                rows[key.strip()] = value.strip()
    except OSError:
        return None
    if "CPU part" in rows:
        return f"Arm implementer {rows.get('CPU implementer', '?')} part {rows['CPU part']}"
    return None


def _physical_cpus(folder: Path) -> int | None:
    """Distinct sets of hardware threads that share a core."""
    siblings = folder.glob("cpu[0-9]*/topology/thread_siblings_list")
    try:
        return len({path.read_text() for path in siblings}) or None
    except OSError:
        return None


def _release_name(path: Path) -> str:
    try:
        rows = dict(line.partition("=")[::2] for line in path.read_text().splitlines())
    except OSError:
        return platform.system()
    return rows.get("PRETTY_NAME", "").strip('"') or platform.system()


def _sysctl_number(libc: ctypes.CDLL, name: str) -> int | None:
    value, size = ctypes.c_uint64(0), ctypes.c_size_t(8)
    answer = libc.sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(size), None, 0)
    return value.value if answer == 0 else None


def _sysctl_text(libc: ctypes.CDLL, name: str) -> str | None:
    value, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
    answer = libc.sysctlbyname(name.encode(), value, ctypes.byref(size), None, 0)
    return value.value.decode() if answer == 0 else None
