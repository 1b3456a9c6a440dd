"""How good are the CPU ceilings? Prints them against references of the same run.

Bars: bandwidth not below STREAM compiled for this machine nor NumPy's copyto; float32 peak at
least 97 % of cores x operations per cycle x measured clock and above NumPy's sgemm; AMX bfloat16
at least 85 % of its clock-derived peak. All contenders of a row take turns, and the best time of
each counts: on a shared machine disturbance only ever adds time.

Where a bar is missed on all CPUs, pairs of them are tested for a shared core that the system does
not report (nnbt.machine.shared_cores); only with that evidence the bar is that of whole cores.

    python tests/bench/ceilings.py [--rounds 8]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Machines set these for reasons of their own; the comparison is with the kernel NumPy would pick.
for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(variable, None)

import numpy as np  # noqa: E402

from nnbt import _native  # noqa: E402
from nnbt.ladder.conditions import MOST_OF_PEAK  # noqa: E402
from nnbt.machine.shared_cores import (  # noqa: E402
    CROWD,
    SharedCores,
    find_shared_cores,
    measure_crowd,
    measure_pair,
    port_chain,
)

RUNS_PER_TURN = 3
PEAK_RUNS_PER_TURN = 60
PEAK_BAR = {"float32": 0.97, "float64": 0.97, "bfloat16": 0.85, "int8": 0.85}


class Reference:
    """The STREAM program, compiled here; it sleeps while others have their turn."""

    def __init__(self, folder: str, elements: int) -> None:
        source = Path(__file__).with_name("stream_reference.cpp")
        program = Path(folder, "stream_reference")
        compiler = shutil.which("g++") or shutil.which("c++") or sys.exit("needs a C++ compiler")
        flags = ["-std=c++20", "-O3", "-march=native", "-fopenmp"]
        subprocess.run([compiler, *flags, source, "-o", program], check=True)
        self._process = subprocess.Popen(
            [program, str(elements)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_PROC_BIND": "true"},
        )

    def pass_ns(self, kernel: str) -> int:
        print(kernel, file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def step_ns(step, runs: int = RUNS_PER_TURN) -> int:
    """Best run of one turn, after one that wakes caches and clocks."""
    return min(_native.measure(step, warmup=1, runs=runs).samples_ns)


def short_peak(chain: str, cores: int) -> _native.PeakStep:
    """Runs of about 3 ms: long against waking threads (20 us), short enough to fall between two
    interruptions.
    """
    automatic = _native.make_peak(chain, cores).iterations
    return _native.make_peak(chain, cores, max(1, automatic // 3))


def best_of_turns(contenders: dict, rounds: int) -> dict:
    """The least time that each contender ever took, all taking turns."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, contender in contenders.items():
            best[name] = min(best[name], contender())
    return best


def show(what: str, value: str, against: str, ratio: float, bar: float | None) -> bool:
    held = bar is None or ratio >= bar
    verdict = "" if bar is None else f"bar {bar:.2f}  {'held' if held else 'MISSED'}"
    print(f"{what:24} {value:>14}  {against:44} {ratio:6.3f}  {verdict}")
    return held


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
                    value = f"{counted / best[winner]:.2f} GB/s"
                    held &= show(f"{row.name} ({winner})", value, f"against {rival}", ratio, 1.0)
        reference.close()
    return held


def peak_of(chain, cores: int, rounds: int) -> bool:
    """Compares the best rate of so many cores with what their clock allows."""
    step = short_peak(chain.name, cores)
    clocks = []
    loaded = []
    best_ns = float("inf")
    for _ in range(rounds):
        clocks.append(_native.core_clock_hz(cores))
        best_ns = min(best_ns, step_ns(step, PEAK_RUNS_PER_TURN))
        loaded.append(_native.core_clock_hz(cores, chain.name))
    if (fault := step.verify()) is not None:
        sys.exit(fault)
    rate = step.work_ops / best_ns * 1e9
    value = f"{rate / 1e9:.1f} G/s"
    if chain.operations_per_cycle is None:
        per_cycle = rate / cores / max(clocks)
        print(f"{chain.name:24} {value:>14}  {per_cycle:.2f} per core and cycle, {cores} cores")
        return True
    # Wide vectors and tiles can lower the clock: theirs is what the core had to give.
    clock = max(loaded)
    derived = cores * chain.operations_per_cycle * clock
    text = f"of {cores} x {chain.operations_per_cycle:g} x {clock / 1e9:.3f} GHz"
    if max(clocks) > clock * 1.005:
        text += f" ({max(clocks) / 1e9:.3f} without it)"
    ratio, bar = rate / derived, PEAK_BAR.get(chain.dtype)
    shared = shared_cores(chain.name, cores) if bar is not None and ratio < bar else None
    if shared is None or ratio > MOST_OF_PEAK * shared.cores / shared.cpus:
        return show(chain.name, value, text, ratio, bar)
    show(chain.name, value, text, ratio, None)
    print(f"  {shared.sentence}.")
    whole = derived * shared.cores / shared.cpus
    text = text.replace(f"of {cores} x", f"of {shared.cores}, not {cores}, x")
    return show(chain.name, value, text, rate / whole, bar)


def shared_cores(chain: str, cores: int) -> SharedCores | None:
    """Evidence for pairs of processors that are one core, if there is any."""
    return find_shared_cores(_native.measure, chain, cores) if cores > 1 else None


def show_pairs() -> bool:
    """What a second thread adds on the first processors: 2 on cores of their own, 1 on one core."""
    first, *others = _native.allowed_cpus()
    chains = [c.name for c in _native.peak_chains() if c.available and c.dtype == "float32"]
    for other in others[:8]:
        pair = measure_pair(_native.measure, port_chain(chains[-1]), (first, other))
        what = f"CPUs {first} and {other}"
        print(
            f"{what:24} {pair.gain:>9.2f} times  by a second thread of {pair.chain}, control "
            f"{pair.control_gain:.2f}: {'ONE CORE' if pair.shared else 'cores of their own'}"
        )
    if len(others) + 1 >= CROWD:
        crowd = measure_crowd(_native.measure, port_chain(chains[-1]), [first, *others])
        print(
            f"all {crowd.cpus} CPUs{'':12} {crowd.gain:>9.2f} times  one of {crowd.chain} on each, "
            f"control {crowd.control_gain:.2f}: {'FEWER' if crowd.shared else 'as many'} cores"
        )
    return True


def peak(rounds: int, names: list[str] | None) -> bool:
    held = True
    for chain in _native.peak_chains():
        if names and chain.name not in names:
            continue
        if not chain.available:
            print(f"{chain.name:24} {chain.reason}")
            continue
        for cores in sorted({1, _native.allowed_cores()}):
            held &= peak_of(chain, cores, rounds)
    return held


def against_sgemm(rounds: int, order: int = 2048) -> bool:
    float32 = [c for c in _native.peak_chains() if c.available and c.dtype == "float32"]
    steps = {c.name: short_peak(c.name, _native.allowed_cores()) for c in float32}
    generator = np.random.default_rng(1)
    a = generator.standard_normal((order, order), np.float32)
    b = generator.standard_normal((order, order), np.float32)
    contenders = {
        name: lambda step=step: step_ns(step, PEAK_RUNS_PER_TURN) for name, step in steps.items()
    }
    contenders["sgemm"] = lambda: step_ns(lambda: a @ b)
    best = best_of_turns(contenders, rounds)
    sgemm = 2 * order**3 / best["sgemm"]
    name = max(steps, key=lambda name: steps[name].work_ops / best[name])
    rate = steps[name].work_ops / best[name]
    against = f"against NumPy sgemm n={order}: {sgemm:.1f} GFLOP/s"
    return show(name, f"{rate:.1f} G/s", against, rate / sgemm, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--chain", action="append", help="peaks of these chains only")
    parser.add_argument("--only", choices=["bandwidth", "pairs", "peak", "sgemm"])
    parser.add_argument("--array-mib", type=int, help="default: 4 times the last-level cache")
    options = parser.parse_args()
    last_cache = max(_native.cache_bytes().values(), default=32 << 20)
    array_bytes = options.array_mib << 20 if options.array_mib else 4 * last_cache
    print(f"cores {_native.allowed_cores()}, arrays {array_bytes >> 20} MiB")
    parts = {
        "bandwidth": lambda: bandwidth(options.rounds, array_bytes),
        "pairs": show_pairs,
        "peak": lambda: peak(options.rounds, options.chain),
        "sgemm": lambda: against_sgemm(options.rounds),
    }
    results = [part() for name, part in parts.items() if options.only in (None, name)]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
