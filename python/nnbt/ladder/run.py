"""Measures the rungs of a ladder, each by an ordinary run, and one in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nnbt import _native
from nnbt._native import Unsupported
from nnbt.ladder import rungs as ladder
from nnbt.ladder.causes import explain_losses
from nnbt.ladder.rungs import RUNGS, Kind, Ladder, Rung
from nnbt.ladder.tests import LARGE_LOSS, loaded_blas
from nnbt.machine import mlx as _mlx
from nnbt.machine.devices import DEVICES, default_device
from nnbt.machine.facts import machine
from nnbt.machine.mlx_runtime import product_precision, set_tf32
from nnbt.machine.shared_cores import find_shared_cores
from nnbt.peaks.chips import chip
from nnbt.peaks.published import PEAK_TYPE
from nnbt.pipeline.matrix import engines_of
from nnbt.pipeline.plan import check_options
from nnbt.pipeline.session import execute, now
from nnbt.results.result import Run
from nnbt.spec.precision import tf32_enabled, unit_dtype
from nnbt.spec.threads import THREADS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnbt.machine.shared_cores import SharedCores
    from nnbt.pipeline.listener import Listener
    from nnbt.spec.options import Options
    from nnbt.spec.workload import Measure

_PRODUCTS = {"float32": "cblas_sgemm", "float64": "cblas_dgemm", "complex64": "cblas_cgemm"}
"""The function that MLX multiplies each type with on the CPU."""
_TRY_SECONDS, _TRY_WINDOWS = 120, 20
"""For the process with the other BLAS: start and checks, and so many times --max-seconds a size."""
_NOT_PRELOADED = "cannot be preloaded"  # what ld.so says, and then goes on without it


def climb(
    options: Options,
    *,
    library: str | None = None,
    listener: Listener | None = None,
    measure: Measure | None = None,
    argv: Sequence[str] = (),
) -> tuple[Ladder, Run]:
    """The ladder of one metric and dtype, and all results behind it.

    `library` is a BLAS to be preloaded in a process of its own. Raises Unsupported where there is
    no ladder of what the options ask for.
    """
    device = _checked(options, library)
    metric, (token,) = options.metrics[0], check_options(options)
    options = replace(options, dtypes=(token,))
    precision, tensor_float = _float32_precision(options, device)
    whole = Run(machine().as_dict(), list(argv), now())
    runs: dict[str, Run] = {}
    rungs: dict[str, Rung] = {}
    for key, kind in RUNGS.items():
        asked = ladder.rung_options(options, device, kind, tensor_float=tensor_float is True)
        if asked is None:
            continue
        if asked.engines[0] not in engines_of(metric):
            rungs[key] = Rung(kind, reason=kind.without)
            continue
        try:
            run = runs[key] = execute(asked, measure=measure, listener=listener)
        except Unsupported as error:
            rungs[key] = ladder.refused(kind, error)
            continue
        whole.machine = run.machine
        whole.results += run.results
        rungs[key] = ladder.best_of(kind, run)
    gpu_peak = partial(_gpu_peak, device_name=str(whole.machine.get("device_name", "")))
    above = (unit_dtype(token, precision) or token) if token == "float32" else token
    rungs["published"] = ladder.published(metric, device, above, whole.machine)
    rungs["clock"] = ladder.clock_derived(
        metric, above, runs.get("native"), rungs["native"].row, gpu_peak
    )
    if library is not None:
        rungs["tried"] = preloaded(RUNGS["tried"], options, library)
    whole.finished = True
    unit = next((rung.unit for rung in rungs.values() if rung.unit), "")
    found = Ladder(metric, device, token, unit, tuple(rungs[key] for key in RUNGS if key in rungs))
    losses = explain_losses(
        found,
        blas=loaded_blas() if device == "cpu" else "",
        usable_cpus=machine().usable_cpus,
        cores=_native.allowed_cores(),
        tensor_float=tensor_float,
        shared=_shared_cores(found, measure or cast("Measure", _native.measure)),
    )
    return replace(found, losses=losses), whole


def _checked(options: Options, library: str | None) -> str:
    """The device. Raises Unsupported with one sentence."""
    metric = options.metrics[0]
    known = ladder.METRICS_WITH_LADDER
    if metric not in known:
        raise Unsupported(f"There is no ladder of {metric}: type --metric {' or '.join(known)}.")
    device = default_device()[0] if options.device == "auto" else options.device
    if device not in ladder.ENGINES:
        raise Unsupported(f"There is no ladder of device {device}: type --device cpu or gpu.")
    missing = DEVICES[device].missing()
    if missing is not None:
        raise missing
    if library is not None:
        _check_library(options, device, library)
    return device


def _check_library(options: Options, device: str, library: str) -> None:
    token = options.dtypes[0]
    if sys.platform != "linux":
        raise Unsupported("--try replaces the BLAS of MLX's Linux wheel: leave it out here.")
    if device != "cpu" or options.metrics[0] != "flops" or token not in _PRODUCTS:
        raise Unsupported(
            "--try preloads a BLAS, which multiplies on the CPU: type --device cpu --metric flops "
            f"--dtype {' or '.join(_PRODUCTS)}, or leave it out."
        )
    try:
        path = Path(library).resolve()
        there, folder = path.is_file(), path.is_dir()
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "it is a link to itself, or its folder is gone"
        raise Unsupported(f"{library} can't be opened ({why}): {_NAME_A_BLAS}") from error
    if set(str(path)) & {" ", ":"}:
        raise Unsupported(
            f"{library} can't be preloaded, since the loader splits paths at spaces and colons: "
            "type --try with a path without them, such as a link."
        )
    if not there:
        what = "is a folder" if folder else "is not there"
        raise Unsupported(f"{library} {what}: {_NAME_A_BLAS}")
    said = _said_of(library, _PRODUCTS[token])
    if said == _LACKS:
        raise Unsupported(
            f"{library} has no {_PRODUCTS[token]}, which MLX calls (the OpenBLAS inside NumPy and "
            "SciPy is built with other names): type --try with a system's OpenBLAS, such as "
            "Debian's libopenblas0."
        )
    if said.startswith(_UNLOADABLE):
        why = said.removeprefix(_UNLOADABLE)
        raise Unsupported(f"The system can't load {library} ({why}): {_NAME_A_BLAS}")


_NAME_A_BLAS = (
    "type --try with the path of an OpenBLAS that is installed (Debian's libopenblas0 has "
    "libopenblas.so.0, in /usr/lib and the machine's name)."
)
_LACKS, _UNLOADABLE = "lacks", "unloadable: "
_LOAD_SECONDS = 20
# Marked, and the end of the process: a library may print what it likes, also when it is unloaded.
_MARK = "nnbt-says:"
_LOAD = f"""
import ctypes, os, sys
try:
    library = ctypes.CDLL(sys.argv[1])
except OSError as error:
    said = "{_UNLOADABLE}" + str(error)
else:
    said = "" if hasattr(library, sys.argv[2]) else "{_LACKS}"
print("{_MARK}" + said, flush=True)
os._exit(0)
"""


def _said_of(library: str, symbol: str) -> str:
    """What a process of its own says of the library: `lacks`, `unloadable: ...` or nothing.

    Nothing also where loading it ends that process: the one that preloads it tells.
    """
    command = [sys.executable, "-c", _LOAD, str(Path(library).resolve()), symbol]
    try:
        done = subprocess.run(  # noqa: S603  this Python
            command, capture_output=True, check=False, timeout=_LOAD_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"{_UNLOADABLE}loading it did not end within {_LOAD_SECONDS} s"
    said = done.stdout.decode(errors="replace").partition(_MARK)[2]
    return said.partition("\n")[0]


def _float32_precision(options: Options, device: str) -> tuple[str, bool | None]:
    """(how MLX multiplies float32 here, whether it uses the TF32 units of an NVIDIA GPU).

    The latter is None without such units: the upper rungs of an Apple GPU are of float32 always.
    """
    if device != "gpu":
        return "full", None
    with contextlib.suppress(Unsupported):  # each rung says so
        set_tf32(options.tf32)  # before MLX is loaded
    try:
        mx = _mlx.core()
    except Unsupported:
        return "unknown", None
    used, most = (
        product_precision(mx, "float32", device, tf32=enabled)
        for enabled in (tf32_enabled(options.tf32), True)
    )
    has_units = most == "TF32" and _mlx.backend() == "cuda"
    return used, used == "TF32" if has_units else None


def _shared_cores(found: Ladder, measure: Measure) -> SharedCores | None:
    """Looked for only where it would explain a large loss: it takes a while with many CPUs."""
    row = found.row("native")
    rung = next(rung for rung in found.rungs if rung.kind.key == "native")
    share = found.share_of_above(rung)
    if found.device != "cpu" or row is None or "chain" not in row.case.params:
        return None
    if share is None or share >= LARGE_LOSS:
        return None
    params = row.case.params
    return find_shared_cores(measure, str(params["chain"]), int(params[THREADS]))


def _gpu_peak(token: str, clock_hz: float, device_name: str) -> float | None:
    """By the multiprocessors that are there, else as the chip's row in data/chips.toml counts."""
    from nnbt.engines.kernel import launcher as gpu_kernels

    capability = gpu_kernels.compute_capability(_mlx.core())
    peak = capability and gpu_kernels.clock_peak(token, capability, clock_hz)
    if peak:
        return peak
    known, computed = chip(device_name), unit_dtype(token, "") or token
    figure = known and known.ceiling(PEAK_TYPE.get(computed, computed), clock_hz)
    return figure or None


def preloaded(kind: Kind, options: Options, library: str) -> Rung:
    """The rung `mlx`, measured by another process that loads `library` before everything else."""
    metric = options.metrics[0]
    sizes = options.sizes or ladder.SIZES[metric, "cpu"]
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
            return Rung(kind, reason=f"With {library} MLX did not end within {limit_s:,.0f} s.")
        if _NOT_PRELOADED in done.stderr:
            return Rung(kind, reason=f"{library} is no library that this system can load.")
        if not path.is_file():
            said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            return Rung(kind, reason=f"The process with {library} ended early: {said[0]}")
        rows = json.loads(path.read_text(encoding="utf-8"))["results"]
    return _tried(kind, rows, Path(library).name)


def _tried(kind: Kind, rows: list[dict[str, Any]], name: str) -> Rung:
    """The best row of the other process; a wrong product is no gain."""
    good = [row for row in rows if row["rate"] and row["verdict"] != "INVALID"]
    if not good:
        sentences = [row["reason"] or " ".join(row["sentences"].values()) for row in rows]
        verdict = rows[0]["verdict"] or rows[0]["status"] if rows else ""
        return Rung(kind, reason=f"With {name}: {' '.join(sentences)}", verdict=verdict)
    best = max(good, key=lambda row: float(row["rate"]))
    by = f"{name}, n = {best['case']['n']}"
    return Rung(kind, float(best["rate"]), best["unit"], by, "", best["verdict"])
