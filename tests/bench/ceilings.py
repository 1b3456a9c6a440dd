"""Are nnbt's CPU streams as fast as STREAM compiled for this machine, and as NumPy's copyto?

All contenders of a row take turns, and the best time of each counts: on a shared machine
disturbance only ever adds time. `nnbt ladder` prints the compute peaks against the clock and BLAS.

    python tests/bench/ceilings.py [--rounds 8]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from nnbt import _native

RUNS_PER_TURN = 3


class Reference:
    """The STREAM program, compiled here; it sleeps while others have their turn."""

    def __init__(self, folder: str, elements: int) -> None:
        source = Path(__file__).with_name("stream_reference.cpp")
        program = Path(folder, "stream_reference")
        compiler = shutil.which("g++") or shutil.which("c++") or sys.exit("needs a C++ compiler")
        flags = ["-std=c++20", "-O3", "-march=native", "-fopenmp"]
        subprocess.run([compiler, *flags, source, "-o", program], check=True)
        self._process = subprocess.Popen(
            [program, str(elements)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_PROC_BIND": "true"},
        )  # fmt: skip

    def pass_ns(self, kernel: str) -> int:
        print(kernel, file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def step_ns(step, runs: int = RUNS_PER_TURN) -> int:
    """Best run of one turn, after one that wakes caches and clocks."""
    return min(_native.measure(step, warmup=1, runs=runs).samples_ns)


def best_of_turns(contenders: dict, rounds: int) -> dict:
    """The least time that each contender ever took, all taking turns."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, contender in contenders.items():
            best[name] = min(best[name], contender())
    return best


def show(what: str, rate: float, rival: str, ratio: float) -> bool:
    verdict = "held" if ratio >= 1 else "MISSED"
    print(f"{what:24} {rate:9.2f} GB/s  against {rival:8} {ratio:6.3f}  {verdict}")
    return ratio >= 1


def bandwidth(rounds: int, array_bytes: int) -> bool:
    held = True
    source = np.ones(array_bytes // 8)
    target = np.zeros_like(source)
    with tempfile.TemporaryDirectory() as folder:
        reference = Reference(folder, array_bytes // 8)
        for row in _native.stream_kernels():
            ours = {
                f"{threads} thr {'nt' if nontemporal else 'ord'}": _native.make_stream(
                    row.name, array_bytes, threads, nontemporal, passes=1
                )
                for threads in sorted({1, _native.allowed_cores()})
                for nontemporal in ([False, True] if row.nontemporal else [False])
            }
            contenders = {name: lambda step=step: step_ns(step) for name, step in ours.items()}
            contenders["STREAM"] = lambda kernel=row.name: min(
                reference.pass_ns(kernel) for _ in range(RUNS_PER_TURN + 1)
            )
            if row.name == "copy":
                contenders["NumPy"] = lambda: step_ns(lambda: np.copyto(target, source))
            best = best_of_turns(contenders, rounds)
            for name, step in ours.items():
                if (fault := step.verify()) is not None:
                    sys.exit(f"{name}: {fault}")
            counted = row.counted_bytes * (array_bytes // 8)
            winner = min(ours, key=best.__getitem__)
            rates = ", ".join(f"{name} {counted / best[name]:.2f}" for name in best)
            print(f"{row.name}: GB/s {rates}")
            for rival in ("STREAM", "NumPy"):
                if rival in best:
                    ratio = best[rival] / best[winner]
                    held &= show(f"{row.name} ({winner})", counted / best[winner], rival, ratio)
        reference.close()
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--array-mib", type=int, help="default: 4 times the last-level cache")
    options = parser.parse_args()
    last_cache = max(_native.cache_bytes().values(), default=32 << 20)
    array_bytes = options.array_mib << 20 if options.array_mib else 4 * last_cache
    print(f"cores {_native.allowed_cores()}, arrays {array_bytes >> 20} MiB")
    sys.exit(0 if bandwidth(options.rounds, array_bytes) else 1)


if __name__ == "__main__":
    main()
