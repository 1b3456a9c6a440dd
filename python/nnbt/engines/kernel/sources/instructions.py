"""Matrix instructions of NVIDIA's tensor cores as CUDA source."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MatrixInstruction:
    """Instruction of a dtype, 32 bytes deep; names are those of the PTX manual.

    See mma.sync, wgmma.mma_async and tcgen05.mma there.
    """

    operand: str
    accumulator: str
    depth: int
    kind: str  # kind of tcgen05.mma
    element: int
    """Type of the operands in tcgen05's instruction descriptor; numbers differ between kinds."""
    wgmma_flags: str = ""  # after the operands: signs, for 16-bit formats also transpositions

    @property
    def cuda_accumulator(self) -> str:
        """The accumulator's type in CUDA C++."""
        return {"f32": "float", "s32": "int32_t"}[self.accumulator]

    @property
    def constraint(self) -> str:
        """The accumulator's constraint in inline assembly."""
        return {"f32": "f", "s32": "r"}[self.accumulator]

    @property
    def sums(self) -> int:
        """The accumulator's type in tcgen05's instruction descriptor."""
        return {"f32": 1, "s32": 2}[self.accumulator]


MATRIX_INSTRUCTIONS = {
    "float16": MatrixInstruction("f16", "f32", 16, "f16", 0, ", 1, 1, 0, 0"),
    "bfloat16": MatrixInstruction("bf16", "f32", 16, "f16", 1, ", 1, 1, 0, 0"),
    "tfloat32": MatrixInstruction("tf32", "f32", 8, "tf32", 2, ", 1, 1"),
    "float8_e4m3": MatrixInstruction("e4m3", "f32", 32, "f8f6f4", 0, ", 1, 1"),
    "int8": MatrixInstruction("s8", "s32", 32, "i8", 1),
}


def _registers(first: int, count: int) -> str:
    return "{" + ", ".join(f"%{i}" for i in range(first, first + count)) + "}"


def _operands(constraint: str, name: str, count: int) -> str:
    return ", ".join(f'"{constraint}"({name}[{i}])' for i in range(count))


def wgmma(row: MatrixInstruction, *, a_in_registers: bool) -> str:
    """CUDA source: wgmma m64n256 as `multiply_accumulate`, and `keep_in_registers`."""
    count, constraint, kind = 128, row.constraint, row.cuda_accumulator
    a_type = "const uint32_t (&a)[4]" if a_in_registers else "uint64_t a"
    a_names = _registers(count, 4) if a_in_registers else f"%{count}"
    a_inputs = _operands("r", "a", 4) if a_in_registers else '"l"(a)'
    b_name = f"%{count + (4 if a_in_registers else 1)}"
    flags = row.wgmma_flags
    if a_in_registers:
        flags = flags.replace(", 0, 0", ", 0")  # only B can still be transposed
    name = f"wgmma.mma_async.sync.aligned.m64n256k{row.depth}.{row.accumulator}.{row.operand}"
    return f"""namespace nnbt {{
__device__ __forceinline__ void multiply_accumulate({kind} (&d)[{count}], {a_type}, uint64_t b) {{
  asm volatile("{{\\n.reg .pred add;\\nsetp.ne.b32 add, 1, 0;\\n"
               "{name}.{row.operand} "
               "{_registers(0, count)}, {a_names}, {b_name}, add{flags};\\n}}\\n"
               : {_operands("+" + constraint, "d", count)}
               : {a_inputs}, "l"(b));
}}
__device__ __forceinline__ void keep_in_registers({kind} (&d)[{count}]) {{
  asm volatile("" : {_operands("+" + constraint, "d", count)} :: "memory");
}}
}}  // namespace nnbt
"""


def mma_sync(row: MatrixInstruction) -> str:
    """CUDA source: mma.sync m16n8 as `multiply_accumulate`."""
    kind = row.cuda_accumulator
    name = (
        f"mma.sync.aligned.m16n8k{row.depth}.row.col."
        f"{row.accumulator}.{row.operand}.{row.operand}.{row.accumulator}"
    )
    return f"""namespace nnbt {{
__device__ __forceinline__ void multiply_accumulate({kind} (&d)[4], const uint32_t (&a)[4],
                                                    const uint32_t (&b)[2]) {{
  asm volatile("{name} "
               "{_registers(0, 4)}, {_registers(4, 4)}, {_registers(8, 2)}, {_registers(0, 4)};"
               : {_operands("+" + row.constraint, "d", 4)}
               : {_operands("r", "a", 4)}, {_operands("r", "b", 2)});
}}
}}  // namespace nnbt
"""


def tcgen05(row: MatrixInstruction) -> str:
    """CUDA source: tcgen05.mma of one block as `multiply_accumulate`."""
    return f"""namespace nnbt {{
__device__ __forceinline__ void multiply_accumulate(uint32_t sums, uint64_t a, uint64_t b,
                                                    uint32_t instruction, uint32_t add) {{
  asm volatile("{{\\n.reg .pred add;\\nsetp.ne.b32 add, %4, 0;\\n"
               "tcgen05.mma.cta_group::1.kind::{row.kind} [%0], %1, %2, %3, add;\\n}}\\n"
               :: "r"(sums), "l"(a), "l"(b), "r"(instruction), "r"(add) : "memory");
}}
}}  // namespace nnbt
"""


TCGEN05_WITHOUT_INT8 = (10, 3)
"""ptxas 13.5 supports kind::i8 on sm_100a and sm_110a, but not on sm_103a."""

UNTRIED = (
    "kernel tcgen05 was compiled for this GPU, but has run only on a model of it: its sums are "
    "checked here for the first time"
)


def successor_note(capability: tuple[int, int], dtype: str) -> str:
    """A sentence on the role of mma.sync on a chip after Hopper; empty for older chips.

    wgmma exists on sm_90a only.
    """
    here = f"compute capability {capability[0]}.{capability[1]}"
    if has_tcgen05(capability, dtype):
        return (
            f"On {here} mma.sync is the compatibility path, so its rate is not a ceiling: row "
            "tcgen05 uses the native matrix instruction."
        )
    if has_tcgen05(capability):
        return f"On {here} mma.sync is the matrix instruction: tcgen05 has no {dtype}."
    if capability[0] == 12:
        return f"On {here} mma.sync is the matrix instruction: there is neither wgmma nor tcgen05."
    return ""


def has_tcgen05(capability: tuple[int, int], dtype: str | None = None) -> bool:
    """Whether a chip has tcgen05, of this dtype if one is given.

    sm_100, sm_103 and sm_110 have it, sm_12x does not (PTX ISA, target notes of tcgen05.mma).
    """
    lacks = dtype == "int8" and capability == TCGEN05_WITHOUT_INT8
    return capability[0] in (10, 11) and not lacks
