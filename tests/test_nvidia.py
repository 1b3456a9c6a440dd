"""nnbt.machine.cuda: the driver, its devices, and what the NVIDIA wheels contain."""

import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest

from fake_site import LIBRARY, Site
from nnbt._native import Unsupported
from nnbt.machine import cuda, mlx, nvml

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA libraries are for Linux")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site-packages")


def test_libraries_are_found_where_the_rpath_does_not_reach(site: Site, tmp_path: Path) -> None:
    """After preloading, nothing but the driver itself is missing to libmlx.so."""
    site.add_mlx()
    site.add_cuda()
    (tmp_path / "elsewhere").mkdir()
    nvidia = Path(str(distribution("mlx-cuda-13").locate_file("nvidia")))
    (tmp_path / "elsewhere/nvidia").symlink_to(nvidia)
    site.path = [tmp_path / "elsewhere"]
    code = f"""
import ctypes, json, pathlib
from nnbt.machine import cuda
def missing():
    try:
        ctypes.CDLL({str(site.root / LIBRARY)!r})
    except OSError as error:
        return str(error).partition(":")[0]
    return "libcuda.so.1"  # it has a driver, and loads
before = missing()
cuda.preload(pathlib.Path({str(site.root)!r}))
print(json.dumps([before, missing()]))
"""
    assert site.answer(code) == ["libnccl.so.2", "libcuda.so.1"]


def test_a_library_that_is_loaded_already_is_not_loaded_again() -> None:
    loaded: list[str] = []
    cuda.preload(Path("nowhere"), lambda name, _mode: loaded.append(name))
    assert loaded == list(cuda.LIBRARIES)


def test_the_wheels_beside_mlx_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for root in ("first", "beside"):
        (tmp_path / root / "nvidia/cu13/lib").mkdir(parents=True)
        (tmp_path / root / "nvidia/cu13/lib/libx.so.1").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first")])
    lib = "nvidia/cu13/lib/libx.so.1"
    assert cuda.find_library("libx.so.1", tmp_path / "beside") == tmp_path / "beside" / lib
    assert cuda.find_library("libx.so.1") == tmp_path / "first" / lib
    assert cuda.find_library("liby.so.1") is None


HEADERS = """
import json, os, pathlib
from nnbt.machine import cuda
cuda.point_to_headers(pathlib.Path({site!r}))
print(json.dumps([os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]))
"""


@pytest.mark.parametrize(
    ("folder", "env", "home"),
    [
        ("elsewhere", {}, "elsewhere/nvidia/cu13"),
        ("site-packages", {}, None),  # where MLX looks by itself
        ("elsewhere", {"CUDA_HOME": "mine"}, "mine"),
        ("elsewhere", {"CUDA_PATH": "mine"}, None),
    ],
)
def test_cuda_home_is_set_only_where_mlx_finds_no_headers(
    site: Site, tmp_path: Path, folder: str, env: dict[str, str], home: str | None
) -> None:
    include = tmp_path / folder / "nvidia/cu13/include"
    include.mkdir(parents=True)
    (include / "cuda_runtime.h").touch()
    site.path = [tmp_path / "elsewhere"]
    site.env |= env
    if home and home != "mine":
        home = str(tmp_path / home)
    assert site.answer(HEADERS.format(site=str(site.root))) == [home, env.get("CUDA_PATH")]


DRIVER = """
import json, sys
from nnbt.machine import cuda
state = cuda.nvidia_driver()
assert "mlx.core" not in sys.modules
print(json.dumps([state.devices, state.usable, state.reason]))
"""


def test_driver_with_devices(site: Site) -> None:
    site.add_driver(count=2)
    assert site.answer(DRIVER) == [2, True, None]


@pytest.mark.parametrize(
    ("driver", "env", "reason"),
    [
        ({"init": 999}, {}, "CUDA error 999"),
        ({"init": 100}, {}, "CUDA error 100"),
        ({"count": 0}, {}, "CUDA error 100"),
        ({"init": 100}, {"CUDA_VISIBLE_DEVICES": "-1"}, "CUDA_VISIBLE_DEVICES='-1'"),
        ({"init": 12345}, {}, "CUDA error 12345"),
        ({"version": 12080}, {}, "CUDA 12.8, MLX needs 13.0"),
    ],
)
def test_unusable_driver(
    site: Site, driver: dict[str, int], env: dict[str, str], reason: str
) -> None:
    site.add_driver(**driver)
    site.env |= env
    answer = site.answer(DRIVER)
    assert isinstance(answer, list)
    assert answer[:2] == [0, False]
    assert reason in answer[2]


@pytest.fixture
def devices_anew() -> Iterator[None]:
    cuda.cuda_devices.cache_clear()
    yield
    cuda.cuda_devices.cache_clear()


@pytest.mark.usefixtures("devices_anew")
def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr("ctypes.CDLL", missing)
    state = cuda.nvidia_driver()
    assert not state.usable
    assert "libcuda.so.1" in (state.reason or "")
    assert cuda.cuda_devices() == ()
    with pytest.raises(Unsupported):
        cuda.multiprocessors()


DEVICES = """
import json, sys
from dataclasses import astuple
from nnbt._native import Unsupported
from nnbt.machine import cuda
try:
    print(json.dumps([astuple(device) for device in cuda.cuda_devices()]))
except Unsupported as error:
    print(json.dumps(str(error)))
assert "mlx.core" not in sys.modules
"""


def test_devices_of_the_driver_need_no_mlx(site: Site) -> None:
    site.add_driver(count=2)
    uuids = "GPU-07172737-4757-6777-8797-a7b7c7d7e7f7", "GPU-08182838-4858-6878-8898-a8b8c8d8e8f8"
    assert site.answer(DEVICES) == [
        [0, "GPU 7", uuids[0], 7 * 2**36, [9, 0], 132],
        [1, "GPU 8", uuids[1], 8 * 2**36, [9, 1], 132],
    ]


def test_a_device_that_the_driver_does_not_describe_is_refused(site: Site) -> None:
    site.add_driver(attribute_error=101)
    assert site.answer(DEVICES) == "cuDeviceGetAttribute of the CUDA driver returned error 101."


@pytest.mark.gpu
def test_devices_are_those_of_mlx_and_nvml() -> None:
    """The UUID joins the three: NVML ignores CUDA_VISIBLE_DEVICES, MLX and the driver heed it."""
    mx = mlx.core()
    found = mx.device_info(mx.gpu)
    device = cuda.cuda_devices()[0]
    assert (device.uuid, device.name) == (found["uuid"], found["device_name"])
    assert device.compute_capability == (
        found["compute_capability_major"],
        found["compute_capability_minor"],
    )
    assert 0.9 * found["total_memory"] < device.total_memory_bytes <= found["total_memory"]
    assert device.uuid in {gpu.uuid for gpu in nvml.gpus()}
    assert device.multiprocessors > 0
