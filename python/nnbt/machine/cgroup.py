"""Memory and CPU limits of this process's Linux control group (v1 and v2); psutil reads none."""

from collections.abc import Iterator
from pathlib import Path

_V2 = ("sys/fs/cgroup", "sys/fs/cgroup/unified")
# Controller, mounts, and the files of limit and usage with the reclaimable part in memory.stat.
_MEMORY = (
    ("", _V2, "memory.max", "memory.current", "inactive_file"),
    ("memory", ("sys/fs/cgroup/memory",), "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file"),
)  # fmt: skip
_CPU = (
    ("", _V2, ("cpu.max",)),
    ("cpu", ("sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"),
     ("cpu.cfs_quota_us", "cpu.cfs_period_us")),
)  # fmt: skip
# v1 writes "no limit" as the largest multiple of a page in 63 bits.
_NO_LIMIT = 2**60


def memory(root: Path = Path("/")) -> tuple[int | None, int | None]:
    """(lowest limit, least that can still be allocated) in bytes; None where unlimited."""
    limits, rooms = [], []
    for controller, mounts, limit_file, usage_file, reclaimable in _MEMORY:
        for folder in _folders(root, controller, mounts):
            limit, usage = _number(folder / limit_file), _number(folder / usage_file)
            if limit is None or limit >= _NO_LIMIT:
                continue
            limits.append(limit)
            if usage is not None:
                words = _read(folder / "memory.stat").split()
                cache = dict(zip(words[::2], words[1::2], strict=False)).get(reclaimable, "0")
                rooms.append(max(0, limit - max(0, usage - int(cache))))
    return min(limits, default=None), min(rooms, default=None)


def cpu_quota(root: Path = Path("/")) -> float | None:
    """CPU time per period over the period, the lowest of all groups; None where unlimited."""
    quotas = []
    for controller, mounts, files in _CPU:
        for folder in _folders(root, controller, mounts):
            words = [word for name in files for word in _read(folder / name).split()]
            # "max" and -1 stand for no quota.
            if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
                quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def _folders(root: Path, controller: str, mounts: tuple[str, ...]) -> Iterator[Path]:
    """The folder of this process and those above it, in each mount that exists.

    Inside a container the path may be the host's, which the mount does not show: the mount itself
    is then the container's group.
    """
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            for mount in (root / name for name in mounts):
                folder = mount / path.lstrip("/")
                ups = [up for up in (folder, *folder.parents) if mount in (up, *up.parents)]
                yield from filter(Path.is_dir, ups)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdigit() else None
