"""Prints rates of `nnbt conv` beside PyTorch's channels_last convolutions on the same GPU.

python3 tests/bench/conv_torch.py [--seconds 3] [--device gpu] [--shape C,H,L ...] [--kernel 3 1]

Both sides time whole chains by the wall clock, on random data, with weights of their own for each
layer; operations are 2 B H W C C K K a layer. float32 runs in TF32 on both sides, by default.
Each side runs in a process of its own, so that neither loads the other's CUDA libraries: PyTorch's
without PYTHONPATH, if it is found there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHAPES = ((256, 256, 50), (128, 256, 20), (128, 64, 10))
DTYPES = ("float16", "bfloat16", "float32")
HEADER = ("C", "H", "L", "K", "dtype", "nnbt", "slope", "bits", "verdict", "torch", "nnbt/torch")


def nnbt_rows(shape, kernels, device, seconds):
    """(rows by (dtype, kernel), what went wrong) of one shape."""
    channels, size, layers = shape
    command = [sys.executable, "-m", "nnbt", "conv", "--engine", "mlx", "--device", device]
    command += ["--channels", channels, "--size", size, "--layers", layers, "--no-fail"]
    command += ["--max-seconds", seconds, "--kernel", kernels[0]]
    command += [part for name in DTYPES for part in ("--dtype", name)]
    if 1 in kernels[1:]:
        command.append("--control")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conv.json"
        done = subprocess.run(
            [*map(str, command), "--json", str(path)], capture_output=True, text=True, check=False
        )
        results = json.loads(path.read_text())["results"] if path.exists() else []
    problem = "" if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr.strip()}"
    return {(row["case"]["dtype"], row["case"]["kernel"]): row for row in results}, problem


def torch_rates(shapes, kernels, device, seconds):
    """Operations a second by (shape, dtype, kernel), from a process that loads PyTorch alone."""
    job = json.dumps({"shapes": shapes, "kernels": kernels, "device": device, "seconds": seconds})
    command = [sys.executable, __file__, "--torch", job]
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
    if "No module named 'torch'" in done.stderr:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"PyTorch: exit code {done.returncode}: {done.stderr.strip()[-2000:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for line in lines:
        if "about" in line:
            print(line["about"])
    return {
        (tuple(line["shape"]), line["dtype"], line["kernel"]): line
        for line in lines
        if "rate" in line
    }


def measure_torch(job):
    """Prints one JSON line for each case; runs in the process of its own."""
    import torch

    on = "cuda" if job["device"] == "gpu" else "cpu"
    torch.backends.cudnn.benchmark = True
    name = torch.cuda.get_device_name() if on == "cuda" else "cpu"
    cudnn = torch.backends.cudnn.version() if on == "cuda" else "-"
    print(json.dumps({"about": f"PyTorch {torch.__version__}, cuDNN {cudnn}, {name}"}), flush=True)
    for shape in job["shapes"]:
        for kernel in job["kernels"]:
            for dtype in DTYPES:
                line = {"shape": shape, "dtype": dtype, "kernel": kernel}
                with torch.inference_mode():
                    line |= time_chain(torch, line, on, job["seconds"])
                print(json.dumps(line), flush=True)


def time_chain(torch, line, on, seconds):
    """Median rate of a chain of F.conv2d in channels_last, and the RMS of its output."""
    channels, size, layers = line["shape"]
    kernel, dtype = line["kernel"], getattr(torch, line["dtype"])
    convolve = torch.nn.functional.conv2d
    generator = torch.Generator(device=on).manual_seed(1)

    def random(*dimensions, scale=1.0):
        values = torch.randn(*dimensions, device=on, generator=generator) * scale
        return values.to(dtype).to(memory_format=torch.channels_last)

    image = random(1, channels, size, size)
    scale = (channels * kernel * kernel) ** -0.5
    weights = [random(channels, channels, kernel, kernel, scale=scale) for _ in range(layers)]

    def run():
        z = image
        for weight in weights:
            z = convolve(z, weight, padding=kernel // 2)
        if on == "cuda":
            torch.cuda.synchronize()
        return z

    for _ in range(3):
        last = run()
    samples = []
    began = time.perf_counter()
    while len(samples) < 5 or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        last = run()
        samples.append(time.perf_counter() - start)
    median = statistics.median(samples)
    ops = 2 * layers * size**2 * channels**2 * kernel**2
    rms = float(last.float().square().mean().sqrt())
    return {"rate": ops / median, "median_s": median, "runs": len(samples), "rms": rms}


def figure(rate):
    return "-" if rate is None else f"{rate * 1e-12:.4g}"


def table_row(shape, kernel, dtype, row, other):
    """The cells of one line; rates in T operations a second."""
    rate = row.get("rate") if row else None
    bits = row.get("effective_bits") if row else None
    verdict = (row.get("verdict") or row.get("status")) if row else "-"
    if row and (row["reasons"] or row["reason"]):
        verdict += f" ({' '.join(row['reasons']) or row['reason']})"
    rival = other["rate"] if other else None
    return (
        *map(str, shape),
        str(kernel),
        dtype,
        figure(rate),
        figure(row.get("slope_rate") if row else None),
        "-" if bits is None else f"{bits:.1f}",
        verdict,
        figure(rival),
        f"{rate / rival:.2f}" if rate and rival else "-",
    )


def print_table(rows):
    """Columns as wide as their widest cell."""
    lines = [HEADER, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    for line in lines:
        print("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="gpu", choices=("gpu", "cpu"))
    parser.add_argument("--seconds", type=float, default=3.0, help="of timing a case")
    parser.add_argument("--kernel", type=int, nargs="+", default=[3, 1], choices=(3, 1))
    parser.add_argument(
        "--shape",
        nargs="+",
        default=SHAPES,
        help="C,H,L",
        type=lambda s: tuple(map(int, s.split(","))),
    )
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.kernel = sorted(set(options.kernel), reverse=True)
    if options.torch:
        measure_torch(json.loads(options.torch))
        return
    rates = torch_rates(options.shape, options.kernel, options.device, options.seconds)
    rows = []
    for shape in options.shape:
        found, problem = nnbt_rows(shape, options.kernel, options.device, options.seconds)
        if problem:
            print(f"nnbt, shape {shape}: {problem}")
        rows += [
            table_row(
                shape, kernel, dtype, found.get((dtype, kernel)), rates.get((shape, dtype, kernel))
            )
            for kernel in options.kernel
            for dtype in DTYPES
        ]
    print("rates in T operations a second, medians of wall time; slope: without constant cost")
    print_table(rows)


if __name__ == "__main__":
    main()
