"""DTYPES: the names of --dtype, how elements are stored and how operations are counted."""

from dataclasses import dataclass
from typing import Literal

from nnbt.spec.errors import Refusal
from nnbt.spec.options import one_of, spelled

FamilyName = Literal["inexact", "exact", "quantized", "mixed", "tensor"]


@dataclass(frozen=True)
class Family:
    """Dtypes with the same unit of work: `unit` is the base unit, `short` follows G or T."""

    name: FamilyName
    unit: str
    short: str
    explain: str


FAMILIES: dict[FamilyName, Family] = {
    row.name: row
    for row in (
        Family("inexact", "FLOP/s", "FLOPS", "floating-point operations"),
        Family("exact", "IOP/s", "IOPS", "integer or logical operations"),
        Family("quantized", "QOP/s", "QOPS", "operations on quantised weights"),
        Family("tensor", "FLOP/s", "FLOPS", "floating-point operations of matrix units"),
        Family("mixed", "OP/s", "OPS", "operations of a chain of several dtypes"),
    )
}


@dataclass(frozen=True)
class DType:
    """One row of DTYPES.

    `bits` is the storage of an element in bits, for quantised weights without scales.
    `ops_per_mac` is the number of real operations in a multiply-add. `mantissa` is the precision of
    a product in bits, including the implicit bit (None: exact).
    """

    token: str
    family: Family
    bits: int
    explain: str
    ops_per_mac: int = 2
    mantissa: int | None = None
    mode: str = ""
    group_size: int = 0
    cpu_only: bool = False

    @property
    def quantized(self) -> bool:
        """Whether weights are quantised, while activations are float32."""
        return self.family.name == "quantized"

    @property
    def exact(self) -> bool:
        """Whether results are compared for equality: integers and bool."""
        return self.family.name == "exact"

    @property
    def itemsize(self) -> int:
        """Bytes of one element of a dense array (activations, for quantised dtypes)."""
        return 4 if self.quantized else max(1, self.bits // 8)

    @property
    def group_bytes(self) -> int:
        """Bytes that a group of quantised weights adds: float32 scale and bias, or 8-bit scale."""
        return 8 if self.mode == "affine" else 1


def _inexact(token: str, bits: int, mantissa: int, explain: str, ops_per_mac: int = 2) -> DType:
    return DType(token, FAMILIES["inexact"], bits, explain, ops_per_mac, mantissa)


def _exact(token: str, bits: int) -> DType:
    explain = "exact: element-wise kernel, no matrix product"
    return DType(token, FAMILIES["exact"], bits, explain, 1)


def _affine(bits: int) -> DType:
    explain = f"{bits}-bit weights, groups of 64 with float32 scale and bias; float32 activations"
    return DType(f"q{bits}", FAMILIES["quantized"], bits, explain, 2, 24, "affine", 64)


def _block(token: str, bits: int, group_size: int, explain: str) -> DType:
    explain = f"{explain}, groups of {group_size} with an 8-bit scale; float32 activations"
    return DType(token, FAMILIES["quantized"], bits, explain, 2, 24, token, group_size)


def _tensor(token: str, bits: int, mantissa: int, explain: str) -> DType:
    explain = f"matrix units: {explain} (NVIDIA)"
    return DType(token, FAMILIES["tensor"], bits, explain, 2, mantissa)


def _mixed(token: str, explain: str) -> DType:
    return DType(token, FAMILIES["mixed"], 8, f"conv: int8 between layers, {explain}")


_ROWS = (
    _inexact("float32", 32, 24, "IEEE single (on CUDA and M5 class: TF32 unless --tf32 off)"),
    _inexact("float16", 16, 11, "IEEE half"),
    _inexact("bfloat16", 16, 8, "8-bit mantissa, range of float32"),
    DType("float64", FAMILIES["inexact"], 64, "IEEE double", 2, 53, cpu_only=True),
    _inexact("complex64", 64, 24, "two float32: a multiply-add is 8 real operations", 8),
    *(_exact(f"int{bits}", bits) for bits in (8, 16, 32, 64)),
    *(_exact(f"uint{bits}", bits) for bits in (8, 16, 32, 64)),
    _exact("bool", 8),
    *(_affine(bits) for bits in (2, 3, 4, 5, 6, 8)),
    _block("mxfp4", 4, 32, "MX 4-bit floating point"),
    _block("mxfp8", 8, 32, "MX 8-bit floating point"),
    _block("nvfp4", 4, 16, "NVIDIA 4-bit floating point"),
    _tensor("tfloat32", 32, 11, "float32 truncated to 11 bits"),
    _tensor("float8_e4m3", 8, 4, "8-bit float, 4-bit mantissa"),
    _mixed("qdq", "float16 weights and convolutions"),
    _mixed("w8a8", "int8 weights, dequantised in each layer"),
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
