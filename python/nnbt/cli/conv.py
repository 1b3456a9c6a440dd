"""What the options of `nnbt conv` stand for: it measures metric conv as `nnbt` does all others."""

from collections.abc import Mapping
from typing import Any

from nnbt.engines.mpsgraph import conv as mpsgraph
from nnbt.spec.conv import VARIANTS
from nnbt.spec.errors import Refusal
from nnbt.spec.options import OPTIONS, Options, make_options, spelled


def conv_options(given: Mapping[str, Any]) -> Options:
    """Options with engine, device and types chosen where the user left them open.

    Raises Refusal.
    """
    engines = given.get("engine", ("auto",))
    if "auto" in engines:
        engines = ("mpsgraph",) if mpsgraph.missing() is None else ("mlx",)
    device = given.get("device", "auto")
    if device == "auto" and "mpsgraph" in engines:
        device = "all"
    asked = [name for name in ("counters", "verbose_pmu") if given.get(name)]
    on_ane = "mpsgraph" in engines and device in ("all", "ane")
    if asked and not (on_ane and given.get("counters", True)):
        where = f"{spelled('engine', 'mpsgraph')} {spelled('device', 'ane')}"
        raise Refusal(
            f"{spelled(asked[0])} reads the counters of the Neural Engine",
            f"use it with {where} and without --no-pmu, on an Apple silicon Mac",
        )
    dtypes = given.get("dtype", ("all",) if "mpsgraph" in engines else ("float16",))
    every = "all" in dtypes
    chosen: dict[str, Any] = {
        "metric": ("conv",),
        "engine": engines,
        "device": device,
        "dtype": tuple(VARIANTS.values()) if every else dtypes,
        "lenient": every or device == "all",
    }
    if given.get("control"):
        kernel = given.get("kernel", OPTIONS["kernel"].default)
        chosen["kernel"] = tuple(dict.fromkeys((kernel, 1)))
    return make_options({**given, **chosen}, "conv")
