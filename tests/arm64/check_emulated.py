"""The arm64 peak chains under QEMU: correct sums, work and code on many CPUs.

NNBT_ARM64_BUILD is the build directory, NNBT_QEMU the emulator (`.ci/arm64`). Emulation says
nothing about speed, so the test of the clock is skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from peak_code import check_chain, check_sme, disassemble

BUILD = Path(os.environ["NNBT_ARM64_BUILD"]) / "tests/native"
QEMU = [os.environ["NNBT_QEMU"], "-L", "/usr/aarch64-linux-gnu"]
OBJDUMP = "aarch64-linux-gnu-objdump"

SVE = frozenset({"sve_float32", "sve_float64", "sve_float16", "sve_int8_dot"})
SVE_NEURAL = frozenset({"sve_int8_matrix", "sve_bfloat16_dot", "sve_bfloat16_matrix"})
SME = frozenset({"sme_float32", "sme_float64", "sme_float16", "sme_bfloat16", "sme_int8"})
ALL = SVE | SVE_NEURAL | SME


@dataclass(frozen=True)
class Cpu:
    """A CPU of QEMU: lengths in bits, and the SVE and SME chains that must run on it."""

    name: str  # as pytest shows it
    options: str  # of QEMU
    sve: int = 128
    sme: int = 128
    runs: frozenset[str] = frozenset()
    full_length: bool = False

    @property
    def command(self) -> list[str]:
        return [*QEMU, "-cpu", self.options]


def scalable(sve: int, sme: int, full_length: bool = False) -> Cpu:
    """Without FA64, as on Apple M4: NEON and much of plain SVE trap in streaming mode."""
    lengths = f"sve-default-vector-length={sve // 8},sme-default-vector-length={sme // 8}"
    options = f"max,sme_fa64=off,{lengths}"
    return Cpu(f"sve{sve}-sme{sme}", options, sve, sme, ALL, full_length)


def model(name: str, sve: int = 128, runs: frozenset[str] = frozenset()) -> Cpu:
    return Cpu(name, name, sve, runs=runs)


CPUS = [
    model("cortex-a72"),
    model("neoverse-n1"),
    model("a64fx", 512, SVE),
    model("neoverse-v1", 256, SVE | SVE_NEURAL),
    scalable(128, 128, full_length=True),
    scalable(256, 512),
    scalable(512, 256),
    scalable(2048, 2048),
]
on_each = pytest.mark.parametrize("cpu", CPUS, ids=lambda cpu: cpu.name)


@dataclass(frozen=True)
class Row:
    name: str
    instruction: str
    instructions: int
    operations: int
    offset: int
    reason: str


def rows(cpu: Cpu) -> dict[str, Row]:
    listing = subprocess.run(
        [*cpu.command, BUILD / "list_peak_chains"], check=True, capture_output=True, text=True
    ).stdout
    table = [line.split("\t") for line in listing.splitlines()]
    return {
        name: Row(name, instruction, int(count), int(operations), int(offset), reason)
        for name, instruction, count, operations, offset, reason in table
    }


BASE = rows(CPUS[0])


@on_each
def test_a_row_runs_or_says_what_is_missing(cpu):
    table = rows(cpu)
    assert set(table) >= ALL
    assert {name for name in ALL if not table[name].reason} == cpu.runs
    for name in ALL - cpu.runs:
        extension = name.split("_")[0]
        assert table[name].reason.startswith(f"This CPU has no {extension}")


@on_each
def test_work_grows_with_the_length_of_vectors_and_its_square_for_tiles(cpu):
    for name, row in rows(cpu).items():
        scale = {"sve": cpu.sve // 128, "sme": (cpu.sme // 128) ** 2}.get(name.split("_")[0], 1)
        assert row.operations == BASE[name].operations * scale
        assert row.instructions == BASE[name].instructions


@on_each
def test_sums_are_correct(cpu):
    left_out = ["the clock of a core*"] + ([] if cpu.full_length else ["full length*"])
    command = [BUILD / "nnbt_tests", "--source-file=*test_peak.cpp"]
    result = subprocess.run(
        [*cpu.command, *command, "--test-case-exclude=" + ",".join(left_out)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    print(f"\n{cpu.name}: {result.stdout.splitlines()[-3]}; left out: {', '.join(left_out)}")
    assert " 0 failed" in result.stdout
    assert " 0 passed" not in result.stdout


@pytest.mark.parametrize("row", BASE.values(), ids=lambda row: row.name)
def test_inner_loop_is_exactly_the_claimed_instructions(row):
    code = disassemble(str(BUILD / "list_peak_chains"), row.offset, OBJDUMP)
    check_chain(code, row.instruction.split("+"), row.instructions)
    if row.name in SME:
        check_sme(code)
