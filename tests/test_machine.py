"""nnbt.machine.facts: made-up trees of files, and a fake NVML that is a real library."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from fake_site import compile_library
from nnbt.machine import cgroup, devices
from nnbt.machine import facts as machine
from nnbt.machine.cuda import DriverState

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc and /sys")
GIB = 2**30


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V2 = {
    "proc/self/cgroup": "0::/job/step\n", "sys/fs/cgroup/cpu.max": "max 100000\n",
    "sys/fs/cgroup/job/memory.max": f"{4 * GIB}\n",
    "sys/fs/cgroup/job/memory.current": f"{3 * GIB}\n",
    "sys/fs/cgroup/job/memory.stat": f"anon 5\ninactive_file {GIB}\n",
    "sys/fs/cgroup/job/cpu.max": "150000 100000\n", "sys/fs/cgroup/job/step/memory.max": "max\n",
    "sys/fs/cgroup/job/step/cpu.max": "max 100000\n",
}  # fmt: skip
V1 = {
    "proc/self/cgroup": "5:cpu,cpuacct:/c\n4:memory:/c\n0::/\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/memory/c/memory.limit_in_bytes": f"{2 * GIB}\n",
    "sys/fs/cgroup/memory/c/memory.usage_in_bytes": f"{GIB}\n",
    "sys/fs/cgroup/memory/c/memory.stat": "total_inactive_file 1024\n",
    "sys/fs/cgroup/cpu/c/cpu.cfs_quota_us": "50000\n",
    "sys/fs/cgroup/cpu/c/cpu.cfs_period_us": "100000\n",
}
# In a container the path is the host's and the mount shows the container's group as its root.
CONTAINER = {
    "proc/self/cgroup": "0::/docker/0123\n", "sys/fs/cgroup/memory.max": f"{GIB}\n",
    "sys/fs/cgroup/memory.current": "1000\n", "sys/fs/cgroup/cpu.max": "200000 100000\n",
}  # fmt: skip
UNLIMITED = {
    "proc/self/cgroup": "4:memory:/\n5:cpu:/\n0::/\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
}


@pytest.mark.parametrize(
    ("files", "memory", "quota"),
    [
        (V2, (4 * GIB, 2 * GIB), 1.5), (V1, (2 * GIB, GIB + 1024), 0.5),
        (CONTAINER, (GIB, GIB - 1000), 2.0), (UNLIMITED, (None, None), None),
        ({}, (None, None), None),
    ],
    ids=["v2", "v1", "container", "unlimited", "none"],
)  # fmt: skip
def test_control_group(
    tmp_path: Path,
    files: dict[str, str],
    memory: tuple[int | None, int | None],
    quota: float | None,
) -> None:
    write(tmp_path, files)
    assert cgroup.memory(tmp_path) == memory
    assert cgroup.cpu_quota(tmp_path) == quota


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 2 cores with 2 threads each, 8 GiB, of which 6 are available."""
    memory = SimpleNamespace(total=8 * GIB, available=6 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 4 if logical else 2)


CPUINFO = {"proc/cpuinfo": "processor\t: 0\nmodel name\t: Fast CPU\n\nprocessor\t: 1\n"}


@linux
@pytest.mark.usefixtures("host")
def test_linux_facts(tmp_path: Path) -> None:
    facts = machine.machine(write(tmp_path, CPUINFO))
    assert (facts.cpu, facts.physical_cpus, facts.logical_cpus) == ("Fast CPU", 2, 4)
    assert (facts.total_memory_bytes, facts.available_memory_bytes) == (8 * GIB, 6 * GIB)
    assert (facts.memory_limit_bytes, facts.cpu_quota) == (None, None)


@linux
@pytest.mark.usefixtures("host")
def test_available_memory_is_within_the_limit(tmp_path: Path) -> None:
    facts = machine.machine(write(tmp_path, CPUINFO | V2))
    assert facts.memory_limit_bytes == 4 * GIB
    assert facts.available_memory_bytes == 2 * GIB
    assert facts.usable_cpus == 1


@linux
@pytest.mark.parametrize("meminfo", [None, "", "MemTotal: many kB\n"])
def test_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meminfo: str | None) -> None:
    write(tmp_path, {"proc/uptime": ""} | ({} if meminfo is None else {"proc/meminfo": meminfo}))
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))
    monkeypatch.setattr(psutil, "cpu_count", lambda **_: None)
    facts = machine.machine(tmp_path)
    assert facts.cpu is None
    assert facts.physical_cpus is None
    assert facts.total_memory_bytes is None
    assert facts.available_memory_bytes is None
    assert len(facts.fingerprint) == 12


@linux
@pytest.mark.parametrize(
    ("release", "name"),
    [
        (b'NAME="Some"\nPRETTY_NAME="Some \xc3\x9f Linux 12"\n', "Some \u00df Linux 12"),
        (b"PRETTY_NAME=Some\nnonsense = 'a\n", "Some"), (b"", "Linux"),
        (b"PRETTY_NAME=\xff\n", "Linux"), (None, "Linux"),
    ],
    ids=["utf-8", "odd", "empty", "not utf-8", "none"],
)  # fmt: skip
def test_name_of_the_system(tmp_path: Path, release: bytes | None, name: str) -> None:
    """In an ASCII locale too."""
    path = tmp_path / "os-release"
    if release is not None:
        path.write_bytes(release)
    code = (
        f"import platform; platform._os_release_candidates = ({str(path)!r},)\n"
        "from nnbt.machine import facts; print(ascii(facts.machine().system))"
    )
    env = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ascii(name)


def test_an_arm_cpu_is_named_by_its_numbers(tmp_path: Path) -> None:
    cpuinfo = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\n"
    path = write(tmp_path, {"cpuinfo": cpuinfo}) / "cpuinfo"
    assert machine._cpu_model(path) == "Arm implementer 0x41 part 0xd4f"


def test_this_machine() -> None:
    facts = machine.machine()
    assert facts.cpu
    assert facts.logical_cpus == os.cpu_count()
    assert facts.physical_cpus is not None
    assert 1 <= facts.physical_cpus <= (facts.logical_cpus or 0)
    assert facts.total_memory_bytes is not None
    assert facts.available_memory_bytes is not None
    assert 0 < facts.available_memory_bytes <= facts.total_memory_bytes
    assert 1 <= facts.usable_cpus <= (facts.logical_cpus or 0)
    assert json.loads(json.dumps(facts.as_dict()))["fingerprint"] == facts.fingerprint


def test_fingerprint_is_of_hardware_alone() -> None:
    facts = replace(machine.machine(), total_memory_bytes=8 * GIB, cpu="A")
    same = {"kernel": "new", "python": "4", "cpu_quota": 1.0, "available_memory_bytes": 1}
    assert replace(facts, **same, total_memory_bytes=8 * GIB - 2**20).fingerprint == (
        facts.fingerprint
    )
    for other in ({"cpu": "B"}, {"total_memory_bytes": 16 * GIB}, {"physical_cpus": 999}):
        assert replace(facts, **other).fingerprint != facts.fingerprint


@pytest.mark.parametrize(
    ("allowed", "logical", "quota", "usable"),
    [(4, 8, None, 4), (8, 8, 2.5, 2), (8, 8, 0.5, 1), (None, 8, None, 8), (None, None, None, 1)],
)
def test_usable(allowed: int | None, logical: int | None, quota: float | None, usable: int) -> None:
    facts = replace(machine.machine(), allowed_cpus=allowed, logical_cpus=logical, cpu_quota=quota)
    assert facts.usable_cpus == usable


NVML = """
#include <string.h>
typedef struct { unsigned long long total, free, used; } Memory;
int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { *count = 2; return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  strncpy(text, "580.1", size);
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index > 1) return 2;
  *device = (void*)(unsigned long)(0x100 + index);
  return 0;
}
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  strncpy(text, device == (void*)0x100 ? "GPU A" : "GPU B", size);
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  if (device != (void*)0x100) return 3;
  strncpy(text, "GPU-0", size);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* m) {
  m->total = 1ULL << 40; m->free = 1ULL << 39; m->used = 7;
  return device == (void*)0x100 ? 0 : 3;
}
int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) { *mhz = type * 1000; return 0; }
int nvmlDeviceGetPowerUsage(void* device, unsigned* mw) { *mw = 123500; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* bits) {
  *bits = 0x44; return 0;
}
"""
ASK = """
import json
from dataclasses import asdict
from nnbt.machine import facts as machine
state = machine.gpu_state(0)
print(json.dumps([
    [asdict(gpu) for gpu in machine.machine().gpus], state and asdict(state),
    machine.gpu_state(2) is None,
]))
"""


def ask(path: str) -> list[object]:
    """The answers of a fresh process, since a library once opened stays."""
    env = os.environ | {"LD_LIBRARY_PATH": path}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=env, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@linux
def test_gpus_through_nvml(tmp_path: Path) -> None:
    compile_library(NVML, tmp_path / "libnvidia-ml.so.1")
    gpus, state, missing_is_none = ask(str(tmp_path))
    known = {"driver_version": "580.1"}
    assert gpus == [
        {"index": 0, "name": "GPU A", "uuid": "GPU-0", "total_memory_bytes": 2**40, **known},
        {"index": 1, "name": "GPU B", "uuid": None, "total_memory_bytes": None, **known},
    ]
    assert state == {
        "free_memory_bytes": 2**39,
        "sm_clock_mhz": 1000,
        "memory_clock_mhz": 2000,
        "power_w": 123.5,
        "temperature_c": None,  # this library has no such function
        "throttle_reasons": ["software power cap", "hardware thermal slowdown"],
    }
    assert missing_is_none


@linux
def test_nvml_that_does_not_start_is_no_gpu(tmp_path: Path) -> None:
    compile_library(
        "int nvmlInitWithFlags(unsigned flags) { return 9; }", tmp_path / "libnvidia-ml.so.1"
    )
    assert ask(str(tmp_path)) == [[], None, True]


def test_a_limit_of_address_space_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    process = SimpleNamespace(memory_info=lambda: SimpleNamespace(vms=GIB // 2))
    monkeypatch.setattr(psutil, "Process", lambda: process)
    monkeypatch.setattr(psutil, "cpu_count", lambda: 2)
    monkeypatch.setattr("resource.getrlimit", lambda _: (GIB, GIB))
    assert machine._address_space() == GIB // 2 - 2 * 72 * 2**20
    monkeypatch.setattr("resource.getrlimit", lambda _: (-1, -1))
    assert machine._address_space() is None


PCI_GPU = {"0000:01:00.0/vendor": "0x10de\n", "0000:01:00.0/class": "0x030200\n"}
PCI_DISK = {"0000:00:01.0/vendor": "0x10de\n", "0000:00:01.0/class": "0x010802\n"}


@pytest.mark.parametrize(
    ("files", "found"),
    [(PCI_GPU | PCI_DISK, True), (PCI_DISK, False), ({}, None), ({"a/other": ""}, None)],
)
def test_gpus_on_the_pci_bus(tmp_path: Path, files: dict[str, str], found: bool | None) -> None:
    assert devices._nvidia_hardware(write(tmp_path, files)) is found


@linux
@pytest.mark.parametrize(
    ("state", "hardware", "visible", "problem", "remedy"),
    [
        (DriverState(0, "odd", found=False), False, None, "No NVIDIA GPU in this machine", None),
        (DriverState(0, "odd", found=False), None, None, "No GPU is visible (odd)", None),
        (DriverState(0, "odd", found=False), True, None, "No GPU is visible (odd)", "install"),
        (DriverState(0, "odd"), False, None, "No GPU is visible (odd)", None),
        (DriverState(0, "odd"), True, "", "No GPU is visible (odd)", "unset CUDA_VISIBLE_DEVICES"),
        (DriverState(1), True, None, None, None),
    ],
)
def test_a_missing_gpu_says_why_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
    state: DriverState,
    hardware: bool | None,
    visible: str | None,
    problem: str | None,
    remedy: str | None,
) -> None:
    monkeypatch.setattr(devices, "nvidia_driver", lambda: state)
    monkeypatch.setattr(devices, "_nvidia_hardware", lambda: hardware)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    missing = devices.gpu_missing()
    assert (missing.problem if missing else None) == problem
    assert (remedy or "") in (devices.gpu_remedy() or "")
    assert (devices.gpu_remedy() is None) == (remedy is None)
    assert devices.default_device() == (
        ("cpu", problem) if problem else ("gpu", "a GPU is visible")
    )
