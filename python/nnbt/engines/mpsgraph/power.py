"""Energy of a row of `conv`, from what the helper process read around its timed runs."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nnbt.engines.mpsgraph.helper import MISREAD
from nnbt.spec.details import Power, RailEnergy


def power_of(found: Mapping[str, Any], run_s: float) -> Power:
    """The helper's object "power", with watts and joules of a run by rail.

    `run_s` is the mean time of a run; power is the mean over the window.
    """
    power = Power(str(found.get("ioreport")), detail=str(found.get("detail") or ""), raw=found)
    if power.status != "ok":
        return power
    try:
        window_s = float(found["window_s"])
        if not 0 < window_s < math.inf:
            return power
        rails = tuple(
            _rail(str(name), float(energy_j), window_s, run_s)
            for name, energy_j in found["energy_j"].items()
        )
    except MISREAD as error:
        return replace(power, detail=f"{power.detail} energies cannot be read ({error!r})".strip())
    return replace(power, window_s=window_s, rails=rails)


def _rail(name: str, energy_j: float, window_s: float, run_s: float) -> RailEnergy:
    power_w = energy_j / window_s
    figures = (energy_j, power_w, power_w * run_s)
    return RailEnergy(name, *(value if math.isfinite(value) else None for value in figures))
