"""Kernels of a FakeGpu as they are written: the CUDA source compiled for the CPU and run there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from nnbt.kernels.rows import Kernel

_TYPES = {"float32": "float", "int32": "int32_t", "uint32": "uint32_t"}


def run(row: Kernel, source: str, options: dict[str, Any], folder: Path) -> Any:
    """Output of one launch; `source` is the row's, without its matrix instructions."""
    # Assembly here only orders memory, which the CPU does by itself.
    source = re.sub(r"asm volatile\(.*?\);", ";", source, flags=re.DOTALL)
    inputs = [np.array(array) for array in options["inputs"]]
    paths = [folder / f"in{i}" for i in range(len(inputs))]
    for path, array in zip(paths, inputs, strict=True):
        array.tofile(path)
    shape = options["output_shapes"][0]
    output = str(options["output_dtypes"][0]).removeprefix("mlx.core.")
    reads = "".join(
        f'  const auto file_{name} = read_file<{_TYPES[array.dtype.name]}>("{path}");\n'
        f"  const auto* {name} = file_{name}.data();\n"
        for name, array, path in zip(row.inputs, inputs, paths, strict=True)
    )
    constants = "".join(f"  constexpr int {k} = {v};\n" for k, v in options["template"])
    threads = options["threadgroup"][0]
    program = (
        f'#include "{Path(__file__).with_suffix(".h")}"\n{source}\nint main() {{\n{reads}'
        f"  std::vector<{_TYPES[output]}> file_out({int(np.prod(shape))});\n"
        f"  auto* out = file_out.data();\n{constants}"
        f"  launch({options['grid'][0] // threads}, {threads}, [=] {{ {row.body} }});\n"
        f'  write_file("{folder / "out"}", file_out);\n}}\n'
    )
    (folder / "kernel.cpp").write_text(program)
    command = ["c++", "-std=c++20", "-O1", "-pthread", "-Wno-unknown-pragmas",
               str(folder / "kernel.cpp"), "-o", str(folder / "kernel")]  # fmt: skip
    subprocess.run(command, check=True)
    subprocess.run([str(folder / "kernel")], check=True, timeout=120)
    return np.fromfile(folder / "out", np.dtype(output)).reshape(shape)
