"""Measures a ladder: an ordinary run for each rung, then the causes of large losses."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from nnbt import _native
from nnbt.ladder import sources
from nnbt.ladder.causes import explain_losses
from nnbt.ladder.conditions import Host, loaded_blas, preloaded
from nnbt.ladder.preload import check_library, preloaded_rung
from nnbt.ladder.rungs import LARGE_LOSS, RUNGS, Ladder, Rung
from nnbt.machine import mlx
from nnbt.machine.devices import DEVICES, default_device
from nnbt.machine.facts import machine
from nnbt.machine.mlx_runtime import product_precision, set_tf32
from nnbt.machine.shared_cores import SharedCores, find_shared_cores
from nnbt.pipeline.listener import Listener
from nnbt.pipeline.matrix import engines_of
from nnbt.pipeline.plan import check_options
from nnbt.pipeline.session import execute, now
from nnbt.results.result import Run
from nnbt.spec.errors import Refusal, Unsupported
from nnbt.spec.metric import METRICS
from nnbt.spec.options import Options
from nnbt.spec.precision import tf32_enabled, unit_dtype
from nnbt.spec.threads import THREADS
from nnbt.spec.workload import Measure


def measure_ladder(
    options: Options,
    *,
    library: str | None = None,
    listener: Listener | None = None,
    measure: Measure | None = None,
    argv: Sequence[str] = (),
) -> tuple[Ladder, Run]:
    """The ladder of one metric and dtype, and all results behind it.

    `library` is a BLAS to preload in a separate process. Raises Unsupported for options that have
    no ladder.
    """
    device = _checked(options, library)
    metric, (token,) = options.metrics[0], check_options(options)
    options = replace(options, dtypes=(token,))
    precision, tf32 = _float32_precision(options, device)
    whole = Run(machine().as_dict(), list(argv), now())
    rungs: dict[str, Rung] = {}
    native: Run | None = None
    for key, kind in RUNGS.items():
        asked = sources.rung_options(options, device, kind, tf32=tf32 is True)
        if asked is None:
            continue
        if asked.engines[0] not in engines_of(metric):
            rungs[key] = Rung(kind, reason=kind.missing)
            continue
        try:
            run = execute(asked, measure=measure, listener=listener)
        except Unsupported as error:
            rungs[key] = sources.refused(kind, error)
            continue
        native = run if kind.ceiling else native
        whole.machine = run.machine
        whole.results += run.results
        rungs[key] = sources.best_of(kind, run)
    above = (unit_dtype(token, precision) or token) if token == "float32" else token
    rungs["published"] = sources.published(metric, device, above, whole.machine)
    rungs["clock"] = sources.clock_derived(
        metric, above, native, rungs["native"].row, whole.machine
    )
    if library is not None:
        rungs["tried"] = preloaded_rung(options, library)
    whole.finished = True
    unit = next((rung.unit for rung in rungs.values() if rung.unit), "")
    found = Ladder(metric, device, token, unit, tuple(rungs[key] for key in RUNGS if key in rungs))
    host = Host(
        usable_cpus=machine().usable_cpus,
        cores=_native.allowed_cores(),
        mlx_blas=loaded_blas() if device == "cpu" else "",
        preloaded=preloaded(),
        tf32=tf32,
        shared=_shared_cores(found, measure or cast("Measure", _native.measure)),
    )
    return replace(found, losses=explain_losses(found, host)), whole


def _checked(options: Options, library: str | None) -> str:
    """The device. Raises Unsupported for options that have no ladder."""
    metric = options.metrics[0]
    known = [name for name in METRICS if sources.ceiling_engines(name)]
    if metric not in known:
        raise Refusal(
            f"nnbt ladder does not measure {metric}", f"use --metric {' or '.join(known)}"
        )
    device = default_device()[0] if options.device == "auto" else options.device
    devices = sources.ceiling_engines(metric)
    if device not in devices:
        raise Refusal(
            f"nnbt ladder does not measure device {device}", f"use --device {' or '.join(devices)}"
        )
    missing = DEVICES[device].missing()
    if missing is not None:
        raise missing
    if library is not None:
        check_library(options, device, library)
    return device


def _float32_precision(options: Options, device: str) -> tuple[str, bool | None]:
    """(how MLX computes float32 products, whether it uses the TF32 units of an NVIDIA GPU).

    The latter is None without such units: the upper rungs of an Apple GPU are always of float32.
    """
    if device != "gpu":
        return "full", None
    with contextlib.suppress(Unsupported):  # each rung reports it
        set_tf32(options.tf32)  # before MLX is loaded
    try:
        mx = mlx.core()
    except Unsupported:
        return "unknown", None
    used, most = (
        product_precision(mx, "float32", device, tf32=enabled)
        for enabled in (tf32_enabled(options.tf32), True)
    )
    has_units = most == "TF32" and mlx.backend() == "cuda"
    return used, used == "TF32" if has_units else None


def _shared_cores(ladder: Ladder, measure: Measure) -> SharedCores | None:
    """CPUs that share cores; looked for only if that would explain a large loss of peak chains."""
    native = ladder.rung("native")
    if ladder.device != "cpu" or native is None or native.row is None:
        return None
    share, params = ladder.share_of_above(native), native.row.case.params
    if "chain" not in params or share is None or share >= LARGE_LOSS:
        return None
    return find_shared_cores(measure, str(params["chain"]), int(params[THREADS]))
