import re
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

import cuda_on_cpu
import nvrtc
from fake_gpu import FakeGpu
from nnbt._native import Unsupported
from nnbt.engines.kernel import launcher as gpu_kernels
from nnbt.engines.kernel.launcher import KERNELS, build
from nnbt.engines.kernel.sources import text
from nnbt.engines.kernel.sources.chip_clock import LEAST_NS, chip_clock
from nnbt.engines.kernel.sources.instructions import has_tcgen05, successor_note
from nnbt.machine import mlx as _mlx

SMALL_STREAM = {"array_bytes": 2**20, "launches": 3}
SMALL = {
    "bulk_read": {**SMALL_STREAM, "blocks": 5, "piece_bytes": 2**13},
    "bulk_copy": {**SMALL_STREAM, "blocks": 5, "piece_bytes": 2**13},
    "fma": {"blocks": 2, "iterations": 8, "launches": 2},
    "wgmma": {"blocks": 2, "iterations": 8, "launches": 2},
    "wgmma_registers": {"blocks": 2, "iterations": 8, "launches": 2},
    "tcgen05": {"blocks": 2, "iterations": 8, "launches": 2},
    "mma_sync": {"blocks": 2, "iterations": 8, "launches": 2},
    "simdgroup": {"blocks": 2, "iterations": 8, "launches": 2},
}


def small(key: str) -> dict[str, object]:
    name = KERNELS[key].name
    return {**SMALL.get(name, SMALL_STREAM), "compiled": False}


def capability(key: str) -> tuple[int, int] | None:
    row = KERNELS[key]
    if row.language == "metal":
        return None
    if row.name == "tcgen05":
        return (10, 0)
    return (8, 9) if row.emulated else (9, 0)


@pytest.fixture(scope="module")
def mx():
    return _mlx.core()


@pytest.mark.parametrize("key", KERNELS)
def test_a_right_result_passes(key, mx):
    gpu = FakeGpu(mx, capability(key))
    built = build(KERNELS[key], gpu, **small(key))
    built.step(2)()
    assert built.check() is None
    assert len(gpu.calls) == 2


@pytest.mark.parametrize("key", KERNELS)
def test_one_wrong_word_is_found(key, mx):
    def spoil(output):
        flat = output.reshape(-1).copy()
        flat[-1] += 1
        return flat.reshape(output.shape)

    built = build(KERNELS[key], FakeGpu(mx, capability(key), spoil), **small(key))
    built.step(1)()
    assert built.check() is not None


@pytest.mark.parametrize("key", [k for k, row in KERNELS.items() if row.metric == "flops"])
def test_a_lost_pass_is_found(key, mx):
    row = KERNELS[key]
    passes = 8 * row.defaults["passes"]
    spoil = lambda output: output * (passes - 1) / passes  # noqa: E731
    built = build(row, FakeGpu(mx, capability(key), spoil), **small(key))
    built.step(2)()
    assert "100.0% of the sums are wrong" in (built.check() or "")


def test_a_nan_is_found(mx):
    row = KERNELS["wgmma-bfloat16-cuda"]
    spoil = lambda output: np.where(output == output.max(), np.nan, output)  # noqa: E731
    built = build(row, FakeGpu(mx, spoil=spoil), data="normal", **small("wgmma-bfloat16-cuda"))
    assert "of the sums are wrong" in (built.check() or "")


def test_launches_of_a_step_have_inputs_of_their_own(mx):
    gpu = FakeGpu(mx)
    build(KERNELS["add-float32-cuda"], gpu, **small("add-float32-cuda")).step(3)()
    arrays = [np.array(array) for call in gpu.calls for array in call["inputs"]]
    assert len(arrays) == 6
    assert not any(np.array_equal(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


@pytest.mark.parametrize(
    ("key", "arrays", "ops"),
    [
        ("read-float32-cuda", 1, 0), ("write-float32-cuda", 1, 0), ("copy-float32-cuda", 2, 0),
        ("add-float32-cuda", 3, 1), ("triad-float32-cuda", 3, 2), ("bulk_copy-float32-cuda", 2, 0),
        ("triad-float32-metal", 3, 2),
    ],
)  # fmt: skip
def test_stream_work(key, arrays, ops, mx):
    built = build(KERNELS[key], FakeGpu(mx, capability(key)), **small(key))
    assert built.work == (ops * 2**18, arrays * 2**20)


def test_matrix_work_is_instructions_times_their_operations(mx):
    def ops(key):
        return build(KERNELS[key], FakeGpu(mx, capability(key)), **small(key)).work.ops

    # 2 blocks x 2 warpgroups x 8 iterations x 64 instructions of m64n256k16
    assert ops("wgmma-bfloat16-cuda") == 2 * 2 * 8 * 64 * (2 * 64 * 256 * 16)
    assert ops("wgmma-int8-cuda") == 2 * ops("wgmma-bfloat16-cuda")
    assert ops("wgmma_registers-tfloat32-cuda") == ops("wgmma-bfloat16-cuda") / 2
    # 2 blocks x 8 iterations x 64 instructions of M = 128, N = 256, K = 32 bytes
    assert ops("tcgen05-bfloat16-cuda") == 2 * 8 * 64 * (2 * 128 * 256 * 16)
    assert ops("tcgen05-float8_e4m3-cuda") == 2 * ops("tcgen05-bfloat16-cuda")
    # 2 blocks x 8 warps x 8 iterations x 4 passes x 32 instructions of m16n8k16
    assert ops("mma_sync-float16-cuda") == 2 * 8 * 8 * 4 * 32 * (2 * 16 * 8 * 16)
    # 2 blocks x 256 threads x 8 iterations x 2 passes x 128 FMAs
    assert ops("fma-float32-cuda") == 2 * 256 * 8 * 2 * 128 * 2


def test_a_launch_of_tcgen05_has_the_shared_memory_of_its_tiles(mx):
    row = KERNELS["tcgen05-int8-cuda"]
    found = re.search(r"kRows = (\d+), kColumns = (\d+)", text("tcgen05.cu"))
    rows, columns = int(found[1]), int(found[2])
    params = {**row.defaults, "blocks": 3, "launches": 1, "seed": 1}
    launch = row.prepare(row, FakeGpu(mx, (10, 0)), params).launch
    assert launch.shared_memory == (rows + columns) * 128
    assert launch.output_shape == (3, 1, rows, columns)
    assert (launch.blocks, launch.threads) == (3, rows)


def test_arrays_are_rounded_down_to_whole_pieces(mx):
    params = {**small("copy-float32-cuda"), "array_bytes": 2**20 + 100}
    gpu = FakeGpu(mx)
    build(KERNELS["copy-float32-cuda"], gpu, **params).step(1)()
    assert gpu.calls[0]["output_shapes"] == [(2**18,)]
    assert gpu.calls[0]["grid"] == (2**20 // 16, 1, 1)  # a thread has one vector


@pytest.mark.parametrize(
    ("key", "gpu_capability", "sentence"),
    [
        ("wgmma-bfloat16-cuda", (8, 0), "needs compute capability 9.0, this GPU has 8.0"),
        ("wgmma-bfloat16-cuda", (12, 0), "use mma_sync"),
        ("tcgen05-bfloat16-cuda", (9, 0), "needs compute capability 10.0, this GPU has 9.0"),
        ("tcgen05-bfloat16-cuda", (12, 0), "compute capability 11.0 is the last"),
        ("tcgen05-int8-cuda", (10, 3), "this GPU has 10.3: use mma_sync"),
        ("mma_sync-float8_e4m3-cuda", (9, 0), "would be emulated"),
        ("mma_sync-float8_e4m3-cuda", (8, 6), "needs compute capability 8.9"),
        ("copy-float32-cuda", None, "use an NVIDIA GPU"),
        ("copy-float32-metal", (9, 0), "use an Apple GPU"),
    ],
)
def test_refusals(key, gpu_capability, sentence, mx):
    with pytest.raises(Unsupported, match=re.escape(sentence)):
        build(KERNELS[key], FakeGpu(mx, gpu_capability), blocks=1)


@pytest.mark.parametrize(
    ("gpu_capability", "dtype", "words", "successor"),
    [
        ((8, 0), "int8", "", False), ((8, 9), "int8", "", False), ((9, 0), "int8", "", False),
        ((10, 0), "int8", "row tcgen05", True),
        ((10, 3), "float16", "compute capability 10.3", True),
        ((10, 3), "int8", "tcgen05 has no int8", False), ((11, 0), "int8", "row tcgen05", True),
        ((12, 0), "int8", "neither wgmma nor tcgen05", False),
        ((12, 1), "int8", "compute capability 12.1", False),
    ],
)  # fmt: skip
def test_chips_after_hopper_name_the_instruction(gpu_capability, dtype, words, successor, mx):
    note = successor_note(gpu_capability, dtype)
    assert words in note
    assert bool(note) is bool(words)
    assert has_tcgen05(gpu_capability, dtype) is successor
    row = KERNELS[f"tcgen05-{dtype}-cuda"]
    assert (gpu_kernels.refusal(row, FakeGpu(mx, gpu_capability)) is None) is successor


@pytest.mark.parametrize(
    ("key", "params", "sentence"),
    [
        ("copy-float32-cuda", {"typo": 1}, "no parameter typo"),
        ("copy-float32-cuda", {"array_bytes": 100}, "moves at least 4096 bytes"),
        ("wgmma-bfloat16-cuda", {"iterations": 10**6}, "exact only up to"),
        ("fma-float32-cuda", {"iterations": 10**6}, "use fewer iterations"),
        ("wgmma-int8-cuda", {"data": "normal"}, "use data='exact'"),
        ("wgmma-bfloat16-cuda", {"data": "zeros"}, "not 'zeros'"),
    ],
)
def test_parameters_that_do_not_fit(key, params, sentence, mx):
    with pytest.raises(ValueError, match=sentence):
        build(KERNELS[key], FakeGpu(mx), **{"blocks": 1, **params})


def test_a_step_beyond_the_inputs_is_refused(mx):
    built = build(KERNELS["copy-float32-cuda"], FakeGpu(mx), **small("copy-float32-cuda"))
    with pytest.raises(ValueError, match="1 to 3 launches"):
        built.step(4)


@pytest.mark.parametrize("key", [k for k, row in KERNELS.items() if row.metric == "flops"])
def test_defaults_stay_exact(key, mx):
    params = {**small(key), "iterations": KERNELS[key].defaults["iterations"], "launches": 1}
    build(KERNELS[key], FakeGpu(mx, capability(key)), **params)


def test_clock_peak_of_the_data_sheet(monkeypatch):
    monkeypatch.setattr(gpu_kernels, "multiprocessors", lambda: 132)
    per_clock = gpu_kernels.ops_per_clock("bfloat16", (9, 0))
    assert per_clock * 1.83e9 == pytest.approx(989.4e12, rel=1e-3)
    assert gpu_kernels.ops_per_clock("bfloat16", (8, 6)) is None


# --- the chip's own clock ------------------------------------------------------------------------

CLOCKS = [key for key, row in KERNELS.items() if row.clocks]


def test_every_compute_kernel_of_cuda_counts_its_clock():
    compute = [k for k, row in KERNELS.items() if (row.metric, row.language) == ("flops", "cuda")]
    assert compute == CLOCKS


def stamps(*blocks: tuple[int, int, int, int]) -> np.ndarray:
    return np.array(blocks, np.uint64)


def test_the_clock_is_the_median_of_the_blocks():
    slow, middle, fast = ((5, 10, 5 + int(1e6 * ghz), 10**6 + 10) for ghz in (1.5, 1.7, 1.9))
    found = chip_clock([stamps(fast, slow, middle)])
    assert found.hz == pytest.approx(1.7e9)
    assert found.span_s == pytest.approx(1e-3)
    later = (5, 10**6, 5 + 1_700_000, 2 * 10**6)
    both = chip_clock([stamps(middle), stamps(later)])
    assert both.span_s == pytest.approx(2e-3 - 1e-8)
    assert both.launches == 2


@pytest.mark.parametrize(
    "block",
    [
        (0, 0, 0, 0), (5, 10, 0, 0), (5, 10, 5 + 1_700_000, 10),
        (5, 10, 5 + 1_700_000, 10 + LEAST_NS - 1), (5 + 1_700_000, 10**6, 5, 10),
    ],
)  # fmt: skip
def test_stamps_that_tell_no_clock(block):
    right = (5, 10, 5 + 1_700_000, 10 + 10**6)
    assert chip_clock([stamps(right)]) is not None
    assert chip_clock([stamps(right), stamps(block)]) is None
    assert chip_clock([stamps(block)]) is None


def test_no_blocks_tell_no_clock():
    assert chip_clock([]) is None


@pytest.mark.parametrize("key", KERNELS)
def test_a_clock_comes_with_the_run(key, mx):
    built = build(KERNELS[key], FakeGpu(mx, capability(key)), **small(key))
    assert built.clock_hz() is None  # nothing ran
    built.step(2)()
    assert built.clock_hz() == (pytest.approx(1.785e9) if key in CLOCKS else None)


def test_the_clock_is_that_of_all_launches_of_the_latest_run(mx):
    launched = iter((3, 3, 3, 1, 2, 2))
    gpu = FakeGpu(mx, stamps=lambda *_: stamps((5, 10, 5 + next(launched) * 10**6, 10**6 + 10)))
    built = build(KERNELS["fma-float32-cuda"], gpu, **{**small("fma-float32-cuda"), "launches": 3})
    built.step(3)()
    built.step(3)()
    assert built.clock_hz() == pytest.approx(2e9)


def test_compiled_launches_hand_over_both_outputs(mx):
    # Operations that MLX can trace, unlike those of NumPy: all sums are zero.
    gpu = FakeGpu(mx)
    times = mx.array(np.array([5, 10, 5 + 1_700_000, 10 + 10**6], np.uint64))

    def kernel(**options):
        out, clocks = options["output_shapes"]
        zero = mx.sum(options["inputs"][0] * 0)
        return [mx.broadcast_to(zero, out), mx.broadcast_to(times, clocks)]

    gpu.fast.cuda_kernel = lambda **_: kernel
    params = {**small("fma-float32-cuda"), "compiled": True}
    built = build(KERNELS["fma-float32-cuda"], gpu, **params)
    built.step(2)()
    assert "100.0% of the sums are wrong" in (built.check() or "")
    assert built.clock_hz() == pytest.approx(1.7e9)


# --- the CUDA sources themselves, on the CPU ----------------------------------------------------

ON_CPU = {
    "read-float32-cuda": {"array_bytes": 2**16, "threads": 64, "blocks": 3},
    "write-float32-cuda": {"array_bytes": 2**16, "threads": 64},
    "copy-float32-cuda": {"array_bytes": 2**16, "threads": 64, "unroll": 8},
    "add-float32-cuda": {"array_bytes": 2**16, "threads": 64, "unroll": 2, "cache": 0},
    "triad-float32-cuda": {"array_bytes": 2**16, "threads": 64, "blocks": 3},
    "fma-float32-cuda": {"blocks": 2, "threads": 64, "iterations": 3},
    "wgmma-bfloat16-cuda": {"blocks": 1, "iterations": 2, "passes": 1},
    "wgmma-int8-cuda": {"blocks": 1, "iterations": 1, "passes": 1},
    "wgmma_registers-bfloat16-cuda": {"blocks": 1, "iterations": 1, "passes": 2},
    "tcgen05-float16-cuda": {"blocks": 1, "iterations": 1, "passes": 1},
    "tcgen05-bfloat16-cuda": {"blocks": 2, "iterations": 5, "passes": 1},
    "tcgen05-tfloat32-cuda": {"blocks": 1, "iterations": 1, "passes": 1},
    "tcgen05-float8_e4m3-cuda": {"blocks": 1, "iterations": 2, "passes": 1},
    "tcgen05-int8-cuda": {"blocks": 1, "iterations": 1, "passes": 2},
    "mma_sync-bfloat16-cuda": {"blocks": 2, "iterations": 2, "passes": 1},
    "mma_sync-int8-cuda": {"blocks": 1, "iterations": 1, "passes": 2},
}


def source_without_instructions(row) -> str:
    # The matrix instruction comes first, in a namespace block of its own; the CPU has another.
    return row.source[row.source.index(text("chip_clock.cu")) :] if row.clocks else row.source


@pytest.mark.parametrize("key", ON_CPU)
def test_the_source_computes_what_the_check_expects(key, mx, tmp_path: Path):
    row = KERNELS[key]
    gpu = FakeGpu(
        mx,
        capability(key),
        run=lambda options: cuda_on_cpu.run(
            row, source_without_instructions(row), options, tmp_path
        ),
    )
    built = build(row, gpu, compiled=False, launches=1, **ON_CPU[key])
    built.step(1)()
    assert built.check() is None
    assert built.clock_hz() == (pytest.approx(1.785e9) if row.clocks else None)


@pytest.mark.parametrize("key", ["fma-float32-cuda", "mma_sync-bfloat16-cuda"])
def test_a_block_that_does_not_write_its_clock_is_found(key, mx, tmp_path: Path):
    row = KERNELS[key]
    source = source_without_instructions(row)
    silent = source.replace("if (threadIdx.x != 0)", "if (threadIdx.x != 0 || blockIdx.x == 1)")
    assert silent != source
    gpu = FakeGpu(mx, run=lambda options: cuda_on_cpu.run(row, silent, options, tmp_path))
    built = build(row, gpu, compiled=False, launches=1, **ON_CPU[key])
    built.step(1)()
    assert built.check() is None
    assert built.clock_hz() is None


# What is changed in the source of tcgen05, and what the check or the model then says.
FAULTS = {
    "stride of 8 rows": ("1024 >> 4", "512 >> 4", "of the sums are wrong"),
    "stride along K": ("{128 >> 4}", "{256 >> 4}", "of the sums are wrong"),
    "version": (" | uint64_t{1} << 46", "", "version is not 1"),
    "columns / 8": ("uint32_t{kColumns / 8}", "uint32_t{kColumns / 16}", "of the sums are wrong"),
    "types": ("elements << 7 |", "0 << 7 |", "no such types"),
    "column of a load": ("<< 16) + column)", "<< 16) + (column ^ 32))", "of the sums are wrong"),
    "lanes of a load": ("sums + (warp * 32 << 16)", "sums", "another warp's lanes"),
    "sums begin anew": ("i > 0 || j > 0", "j > 0", "of the sums are wrong"),
    "sums never begin": ("i > 0 || j > 0", "1", "of the sums are wrong"),
    "no last wait": ("return wait_for(&done[(n - 1)", "return true || wait_for(&done[(n - 1)",
                     "of the sums are wrong"),
    "a wait for the phase before": ("(n - 1) / 2 % 2", "(n + 1) / 2 % 2", "of the sums are wrong"),
    "no commit": ("commit(&done[i % 2])", "", "100.0% of the sums are wrong"),
    "columns stay taken": ("free_columns<kColumns>(sums)", "", "columns were not freed"),
    "unseen writes": ("fence_shared_memory()", "", "that the unit can't see"),
    "no barrier": ("init_barrier(&done[1])", "", "not initialised"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_tcgen05_are_found_and_end(fault, mx, tmp_path: Path):
    row = KERNELS["tcgen05-bfloat16-cuda"]
    old, new, words = FAULTS[fault]
    source = source_without_instructions(row)
    assert old in source
    assert "kPolls = 1 << 20" in source
    source = source.replace(old, new).replace("kPolls = 1 << 20", "kPolls = 1 << 10")
    gpu = FakeGpu(mx, (10, 0), run=lambda options: cuda_on_cpu.run(row, source, options, tmp_path))
    built = build(row, gpu, compiled=False, launches=1, blocks=1, iterations=3, passes=1)
    try:
        said = built.check() or "nothing"
    except RuntimeError as error:
        said = str(error)
    assert words in said


def test_products_that_do_not_finish_leave_no_number(mx, tmp_path: Path):
    row = KERNELS["tcgen05-int8-cuda"]
    source = source_without_instructions(row).replace("commit(&done[i % 2])", "")
    source = source.replace("kPolls = 1 << 20", "kPolls = 1 << 10")
    outputs = []

    def run(options):
        outputs.extend(cuda_on_cpu.run(row, source, options, tmp_path))
        return outputs

    built = build(
        row, FakeGpu(mx, (10, 0), run=run), compiled=False, launches=1, blocks=1, iterations=3
    )
    assert "100.0% of the sums are wrong" in (built.check() or "")
    assert (outputs[0] == -1).all()


# --- machine code: what the compiler makes of the sources, without a GPU ------------------------

needs_nvrtc = pytest.mark.skipif(
    not (nvrtc.site() / "nvidia/cu13/lib/libnvrtc.so.13").exists(),
    reason="NVRTC comes with mlx-cuda-13, which only Linux installs",
)
CUDA = [key for key, row in KERNELS.items() if row.language == "cuda"]
OPCODES = {
    "wgmma": {"float16": "HGMMA.64x256x16.F32", "bfloat16": "HGMMA.64x256x16.F32.BF16",
              "tfloat32": "HGMMA.64x256x8.F32.TF32", "float8_e4m3": "QGMMA.64x256x32.F32.E4M3.E4M3",
              "int8": "IGMMA.64x256x32.S8.S8"},
    "mma_sync": {"float16": "HMMA.16816.F32", "bfloat16": "HMMA.16816.F32.BF16",
                 "tfloat32": "HMMA.1688.F32.TF32", "float8_e4m3": "QMMA.16832.F32.E4M3.E4M3",
                 "int8": "IMMA.16832.S8.S8"},
    "tcgen05": {"float16": "UTCHMMA", "bfloat16": "UTCHMMA", "tfloat32": "UTCHMMA",
                "float8_e4m3": "UTCQMMA", "int8": "UTCIMMA"},
}  # fmt: skip


def compiled(key: str, architecture: str, *, headers: bool = False, **template: int):
    row = KERNELS[key]
    if row.metric == "bandwidth":
        inputs = ["uint32" if name == "seed" else "float32" for name in row.inputs]
        output = "uint32" if row.name in ("read", "bulk_read", "write") else "float32"
        if row.name.startswith("bulk"):
            constants = {"PIECES": 2**17, "PIECE_BYTES": 2**14, "STAGES": 6}
        else:
            tuned = row.defaults
            constants = {"UNROLL": tuned["unroll"], "CHUNKS": 0, "CACHE": tuned["cache"]}
    else:
        data = "float32" if row.name == "fma" else "uint32"
        inputs = ["int32" if name == "iterations" else data for name in row.inputs]
        output = "int32" if row.dtype == "int8" else "float32"
        constants = {"PASSES": row.defaults["passes"]}
    constants |= template
    source = nvrtc.source(row, inputs, output, list(constants.items()), headers=headers)
    return nvrtc.compile_source(source, architecture)


def architecture_of(key: str) -> str:
    if KERNELS[key].name == "tcgen05":
        return "sm_100a"
    return "sm_89" if KERNELS[key].emulated else "sm_90a"


def instructions(sass: str) -> list[str]:
    return re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][A-Z0-9_.x]+)", sass)


def loop(sass: str, opcode: str) -> list[str]:
    """Instructions of the innermost loop around `opcode`: from its label to the jump back."""
    lines = sass.splitlines()
    uses = [i for i, line in enumerate(lines) if opcode in line]
    labels = {line.split(":")[0]: i for i, line in enumerate(lines) if line.startswith(".L_x_")}
    jumps = ((i, re.search(r"BRA.* `\((\.L_x_\d+)\)", line)) for i, line in enumerate(lines))
    ends = ((i, labels[jump[1]]) for i, jump in jumps if jump and i > uses[-1])
    end, start = next((end, start) for end, start in ends if start < uses[0])
    return instructions("\n".join(lines[start : end + 1]))


@needs_nvrtc
@pytest.mark.parametrize(
    ("key", "architecture"),
    [
        ("copy-float32-cuda", "sm_80"), ("read-float32-cuda", "sm_90a"),
        ("bulk_read-float32-cuda", "sm_90a"), ("fma-float32-cuda", "sm_120a"),
        ("wgmma-bfloat16-cuda", "sm_90a"), ("mma_sync-int8-cuda", "sm_89"),
        *((f"tcgen05-{dtype}-cuda", "sm_103a") for dtype in OPCODES["tcgen05"] if dtype != "int8"),
        ("tcgen05-int8-cuda", "sm_110a"),
    ],
)  # fmt: skip
def test_compiles_as_mlx_would(key, architecture):
    assert compiled(key, architecture, headers=True).cubin


@needs_nvrtc
@pytest.mark.parametrize("key", CUDA)
def test_registers_never_spill(key):
    log = compiled(key, architecture_of(key)).log
    assert re.search(r"\b0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", log)
    assert "warning" not in log
    assert "C7510" not in log  # wgmma serialised


needs_nvdisasm = pytest.mark.skipif(
    nvrtc.disassembler() is None, reason="nvdisasm is missing: pip install nvidia-cuda-nvdisasm"
)


@needs_nvrtc
def test_the_compiler_has_no_int8_product_for_10_3():
    with pytest.raises(RuntimeError, match=r"kind::i8' not supported on .target 'sm_103a'"):
        compiled("tcgen05-int8-cuda", "sm_103a")


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize("key", [k for k in CUDA if KERNELS[k].name in OPCODES])
def test_loop_has_the_matrix_instructions_that_are_counted(key, tmp_path: Path):
    row = KERNELS[key]
    opcode = OPCODES[row.name][row.dtype]
    sass = nvrtc.disassemble(compiled(key, architecture_of(key)).cubin, tmp_path)
    body = loop(sass, opcode)
    a_pass = {"wgmma": 4, "tcgen05": 4, "mma_sync": 4 * 2 * 4}[row.name]
    assert body.count(opcode) == row.defaults["passes"] * a_pass
    assert not [name for name in body if re.match(r"LD|ST|CS2R|S2", name)]
    between = "".join(body).split(opcode)[1:-1]
    if row.name == "tcgen05":  # one thread issues: nothing but the first slices' descriptors
        assert all(re.fullmatch("((R2UR|ISETP[A-Z0-9.]*?)*)", names) for names in between)
        assert sum(map(bool, between)) <= 3
        assert (body.count("UTCBAR"), body.count("NANOSLEEP")) == (1, 1)
    else:
        assert "R2UR" not in body


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize("key", CLOCKS)
def test_clocks_are_read_right_before_and_after_the_loop(key, tmp_path: Path):
    row = KERNELS[key]
    sass = nvrtc.disassemble(compiled(key, architecture_of(key)).cubin, tmp_path)
    opcode = OPCODES.get(row.name.removesuffix("_registers"), {}).get(row.dtype, "FFMA")
    reads = re.findall(rf"SR_CLOCKLO|SR_GLOBALTIMERLO|{re.escape(opcode)} ", sass)
    kinds = [kind for kind, _ in groupby(reads)]
    assert kinds == ["SR_GLOBALTIMERLO", "SR_CLOCKLO", f"{opcode} ", *kinds[:2]]
    assert len(reads) - reads.count(f"{opcode} ") == 4


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize("dtype", OPCODES["wgmma"])
def test_operand_a_in_registers(dtype, tmp_path: Path):
    sass = nvrtc.disassemble(compiled(f"wgmma_registers-{dtype}-cuda", "sm_90a").cubin, tmp_path)
    opcode = OPCODES["wgmma"][dtype]
    assert loop(sass, opcode).count(opcode) == 16 * 4
    assert len(re.findall(rf"{re.escape(opcode)} R\d+, R\d+, gdesc", sass)) == 16 * 4


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_120a"])
def test_fma_loop_is_all_fma(architecture, tmp_path: Path):
    sass = nvrtc.disassemble(compiled("fma-float32-cuda", architecture).cubin, tmp_path)
    body = loop(sass, "FFMA")
    assert body.count("FFMA") == 2 * 128
    assert len(body) <= 2 * 128 + 4


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize("cache", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("name", "loads", "stores"),
    [("read", 8, 0), ("write", 0, 8), ("copy", 8, 8), ("add", 16, 8), ("triad", 16, 8)],
)
def test_streams_use_16_bytes_and_load_before_storing(name, loads, stores, cache, tmp_path: Path):
    cubin = compiled(f"{name}-float32-cuda", "sm_90a", UNROLL=8, CACHE=cache).cubin
    names = [
        op for op in instructions(nvrtc.disassemble(cubin, tmp_path)) if re.match(r"(LDG|STG)", op)
    ]
    wide = [op for op in names if ".128" in op]
    # `read` stores a sum and `write` loads a seed, both narrow.
    assert len(names) - len(wide) == (1 if name in ("read", "write") else 0)
    assert [op[:3] for op in wide] == ["LDG"] * loads + ["STG"] * stores
    # EF (evict first) marks a streaming access.
    streaming = {1: ("LDG", "STG"), 2: ("STG",), 3: ("STG",)}.get(cache, ())
    assert all((".EF" in op) is (op[:3] in streaming) for op in wide)


@needs_nvrtc
@needs_nvdisasm
def test_bulk_copy_moves_no_data_through_registers(tmp_path: Path):
    sass = nvrtc.disassemble(compiled("bulk_copy-float32-cuda", "sm_90a").cubin, tmp_path)
    names = instructions(sass)
    assert "UBLKCP.S.G" in names
    assert "UBLKCP.G.S" in names
    assert not [op for op in names if op.startswith(("LDG", "STG", "LDS.128", "STS.128"))]
