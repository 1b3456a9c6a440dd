"""Rates of nnbt beside PyTorch's: streams, matrix products and convolutions on the same device.

    python tests/bench/beside_torch.py [--only stream matmul conv] [--device gpu] [--seconds 3]

Both sides time whole evaluations by the wall clock, on random data of the same size. PyTorch runs
in a process of its own, so that neither loads the other's CUDA libraries: without PYTHONPATH, if it
is found there. Rates are medians in 1e12 bytes or operations per second.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

ENGINES = {"stream": ("kernel", "native"), "matmul": ("library", "mlx"), "conv": ("mlx",)}
METRICS = {"stream": "bandwidth", "matmul": "flops", "conv": "conv"}
MATRIX = 8192
STREAM = 16384
"""n of a square array of float32: 1 GiB."""
SHAPES = ((256, 256, 50), (128, 256, 20), (128, 64, 10))
"""Channels, height and layers of a chain, with weights of their own for each layer."""
HEADER = ("what", "dtype", "engine", "nnbt", "slope", "bits", "verdict", "torch", "nnbt/torch")


def jobs(only: list[str], device: str) -> list[dict[str, Any]]:
    """What both sides measure, each with its work in bytes or operations."""
    found: list[dict[str, Any]] = []
    if "stream" in only:
        found += [
            {
                "kind": "stream", "op": op, "dtype": "float32", "n": STREAM,
                "work": bytes_ * STREAM**2,
            }
            for op, bytes_ in (("copy", 8), ("add", 12), ("triad", 12))
        ]  # fmt: skip
    if "matmul" in only:
        narrow = ("float16", "bfloat16", "tfloat32", "int8", "float8_e4m3")
        dtypes = ("float32", *narrow) if device == "gpu" else ("float32", "float64")
        n = MATRIX if device == "gpu" else 1024
        found += [{"kind": "matmul", "dtype": d, "n": n, "work": 2 * n**3} for d in dtypes]
    if "conv" in only:
        found += [
            {"kind": "conv", "shape": shape, "kernel": kernel, "dtype": dtype, "n": shape[1],
             "work": 2 * shape[2] * (shape[1] * shape[0] * kernel) ** 2}
            for shape in SHAPES for kernel in (3, 1) for dtype in ("float16", "bfloat16", "float32")
        ]  # fmt: skip
    return found


def nnbt_rows(job: dict[str, Any], device: str, seconds: float) -> list[Any]:
    """The results of each engine that measures the job here."""
    import nnbt

    more: dict[str, Any] = {"op": job["op"]} if job["kind"] == "stream" else {}
    if job["kind"] == "conv":
        channels, _, layers = job["shape"]
        more["params"] = {"channels": channels, "layers": layers, "kernel": job["kernel"]}
    rows = []
    for engine in ENGINES[job["kind"]]:
        try:
            run = nnbt.run(
                METRICS[job["kind"]], device, job["dtype"], [job["n"]], engine=engine,
                max_seconds=seconds, **more,
            )  # fmt: skip
        except nnbt.Unsupported:
            continue  # another engine has it
        rows += run.results
    return rows


def torch_rates(found: list[dict[str, Any]], device: str, seconds: float) -> list[float | None]:
    """PyTorch's rate of each job, None where it has none."""
    command = [sys.executable, __file__, "--torch", json.dumps([found, device, seconds])]
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
    if "No module named 'torch'" in done.stderr:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr[-2000:])
    about, *lines = done.stdout.splitlines() or [f"PyTorch: exit code {done.returncode}"]
    print(about)
    rates = [json.loads(line) for line in lines]
    return rates + [None] * (len(found) - len(rates))


def torch_side(found: list[dict[str, Any]], device: str, seconds: float) -> None:
    """Prints PyTorch's version, and the rate of each job; runs in the process of its own."""
    import torch

    on = "cuda" if device == "gpu" else "cpu"
    torch.backends.cudnn.benchmark = True
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name() if on == 'cuda' else on}")
    for job in found:
        rate = None
        try:
            with torch.inference_mode():
                rate = job["work"] / _median_s(torch, _operation(torch, job, on), seconds)
        except (RuntimeError, AttributeError, NotImplementedError) as error:
            print(f"{job}: {error}", file=sys.stderr)
        print(json.dumps(rate), flush=True)


def _operation(torch: Any, job: dict[str, Any], on: str) -> Any:
    """A callable that does the job once, without waiting for it."""
    kind = getattr(torch, {"tfloat32": "float32", "float8_e4m3": "float8_e4m3fn"}.get(
        job["dtype"], job["dtype"]))  # fmt: skip

    def random(*shape: int) -> Any:
        if job["dtype"] == "int8":
            return torch.randint(-127, 128, shape, dtype=kind, device=on)
        return (torch.rand(shape, device=on) * 2 - 1).to(kind)

    if job["kind"] == "stream":
        a, b, c = (random(job["n"], job["n"]) for _ in range(3))
        if job["op"] == "copy":
            return lambda: c.copy_(a)
        return lambda: torch.add(a, b, alpha=1.0 if job["op"] == "add" else 0.5, out=c)
    if job["kind"] == "conv":
        channels, size, layers = job["shape"]
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        last = {"memory_format": torch.channels_last}
        image = random(1, channels, size, size).to(**last)
        scale = (channels * job["kernel"] ** 2) ** -0.5
        shape = (channels, channels, job["kernel"], job["kernel"])
        weights = [(random(*shape) * scale).to(**last) for _ in range(layers)]

        def chain() -> Any:
            z = image
            for weight in weights:
                z = torch.nn.functional.conv2d(z, weight, padding=job["kernel"] // 2)
            return z

        return chain
    torch.backends.cuda.matmul.allow_tf32 = job["dtype"] == "tfloat32"
    a, b = (random(job["n"], job["n"]) for _ in range(2))
    if job["dtype"] == "int8":
        return lambda: torch._int_mm(a, b.t())
    if job["dtype"] == "float8_e4m3":
        one = torch.ones((), device=on)
        options = {"out_dtype": torch.bfloat16, "use_fast_accum": True}
        return lambda: torch._scaled_mm(a, b.t(), one, one, **options)
    out = torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=out)


def _median_s(torch: Any, operation: Any, seconds: float) -> float:
    samples: list[float] = []
    began = time.perf_counter()
    while len(samples) < 8 or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        operation()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples[3:])


def table_row(job: dict[str, Any], row: Any, rival: float | None) -> tuple[str, ...]:
    what = job.get("op") or " ".join(
        map(str, (*job.get("shape", (job["n"],)), job.get("kernel", "")))
    )
    codes = " ".join(reason.code for reason in row.reasons if reason.severity != "note")
    return (
        f"{job['kind']} {what}".strip(),
        job["dtype"] + (f" ({row.precision})" if row.precision else ""),
        " ".join([row.case.engine, str(row.case.params.get("stores", ""))]).strip(),
        figure(row.rate),
        figure(row.slope_rate),
        "-" if row.effective_bits is None else f"{row.effective_bits:.1f}",
        f"{row.verdict or row.status} {codes or row.reason}".strip(),
        figure(rival),
        f"{row.rate / rival:.2f}" if row.rate and rival else "-",
    )


def figure(rate: float | None) -> str:
    return "-" if rate is None else f"{rate * 1e-12:.4g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--device", default="gpu", choices=("gpu", "cpu"))
    parser.add_argument("--seconds", type=float, default=3.0, help="per case")
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch:
        torch_side(*json.loads(options.torch))
        return
    found = jobs(options.only, options.device)
    rivals = torch_rates(found, options.device, options.seconds)
    lines = [HEADER]
    for job, rival in zip(found, rivals, strict=True):
        rows = nnbt_rows(job, options.device, options.seconds)
        lines += [table_row(job, row, rival) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    for line in lines:
        print("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
