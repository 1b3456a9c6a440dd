"""The machine code of the peak chains, in the extension that was built: a loop of exactly the
claimed instructions and nothing that touches memory. The sums that PeakStep verifies can't tell
this: a compiler that computes equal accumulators once leaves them right and the rate wrong.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest

from nnbt import _native

LONGEST_CHAIN = 8192  # bytes of code, the sums behind the loop included
LOOP_CONTROL = 4  # count, compare, jump, and one for fused or split forms of them

needs_objdump = pytest.mark.skipif(
    shutil.which("objdump") is None, reason="needs objdump (package binutils)"
)


@dataclass(frozen=True)
class Instruction:
    address: int
    mnemonic: str
    operands: str

    @property
    def touches_memory(self) -> bool:
        return "(" in self.operands or "[" in self.operands


def parse(disassembly: str) -> list[Instruction]:
    line = re.compile(r"^\s*([0-9a-f]+):\s+(?:\{\w+\}\s+)?([\w.]+)[ \t]*(.*)$", re.MULTILINE)
    comment = re.compile(r"\s*(<|# |//).*")
    return [
        Instruction(int(m[1], 16), m[2], comment.sub("", m[3])) for m in line.finditer(disassembly)
    ]


def target_of(instruction: Instruction) -> int | None:
    """Address that a jump goes to; None for anything else."""
    if not re.match(r"j|b(\.|$)|cbn?z", instruction.mnemonic):
        return None
    return int(instruction.operands.split(",")[-1].strip(), 16)


def function_at_start(code: list[Instruction]) -> list[Instruction]:
    """What the first instruction can reach: code says nowhere where a function ends."""
    position = {instruction.address: i for i, instruction in enumerate(code)}
    seen: set[int] = set()
    pending = [0]
    while pending:
        i = pending.pop()
        while i not in seen and i < len(code):
            seen.add(i)
            target = target_of(code[i])
            if target in position:
                pending.append(position[target])
            if code[i].mnemonic in ("jmp", "b") or code[i].mnemonic.startswith("ret"):
                break
            i += 1
    return [code[i] for i in sorted(seen)]


def loops(function: list[Instruction]) -> list[list[Instruction]]:
    """Every span from the target of a backward jump to the jump."""
    found = []
    for end, instruction in enumerate(function):
        target = target_of(instruction)
        before = [i for i, other in enumerate(function[:end]) if other.address == target]
        found += [function[start : end + 1] for start in before]
    return found


def check_chain(code: list[Instruction], patterns: list[str], instructions: int) -> None:
    def counted(instruction: Instruction) -> bool:
        by_constant = "$" in instruction.operands or "#" in instruction.operands
        return not by_constant and any(fnmatchcase(instruction.mnemonic, p) for p in patterns)

    chains = [loop for loop in loops(function_at_start(code)) if any(map(counted, loop))]
    assert len(chains) == 1, f"{len(chains)} loops with {patterns}"
    (chain,) = chains
    per_pattern = [sum(fnmatchcase(i.mnemonic, p) for i in chain if counted(i)) for p in patterns]
    assert sum(per_pattern) == instructions
    assert len(set(per_pattern)) == 1, "as many of each kind"
    assert not [i for i in chain if i.touches_memory]
    assert len(chain) <= instructions + LOOP_CONTROL


@needs_objdump
@pytest.mark.parametrize("chain", _native.peak_chains(), ids=lambda chain: chain.name)
def test_inner_loop_is_exactly_the_claimed_instructions(chain):
    assert chain.code_offset > 0
    disassembly = subprocess.run(
        [
            "objdump",
            "-d",
            "--no-show-raw-insn",
            f"--start-address={chain.code_offset}",
            f"--stop-address={chain.code_offset + LONGEST_CHAIN}",
            _native.__file__,
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    check_chain(parse(disassembly), chain.instruction.split("+"), chain.instructions)


GOOD = """
0000000000001000 <run_chain>:
    1000:\txor    %eax,%eax
    1002:\tvfmadd231ps %ymm12,%ymm15,%ymm14
    1007:\tvfmadd231ps %ymm11,%ymm15,%ymm4
    100c:\tadd    $0x1,%rax
    1010:\tcmp    %rax,%rdx
    1013:\tjne    1002 <run_chain+0x2>
    1015:\tvmovaps %ymm4,-0x8(%rsp)
    101a:\tret
"""


def test_the_check_accepts_a_chain():
    check_chain(parse(GOOD), ["vfmadd*ps"], 2)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("vfmadd231ps %ymm11,%ymm15,%ymm4", "nop"),  # one accumulator less
        ("xor    %eax,%eax", "jmp    1015 <run_chain+0x15>\n    1001:\tret"),  # loop not reached
        ("%ymm11,%ymm15,%ymm4", "0x20(%rsp),%ymm15,%ymm4"),  # operand from memory
        ("add    $0x1,%rax", "vmovaps %ymm4,0x40(%rsp)"),  # spilled
        ("add    $0x1,%rax", "nop\n" + "    100f:\tmovaps %xmm0,%xmm1\n" * 3),  # moves in between
        ("vfmadd231ps %ymm12", "vfmadd231pd %ymm12"),  # another dtype
    ],
)
def test_the_check_finds_planted_faults(before, after):
    assert before in GOOD
    with pytest.raises(AssertionError):
        check_chain(parse(GOOD.replace(before, after)), ["vfmadd*ps"], 2)
