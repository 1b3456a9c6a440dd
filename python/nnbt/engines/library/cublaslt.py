"""cuBLASLt through ctypes: NVIDIA's matrix library from the wheels that mlx-cuda-13 depends on.

Types and values are those of cublasLt.h, cublas_api.h, library_types.h and driver_types.h of
CUDA 13; tests/test_vendor.py compares them with the headers.
"""

import contextlib
import ctypes
import re
import weakref
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnbt._native import Unsupported
from nnbt.machine.cuda import find_library

WORKSPACE_BYTES = 64 * 2**20

# cublasOperation_t, cublasLtMatmulDescAttributes_t, cublasLtMatmulPreferenceAttributes_t,
# cublasLtMatmulAlgoConfigAttributes_t, cudaMemcpyKind, driver_types.h
CUBLAS_OP_T = 1
CUBLASLT_MATMUL_DESC_TRANSA = 3
CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25
CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1
CUBLASLT_ALGO_CONFIG_ID = 0
CUBLASLT_ALGO_CONFIG_TILE_ID = 1
CUBLASLT_ALGO_CONFIG_STAGES_ID = 6
CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID = 8
CUDA_MEMCPY_HOST_TO_DEVICE = 1
CUDA_MEMCPY_DEVICE_TO_HOST = 2
CUDA_STREAM_NON_BLOCKING = 1


class Algorithm(ctypes.Structure):
    """cublasLtMatmulAlgo_t."""

    _fields_ = [("data", ctypes.c_uint64 * 8)]


class HeuristicResult(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = [
        ("algo", Algorithm),
        ("workspace_size", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves_count", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    ]


@dataclass(frozen=True)
class Precision:
    """Names of a dtype in the headers, and the tolerance of its products."""

    operand: str
    output: str
    compute: str
    scale: str
    output_dtype: str  # NumPy dtype of the output's bits
    tolerance: float
    """Limit of the largest error over the largest value; covers the rounding of the output."""
    fast_accumulation: bool = False
    """Whether to try the faster, less precise accumulation of 8-bit floats too."""
    multiple: int = 1  # n must be a multiple of it (cuBLAS manual, cublasLtMatmul, alignment)


# cudaDataType_t, cublasStatus_t and cublasComputeType_t
VALUES = {
    "CUDA_R_32F": 0,
    "CUDA_R_16F": 2,
    "CUDA_R_8I": 3,
    "CUDA_R_32I": 10,
    "CUDA_R_16BF": 14,
    "CUDA_R_8F_E4M3": 28,
    "CUBLAS_STATUS_NOT_SUPPORTED": 15,
    "CUBLAS_COMPUTE_32F": 68,
    "CUBLAS_COMPUTE_32I": 72,
    "CUBLAS_COMPUTE_32F_FAST_TF32": 77,
}

_FLOAT, _INT = ("CUBLAS_COMPUTE_32F", "CUDA_R_32F"), ("CUBLAS_COMPUTE_32I", "CUDA_R_32I")
_TF32 = ("CUBLAS_COMPUTE_32F_FAST_TF32", "CUDA_R_32F")
PRECISIONS = {
    "float32": Precision("CUDA_R_32F", "CUDA_R_32F", *_FLOAT, "float32", 1e-5),
    "tfloat32": Precision("CUDA_R_32F", "CUDA_R_32F", *_TF32, "float32", 1e-3),
    "float16": Precision("CUDA_R_16F", "CUDA_R_16F", *_FLOAT, "float16", 2e-3),
    "bfloat16": Precision("CUDA_R_16BF", "CUDA_R_16BF", *_FLOAT, "uint16", 8e-3),
    "int8": Precision("CUDA_R_8I", "CUDA_R_32I", *_INT, "int32", 0.0, multiple=4),
    "float8_e4m3": Precision(
        "CUDA_R_8F_E4M3",
        "CUDA_R_16BF",
        *_FLOAT,
        "uint16",
        2e-2,
        fast_accumulation=True,
        multiple=16,
    ),
}

_P, _I, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
_SIGNATURES: dict[str, list[Any]] = {
    "cudaSetDevice": [_I],
    "cudaMalloc": [_P, _SIZE],
    "cudaFree": [_P],
    "cudaMemcpy": [_P, _P, _SIZE, _I],
    "cudaMemset": [_P, _I, _SIZE],
    "cudaDeviceSynchronize": [],
    "cudaStreamCreateWithFlags": [_P, ctypes.c_uint],
    "cudaStreamSynchronize": [_P],
    "cudaStreamDestroy": [_P],
    "cublasLtCreate": [_P],
    "cublasLtDestroy": [_P],
    "cublasLtMatmulDescCreate": [_P, _I, _I],
    "cublasLtMatmulDescDestroy": [_P],
    "cublasLtMatmulDescSetAttribute": [_P, _I, _P, _SIZE],
    "cublasLtMatrixLayoutCreate": [_P, _I, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64],
    "cublasLtMatrixLayoutDestroy": [_P],
    "cublasLtMatmulPreferenceCreate": [_P],
    "cublasLtMatmulPreferenceDestroy": [_P],
    "cublasLtMatmulPreferenceSetAttribute": [_P, _I, _P, _SIZE],
    "cublasLtMatmulAlgoGetHeuristic": [_P, _P, _P, _P, _P, _P, _P, _I, _P, _P],
    "cublasLtMatmulAlgoConfigGetAttribute": [_P, _I, _P, _SIZE, _P],
    "cublasLtMatmul": [_P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _SIZE, _P],
}


@cache
def _library(soname: str) -> ctypes.CDLL:
    path = find_library(soname)
    try:
        return ctypes.CDLL(str(path) if path else soname)
    except OSError as error:
        raise Unsupported(
            f"{soname} cannot be loaded ({error}): install mlx-cuda-13, which depends on it."
        ) from error


class NotSupported(Unsupported):
    """The library has no algorithm for this product."""


def _call(name: str, *arguments: object) -> None:
    soname = "libcudart.so.13" if name.startswith("cuda") else "libcublasLt.so.13"
    function = getattr(_library(soname), name)
    function.argtypes = _SIGNATURES[name]
    error = function(*arguments)
    if error == VALUES["CUBLAS_STATUS_NOT_SUPPORTED"] and name.startswith("cublas"):
        raise NotSupported(f"{name} returned CUBLAS_STATUS_NOT_SUPPORTED.")
    if error:
        raise Unsupported(f"{name} of {soname} returned error {error}.")


def _at(value: Any) -> tuple[Any, int]:
    """Address and bytes of a ctypes object."""
    return ctypes.byref(value), ctypes.sizeof(value)


@cache
def _names(kind: str) -> dict[int, str]:
    """Names of tiles, stages or clusters from the header beside the library; empty without it."""
    library: Path | None = find_library("libcublasLt.so.13")
    if library is None or not (header := library.parent.parent / "include/cublasLt.h").is_file():
        return {}
    pattern = rf"CUBLASLT_{kind}_(\w+) = (\d+)"
    text = header.read_text(encoding="utf-8")
    return {int(value): name for name, value in re.findall(pattern, text)}


class Matmul:
    """D = A B^T on the GPU for square matrices of `n` rows, each row contiguous.

    Owns device memory, which is freed when the object is collected.
    """

    def __init__(
        self, precision: Precision, a: NDArray[Any], b: NDArray[Any], device: int = 0
    ) -> None:
        """Copies the bit patterns `a` and `b` (rows, depth) to the device."""
        self.precision = precision
        self.n = a.shape[0]
        self._undo: list[tuple[str, Any]] = []
        weakref.finalize(self, _release, self._undo)
        _call("cudaSetDevice", device)
        self._handle = self._create("cublasLtCreate", "cublasLtDestroy")
        self._stream = self._create(
            "cudaStreamCreateWithFlags", "cudaStreamDestroy", CUDA_STREAM_NON_BLOCKING
        )
        self._a, self._b = self._upload(a), self._upload(b)
        self._d_bytes = np.dtype(precision.output_dtype).itemsize * self.n**2
        self._d = self._create("cudaMalloc", "cudaFree", self._d_bytes)
        self._workspace = self._create("cudaMalloc", "cudaFree", WORKSPACE_BYTES)
        operand, output = VALUES[precision.operand], VALUES[precision.output]
        shape = (self.n, self.n, self.n)
        layout = ("cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutDestroy")
        self._in_layout = self._create(*layout, operand, *shape)
        self._out_layout = self._create(*layout, output, *shape)
        scalar = ctypes.c_int32 if precision.scale == "CUDA_R_32I" else ctypes.c_float
        self._one, self._zero = scalar(1), scalar(0)

    def _create(self, create: str, destroy: str, *arguments: object) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        _call(create, ctypes.byref(handle), *arguments)
        self._undo.append((destroy, handle))
        return handle

    def _upload(self, bits: NDArray[Any]) -> ctypes.c_void_p:
        bits = np.ascontiguousarray(bits)
        pointer = self._create("cudaMalloc", "cudaFree", bits.nbytes)
        _call("cudaMemcpy", pointer, bits.ctypes.data, bits.nbytes, CUDA_MEMCPY_HOST_TO_DEVICE)
        return pointer

    def describe(self, *, fast_accumulation: bool) -> ctypes.c_void_p:
        """A descriptor of the product: the library is column-major, so A is transposed."""
        description = self._create(
            "cublasLtMatmulDescCreate",
            "cublasLtMatmulDescDestroy",
            VALUES[self.precision.compute],
            VALUES[self.precision.scale],
        )
        transpose, fast = ctypes.c_int32(CUBLAS_OP_T), ctypes.c_int8(fast_accumulation)
        attributes: list[tuple[int, Any]] = [(CUBLASLT_MATMUL_DESC_TRANSA, transpose)]
        if fast_accumulation:
            attributes.append((CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast))
        for attribute, value in attributes:
            _call("cublasLtMatmulDescSetAttribute", description, attribute, *_at(value))
        return description

    def algorithms(self, description: ctypes.c_void_p, most: int) -> list[HeuristicResult]:
        """At most `most` algorithms that the library proposes, its first choice first."""
        preference = self._create(
            "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceDestroy"
        )
        limit = ctypes.c_uint64(WORKSPACE_BYTES)
        attribute = CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
        _call("cublasLtMatmulPreferenceSetAttribute", preference, attribute, *_at(limit))
        results, count = (HeuristicResult * most)(), ctypes.c_int()
        with contextlib.suppress(NotSupported):
            _call(
                "cublasLtMatmulAlgoGetHeuristic", self._handle, description, self._in_layout,
                self._in_layout, self._out_layout, self._out_layout, preference, most, results,
                ctypes.byref(count),
            )  # fmt: skip
        return [result for result in results[: count.value] if result.state == 0]

    def run(self, description: ctypes.c_void_p, algorithm: Algorithm, count: int) -> None:
        """Launches the product `count` times and waits for all."""
        arguments = (
            self._handle, description, ctypes.byref(self._one), self._a, self._in_layout, self._b,
            self._in_layout, ctypes.byref(self._zero), self._d, self._out_layout, self._d,
            self._out_layout, ctypes.byref(algorithm), self._workspace, WORKSPACE_BYTES,
            self._stream,
        )  # fmt: skip
        for _ in range(count):
            _call("cublasLtMatmul", *arguments)
        _call("cudaStreamSynchronize", self._stream)

    def spoil(self) -> None:
        """Overwrites every element of D with a wrong value: NaN or -1."""
        _call("cudaMemset", self._d, 0xFF, self._d_bytes)
        _call("cudaDeviceSynchronize")  # products use another stream

    def column(self, index: int) -> NDArray[Any]:
        """Bits of D[:, index], which is A times row `index` of B."""
        bits = np.empty(self.n, np.dtype(self.precision.output_dtype))
        source = ctypes.c_void_p((self._d.value or 0) + index * bits.nbytes)
        _call("cudaMemcpy", bits.ctypes.data, source, bits.nbytes, CUDA_MEMCPY_DEVICE_TO_HOST)
        return bits


def name_algorithm(algorithm: Algorithm) -> str:
    """Id, tile, stages and cluster of an algorithm: 'algorithm 66, tile 128x256, ...'."""
    parts = []
    for attribute, label, kind, width in (
        (CUBLASLT_ALGO_CONFIG_ID, "algorithm", "", ctypes.c_int32),
        (CUBLASLT_ALGO_CONFIG_TILE_ID, "tile", "MATMUL_TILE", ctypes.c_uint32),
        (CUBLASLT_ALGO_CONFIG_STAGES_ID, "stages", "MATMUL_STAGES", ctypes.c_uint32),
        (CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, "cluster", "CLUSTER_SHAPE", ctypes.c_uint16),
    ):
        value, written = width(), ctypes.c_size_t()
        given = (ctypes.byref(algorithm), attribute, *_at(value), ctypes.byref(written))
        _call("cublasLtMatmulAlgoConfigGetAttribute", *given)
        name = _names(kind).get(value.value, str(value.value)) if kind else str(value.value)
        parts.append(f"{label} {name}")
    return ", ".join(parts)


def _release(undo: list[tuple[str, Any]]) -> None:
    while undo:
        name, handle = undo.pop()
        _call(name, handle)
