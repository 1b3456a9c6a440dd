"""DTYPES: what can be named with --dtype, how it is stored and how its operations are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nnbt.spec.errors import Refusal
from nnbt.spec.options import one_of, spelled

Kind = Literal["inexact", "exact", "quantized", "mixed", "tensor"]


@dataclass(frozen=True)
class Family:
    """A family of compute units: `unit` is the base unit, `short` what follows G or T."""

    unit: str
    short: str
    explain: str


FAMILIES: dict[Kind, Family] = {
    "inexact": Family("FLOP/s", "FLOPS", "floating-point operations"),
    "exact": Family("IOP/s", "IOPS", "integer or logical operations"),
    "quantized": Family("QOP/s", "QOPS", "operations on quantised weights"),
    "tensor": Family("FLOP/s", "FLOPS", "floating-point operations of matrix units"),
    "mixed": Family("OP/s", "OPS", "operations of a chain that changes its type"),
}


@dataclass(frozen=True)
class DType:
    """One row of DTYPES.

    `bits` is the storage of an element in bits; a quantised weight has the bits of its packed
    values, without scales. `ops_per_mac` counts real operations in one multiply-add. `mantissa`
    is the precision of a product in bits, implicit bit included (None: exact).
    """

    token: str
    kind: Kind
    bits: int
    explain: str
    ops_per_mac: int = 2
    mantissa: int | None = None
    mode: str = ""
    group_size: int = 0

    @property
    def family(self) -> Family:
        """The compute units that results of this type are given in."""
        return FAMILIES[self.kind]

    @property
    def itemsize(self) -> int:
        """Bytes of one element of a dense array (activations, for quantised types)."""
        return 4 if self.kind == "quantized" else max(1, self.bits // 8)

    @property
    def bias_bytes(self) -> int:
        """Bytes of the bias of one group of quantised weights: only affine has one."""
        return 4 if self.mode == "affine" else 0

    @property
    def scale_bytes(self) -> int:
        """Bytes of the scale of one group: float32 for affine, one byte for the fp modes."""
        return 4 if self.mode == "affine" else 1


def _inexact(token: str, bits: int, mantissa: int, explain: str, ops_per_mac: int = 2) -> DType:
    return DType(token, "inexact", bits, explain, ops_per_mac, mantissa)


def _exact(token: str, bits: int) -> DType:
    return DType(token, "exact", bits, "exact: element-wise kernel, no matrix product", 1)


def _affine(bits: int) -> DType:
    explain = f"{bits}-bit weights, groups of 64 with float32 scale and bias; float32 activations"
    return DType(f"q{bits}", "quantized", bits, explain, 2, 24, "affine", 64)


def _block(token: str, bits: int, group_size: int, explain: str) -> DType:
    explain = f"{explain}, groups of {group_size} with an 8-bit scale; float32 activations"
    return DType(token, "quantized", bits, explain, 2, 24, token, group_size)


_ROWS = (
    _inexact("float32", 32, 24, "IEEE single (on CUDA and M5 class: TF32 unless --tf32 off)"),
    _inexact("float16", 16, 11, "IEEE half"),
    _inexact("bfloat16", 16, 8, "8-bit mantissa, range of float32"),
    _inexact("float64", 64, 53, "IEEE double, on the CPU only"),
    _inexact("complex64", 64, 24, "two float32: a multiply-add is 8 real operations", 8),
    *(_exact(f"int{bits}", bits) for bits in (8, 16, 32, 64)),
    *(_exact(f"uint{bits}", bits) for bits in (8, 16, 32, 64)),
    _exact("bool", 8),
    *(_affine(bits) for bits in (2, 3, 4, 5, 6, 8)),
    _block("mxfp4", 4, 32, "MX 4-bit floating point"),
    _block("mxfp8", 8, 32, "MX 8-bit floating point"),
    _block("nvfp4", 4, 16, "NVIDIA 4-bit floating point"),
    DType("tfloat32", "tensor", 32, "matrix units: float32 cut to 11 bits (NVIDIA)", 2, 11),
    DType("float8_e4m3", "tensor", 8, "matrix units: 8-bit float, 4-bit mantissa (NVIDIA)", 2, 4),
    DType("qdq", "mixed", 8, "conv: int8 between layers, float16 weights and convolutions"),
    DType("w8a8", "mixed", 8, "conv: int8 between layers, int8 weights, dequantised for each"),
)
DTYPES: dict[str, DType] = {row.token: row for row in _ROWS}

_SYNONYMS = {"bool_": "bool", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_REFUSED = {
    "q1": ("q1 is not supported (CUDA has no kernel for 1-bit weights)", ("q2",)),
    "q7": ("q7 is not supported (MLX packs 2, 3, 4, 5, 6 or 8 bits)", ("q6", "q8")),
}


def dtype(token: str) -> DType:
    """The row of DTYPES with this name; `mlx.core.` before a name and synonyms are accepted.

    Raises Refusal for anything else.
    """
    name = token.strip().lower().removeprefix("mlx.core.").removeprefix("mx.")
    name = _SYNONYMS.get(name, name)
    if name in DTYPES:
        return DTYPES[name]
    if name in _REFUSED:
        problem, instead = _REFUSED[name]
        raise Refusal(problem, f"use {spelled('dtype', *instead)}")
    return DTYPES[one_of("dtype", token, DTYPES)]
