"""Builders of engine `library`: the matrix product of the vendor's own library."""

import sys
from typing import Any

from nnbt.engines.library import products as vendor
from nnbt.spec.cell import Request
from nnbt.spec.details import Details
from nnbt.spec.dtypes import dtype
from nnbt.spec.errors import Refusal
from nnbt.spec.workload import After, Step, Workload, self_checked

SLOPE_PRODUCTS = 64
"""Most products in one step of a slope: no library notices that they share inputs and output."""


def _workload(request: Request, built: vendor.Product, step: Any, floor: Step) -> Workload:
    return Workload(
        step=step,
        units=1,
        unit_work=int(built.ops),
        largest_k=SLOPE_PRODUCTS,
        check=lambda: self_checked("a sampled block with float64", built.check()),
        unit_name="product",
        sizes=request.sizes,
        mantissa=dtype(request.case.dtype).mantissa,
        notes=built.notes,
        after=lambda: After(details=Details(library=built.library)),
        floor=floor,
        resident_bytes=request.sizes["resident_bytes"],
    )


def blas(request: Request) -> Workload:
    """NumPy's BLAS, with --cpu-workers threads where threadpoolctl can set them."""
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().select(user_api="blas")
    workers = int(request.case.params["cpu_workers"])
    with libraries.limit(limits=workers):
        built = vendor.numpy_matmul(request.case.dtype, request.case.n)

    multiply = built.step(1)

    def step(k: int) -> Step:
        def run() -> None:
            with libraries.limit(limits=workers):
                for _ in range(k):
                    multiply()

        return run

    return _workload(request, built, step, step(0))


def cublaslt(request: Request) -> Workload:
    """cuBLASLt, the fastest of the algorithms that it proposes. Raises Unsupported on a Mac."""
    if sys.platform == "darwin":
        raise Refusal(
            "The library of Apple GPUs (MPSMatrixMultiplication) is not measured yet",
            "use --engine kernel for simdgroup_matrix, or --engine mlx for MLX's own kernels",
        )
    built = vendor.cublaslt_matmul(request.case.dtype, request.case.n)
    return _workload(request, built, built.step, built.step(0))
