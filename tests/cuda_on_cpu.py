"""Kernels of a FakeGpu as they are written: the CUDA source compiled for the CPU and run there."""

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from nnbt.engines.kernel.sources.instructions import MATRIX_INSTRUCTIONS
from nnbt.engines.kernel.sources.rows import Kernel

_TYPES = {"float32": "float", "int32": "int32_t", "uint32": "uint32_t", "uint64": "uint64_t"}


def run(row: Kernel, source: str, options: dict[str, Any], folder: Path) -> list[Any]:
    """Outputs of one launch; `source` is the row's, without its matrix instructions.

    What a kernel doesn't write stays zero. RuntimeError with what it said, if it failed.
    """
    source = re.sub(
        r'asm volatile\("mov\.u64 %0, %%globaltimer;" : "=l"\((\w+)\)::"memory"\);',
        r"\1 = global_timer();",
        source,
    )
    source = re.sub(r"extern __shared__ (.*?)\[\];", r"__shared__ \1[1 << 14];", source)
    # Other assembly here only orders memory, which the CPU does by itself.
    source = re.sub(r"asm volatile\(.*?\);", ";", source, flags=re.DOTALL)
    inputs = [np.array(array) for array in options["inputs"]]
    paths = [folder / f"in{i}" for i in range(len(inputs))]
    for path, array in zip(paths, inputs, strict=True):
        array.tofile(path)
    shapes = dict(zip(("out", "clocks"), options["output_shapes"], strict=False))
    dtypes = [str(dtype).removeprefix("mlx.core.") for dtype in options["output_dtypes"]]
    outputs = list(zip(shapes.items(), dtypes, strict=True))
    reads = "".join(
        f'  const auto file_{name} = read_file<{_TYPES[array.dtype.name]}>("{path}");\n'
        f"  const auto* {name} = file_{name}.data();\n"
        for name, array, path in zip(row.inputs, inputs, paths, strict=True)
    )
    results = "".join(
        f"  std::vector<{_TYPES[dtype]}> file_{name}({int(np.prod(shape))});\n"
        f"  auto* {name} = file_{name}.data();\n"
        for (name, shape), dtype in outputs
    )
    writes = "".join(f'  write_file("{folder / name}", file_{name});\n' for name in shapes)
    constants = "".join(f"  constexpr int {k} = {v};\n" for k, v in options["template"])
    threads = options["threadgroup"][0]
    header = Path(__file__).with_suffix(".h")
    includes = f'#include "{header}"\n'
    if row.name == "tcgen05":
        kind = MATRIX_INSTRUCTIONS[row.dtype].kind
        includes += f'#define KIND "{kind}"\n#include "{header.with_name("tcgen05_on_cpu.h")}"\n'
    program = (
        f"{includes}{source}\nint main() {{\n{reads}"
        f"{results}{constants}"
        f"  launch({options['grid'][0] // threads}, {threads}, [=] {{ {row.body} }});\n"
        f"{writes}}}\n"
    )
    (folder / "kernel.cpp").write_text(program)
    command = ["c++", "-std=c++20", "-O1", "-pthread", "-Wno-unknown-pragmas",
               str(folder / "kernel.cpp"), "-o", str(folder / "kernel")]  # fmt: skip
    subprocess.run(command, check=True)
    ran = subprocess.run(
        [str(folder / "kernel")], check=False, capture_output=True, text=True, timeout=120
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return [
        np.fromfile(folder / name, np.dtype(dtype)).reshape(shape)
        for (name, shape), dtype in outputs
    ]
