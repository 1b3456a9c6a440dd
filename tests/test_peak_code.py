"""The machine code of the peak chains, in the extension that was built: a loop of exactly the
claimed instructions and nothing that touches memory. The sums that PeakStep verifies can't tell
this: a compiler that computes equal accumulators once leaves them right and the rate wrong.
"""

import shutil

import pytest

from nnbt import _native
from peak_code import check_chain, check_sme, check_tile_configurations, disassemble, parse

needs_objdump = pytest.mark.skipif(
    shutil.which("objdump") is None, reason="needs objdump (package binutils)"
)


@needs_objdump
@pytest.mark.parametrize("chain", _native.peak_chains(), ids=lambda chain: chain.name)
def test_inner_loop_is_exactly_the_claimed_instructions(chain):
    assert chain.code_offset > 0
    code = disassemble(_native.__file__, chain.code_offset)
    check_chain(code, chain.instruction.split("+"), chain.instructions)
    if chain.isa.startswith("SME"):
        check_sme(code)


@needs_objdump
@pytest.mark.skipif(
    not any(chain.name == "amx_int8" for chain in _native.peak_chains()),
    reason="tiles (AMX) are x86's",
)
def test_tiles_are_configured_by_all_64_bytes():
    assert check_tile_configurations(disassemble(_native.__file__)) >= 2


CONFIGURED = """
    3b2:\tmovaps %xmm0,-0x78(%rsp)
    3b7:\tmovaps %xmm0,-0x48(%rsp)
    3bc:\tmovaps %xmm0,-0x58(%rsp)
    3c9:\tmovb   $0x1,-0x78(%rsp)
    3ce:\tmov    %rbx,-0x48(%rsp)
    3d3:\tmovaps %xmm1,-0x68(%rsp)
    3d8:\tldtilecfg -0x78(%rsp)
"""


def test_the_check_accepts_a_whole_configuration():
    assert check_tile_configurations(parse(CONFIGURED)) == 1


@pytest.mark.parametrize("line", ["3b7", "3bc", "3d3"])
def test_the_check_finds_a_dropped_store(line):
    """What GCC 12 made of its own intrinsic: rows and row bytes were never stored."""
    less = "\n".join(text for text in CONFIGURED.splitlines() if line not in text)
    dropped = less if line != "3b7" else less.replace("mov    %rbx,-0x48(%rsp)", "nop")
    with pytest.raises(AssertionError, match="ldtilecfg"):
        check_tile_configurations(parse(dropped))


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


SME = """
0000000000001000 <run_outer_products>:
    1000:\tstp\td8, d9, [sp]
    1004:\tsmstart
    1008:\tld1rqb\t{z0.b}, p0/z, [x3]
    100c:\tzero\t{za}
    1010:\tfmopa\tza0.s, p0/m, p0/m, z0.s, z2.s
    1014:\tfmopa\tza1.s, p0/m, p0/m, z1.s, z2.s
    1018:\tfmopa\tza2.s, p0/m, p0/m, z0.s, z3.s
    101c:\tfmopa\tza3.s, p0/m, p0/m, z1.s, z3.s
    1020:\tsubs\tx0, x0, #0x1
    1024:\tb.ne\t1010 <run_outer_products+0x10>  // b.any
    1028:\tstr\tza[w12, 0], [x2]
    102c:\tsmstop
    1030:\tmovi\td0, #0x0
    1034:\tret
"""


def test_the_check_accepts_a_chain_of_arm64():
    check_chain(parse(SME), ["fmopa"], 4)
    check_sme(parse(SME))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("fmopa\tza1.s, p0/m, p0/m, z1.s, z2.s", "nop"),  # one tile less
        ("fmopa\tza1.s, p0/m, p0/m", "bfmopa\tza1.s, p0/m, p0/m"),  # another dtype
        ("subs\tx0, x0, #0x1", "ldr\tx0, [sp]"),  # the count in memory
        ("1010 <run_outer_products+0x10>", "1020 <run_outer_products+0x20>"),  # loop around nothing
    ],
)
def test_the_check_finds_planted_faults_of_arm64(before, after):
    assert before in SME
    with pytest.raises(AssertionError):
        check_chain(parse(SME.replace(before, after)), ["fmopa"], 4)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("smstart", "nop"),
        ("smstop", "nop"),
        ("smstop", "smstop\tsm"),  # ZA stays on
        ("za3.s", "za2.s"),  # a tile that has to wait for itself
        ("subs\tx0", "fmov\td0, x0\n    1021:\tsubs\tx0"),  # a register that streaming mode takes
        ("movi\td0, #0x0", "mov\tz0.s, #0"),  # a register that is only there in it
    ],
)
def test_the_check_finds_faults_that_sums_can_not_tell(before, after):
    assert before in SME
    with pytest.raises(AssertionError):
        check_sme(parse(SME.replace(before, after)))
