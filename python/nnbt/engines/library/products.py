"""Matrix products by the vendor's own library: cuBLASLt and NumPy's BLAS."""

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nnbt import _native
from nnbt._native import Unsupported
from nnbt.engines.library import cublaslt
from nnbt.spec.details import VendorLibrary
from nnbt.spec.errors import Refusal
from nnbt.spec.formats import FORMATS, uniform_bits

HEURISTICS = 16
"""Algorithms that cuBLASLt may propose; each is run a few times, the fastest is used."""

_SAMPLE = 64  # rows and columns of the output that are compared with a float64 reference
_PICK_RUNS = 3


class Product(NamedTuple):
    """A product with its inputs.

    `step(k)` returns a callable that multiplies k times and waits; `ops` are the operations of one
    product; `check()` runs it once more and returns what is wrong with a sampled block of its
    output, or None; `notes` name the library and the algorithm.
    """

    step: Callable[[int], Callable[[], None]]
    ops: float
    check: Callable[[], str | None]
    notes: tuple[str, ...]
    library: VendorLibrary


def _native_best_ns(run: Callable[[], None]) -> float:
    return float(min(_native.measure(run, warmup=1, runs=_PICK_RUNS).samples_ns))


def cublaslt_matmul(
    dtype: str,
    n: int,
    *,
    seed: int = 1,
    heuristics: int = HEURISTICS,
    best_ns: Callable[[Callable[[], None]], float] = _native_best_ns,
) -> Product:
    """n x n x n by cuBLASLt on uniform(-1, 1) inputs, rows of both contiguous (its TN layout).

    `best_ns` times a run to select the algorithm. Raises Unsupported where the library has none for
    this dtype and size on this GPU.
    """
    if dtype not in cublaslt.PRECISIONS:
        raise Refusal(
            f"cuBLASLt does not multiply {dtype}", f"use --dtype {' or '.join(cublaslt.PRECISIONS)}"
        )
    precision, row = cublaslt.PRECISIONS[dtype], FORMATS[dtype]
    if n % precision.multiple:
        up = -(-n // precision.multiple) * precision.multiple
        raise Refusal(
            f"cuBLASLt multiplies {dtype} only where n is a multiple of {precision.multiple}",
            f"use --sizes {up}",
        )
    a, b = uniform_bits(row, (n, n), seed), uniform_bits(row, (n, n), seed + 1)
    matmul = cublaslt.Matmul(precision, a, b)
    sample = np.random.default_rng(seed).choice(n, min(_SAMPLE, n), replace=False)
    reference = row.decode(a[sample]) @ row.decode(b[sample]).T
    del a, b
    description, algorithm, tried, fast = _fastest(matmul, heuristics, best_ns)
    name = cublaslt.name_algorithm(algorithm)
    notes = [f"cuBLASLt {n} x {n} x {n} {dtype}, TN, {name}, best of {tried} tried"]
    if fast:
        notes.append("fast accumulation: sums of 8-bit products have about 14 bits")

    def step(count: int) -> Callable[[], None]:
        return lambda: matmul.run(description, algorithm, count)

    def check() -> str | None:
        matmul.spoil()  # another algorithm may have left the correct product there
        matmul.run(description, algorithm, 1)
        output = np.stack([matmul.column(int(j))[sample] for j in sample], axis=1)
        values = FORMATS["bfloat16"].decode(output) if output.dtype == np.uint16 else output
        return _wrong(np.asarray(values, np.float64), reference, precision.tolerance)

    library = VendorLibrary("cuBLASLt", algorithm=name)
    return Product(step, 2.0 * n**3, check, tuple(notes), library)


def _fastest(
    matmul: cublaslt.Matmul, heuristics: int, best_ns: Callable[[Callable[[], None]], float]
) -> tuple[ctypes.c_void_p, cublaslt.Algorithm, int, bool]:
    candidates = []
    for fast in (False, True) if matmul.precision.fast_accumulation else (False,):
        description = matmul.describe(fast_accumulation=fast)
        algorithms = matmul.algorithms(description, heuristics)
        candidates += [(description, result.algo, fast) for result in algorithms]
    times = []
    for description, algorithm, fast in candidates:

        def run(
            description: ctypes.c_void_p = description, algorithm: cublaslt.Algorithm = algorithm
        ) -> None:
            matmul.run(description, algorithm, 1)

        try:
            times.append((best_ns(run), description, algorithm, fast))
        except Unsupported:
            continue  # the library may reject what its heuristics proposed
    if not times:
        raise Refusal(
            "cuBLASLt has no algorithm for this dtype and size on this GPU",
            "use --sizes with a multiple of 16, or another --dtype",
        )
    _, description, algorithm, fast = min(times, key=lambda one: one[0])
    return description, algorithm, len(times), fast


def _wrong(output: NDArray[Any], reference: NDArray[Any], tolerance: float) -> str | None:
    """What is wrong with the output, as a sentence; None if nothing is."""
    scale = float(np.abs(reference).max())
    error = float(np.abs(output - reference).max()) / scale
    if error <= tolerance:
        return None
    return f"an error is {error:.2g} of the largest value, above the limit of {tolerance:.2g}"


_BLAS_OPS = {"float32": 2, "float64": 2, "complex64": 8}
_BLAS_TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "complex64": 1e-5}


def numpy_matmul(dtype: str, n: int, *, seed: int = 1) -> Product:
    """n x n x n by NumPy's BLAS on uniform(-1, 1) inputs. Raises Unsupported for other dtypes."""
    if dtype not in _BLAS_OPS:
        raise Refusal(f"BLAS does not multiply {dtype}", f"use --dtype {' or '.join(_BLAS_OPS)}")
    rng, kind = np.random.default_rng(seed), np.dtype(dtype)

    def operand() -> NDArray[Any]:
        real = rng.uniform(-1, 1, (n, n))
        return (real + 1j * rng.uniform(-1, 1, (n, n)) if kind.kind == "c" else real).astype(kind)

    a, b, out = operand(), operand(), np.zeros((n, n), kind)
    sample = rng.choice(n, min(_SAMPLE, n), replace=False)
    exact = np.result_type(kind, np.float64)
    reference = a[sample].astype(exact) @ b[:, sample].astype(exact)

    def step(count: int) -> Callable[[], None]:
        def run() -> None:
            for _ in range(count):
                np.matmul(a, b, out=out)

        return run

    def check() -> str | None:
        out.fill(0)
        np.matmul(a, b, out=out)
        return _wrong(out[np.ix_(sample, sample)], reference, _BLAS_TOLERANCE[dtype])

    library, threads = numpy_blas()
    told = f"{threads} threads" if threads else "as NumPy was built"
    note = f"NumPy {dtype}: {library.label}, {told}"
    return Product(step, float(_BLAS_OPS[dtype]) * n**3, check, (note,), library)


def numpy_blas() -> tuple[VendorLibrary, int | None]:
    """The BLAS that NumPy uses, and its number of threads where it reports that."""
    import threadpoolctl

    for library in threadpoolctl.threadpool_info():
        if library["user_api"] == "blas":
            found = VendorLibrary(
                str(library["internal_api"]),
                str(library["version"] or ""),
                str(library.get("architecture") or ""),
            )
            return found, int(library["num_threads"])
    # Accelerate and the reference BLAS report nothing at run time.
    built = np.show_config(mode="dicts")
    blas = (built or {}).get("Build Dependencies", {}).get("blas", {})
    return VendorLibrary(str(blas.get("name", "unnamed BLAS"))), None
