"""Reads a disassembly: is the loop of a peak chain exactly the claimed instructions?"""

import re
import subprocess
from dataclasses import dataclass
from fnmatch import fnmatchcase

LONGEST_CHAIN = 8192  # bytes of code, the sums behind the loop included
LOOP_CONTROL = 4  # count, compare, jump, and one for fused or split forms of them


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


def check_sme(code: list[Instruction]) -> None:
    """All tiles are used, and SME's registers in streaming mode alone, which is left with ZA off.

    Apple's processors have no z and p registers outside of it, and a compiler's v and d registers
    are lost in it. One tile for all products would have the right sum at a rate of the latency.
    """
    function = function_at_start(code)
    products = [i for i in function if fnmatchcase(i.mnemonic, "*mopa")]
    tiles = {i.operands.split(",")[0] for i in products}
    assert tiles == {f"za{n}.d" for n in range(8)} or tiles == {f"za{n}.s" for n in range(4)}
    assert all(i.operands == "" for i in function if i.mnemonic in ("smstart", "smstop"))
    names = [instruction.mnemonic for instruction in function]
    assert (names.count("smstart"), names.count("smstop")) == (1, 1)
    start, stop = names.index("smstart"), names.index("smstop")
    assert start < stop
    for position, instruction in enumerate(function):
        scalable = re.search(r"\b(z\d|p\d|za)", instruction.operands)
        fixed = re.search(r"\b[vqdshb]\d", instruction.operands)
        inside = start < position < stop
        assert not (fixed if inside else scalable), instruction


def disassemble(
    program: str, start: int | None = None, objdump: str = "objdump"
) -> list[Instruction]:
    """The code of a chain that begins at this address of the file, or all of it."""
    part = ()
    if start is not None:
        part = (f"--start-address={start}", f"--stop-address={start + LONGEST_CHAIN}")
    command = [objdump, "-d", "--no-show-raw-insn", *part, program]
    return parse(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


_STORE = re.compile(r"^(?P<source>[^,]+),(?P<offset>-?0x[0-9a-f]+|)\((?P<base>%\w+)\)$")
_BYTES = {"b": 1, "w": 2, "l": 4, "q": 8}


def _stored(instruction: Instruction) -> tuple[str, int, int] | None:
    """(base register, offset, bytes) of a plain store to memory; None for anything else."""
    store = _STORE.match(instruction.operands)
    if store is None or "mov" not in instruction.mnemonic:
        return None
    offset = int(store["offset"] or "0", 16)
    vector = {"x": 16, "y": 32, "z": 64}.get(store["source"].removeprefix("%")[:1])
    if vector and store["source"].endswith(tuple("0123456789")):
        return store["base"], offset, vector
    if store["source"].startswith("%r"):
        return store["base"], offset, 8
    size = 4 if store["source"].startswith("%e") else _BYTES.get(instruction.mnemonic[-1], 0)
    return store["base"], offset, size


def check_tile_configurations(code: list[Instruction]) -> int:
    """Each ldtilecfg reads 64 bytes that are constant or were stored just before; how many are."""
    found = 0
    for i, instruction in enumerate(code):
        if instruction.mnemonic != "ldtilecfg":
            continue
        found += 1
        place = re.match(r"(-?0x[0-9a-f]+|)\((%\w+)\)$", instruction.operands)
        assert place is not None, instruction
        start, base = int(place[1] or "0", 16), place[2]
        stores = [_stored(one) for one in code[max(0, i - 40) : i]]
        written = {
            offset + byte - start
            for register, offset, count in filter(None, stores)
            for byte in range(count)
            if register == base
        }
        assert base == "%rip" or set(range(64)) <= written, (instruction, sorted(written))
    return found
