"""--try: MLX eager, measured in a process that preloads another BLAS."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from nnbt.ladder.rungs import RUNGS, Rung
from nnbt.ladder.sources import SIZES, best_of
from nnbt.results.files import load
from nnbt.spec.errors import Refusal
from nnbt.spec.options import Options

_PRODUCTS = {"float32": "cblas_sgemm", "float64": "cblas_dgemm", "complex64": "cblas_cgemm"}
"""The function that MLX calls for a product of each dtype on the CPU."""
_TRY_SECONDS, _TRY_WINDOWS = 120, 20
"""Time limit of the process: start and checks, and this many times --max-seconds per size."""
_NOT_PRELOADED = "cannot be preloaded"  # ld.so's words; it goes on without the library
_LOAD_SECONDS = 20
_USE_ONE = (
    "use --try with the path of an installed OpenBLAS, such as libopenblas.so.0 of Debian's "
    "libopenblas0"
)


def check_library(options: Options, device: str, library: str) -> None:
    """Raises Refusal for a library, or options, that --try cannot measure."""
    token = options.dtypes[0]
    if sys.platform != "linux":
        raise Refusal("--try replaces the BLAS of MLX's Linux wheel", "omit it on this system")
    if device != "cpu" or options.metrics[0] != "flops" or token not in _PRODUCTS:
        raise Refusal(
            "--try preloads a BLAS, which only multiplies on the CPU",
            f"use --device cpu --metric flops --dtype {' or '.join(_PRODUCTS)}, or omit --try",
        )
    try:
        path = Path(library).resolve()
        there, folder = path.is_file(), path.is_dir()
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "a link to itself, or a deleted folder"
        raise Refusal(f"{library} cannot be opened ({why})", _USE_ONE) from error
    if set(str(path)) & {" ", ":"}:
        raise Refusal(
            f"{library} cannot be preloaded, since the loader splits paths at spaces and colons",
            "use a path without them, such as a link",
        )
    if not there:
        raise Refusal(f"{library} {'is a folder' if folder else 'does not exist'}", _USE_ONE)
    trial = try_loading(library, _PRODUCTS[token])
    if trial.problem == "no function":
        raise Refusal(
            f"{library} has no {_PRODUCTS[token]}, which MLX calls (the OpenBLAS of NumPy and "
            "SciPy uses other names)",
            "use a system's OpenBLAS, such as Debian's libopenblas0",
        )
    if trial.problem == "not loadable":
        raise Refusal(f"{library} cannot be loaded ({trial.detail})", _USE_ONE)


@dataclass(frozen=True)
class Trial:
    """What a separate process found: `problem` is empty if it found none."""

    problem: Literal["", "no function", "not loadable"] = ""
    detail: str = ""


# The library may print anything, also when it is unloaded: hence the mark and os._exit.
_MARK = "nnbt-trial:"
_LOAD = f"""
import ctypes, json, os, sys
try:
    library = ctypes.CDLL(sys.argv[1])
except OSError as error:
    found = ["not loadable", str(error)]
else:
    found = ["", ""] if hasattr(library, sys.argv[2]) else ["no function", sys.argv[2]]
print("{_MARK}" + json.dumps(found), flush=True)
os._exit(0)
"""


def try_loading(library: str, symbol: str) -> Trial:
    """Loads the library in a separate process and looks for a function.

    No problem is reported if loading ends the process: the one that preloads it will tell.
    """
    command = [sys.executable, "-c", _LOAD, str(Path(library).resolve()), symbol]
    try:
        done = subprocess.run(  # noqa: S603  this Python
            command, capture_output=True, check=False, timeout=_LOAD_SECONDS
        )
    except subprocess.TimeoutExpired:
        return Trial("not loadable", f"loading did not finish within {_LOAD_SECONDS} s")
    found = done.stdout.decode(errors="replace").partition(_MARK)[2].partition("\n")[0]
    return Trial(*json.loads(found)) if found else Trial()


def preloaded_rung(options: Options, library: str) -> Rung:
    """Rung `tried`: as rung `mlx`, in a process that loads `library` before everything else."""
    kind, name = RUNGS["tried"], Path(library).name
    metric = options.metrics[0]
    sizes = options.sizes or SIZES[metric, "cpu"]
    with tempfile.TemporaryDirectory(prefix="nnbt-") as folder:
        path = Path(folder) / "run.json"
        command = [
            sys.executable, "-m", "nnbt", "--metric", metric, "--device", "cpu",
            "--dtype", options.dtypes[0], "--sizes", *map(str, sizes),
            "--max-seconds", str(options.max_seconds), "--cpu-workers", str(options.cpu_workers),
            "--warmup", str(options.warmup), "--json", str(path), "--no-fail",
            *(["--runs", str(options.runs)] if options.runs else []),
        ]  # fmt: skip
        libraries = (str(Path(library).resolve()), os.environ.get("LD_PRELOAD"))
        limit_s = _TRY_SECONDS + _TRY_WINDOWS * options.max_seconds * len(sizes)
        try:
            done = subprocess.run(  # noqa: S603  this Python, with options that were checked
                command,
                env={**os.environ, "LD_PRELOAD": ":".join(filter(None, libraries))},
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=limit_s,
            )
        except subprocess.TimeoutExpired:
            return Rung(kind, reason=f"With {name} MLX did not finish within {limit_s:,.0f} s.")
        if _NOT_PRELOADED in done.stderr:
            return Rung(kind, reason=f"This system cannot preload {name}.")
        if not path.is_file():
            said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            return Rung(kind, reason=f"The process with {name} failed: {said[0]}")
        rung = best_of(kind, load(path))
    if rung.row is None:
        return replace(rung, reason=f"With {name}: {rung.reason}")
    return replace(rung, by=f"{name}, n = {rung.row.case.n}")
