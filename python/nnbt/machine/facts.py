"""Facts about this machine, without MLX. Unknown is None, not zero."""

import ctypes
import hashlib
import json
import os
import platform
import resource
import sys
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import psutil

from nnbt.machine import cgroup
from nnbt.machine.nvml import Gpu, GpuState, gpu_state, gpus

__all__ = ["Gpu", "GpuState", "Machine", "gpu_state", "gpus", "machine"]


@dataclass(frozen=True)
class Machine:
    """Hardware, what this process may use of it, and software."""

    cpu: str | None
    architecture: str
    physical_cpus: int | None
    logical_cpus: int | None
    total_memory_bytes: int | None
    gpus: tuple[Gpu, ...]
    allowed_cpus: int | None  # CPUs in the affinity mask of this process
    cpu_quota: float | None
    """CPU time per unit of time that the control group grants; None without a limit."""
    memory_limit_bytes: int | None  # the control group's limit; None without one
    available_memory_bytes: int | None
    """What can be allocated now without swapping or exceeding a limit."""
    system: str
    kernel: str
    python: str

    @property
    def usable_cpus(self) -> int:
        """How many threads can run at the same time, by affinity and quota; at least 1."""
        counts = [c for c in (self.allowed_cpus, self.logical_cpus) if c]
        quota = [max(1, int(self.cpu_quota))] if self.cpu_quota else []
        return min([*counts, *quota], default=1)

    @property
    def fingerprint(self) -> str:
        """12 hexadecimal digits of the hardware alone: equal on identical machines."""
        memory = self.total_memory_bytes
        facts = [
            self.cpu,
            self.architecture,
            self.physical_cpus,
            self.logical_cpus,
            # Kernels differ in how many MiB of the same memory they reserve.
            None if memory is None else round(memory / 2**30),
            [gpu.name for gpu in self.gpus],
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON, the fingerprint first."""
        return {"fingerprint": self.fingerprint, **asdict(self)}


def machine(root: Path = Path("/")) -> Machine:
    """The machine as it is now; `root` holds the `proc` and `sys` that psutil does not read."""
    memory = _memory()
    limit, room = cgroup.memory(root)
    rooms = (memory.available if memory else None, room, _address_space())
    return Machine(
        cpu=_sysctl("machdep.cpu.brand_string")
        if sys.platform == "darwin"
        else _cpu_model(root / "proc/cpuinfo"),
        architecture=platform.machine(),
        physical_cpus=psutil.cpu_count(logical=False),
        logical_cpus=psutil.cpu_count(),
        total_memory_bytes=memory.total if memory else None,
        gpus=tuple(gpus()),
        allowed_cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        cpu_quota=cgroup.cpu_quota(root),
        memory_limit_bytes=limit,
        available_memory_bytes=min((n for n in rooms if n is not None), default=None),
        system=_system_name(),
        kernel=platform.release(),
        python=platform.python_version(),
    )


def _memory() -> Any:
    """psutil's figures for the whole machine; None where the system does not tell."""
    try:
        return psutil.virtual_memory()
    except (OSError, LookupError, ValueError, RuntimeError):
        return None


_THREAD_SPACE = 72 * 2**20
"""Address space of a thread: glibc reserves 8 MiB of stack and 64 MiB for small objects."""


def _address_space() -> int | None:
    """Bytes that `ulimit -v` leaves this process, less what its threads will reserve.

    MLX ends the process where an allocation fails on a thread of its own. None without a limit.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    used: int = psutil.Process().memory_info().vms
    return max(0, limit - used - (psutil.cpu_count() or 1) * _THREAD_SPACE)


def _cpu_model(path: Path) -> str | None:
    """Name of the first CPU; on Arm, which has none, the numbers of implementer and part."""
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            pairs = [line.partition(":")[::2] for line in takewhile(str.strip, lines)]
    except OSError:
        return None
    rows = {key.strip(): value.strip() for key, value in pairs}
    if "CPU part" not in rows:
        return rows.get("model name")
    arm = f"Arm implementer {rows.get('CPU implementer', '?')} part {rows['CPU part']}"
    return rows.get("model name", arm)


def _system_name() -> str:
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"] or platform.system()
    except (OSError, ValueError):  # no such file, or not UTF-8
        return platform.system()


def _sysctl(name: str) -> str | None:
    value, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
    answer = ctypes.CDLL(None).sysctlbyname(name.encode(), value, ctypes.byref(size), None, 0)
    return value.value.decode() if answer == 0 else None
