"""Engine `library`: the matrix product of the vendor's own library."""

from nnbt.machine.cuda import cuda_devices
from nnbt.spec.cell import Cell, Engine, Load, Request, Runtime
from nnbt.spec.formulas import product_sizes
from nnbt.spec.workload import Workload

BLAS_DTYPES = ("float32", "float64", "complex64")
CUBLASLT_DTYPES = ("float32", "tfloat32", "float16", "bfloat16", "int8", "float8_e4m3")
_EXPLAIN = "n x n matrix product by the vendor's own library"


def _build(request: Request) -> Workload:
    """Imports NumPy with the first case: --help and info do not need it."""
    from nnbt.engines.library.steps import blas, cublaslt

    return blas(request) if request.case.device == "cpu" else cublaslt(request)


def _load(load: Load) -> Runtime:
    """The facts of the GPU that CUDA gives this process; the CPU's are those of the machine."""
    here = cuda_devices() if load.device == "gpu" else ()
    if not here:
        return Runtime()
    return Runtime({"device_name": here[0].name, "device_uuid": here[0].uuid})


# fmt: off
ENGINE = Engine(
    "library",
    "the vendor's matrix product: NumPy's BLAS on the CPU, cuBLASLt on an NVIDIA GPU",
    (
        Cell("flops", ("cpu",), _build, dtypes=BLAS_DTYPES, params=("cpu_workers",),
            sizes=product_sizes, explain=_EXPLAIN),
        Cell("flops", ("gpu",), _build, dtypes=CUBLASLT_DTYPES, params=(), sizes=product_sizes,
            explain=_EXPLAIN),
    ),
    _load,
)
# fmt: on
