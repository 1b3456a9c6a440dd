"""nnbt.machine.cuda: the driver's answers, and libraries and headers out of the NVIDIA wheels."""

from __future__ import annotations

import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from fake_site import LIBRARY, Site
from nnbt.machine import cuda as _nvidia

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
from nnbt.machine import cuda as _nvidia
def missing():
    try:
        ctypes.CDLL({str(site.root / LIBRARY)!r})
    except OSError as error:
        return str(error).partition(":")[0]
    return "libcuda.so.1"  # it has a driver, and loads
before = missing()
_nvidia.preload(pathlib.Path({str(site.root)!r}))
print(json.dumps([before, missing()]))
"""
    assert site.answer(code) == ["libnccl.so.2", "libcuda.so.1"]


def test_a_library_that_is_loaded_already_is_not_loaded_again() -> None:
    loaded: list[str] = []
    _nvidia.preload(Path("nowhere"), lambda name, _mode: loaded.append(name))
    assert loaded == list(_nvidia.LIBRARIES)


def test_the_wheels_beside_mlx_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for root in ("first", "beside"):
        (tmp_path / root / "nvidia/cu13/lib").mkdir(parents=True)
        (tmp_path / root / "nvidia/cu13/lib/libx.so.1").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first")])
    lib = "nvidia/cu13/lib/libx.so.1"
    assert _nvidia.find_library("libx.so.1", tmp_path / "beside") == tmp_path / "beside" / lib
    assert _nvidia.find_library("libx.so.1") == tmp_path / "first" / lib
    assert _nvidia.find_library("liby.so.1") is None


HEADERS = """
import json, os, pathlib
from nnbt.machine import cuda as _nvidia
_nvidia.point_to_headers(pathlib.Path({site!r}))
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
from nnbt.machine import mlx as _mlx
state = _mlx.nvidia_driver()
assert "mlx.core" not in sys.modules
print(json.dumps([state.devices, state.usable, state.reason]))
"""


def test_driver_with_devices(site: Site) -> None:
    site.add_driver(count=2)
    assert site.answer(DRIVER) == [2, True, None]


@pytest.mark.parametrize(
    ("driver", "env", "reason"),
    [
        ({"init": 999}, {}, "CUDA error 999: the driver failed (unknown error)"),
        ({"init": 100}, {}, "CUDA error 100: no CUDA device is visible"),
        ({"count": 0}, {}, "CUDA error 100: no CUDA device is visible"),
        ({"init": 100}, {"CUDA_VISIBLE_DEVICES": "-1"}, "since CUDA_VISIBLE_DEVICES is '-1'"),
        ({"init": 12345}, {}, "CUDA error 12345: see the CUresult values"),
        ({"version": 12080}, {}, "supports CUDA 12.8, and MLX needs 13.0: update the driver"),
    ],
)
def test_driver_without_devices(
    site: Site, driver: dict[str, int], env: dict[str, str], reason: str
) -> None:
    site.add_driver(**driver)
    site.env |= env
    answer = site.answer(DRIVER)
    assert isinstance(answer, list)
    assert answer[:2] == [0, False]
    assert reason in answer[2]


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr("ctypes.CDLL", missing)
    state = _nvidia.nvidia_driver()
    assert not state.usable
    assert state.reason == "there is no NVIDIA driver (libcuda.so.1 was not found)"
