"""Precision: correct bits of a result, and in which precision a float32 product was computed.

The error of the output tells the number of correct bits. Where it cannot tell TF32 from float32,
or nothing was compared, the answer is what MLX does on that device.
"""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

PrecisionName = Literal["", "full", "TF32", "reduced", "unknown"]
"""How a float32 or complex64 product was computed; empty for dtypes that have one precision only.

`reduced` has fewer bits than the dtype keeps and is not the TF32 that MLX uses by default there.
"""

ROUNDING_BITS = 1.2
"""-log2 of the relative RMS error of values rounded to p bits is p + 1.2 (normal distribution)."""
LEAST_BITS = {53: 40.0, 24: 8.5, 11: 7.5, 8: 5.0}
"""By mantissa bits of the dtype: an output with fewer correct bits is wrong."""
BITS_MARGIN = 2.5  # allowed shortfall below `expected_bits`
TF32_MANTISSA = 11
TF32_MOST_BITS = 14.0
"""Random data never shows more correct bits of a TF32 product: 10.1 to 11 were measured."""
FEW_PRODUCTS = 8
"""With shorter sums the output is so small that TF32 may be exact to more bits by chance."""

_FLOAT32 = ("float32", "complex64")
_TF32_CAPABILITY = 8
"""CUDA compute capability (major) of the first GPUs with TF32 units; cuBLAS uses float32 before."""
_NAX_GENERATION = 17
_NAX_MACOS = (26, 2)
"""MLX uses the matrix units of Apple GPUs from generation 17 (M5) and macOS 26.2 on:
`is_nax_available()` in mlx/backend/metal/device.cpp. They get float32 truncated to 11 bits
(mlx#3860: error 2^-10.4 on an M5, 2^-19.8 with MLX_ENABLE_TF32=0, 2^-21.7 on an M3 Max). Products
of complex64 never go there (mlx/backend/metal/matmul.cpp)."""


@dataclass(frozen=True)
class Precision:
    """How a product was computed, and the mantissa bits that the checks may ask for."""

    name: PrecisionName
    mantissa: int | None

    def label(self, bits: float | None, *, device: str) -> str:
        """Such as `TF32, 11 bit`; empty where the name of the dtype says it all."""
        if not self.name or (self.name == "full" and device == "cpu"):
            return ""
        known = bits is not None and math.isfinite(bits)
        return f"{self.name}, {min(bits or 0.0, 53):.0f} bit" if known else self.name


def effective_bits(error: float | None) -> float | None:
    """Correct bits of values with this relative RMS error; None for none, infinity for 0."""
    if error is None or math.isnan(error) or error < 0:
        return None
    return math.inf if error == 0 else max(0.0, -math.log2(error) - ROUNDING_BITS)


def expected_bits(mantissa: int, inner: int) -> float:
    """Bits that survive a sum of `inner` products in this type: the error grows as sqrt(inner).

    16-bit types are summed in float32, so only the rounding of their output remains.
    """
    summed = 53 if mantissa > 24 else 24
    return min(float(mantissa), summed - 0.5 * math.log2(max(1, inner)))


def tf32_enabled(mode: str = "default", environment: Mapping[str, str] | None = None) -> bool:
    """Whether TF32 is allowed: `mode` is that of --tf32, `default` reads MLX's variable."""
    found = os.environ if environment is None else environment
    return {"on": True, "off": False}.get(mode, found.get("MLX_ENABLE_TF32", "1") != "0")


def mlx_precision(
    dtype: str, device: str, facts: Mapping[str, Any], *, tf32: bool
) -> PrecisionName:
    """How MLX multiplies this dtype on this device, before anything was measured.

    `facts` are those of the machine: `device_name`, `system` and MLX's `device_info` (compute
    capability of a CUDA GPU, architecture of an Apple GPU). `tf32` is the switch.
    """
    if dtype not in _FLOAT32:
        return ""
    if device == "cpu" or not tf32:
        return "full"
    info = facts.get("device_info") or {}
    if "compute_capability_major" in info:
        return "TF32" if int(info["compute_capability_major"]) >= _TF32_CAPABILITY else "full"
    generation = _apple_generation(str(info.get("architecture") or ""), facts)
    if generation is None:
        return "unknown"
    if generation < _NAX_GENERATION or dtype == "complex64":
        return "full"
    system = re.match(r"macOS (\d+)\.?(\d*)", str(facts.get("system") or ""))
    if system is None:
        return "unknown"
    return "TF32" if (int(system[1]), int(system[2] or 0)) >= _NAX_MACOS else "full"


def _apple_generation(architecture: str, facts: Mapping[str, Any]) -> int | None:
    """Generation of an Apple GPU, 13 for M1 to 17 for M5; None for other GPUs."""
    if found := re.match(r"applegpu_g(\d\d)", architecture):
        return int(found[1])
    if architecture.startswith("applegpu"):
        return 0  # a virtual GPU: MLX finds no number either, and uses no matrix units
    known = re.match(r"Apple M(\d+)\b", str(facts.get("device_name") or ""))
    return int(known[1]) + 12 if known else None


def measured_precision(
    default: PrecisionName, mantissa: int | None, bits: float | None, inner: int
) -> Precision:
    """How a product was computed, by its correct bits where these can tell, else `default`.

    `bits` are those of random data (None for other data, which TF32 may hold exactly, and where
    nothing was compared), `inner` is the number of products in a sum, `mantissa` that of the dtype.
    """
    if not default or mantissa is None:
        return Precision(default, mantissa)
    usual = Precision(default, TF32_MANTISSA if default == "TF32" else mantissa)
    if bits is None:
        return usual
    if default == "TF32" and (bits <= TF32_MOST_BITS or inner < FEW_PRODUCTS):
        enough = bits >= expected_bits(TF32_MANTISSA, inner) - BITS_MARGIN
        return usual if enough else Precision("reduced", TF32_MANTISSA)
    if bits < expected_bits(mantissa, inner) - BITS_MARGIN:
        return Precision("reduced", mantissa)
    # Float32 sums so long that they keep no more bits than TF32 cannot be told from it.
    return Precision("full", mantissa) if bits > TF32_MOST_BITS else usual


def unit_dtype(dtype: str, precision: str) -> str | None:
    """The dtype whose peak limits a product of `dtype` in this precision; None where unknown.

    complex64 counts real operations, so it runs at the rate of float32.
    """
    if precision == "unknown":
        return None
    if precision in ("TF32", "reduced"):
        return "tfloat32"
    return "float32" if dtype == "complex64" else dtype
