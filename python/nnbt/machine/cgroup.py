"""Limits of this process's Linux control group (v1 and v2), which containers and batch jobs set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class _Names:
    """Where one version of the interface keeps its figures."""

    mounts: tuple[str, ...]
    limit: str
    usage: str
    reclaimable: str


_V2 = _Names(
    ("sys/fs/cgroup", "sys/fs/cgroup/unified"), "memory.max", "memory.current", "inactive_file"
)
_V1 = _Names(
    ("sys/fs/cgroup/memory",),
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
)
# v1 writes "no limit" as the largest multiple of a page in 63 bits.
_NO_LIMIT = 2**60


def memory(root: Path = Path("/")) -> tuple[int | None, int | None]:
    """(lowest limit in bytes, bytes still to be had within all limits); None where unlimited."""
    limits, headrooms = [], []
    for names, controller in ((_V2, ""), (_V1, "memory")):
        for folder in _folders(root, names.mounts, controller):
            limit = _number(folder / names.limit)
            if limit is None or limit >= _NO_LIMIT:
                continue
            limits.append(limit)
            usage = _number(folder / names.usage)
            if usage is not None:
                cache = _statistic(folder / "memory.stat", names.reclaimable) or 0
                headrooms.append(max(0, limit - max(0, usage - cache)))
    return min(limits, default=None), min(headrooms, default=None)


def cpu_quota(root: Path = Path("/")) -> float | None:
    """CPUs' worth of time a period grants, the lowest on the way up; None where unlimited."""
    quotas = []
    for folder in _folders(root, _V2.mounts, ""):
        fields = _read(folder / "cpu.max").split()
        if len(fields) == 2 and fields[0] != "max":
            quotas.append(int(fields[0]) / int(fields[1]))
    for folder in _folders(root, ("sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"), "cpu"):
        quota = _number(folder / "cpu.cfs_quota_us")
        period = _number(folder / "cpu.cfs_period_us")
        if quota and period:
            quotas.append(quota / period)
    return min(quotas, default=None)


def _folders(root: Path, mounts: tuple[str, ...], controller: str) -> Iterator[Path]:
    """The folder of this process and those above it, in each mount that exists.

    Inside a container the path may be the host's, which the mount does not show: the mount itself
    is then the container's group.
    """
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller not in controllers.split(","):
            continue
        for mount in (root / name for name in mounts):
            folder = mount / path.lstrip("/")
            while folder != mount:
                if folder.is_dir():
                    yield folder
                folder = folder.parent
            if mount.is_dir():
                yield mount


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdigit() else None


def _statistic(path: Path, name: str) -> int | None:
    for line in _read(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.isdigit():
            return int(value)
    return None
