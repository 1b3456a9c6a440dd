"""Compiles GPU kernels without a GPU: NVRTC on the source that mx.fast.cuda_kernel would build.

The wrapping (include, namespace, signature, constants, flags) is read off MLX's own library and its
mlx/backend/cuda/custom_kernel.cpp; MLX's device headers are cut out of libmlx.so.
"""

import ctypes
import importlib.util
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nnbt.engines.kernel.sources.rows import Kernel

_FOLDER = "mlx/backend/cuda/device/"
# Each header by a line that no other has.
_HEADERS = {
    "utils.cuh": "struct alignas(sizeof(T) * N) AlignedVector",
    "config.h": "#define MAX_NDIM",
    "complex.cuh": "using complex64_t",
}
_CUDA_TYPES = {"float32": "float", "int32": "int32_t", "uint32": "uint32_t"}


@cache
def site() -> Path:
    """The site-packages folder that has MLX's CUDA library and NVIDIA's wheels."""
    spec = importlib.util.find_spec("mlx")
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations))).parent


@cache
def library() -> ctypes.CDLL:
    return ctypes.CDLL(str(site() / "nvidia/cu13/lib/libnvrtc.so.13"))


@cache
def device_headers() -> dict[str, str]:
    """MLX's headers for kernels, which lie in its library as strings."""
    image = (site() / "mlx/lib/libmlx.so").read_bytes()
    texts = [
        match.group().decode(errors="replace")
        for match in re.finditer(rb"// Copyright[^\0]{40,}", image)
        if b"#pragma once" in match.group()
    ]
    return {name: next(t for t in texts if mark in t) for name, mark in _HEADERS.items()}


_WITH_HEADERS = (
    f'#include "{_FOLDER}utils.cuh"\n#include <cooperative_groups.h>\n'
    "#define inf cuda::std::numeric_limits<float>::infinity()\n"
)
_WITHOUT_HEADERS = (
    "using int32_t = int; using uint32_t = unsigned int; using uint64_t = unsigned long long;\n"
    "namespace cooperative_groups {}\n"
)


def source(
    row: Kernel,
    inputs: list[str],
    output: str,
    template: list[tuple[str, int]],
    *,
    headers: bool = True,
) -> str:
    """What mx.fast.cuda_kernel compiles; `inputs` and `output` are MLX dtypes.

    Without `headers` it compiles four times as fast: our kernels use nothing of MLX's.
    """
    arguments = [
        f"    const {_CUDA_TYPES[dtype]}* {name}"
        for name, dtype in zip(row.inputs, inputs, strict=True)
    ]
    arguments.append(f"    {_CUDA_TYPES[output]}* out")
    arguments += ["    uint64_t* clocks"] * row.clocks
    constants = "".join(f"  constexpr int {name} = {value};\n" for name, value in template)
    return (
        f"{_WITH_HEADERS if headers else _WITHOUT_HEADERS}{row.source}"
        "namespace mlx::core::cu {\nnamespace cg = cooperative_groups;\n"
        "__global__ void kernel(\n" + ",\n".join(arguments) + ") {\n"
        f"{constants}{row.body}\n}}\n}} // namespace mlx::core::cu\n"
    )


@dataclass(frozen=True)
class Compiled:
    log: str
    cubin: bytes


def compile_source(text: str, architecture: str) -> Compiled:
    """Compiles for a real architecture such as sm_90a; raises RuntimeError with the log."""
    nvrtc, program = library(), ctypes.c_void_p()
    headers = device_headers()
    names = (ctypes.c_char_p * len(headers))(*[(_FOLDER + n).encode() for n in headers])
    texts = (ctypes.c_char_p * len(headers))(*[t.encode() for t in headers.values()])
    error = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), b"kernel.cu", len(headers), texts, names
    )
    assert error == 0
    flags = [
        f"--gpu-architecture={architecture}", f"--include-path={site() / 'mlx/include/cccl'}",
        f"--include-path={site() / 'nvidia/cu13/include'}", "--ptxas-options=--verbose",
    ]  # fmt: skip
    options = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
    try:
        error = nvrtc.nvrtcCompileProgram(program, len(flags), options)
        log = _fetch(nvrtc, program, "ProgramLog").rstrip(b"\0").decode()
        if error:
            raise RuntimeError(f"NVRTC error {error} for {architecture}:\n{log}")
        return Compiled(log, _fetch(nvrtc, program, "CUBIN"))
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _fetch(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    assert getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
    buffer = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{what}")(program, buffer) == 0
    return buffer.raw


def disassembler() -> str | None:
    """nvdisasm of a CUDA toolkit or of the nvidia-cuda-nvdisasm wheel."""
    for entry in sys.path:
        path = Path(entry) / "nvidia/cu13/bin/nvdisasm"
        if path.is_file():
            return str(path)
    return shutil.which("nvdisasm")


def disassemble(cubin: bytes, folder: Path) -> str:
    program = disassembler()
    assert program is not None
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    return subprocess.run(
        [program, "-c", str(path)], capture_output=True, text=True, check=True
    ).stdout
