"""cudart and cuBLASLt in NumPy: `call` replaces nnbt.engines.library.cublaslt._call."""

import ctypes
import itertools
from typing import Any

import numpy as np

from nnbt._native import Unsupported
from nnbt.engines.library import cublaslt
from nnbt.spec.formats import FORMATS

_FORMATS = {0: "float32", 2: "float16", 3: "int8", 14: "bfloat16", 28: "float8_e4m3"}


def _value(argument: Any) -> int:
    return argument if isinstance(argument, int) else int(argument.value or 0)


class FakeLibraries:
    """Keeps what was created; `algorithms` are offered, those in `refused` fail when run.

    Those in `idle` do nothing and say that all went well.
    """

    idle: tuple[int, ...] = ()

    def __init__(self, algorithms: int = 3, refused: tuple[int, ...] = (), spoil: float = 0.0):
        self.live: dict[int, Any] = {}
        self.algorithms, self.refused, self.spoil = algorithms, refused, spoil
        self.ran: list[int] = []
        self.fast: list[bool] = []
        self._ids = itertools.count(1)

    def call(self, name: str, *arguments: Any) -> None:
        handler = getattr(self, f"_{name}", None)
        if handler is not None:
            handler(*arguments)
        elif name.endswith(("Destroy", "Free")):
            del self.live[_value(arguments[0])]
        elif "Create" in name:
            self._created(arguments[0], arguments[1:])
        else:
            assert name in cublaslt._SIGNATURES, name

    def _created(self, reference: Any, thing: Any, handle: int | None = None) -> None:
        key = handle or next(self._ids)
        reference._obj.value = key
        self.live[key] = thing

    def _cudaMalloc(self, reference: Any, size: int) -> None:  # noqa: N802
        memory = ctypes.create_string_buffer(size)
        self._created(reference, memory, ctypes.addressof(memory))

    def _cudaMemcpy(self, target: Any, source: Any, size: int, _: int) -> None:  # noqa: N802
        ctypes.memmove(target, source, size)

    def _cudaMemset(self, target: Any, value: int, size: int) -> None:  # noqa: N802
        ctypes.memset(target, value, size)

    def _cublasLtMatmulDescSetAttribute(  # noqa: N802
        self, description: Any, attribute: int, value: Any, size: int
    ) -> None:
        key = _value(description)
        self.live[key] = (*self.live[key], (attribute, value._obj.value, size))

    def _cublasLtMatmulAlgoGetHeuristic(self, *arguments: Any) -> None:  # noqa: N802
        *_, most, results, count = arguments
        if self.algorithms == 0:
            raise cublaslt.NotSupported("cublasLtMatmulAlgoGetHeuristic answered")
        count._obj.value = min(self.algorithms, most)
        for i in range(count._obj.value):
            results[i].algo.data[0] = i

    def _cublasLtMatmulAlgoConfigGetAttribute(self, algorithm: Any, *rest: Any) -> None:  # noqa: N802
        attribute, value, _, _ = rest
        value._obj.value = algorithm._obj.data[0] + 10 if attribute == 0 else 20

    def _cublasLtMatmul(self, *arguments: Any) -> None:  # noqa: N802
        _, description, alpha, a, a_layout, b, _, beta, _, _, d, d_layout, algorithm, *_ = arguments
        assert (alpha._obj.value, beta._obj.value) == (1, 0)
        chosen = algorithm._obj.data[0]
        if chosen in self.refused:
            raise Unsupported("cublasLtMatmul answered with error 15")
        attributes = self.live[_value(description)][2:]
        assert (cublaslt.CUBLASLT_MATMUL_DESC_TRANSA, cublaslt.CUBLAS_OP_T, 4) in attributes
        self.ran.append(chosen)
        if chosen in self.idle:
            return
        self.fast.append((cublaslt.CUBLASLT_MATMUL_DESC_FAST_ACCUM, 1, 1) in attributes)
        kind, n, *_ = self.live[_value(a_layout)]
        row = FORMATS[_FORMATS[kind]]
        left, right = (
            row.decode(self._read(pointer, n * n, f"uint{row.bits}").reshape(n, n))
            for pointer in (a, b)
        )
        product = left @ right.T
        product[0, 0] += self.spoil
        output = self.live[_value(d_layout)][0]
        bits = (
            product.astype(np.int32)
            if output == cublaslt.VALUES["CUDA_R_32I"]
            else FORMATS[_FORMATS[output]].encode(product)
        )
        columns = np.asfortranarray(bits).tobytes(order="F")
        ctypes.memmove(d, columns, len(columns))

    def _read(self, pointer: Any, count: int, dtype: str) -> Any:
        size = count * np.dtype(dtype).itemsize
        return np.frombuffer(ctypes.string_at(pointer, size), dtype)
