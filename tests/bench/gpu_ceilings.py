"""What an NVIDIA GPU can do: our kernels, cuBLASLt and PyTorch in one table (a few minutes).

    python tests/bench/gpu_ceilings.py [--only copy,wgmma,cublaslt,torch] [--json FILE]

Rates: `single` is one launch in an evaluation (median), `slope` the launches' own time from the fit
over 1, 2, 4, 8 in one, `held` eight launches repeated for a second (median), with the mean SM clock
and power of that second. `of peak` is `held` over multiprocessors x operations per clock x clock,
first by NVML's mean clock, then by the one that the last launch of our kernels counted (`chip`); of
bandwidth the best over the data sheet's. A failing row prints its traceback and the next one
follows. Needs nothing built: without the extension a plain loop takes the times.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import statistics
import subprocess
import sys
import threading
import time
import traceback
import types
from pathlib import Path

BANDWIDTH = {"NVIDIA H200": 4.8e12, "NVIDIA H100 80GB HBM3": 3.35e12}  # data sheets
LADDER = (1, 2, 4, 8)
MATRIX = 8192
GIB = 2**30
STARTED = time.monotonic()


def use_checkout() -> bool:
    """Imports nnbt from beside this file where it isn't installed; whether its timer is there."""
    with contextlib.suppress(ImportError):
        import nnbt._native

        return hasattr(nnbt._native, "measure")
    for name in [name for name in sys.modules if name.split(".")[0] == "nnbt"]:
        del sys.modules[name]
    sys.path.insert(0, str(Path(__file__).parents[2] / "python"))
    package = types.ModuleType("nnbt")
    package.__path__ = [str(Path(__file__).parents[2] / "python/nnbt")]
    native = types.ModuleType("nnbt._native")
    native.Unsupported = type("Unsupported", (RuntimeError,), {})
    native.__file__ = __file__
    sys.modules |= {"nnbt": package, "nnbt._native": native}
    return False


NATIVE = use_checkout()


def run_times(step, runs: int, warmup: int = 0) -> list[float]:
    """Seconds of each run, after those that don't count."""
    if NATIVE:
        from nnbt import _native

        return [ns / 1e9 for ns in _native.measure(step, warmup=warmup, runs=runs).samples_ns]
    times = []
    for _ in range(warmup):
        step()
    for _ in range(runs):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return times


class Watch:
    """Mean SM clock and power while a block runs, by NVML."""

    def __enter__(self):
        self.samples, self._stop = [], threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()
        return self

    def _poll(self) -> None:
        try:
            from nnbt.machine.facts import gpu_state
        except ImportError:
            return
        while not self._stop.is_set():
            state = gpu_state(0)
            if state is not None:
                self.samples.append((state.sm_clock_mhz, state.power_w, state.throttle_reasons))
            self._stop.wait(0.03)

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join()

    def mean(self, field: int) -> float | None:
        # The first samples still show what came before.
        values = [sample[field] for sample in self.samples[len(self.samples) // 4 :]]
        values = [value for value in values if value is not None]
        return statistics.fmean(values) if values else None

    def reasons(self) -> str:
        return ", ".join(sorted({reason for s in self.samples for reason in s[2] or ()}))


def take(name: str, dtype: str, step, work: float, *, held_s: float = 1.0, rounds=5) -> dict:
    """One row: all rates of a step, in work per second."""
    from nnbt.timing.slope import fit

    steps = {k: step(k) for k in LADDER}
    single = run_times(steps[1], 5, warmup=1)
    best = {k: min(run_times(run, 1, warmup=1)) for k, run in steps.items()}
    for _ in range(rounds):
        for k, run in steps.items():
            best[k] = min(best[k], *run_times(run, 1))
    most = LADDER[-1]
    runs = min(max(3, int(held_s / best[most])), 1000)
    with Watch() as watch:
        held = run_times(steps[most], runs)
    return {
        "row": name,
        "dtype": dtype,
        "single": work / statistics.median(single),
        "slope": work / fit(best, 0.0).unit_s,
        "held": most * work / statistics.median(held),
        "clock_mhz": watch.mean(0),
        "power_w": watch.mean(1),
        "throttle": watch.reasons(),
        "seconds": {"single": single, "best": best, "held": held},
        "check": "",
        "notes": "",
    }


class Table:
    """Rows as they come, and all of them at the end."""

    def __init__(self, only: set[str], deadline_s: float) -> None:
        self.rows: list[dict] = []
        self.only, self.deadline_s = only, deadline_s
        self.facts: dict = {}

    def wants(self, section: str) -> bool:
        return not self.only or section in self.only

    def add(self, label: str, make) -> dict | None:
        """Runs make() -> row; whatever it raises is printed and the next row follows."""
        spent = time.monotonic() - STARTED
        if spent > self.deadline_s:
            print(f"{label}: left out, {spent:.0f} s are spent", flush=True)
            return None
        try:
            row = make()
        except Exception:
            print(f"{label}: FAILED\n{traceback.format_exc()}", flush=True)
            self.rows.append({"row": label, "dtype": "", "check": "FAILED (see above)"})
            return None
        self.rows.append(row)
        print(self.line(row), flush=True)
        gc.collect()
        return row

    def share(self, row: dict, clock: str = "clock_mhz") -> str:
        if row["unit"] == "B/s":
            if clock != "clock_mhz":
                return ""
            peak = BANDWIDTH.get(self.facts.get("gpu", ""))
            best = max(row["single"], row["slope"], row["held"])
            return f"{best / peak:.1%}" if peak else ""
        per_clock = self.facts.get("ops_per_clock", {}).get(row["dtype"])
        if not (per_clock and row.get(clock)):
            return ""
        peak = per_clock * self.facts["multiprocessors"] * row[clock] * 1e6
        return f"{row['held'] / peak:.1%}"

    HEAD = (
        "row", "dtype", "single", "slope", "held", "unit", "of peak", "MHz", "of peak", "chip", "W",
        "check",
    )  # fmt: skip
    WIDTHS = (36, 12, 8, 8, 8, 5, 8, 5, 8, 5, 4, 5)

    def line(self, row: dict) -> str:
        if "unit" not in row:
            return f"{row['row']:<36} {row['check']}"
        scale, unit = (1e9, "GB/s") if row["unit"] == "B/s" else (1e12, "T/s")
        cells = [
            row["row"],
            row["dtype"],
            *(f"{row[rate] / scale:.1f}" for rate in ("single", "slope", "held")),
            unit,
            self.share(row),
            f"{row['clock_mhz']:.0f}" if row["clock_mhz"] else "?",
            self.share(row, "chip_mhz"),
            f"{row['chip_mhz']:.0f}" if row.get("chip_mhz") else "",
            f"{row['power_w']:.0f}" if row["power_w"] else "?",
            row["check"],
        ]
        text = " ".join(
            f"{cell:<{width}}" if i < 2 else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(cells, self.WIDTHS, strict=True))
        )
        extras = [row["notes"], f"throttled: {row['throttle']}" if row["throttle"] else ""]
        return "  ".join([text, *filter(None, extras)])

    def print(self) -> None:
        print(f"\n{self.facts}\n")
        head = zip(self.HEAD, self.WIDTHS, strict=True)
        print(" ".join(f"{h:<{w}}" if i < 2 else f"{h:>{w}}" for i, (h, w) in enumerate(head)))
        for row in self.rows:
            print(self.line(row))


# --- our kernels -----------------------------------------------------------------------------


def kernel_row(mx, key: str, *, label: str = "", held_s: float = 1.0, rounds: int = 5, **params):
    from nnbt.engines.kernel import launcher as gpu_kernels

    row = gpu_kernels.KERNELS[key]
    built = gpu_kernels.build(row, mx, **params)
    work = built.work.bytes or built.work.ops
    first = time.perf_counter()
    built.step(1)()
    first = time.perf_counter() - first
    result = take(
        label or f"kernel {row.name}", row.dtype, built.step, work, held_s=held_s, rounds=rounds
    )
    clock_hz = built.clock_hz()
    result["chip_mhz"] = clock_hz and clock_hz / 1e6
    result["check"] = built.check() or "ok"
    result["unit"] = "B/s" if built.work.bytes else "op/s"
    result["notes"] = f"first run {first:.1f} s" + (f", {params}" if params else "")
    del built
    mx.clear_cache()
    return result


STREAMS = ("copy", "add", "triad", "read", "write", "bulk_read", "bulk_copy")


def bandwidth_rows(table: Table, mx) -> None:
    for name in STREAMS:
        if table.wants("bandwidth") or table.wants(name):
            table.add(
                f"kernel {name}", lambda name=name: kernel_row(mx, f"{name}-float32-cuda", rounds=8)
            )
    if table.wants("mode"):
        label = "kernel copy, graph built in each run"
        table.add(label, lambda: kernel_row(mx, "copy-float32-cuda", label=label, compiled=False))


def mlx_rows(table: Table, mx) -> None:
    """MLX's own operations, the rung below."""

    def streams(operation, arrays: int):
        words = 2 * GIB // 4
        inputs = [
            [mx.random.uniform(-1, 1, (words,)) for _ in range(arrays - 1)]
            for _ in range(LADDER[-1])
        ]
        mx.eval(inputs)
        step = lambda k: lambda: mx.eval([operation(*group) for group in inputs[:k]])  # noqa: E731
        return step, arrays * words * 4.0

    def matmul(dtype: str):
        inputs = [
            [mx.random.uniform(-1, 1, (MATRIX, MATRIX)).astype(getattr(mx, dtype)) for _ in "ab"]
            for _ in range(LADDER[-1])
        ]
        mx.eval(inputs)
        step = lambda k: lambda: mx.eval([a @ b for a, b in inputs[:k]])  # noqa: E731
        return step, 2.0 * MATRIX**3

    def row(name: str, dtype: str, unit: str, made) -> dict:
        step, work = made()
        result = {**take(f"MLX {name}", dtype, step, work), "unit": unit, "check": "-"}
        del step
        mx.clear_cache()
        return result

    with mx.stream(mx.gpu):
        for name, arrays, operation in (("add", 3, mx.add), ("abs", 2, mx.abs)):
            made = lambda operation=operation, arrays=arrays: streams(operation, arrays)  # noqa: E731
            table.add(f"MLX {name}", lambda name=name, made=made: row(name, "float32", "B/s", made))
        for dtype in ("bfloat16", "float16"):
            made = lambda dtype=dtype: matmul(dtype)  # noqa: E731
            table.add(
                f"MLX matmul {dtype}",
                lambda dtype=dtype, made=made: row("matmul", dtype, "op/s", made),
            )


def sweep_rows(table: Table, mx) -> None:
    """Short trials of the streams' parameters, then the best of each once more at full length."""
    trials = [(name, {"unroll": 1, "cache": c, "threads": t})
              for name in ("copy", "add")
              for c in (1, 3) for t in (128, 256, 512, 1024)]  # fmt: skip
    trials += [("read", {"unroll": u, "cache": 1, "threads": t})
               for u, t in ((8, 512), (8, 1024), (16, 256), (16, 512))]  # fmt: skip
    for piece, stages, blocks in ((2**13, 12, 2), (2**15, 6, 1), (2**14, 4, 3)):
        params = {"piece_bytes": piece, "stages": stages, "blocks_per_multiprocessor": blocks}
        trials += [("bulk_copy", params), ("bulk_read", params)]
    best: dict[str, tuple[float, dict]] = {}
    for name, params in trials:
        label = f"try {name} {' '.join(str(value) for value in params.values())}"
        row = table.add(
            label,
            lambda name=name, params=params, label=label: kernel_row(
                mx, f"{name}-float32-cuda", label=label, held_s=0.15, rounds=3, array_bytes=GIB,
                **params,
            ),
        )  # fmt: skip
        if row and row["check"] == "ok" and row["slope"] > best.get(name, (0.0, {}))[0]:
            best[name] = (row["slope"], params)
    for name, (_, params) in best.items():
        label = f"best {name}"
        table.add(
            label,
            lambda name=name, params=params, label=label: kernel_row(
                mx, f"{name}-float32-cuda", label=label, rounds=8, **params
            ),
        )


def compute_rows(table: Table, mx) -> None:
    dtypes = ("bfloat16", "float16", "tfloat32", "float8_e4m3", "int8")
    rows = [("fma-float32-cuda", {})]
    rows += [(f"{name}-{d}-cuda", {}) for name in ("wgmma", "wgmma_registers") for d in dtypes]
    rows += [(f"mma_sync-{d}-cuda", {}) for d in ("bfloat16", "int8")]
    rows += [("wgmma-bfloat16-cuda", {"data": "normal"})]
    for key, params in rows:
        if table.wants("compute") or table.wants(key.split("-")[0]):
            table.add(key, lambda key=key, params=params: kernel_row(mx, key, **params))


# --- NVIDIA's library and PyTorch -----------------------------------------------------------


def library_rows(table: Table) -> None:
    from nnbt.engines.library import products as vendor

    def best_ns(run) -> float:
        return 1e9 * min(run_times(run, 3))

    def make(dtype: str) -> dict:
        built = vendor.cublaslt_matmul(dtype, MATRIX, best_ns=best_ns)
        row = take(f"cuBLASLt {MATRIX}", dtype, built.step, built.ops)
        return {
            **row, "unit": "op/s", "check": built.check() or "ok", "notes": "; ".join(built.notes)
        }  # fmt: skip

    for dtype in ("bfloat16", "float16", "tfloat32", "float32", "float8_e4m3", "int8"):
        table.add(f"cuBLASLt {dtype}", lambda dtype=dtype: make(dtype))


def torch_steps(torch):
    """(name, dtype, unit, work of one launch, step) of each PyTorch operation."""

    def repeat(operation, count_inputs):
        def step(k: int):
            def run() -> None:
                for i in range(k):
                    operation(i % count_inputs)
                torch.cuda.synchronize()

            return run

        return step

    def stream(name: str, arrays: int):
        words = 2 * GIB // 4
        tensors = [
            [torch.rand(words, device="cuda") for _ in range(arrays)] for _ in range(LADDER[-1])
        ]
        operations = {
            "copy_": lambda i: tensors[i][0].copy_(tensors[i][1]),
            "add": lambda i: torch.add(tensors[i][1], tensors[i][2], out=tensors[i][0]),
            "triad": lambda i: torch.add(
                tensors[i][1], tensors[i][2], alpha=0.5, out=tensors[i][0]
            ),
        }
        return repeat(operations[name], len(tensors)), arrays * words * 4.0

    def matmul(dtype: str):
        shape = (MATRIX, MATRIX)
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tfloat32"
        ops = 2.0 * MATRIX**3
        if dtype == "int8":
            a, b = (
                torch.randint(-127, 128, shape, dtype=torch.int8, device="cuda") for _ in range(2)
            )
            return repeat(lambda _: torch._int_mm(a, b.t()), 1), ops
        if dtype == "float8_e4m3":
            a, b = (
                (torch.rand(shape, device="cuda") * 2 - 1).to(torch.float8_e4m3fn) for _ in range(2)
            )
            one = torch.ones((), device="cuda")
            options = {"out_dtype": torch.bfloat16, "use_fast_accum": True}
            return repeat(lambda _: torch._scaled_mm(a, b.t(), one, one, **options), 1), ops
        kind = {"tfloat32": torch.float32}.get(dtype) or getattr(torch, dtype)
        a, b = ((torch.rand(shape, device="cuda") * 2 - 1).to(kind) for _ in range(2))
        out = torch.empty(shape, dtype=kind, device="cuda")
        return repeat(lambda _: torch.matmul(a, b, out=out), 1), ops

    for name, arrays in (("copy_", 2), ("add", 3), ("triad", 3)):
        yield name, "float32", "B/s", lambda name=name, arrays=arrays: stream(name, arrays)
    for dtype in ("bfloat16", "float16", "tfloat32", "float32", "float8_e4m3", "int8"):
        yield "matmul", dtype, "op/s", lambda dtype=dtype: matmul(dtype)


def torch_process() -> None:
    """Child process: one JSON line a row on standard output."""
    import torch

    for name, dtype, unit, make in torch_steps(torch):
        try:
            step, work = make()
            row = {**take(f"PyTorch {name}", dtype, step, work), "unit": unit, "check": "-"}
            del step
            torch.cuda.empty_cache()
        except Exception:
            print(traceback.format_exc(), file=sys.stderr, flush=True)
            row = {"row": f"PyTorch {name} {dtype}", "check": "FAILED (see above)"}
        print(json.dumps(row), flush=True)


def torch_rows(table: Table) -> None:
    command = [sys.executable, __file__, "--torch-process"]
    limit = max(60.0, table.deadline_s + 40 - (time.monotonic() - STARTED))
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=limit, check=False)
    for line in child.stdout.splitlines():
        table.rows.append(json.loads(line))
        print(table.line(table.rows[-1]), flush=True)
    if child.returncode:
        print(f"the PyTorch process ended with {child.returncode}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        default="",
        help="compute, cublaslt, bandwidth, torch, mlx, sweep, mode, or kernels by name",
    )
    parser.add_argument("--json", type=Path, help="write all rows there")
    parser.add_argument("--seconds", type=float, default=250.0, help="start no row after that")
    parser.add_argument("--torch-process", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch_process:
        torch_process()
        return
    table = Table(set(filter(None, arguments.only.split(","))), arguments.seconds)
    mx = None
    try:
        from nnbt.engines.kernel import launcher as gpu_kernels
        from nnbt.machine import mlx as _mlx
        from nnbt.machine.facts import gpus

        mx = _mlx.core()
        capability = gpu_kernels.compute_capability(mx)
        table.facts = {
            "gpu": gpus()[0].name,
            "capability": capability,
            "multiprocessors": gpu_kernels.multiprocessors(),
            "ops_per_clock": gpu_kernels.OPS_PER_CLOCK.get(capability, {}),
            "mlx": mx.__version__,
            "native timer": NATIVE,
        }
        print(table.facts, flush=True)
    except Exception:
        print(f"MLX or the driver: FAILED\n{traceback.format_exc()}", flush=True)
    sections = [
        ("compute", lambda: compute_rows(table, mx)),
        ("cublaslt", lambda: library_rows(table)),
        ("bandwidth", lambda: bandwidth_rows(table, mx)),
        ("torch", lambda: torch_rows(table)),
        ("mlx", lambda: mlx_rows(table, mx)),
        ("sweep", lambda: sweep_rows(table, mx)),
    ]
    for name, run in sections:
        # compute_rows and bandwidth_rows ask for their own parts.
        if name not in ("compute", "bandwidth") and not table.wants(name):
            continue
        if mx is None and name not in ("cublaslt", "torch"):
            print(f"section {name}: left out, it needs MLX (see above)", flush=True)
            continue
        print(f"--- {name} at {time.monotonic() - STARTED:.0f} s", flush=True)
        try:
            run()
        except Exception:
            print(f"section {name}: FAILED\n{traceback.format_exc()}", flush=True)
    table.print()
    if arguments.json:
        arguments.json.write_text(json.dumps({"facts": repr(table.facts), "rows": table.rows}))


if __name__ == "__main__":
    main()
