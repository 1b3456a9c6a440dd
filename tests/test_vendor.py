import ctypes
import gc
import re

import numpy as np
import pytest

import nvrtc
from fake_cublaslt import FakeLibraries
from nnbt._native import Unsupported
from nnbt.engines.library import cublaslt
from nnbt.engines.library import products as vendor
from nnbt.spec.details import VendorLibrary

N = 96


@pytest.fixture
def libraries(monkeypatch):
    fake = FakeLibraries()
    monkeypatch.setattr(cublaslt, "_call", fake.call)
    monkeypatch.setattr(cublaslt, "_names", lambda _: {20: "128x256"})
    return fake


def first_is_fastest(libraries):
    return lambda run: (run(), float(libraries.ran[-1]))[1]


@pytest.mark.parametrize("dtype", cublaslt.PRECISIONS)
def test_product_is_a_times_b_transposed(dtype, libraries):
    built = vendor.cublaslt_matmul(dtype, N, best_ns=first_is_fastest(libraries))
    assert built.check() is None
    assert built.ops == 2.0 * N**3
    libraries.ran.clear()
    built.step(3)()
    assert libraries.ran == [0, 0, 0]


@pytest.mark.parametrize("dtype", cublaslt.PRECISIONS)
def test_a_wrong_product_is_found(dtype, libraries):
    libraries.spoil = 3.0
    built = vendor.cublaslt_matmul(dtype, 32, best_ns=first_is_fastest(libraries))
    assert built.check() is not None


@pytest.mark.parametrize("dtype", cublaslt.PRECISIONS)
def test_an_algorithm_that_does_nothing_has_no_right_product(dtype, libraries):
    libraries.idle = (1,)
    times = iter([30.0, 1.0, 20.0] * 2)
    built = vendor.cublaslt_matmul(dtype, 32, best_ns=lambda run: (run(), next(times))[1])
    assert libraries.ran[-1] != 1
    assert "algorithm 11" in built.notes[0]
    assert built.check() is not None


def test_fastest_algorithm_is_kept_and_named(libraries):
    times = iter([30.0, 10.0, 20.0])
    built = vendor.cublaslt_matmul("bfloat16", N, best_ns=lambda run: (run(), next(times))[1])
    built.step(1)()
    assert libraries.ran[-1] == 1
    [note] = built.notes
    assert note.startswith("cuBLASLt 96 x 96 x 96 bfloat16, TN, algorithm 11, tile 128x256, stages")
    assert note.endswith("best of 3 tried")


def test_algorithms_that_refuse_are_passed_over(libraries):
    libraries.refused = (0, 1)
    built = vendor.cublaslt_matmul("float16", N, best_ns=first_is_fastest(libraries))
    assert "algorithm 12" in built.notes[0]
    assert "best of 1 tried" in built.notes[0]


@pytest.mark.parametrize(("algorithms", "refused"), [(0, ()), (2, (0, 1))])
def test_no_algorithm_is_a_refusal(algorithms, refused, libraries):
    libraries.algorithms, libraries.refused = algorithms, refused
    with pytest.raises(Unsupported, match="no algorithm"):
        vendor.cublaslt_matmul("int8", N, best_ns=first_is_fastest(libraries))


@pytest.mark.parametrize(
    ("dtype", "n", "up"), [("int8", 65, 68), ("int8", 66, 68), ("float8_e4m3", 65, 80)]
)
def test_sizes_that_the_library_has_nothing_for_are_named(dtype, n, up, libraries):
    with pytest.raises(Unsupported, match=rf"--sizes {up}\."):
        vendor.cublaslt_matmul(dtype, n)
    assert vendor.cublaslt_matmul(dtype, up, best_ns=first_is_fastest(libraries)).check() is None


def test_coarse_accumulation_is_tried_for_8_bit_floats_alone(libraries):
    times = iter([9.0, 9.0, 9.0, 9.0, 1.0, 9.0])
    built = vendor.cublaslt_matmul("float8_e4m3", N, best_ns=lambda run: (run(), next(times))[1])
    assert libraries.fast == [False] * 3 + [True] * 3
    assert "about 14 bits" in built.notes[1]
    vendor.cublaslt_matmul("bfloat16", N, best_ns=first_is_fastest(libraries))
    assert libraries.fast[6:] == [False] * 3


def test_everything_is_given_back(libraries):
    built = vendor.cublaslt_matmul("float8_e4m3", N, best_ns=first_is_fastest(libraries))
    assert libraries.live
    del built
    gc.collect()
    assert not libraries.live


def test_unknown_dtype():
    with pytest.raises(Unsupported, match="use --dtype float32 or tfloat32"):
        vendor.cublaslt_matmul("float64", N)


HEADERS = nvrtc.site() / "nvidia/cu13/include"
needs_headers = pytest.mark.skipif(
    not (HEADERS / "cublasLt.h").exists(),
    reason="cublasLt.h comes with mlx-cuda-13, which only Linux installs",
)


@needs_headers
def test_declarations_are_those_of_the_headers():
    files = ("cublasLt.h", "cublas_api.h", "library_types.h", "driver_types.h")
    text = "\n".join((HEADERS / name).read_text() for name in files)
    declared = {
        **cublaslt.VALUES,
        **{name: value for name, value in vars(cublaslt).items() if name.startswith("CUBLAS")},
        "cudaMemcpyHostToDevice": cublaslt.CUDA_MEMCPY_HOST_TO_DEVICE,
        "cudaMemcpyDeviceToHost": cublaslt.CUDA_MEMCPY_DEVICE_TO_HOST,
    }
    assert len(declared) > 18
    pattern = r"\b{}\s*=\s*(\d+)\b"
    found = {name: re.search(pattern.format(name), text) for name in declared}
    assert {name: int(match[1]) if match else None for name, match in found.items()} == declared
    assert re.search(r"#define cudaStreamNonBlocking\s+0x01\b", text)
    for function in cublaslt._SIGNATURES:
        if function.startswith("cublasLt"):
            assert f" {function}(" in text


@needs_headers
def test_structures_are_those_of_the_header():
    text = re.sub(r"/\*.*?\*/", "", (HEADERS / "cublasLt.h").read_text(), flags=re.DOTALL)

    def members(name: str) -> list[str]:
        body = re.search(rf"typedef struct {{([^}}]*)}} {name};", text)
        return [" ".join(line.split()) for line in body[1].split(";") if line.strip()]

    assert members("cublasLtMatmulAlgo_t") == ["uint64_t data[8]"]
    assert members("cublasLtMatmulHeuristicResult_t") == [
        "cublasLtMatmulAlgo_t algo", "size_t workspaceSize", "cublasStatus_t state",
        "float wavesCount", "int reserved[4]",
    ]  # fmt: skip
    assert ctypes.sizeof(cublaslt.HeuristicResult) == 8 * 8 + 8 + 4 + 4 + 4 * 4


@needs_headers
def test_names_come_from_the_header_of_the_library():
    cublaslt._names.cache_clear()
    assert cublaslt._names("MATMUL_TILE")[20] == "128x128"
    assert cublaslt._names("CLUSTER_SHAPE")[3] == "2x1x1"


@pytest.mark.parametrize(("dtype", "ops"), [("float32", 2), ("float64", 2), ("complex64", 8)])
def test_numpy_matmul(dtype, ops):
    built = vendor.numpy_matmul(dtype, N)
    built.step(2)()
    assert built.check() is None
    assert built.ops == ops * N**3
    assert built.notes[0].startswith(f"NumPy {dtype}: ")


def test_a_wrong_blas_is_found(monkeypatch):
    built = vendor.numpy_matmul("float32", N)
    monkeypatch.setattr(np, "matmul", lambda *_, out: out.fill(1.0))
    assert built.check() is not None


def test_numpy_matmul_refuses_what_blas_lacks():
    with pytest.raises(Unsupported, match="does not multiply int8: use --dtype float32"):
        vendor.numpy_matmul("int8", N)


def test_blas_is_named_by_what_is_loaded(monkeypatch):
    loaded = [
        {"user_api": "openmp", "internal_api": "openmp", "num_threads": 8},
        {"user_api": "blas", "internal_api": "openblas", "version": "0.3.31",
         "architecture": "SkylakeX", "num_threads": 2},
    ]  # fmt: skip
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: loaded)
    named = VendorLibrary("openblas", "0.3.31", "SkylakeX")
    assert vendor.numpy_blas() == (named, 2)
    assert named.label == "openblas 0.3.31, SkylakeX kernels"
    monkeypatch.setattr("threadpoolctl.threadpool_info", list)
    library, threads = vendor.numpy_blas()
    assert library.name
    assert threads is None
