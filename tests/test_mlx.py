"""nnbt.machine.mlx: which libmlx.so is loaded, and the command that a refusal names."""

import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fake_site import LIBRARY, Site
from nnbt import _native
from nnbt._native import Unsupported
from nnbt.machine import mlx as nnbt_mlx

linux = pytest.mark.skipif(sys.platform != "linux", reason="on macOS one MLX serves all machines")

MATMUL = """
import json
from nnbt.machine import mlx
mx = mlx.core()
a = mx.array([[1.0, 2.0], [3.0, 4.0]])
print(json.dumps([mlx.backend(), (a @ a).tolist()]))
"""
REFUSAL = """
import json
from nnbt.machine import mlx
from nnbt._native import Unsupported
try:
    mlx.core()
except Unsupported as error:
    print(json.dumps(str(error)))
"""
PRODUCT = ["cpu", [[7.0, 10.0], [15.0, 22.0]]]
CPU_LIBRARY = Path(_native.__file__).parent / "_mlx_cpu" / LIBRARY


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site-packages")


def refusal(site: Site) -> str:
    text = site.answer(REFUSAL)
    assert isinstance(text, str)
    assert "\n" not in text
    return text


def made(site: Site, *names: str) -> None:
    """Adds parts in this order."""
    for name in names:
        PARTS[name](site)


def add_chosen_cpu(site: Site) -> None:
    site.add_mlx(library=CPU_LIBRARY)
    shutil.copytree(site.bundle / "mlx_cpu.libs", site.root / "mlx_cpu.libs")


def bindings(site: Site) -> Path:
    return next((site.root / "mlx").glob("core.*.so"))


OURS = version("mlx")
PARTS: dict[str, Callable[[Site], None]] = {
    "mlx": Site.add_mlx,
    "another": lambda site: site.add_mlx("0.31.0"),
    "foreign": lambda site: site.add_mlx(library=CPU_LIBRARY),
    "chosen": add_chosen_cpu,
    "mlx-cpu": lambda site: site.add_distribution("mlx-cpu", OURS),
    "mlx-cuda-12": lambda site: site.add_distribution("mlx-cuda-12", OURS),
    "cuda": Site.add_cuda,
    "driver": Site.add_driver,
    "no_device": lambda site: site.add_driver(init=100),
    "no bindings": lambda site: bindings(site).unlink(),
    "broken bindings": lambda site: site.replace(bindings(site), b"not a library"),
    "no library": lambda site: (site.root / LIBRARY).unlink(),
}


@linux
@pytest.mark.parametrize(
    "parts",
    [
        "mlx cuda",  # no driver: the bundled library
        "mlx",
        "foreign cuda mlx-cpu",
        "chosen mlx-cpu driver",  # mlx-cpu alone was chosen by hand
        "mlx cuda no_device",
    ],
)
def test_products_without_a_gpu(site: Site, parts: str) -> None:
    made(site, *parts.split())
    assert site.answer(MATMUL) == PRODUCT


@linux
def test_after_the_users_own_import_failed(site: Site) -> None:
    site.add_mlx()
    site.add_cuda()
    first = "try:\n    import mlx.core\n    raise SystemExit(3)\nexcept ImportError:\n    pass\n"
    assert site.answer(first + MATMUL) == PRODUCT


@linux
def test_the_users_own_import_is_taken(site: Site) -> None:
    site.add_mlx()
    assert site.answer(
        "import ctypes, json\n"
        f"ctypes.CDLL({str(site.bundle / LIBRARY)!r}, mode=ctypes.RTLD_GLOBAL)\n"
        "import mlx.core\nfrom nnbt.machine.mlx import core\n"
        "print(json.dumps(core() is mlx.core))"
    )


def test_threads_get_one_module() -> None:
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(nnbt_mlx.core())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


@linux
def test_versions_do_not_import_mlx(site: Site) -> None:
    site.add_mlx()
    site.add_cuda()
    answer = site.answer(
        "import json, sys\nfrom nnbt.machine.mlx import versions\n"
        "print(json.dumps([versions(), 'mlx.core' in sys.modules]))"
    )
    mlx = version("mlx")
    assert answer == [{"mlx": mlx, "mlx-cuda-13": mlx, "bundled-cpu": mlx}, False]


BOTH = f"mlx=={OURS} mlx-cuda-13=={OURS}"
FORCE = "pip install --force-reinstall"


@linux
@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([], f"^MLX is not installed: pip install mlx=={OURS}$"),
        (["mlx", "cuda", "no bindings"],
         r"^The installed MLX has no extension module for Python 3\.\d+: "
         rf"{FORCE} --no-deps mlx==[\d.]+$"),
        (["another"], "^mlx 0.31.0 is installed, but nnbt contains the CPU library of "
                      f"{OURS}: pip install {BOTH}$"),
        (["foreign", "cuda", "mlx-cpu", "driver"],
         f"^ROOT/{LIBRARY} is not the file that mlx-cuda-13 installed "
         r"\(mlx-cpu installs the same path\): "
         f"pip uninstall -y mlx-cpu && {FORCE} --no-deps mlx-cuda-13=={OURS}$"),
        (["mlx", "cuda", "no library", "driver"],
         "is not the file that mlx-cuda-13 installed: pip install --force"),
        (["mlx", "mlx-cuda-12", "driver"],
         "^mlx-cuda-12 is installed, but nnbt needs mlx-cuda-13 here: "
         f"pip uninstall -y mlx-cuda-12 && {FORCE} {BOTH}$"),
        (["mlx", "driver"], f"is not installed: pip install mlx-cuda-13=={OURS}$"),
        (["another", "cuda", "driver"],
         f"mlx 0.31.0 and mlx-cuda-13 {OURS}.*pip install {BOTH}$"),
        (["mlx", "cuda", "driver"],
         f"^libcublasLt.so.13,.*{FORCE} --no-deps nvidia-cublas$"),
        (["mlx", "broken bindings"], r"^MLX [\d.]+ cannot be loaded \(.*\): pip install "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_refusals(site: Site, parts: list[str], text: str) -> None:
    made(site, *parts)
    found = refusal(site)
    assert re.search(text, found.replace(str(site.root), "ROOT")), found


@linux
@pytest.mark.parametrize("kept", [0, 50, 4096, 10_000_000])
def test_bundled_library_cut_short(site: Site, kept: int) -> None:
    site.add_mlx()
    site.replace(site.bundle / LIBRARY, CPU_LIBRARY.read_bytes()[:kept])
    text = refusal(site)
    assert "_mlx_cpu/mlx/lib/libmlx.so" in text
    assert text.endswith("pip install --force-reinstall --no-deps nn-backend-test")


@linux
@pytest.mark.parametrize("name", ["VERSION", str(LIBRARY), "mlx_cpu.libs"])
def test_bundled_file_missing(site: Site, name: str) -> None:
    site.add_mlx()
    path = site.bundle / name
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    text = refusal(site)
    assert "_mlx_cpu/mlx/lib/libmlx.so" in text
    assert text.endswith("pip install --force-reinstall --no-deps nn-backend-test")


@pytest.mark.parametrize("here", [("Darwin", "x86_64"), ("Windows", "AMD64"), ("Linux", "riscv64")])
def test_platform_without_mlx(monkeypatch: pytest.MonkeyPatch, here: tuple[str, str]) -> None:
    monkeypatch.setattr("platform.system", lambda: here[0])
    monkeypatch.setattr("platform.machine", lambda: here[1])
    monkeypatch.delitem(sys.modules, "mlx.core", raising=False)
    nnbt_mlx._import.cache_clear()
    with pytest.raises(Unsupported, match=f"MLX does not support {here[0]} {here[1]}: use"):
        nnbt_mlx.core()


class Extension:
    """Finder and loader in place of MLX's extension module; `load` runs while it is imported."""

    def __init__(self, load: Callable[[], None]) -> None:
        self._load = load

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == "mlx.core" else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Leaves it to Python."""

    def exec_module(self, module: ModuleType) -> None:
        module.array = None
        self._load()


@pytest.fixture
def replace_mlx(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], None]], None]]:
    def replace(load: Callable[[], None]) -> None:
        loaded = nnbt_mlx.core()
        monkeypatch.setattr(sys.modules["mlx"], "core", loaded)
        monkeypatch.delitem(sys.modules, "mlx.core")
        monkeypatch.setattr(sys, "meta_path", [Extension(load), *sys.meta_path])
        monkeypatch.setattr(nnbt_mlx, "_prepare_cpu", lambda _: None)
        monkeypatch.setattr(nnbt_mlx, "_prepare_cuda", lambda _: None)
        nnbt_mlx._import.cache_clear()

    yield replace
    nnbt_mlx._import.cache_clear()


@pytest.mark.parametrize("error", [ImportError, RuntimeError, SyntaxError, AttributeError])
def test_mlx_that_fails_in_another_way(replace_mlx: Any, error: type[Exception]) -> None:
    def fail() -> None:
        raise error("odd")

    replace_mlx(fail)
    with pytest.raises(Unsupported, match=r"^MLX [\d.]+ cannot be loaded \(odd\): pip install"):
        nnbt_mlx.core()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_wait_until_mlx_is_loaded(replace_mlx: Any, number: signal.Signals) -> None:
    """While it loaded, a signal became "MLX cannot be loaded: pip install --force-reinstall ...".

    The other thread takes the signal where this one blocks it, as threads of OpenBLAS do.
    """
    loaded = []

    def interrupted() -> None:
        os.kill(os.getpid(), number)
        time.sleep(0.05)
        loaded.append("mlx.core")

    replace_mlx(interrupted)
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            nnbt_mlx.core()
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
        done.set()
        other.join()
    assert loaded == ["mlx.core"]


def test_mlx_loads_outside_the_main_thread(replace_mlx: Any) -> None:
    """Python sets no signal handlers there."""
    replace_mlx(lambda: None)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(nnbt_mlx.core).result() is sys.modules["mlx.core"]


@linux
def test_package_works_with_mlx_unimportable(site: Site) -> None:
    code = """
import importlib, json, pkgutil, sys
sys.modules["mlx"] = sys.modules["mlx.core"] = None
import nnbt
names = [m.name for m in pkgutil.walk_packages(nnbt.__path__, "nnbt.") if m.name != "nnbt.__main__"]
for name in names:
    importlib.import_module(name)
print(json.dumps(names))
"""
    names = site.answer(code)
    assert isinstance(names, list)
    assert {"nnbt.machine.mlx", "nnbt.pipeline.session", "nnbt._native"} <= set(names)
