"""Site-packages folders made for one test, and NVIDIA drivers that answer as a test wants."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path

import pytest

import nnbt
from nnbt import _native

OURS = ("mlx", "nvidia", "nnbt", "nn_backend_test", "_nn_backend_test", "__pycache__")
LIBRARY = Path("mlx/lib/libmlx.so")

DRIVER = """
#include <stdio.h>
#include <stdlib.h>
static int number(const char* name) { return atoi(getenv(name)); }
int cuDriverGetVersion(int* version) { *version = number("FAKE_VERSION"); return 0; }
int cuInit(unsigned flags) { return number("FAKE_INIT") + (int)flags; }
int cuDeviceGetCount(int* count) { *count = number("FAKE_COUNT"); return 0; }
int cuDeviceGet(int* device, int index) { *device = 7 + index; return 0; }
int cuDeviceGetName(char* name, int size, int device) {
  return snprintf(name, size, "GPU %d", device) < 0;
}
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = device + 16 * i;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { *bytes = (size_t)device << 36; return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 16 ? 132 : attribute == 75 ? 9 : attribute == 76 ? device - 7 : -1;
  return number("FAKE_ATTRIBUTE_ERROR");
}
"""


def link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(source)


def compile_library(source: str, target: Path) -> None:
    """Builds a shared library out of C source."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip(f"no C compiler to build a fake {target.name} with")
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-shared", "-fPIC", "-o", target, "-x", "c", "-"]
    subprocess.run(command, input=source, text=True, check=True)


@dataclass
class Site:
    """A site-packages folder with nnbt and all that is installed, but no part of MLX."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    path: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        for folder in [Path(entry) for entry in sys.path if entry.endswith("-packages")]:
            for entry in folder.iterdir():
                target = self.root / entry.name
                if not entry.name.startswith(OURS) and not target.is_symlink():
                    link(entry, target)
        for source in Path(nnbt.__file__).parent.iterdir():
            if source.suffix != ".so" and source.name not in {"_mlx_cpu", "__pycache__"}:
                link(source, self.root / "nnbt" / source.name)
        extension = Path(_native.__file__)
        link(extension, self.root / "nnbt" / extension.name)
        for source in (extension.parent / "_mlx_cpu").rglob("*"):
            if source.is_file():
                link(source, self.root / "nnbt" / source.relative_to(extension.parent))

    @property
    def bundle(self) -> Path:
        return self.root / "nnbt/_mlx_cpu"

    def replace(self, path: Path, content: bytes) -> None:
        path.unlink()
        path.write_bytes(content)

    def add_distribution(self, name: str, version: str, record: str = "") -> None:
        info = self.root / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text(record)

    def add_mlx(self, version: str | None = None, library: Path | None = None) -> None:
        """MLX's real bindings, without a libmlx.so or with the given one."""
        real = distribution("mlx")
        for source in Path(str(real.locate_file("mlx"))).iterdir():
            if source.name != "lib":
                link(source, self.root / "mlx" / source.name)
        self.add_distribution("mlx", version or real.version)
        if library:
            link(library, self.root / LIBRARY)

    def add_cuda(self) -> None:
        """The real mlx-cuda-13 without NVIDIA's wheels; a library that is there already stays."""
        real = distribution("mlx-cuda-13")
        site = Path(str(real.locate_file("")))
        if not (self.root / LIBRARY).exists():
            link(site / LIBRARY, self.root / LIBRARY)
        link(site / "mlx_cuda_13.libs", self.root / "mlx_cuda_13.libs")
        size = (site / LIBRARY).stat().st_size
        self.add_distribution("mlx-cuda-13", real.version, f"{LIBRARY},sha256=x,{size}\n")

    def add_driver(
        self, version: int = 13000, init: int = 0, count: int = 1, attribute_error: int = 0
    ) -> None:
        """A libcuda.so.1 that answers with these numbers, first on the loader's path."""
        folder = self.root / "driver"
        compile_library(DRIVER, folder / "libcuda.so.1")
        self.env |= {"LD_LIBRARY_PATH": str(folder), "FAKE_VERSION": str(version)}
        self.env |= {"FAKE_INIT": str(init), "FAKE_COUNT": str(count)}
        self.env |= {"FAKE_ATTRIBUTE_ERROR": str(attribute_error)}

    def python(self, code: str) -> subprocess.CompletedProcess[str]:
        """Runs code with this folder as the only site-packages, and no GPU but a fake one."""
        keep = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "TMPDIR", "LANG"}}
        path = os.pathsep.join(map(str, [self.root, *self.path]))
        hidden = {} if "FAKE_COUNT" in self.env else {"CUDA_VISIBLE_DEVICES": ""}
        return subprocess.run(
            [sys.executable, "-S", "-c", code],
            env=keep | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"} | hidden | self.env,
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip

    def answer(self, code: str) -> object:
        """What the code printed, as JSON."""
        done = self.python(code)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
