"""Every cause that stops a program, its limits, its priority, and that nothing else happens."""

from collections.abc import Iterator

import pytest

from isa.assembly.assembler import assemble
from isa.compiled.simulator import CompiledSimulator
from isa.faults import FaultCause
from isa.image import DramImage
from isa.iss.explain import fault_line
from isa.iss.simulator import Simulator, SimulatorError
from isa.run import EngineEnd
from isa.table import BY_KEY, INSTRUCTIONS, Unit, encode
from isa.workspace import Workspace

NOP = encode(BY_KEY["mov"], (0, 0))
HALT = encode(BY_KEY["halt"], ())
M64 = 2**64 - 1
DRAM = 8192
#: All but set.ws, whose descriptor must lie in memory (tests/isa/test_workspace.py).
KEYS = [row.key for row in INSTRUCTIONS if row.key != "set.ws"]
PAD = 256


@pytest.fixture
def memory() -> Iterator[DramImage]:
    with DramImage(DRAM) as image:
        image.array(0, DRAM, "u1")[:] = 0x55
        yield image


def run(
    memory: DramImage,
    word: int,
    registers: dict[int, int] | None = None,
    *,
    vl: int = 1,
    mr: int = 1,
    address_bits: int = 33,
    instructions: frozenset[str] | None = None,
    count: int = 64,
    scratchpad_alignment: int = 1,
) -> FaultCause:
    """The cause that ``word`` stops with; checks its address and that it had no effect."""
    setting = encode(BY_KEY["set.vl"], (6,)), encode(BY_KEY["set.mr"], (7,))
    pad = bytes(range(256))
    simulator = Simulator(
        [*setting, NOP, word, HALT],
        memory,
        scratchpad_bytes=PAD,
        scratchpad_alignment=scratchpad_alignment,
        scratchpad=pad,
        registers=count,
        address_bits=address_bits,
        instructions=instructions,
    )
    simulator.registers[6:8] = [vl, mr]
    for register, value in (registers or {}).items():
        simulator.registers[register] = value
    before = list(simulator.registers)
    outcome = simulator.run()
    if outcome.state == "halted":
        assert outcome == EngineEnd(state="halted", pc=4, executed=5)
        return FaultCause.NONE
    assert outcome == EngineEnd(state="faulted", cause=outcome.cause, pc=3, executed=3)
    assert simulator.pc == 3
    assert simulator.run() == simulator.step() == outcome
    assert simulator.registers == before
    assert simulator.scratchpad.tobytes() == pad
    assert (simulator.vl, simulator.mr, simulator.fx) == (vl, mr, 0)
    assert memory.read(0, DRAM) == b"\x55" * DRAM
    return outcome.cause


@pytest.mark.parametrize(
    ("program", "pc", "instructions"),
    [
        ([], 0, 0),
        ([NOP, NOP], 2, 2),
        ([NOP, encode(BY_KEY["jmp"], (-2,))], -1, 2),
        ([encode(BY_KEY["jmp"], (-8192,))], -8192, 1),
        ([encode(BY_KEY["jmp"], (8191,))], 8191, 1),
        ([encode(BY_KEY["beq"], (0, 0, 1))], 1, 1),
        ([NOP, encode(BY_KEY["beq"], (0, 0, -3)), HALT], -2, 2),
    ],
)
def test_pc_out_of_program(
    memory: DramImage, program: list[int], pc: int, instructions: int
) -> None:
    simulator = Simulator(program, memory)
    expected = EngineEnd(
        state="faulted", cause=FaultCause.PC_OUT_OF_PROGRAM, pc=pc, executed=instructions
    )
    assert simulator.run() == expected
    assert simulator.pc == pc
    assert simulator.run() == expected


def test_illegal_words(memory: DramImage) -> None:
    legal = encode(BY_KEY["m.v.add.min[16]"], (10, 11, 12))
    reduction_off, bit_seven = legal & ~0x60, legal | 0x80
    stray = [HALT | 1, encode(BY_KEY["add"], (1, 2, 3)) | 1, encode(BY_KEY["mov"], (1, 2)) | 0x100]
    for word in (0, 0xFFFF_FFFF, 1 << 20, reduction_off, bit_seven, *stray):
        assert run(memory, word) is FaultCause.ILLEGAL_INSTRUCTION, hex(word)


@pytest.mark.parametrize("key", KEYS)
def test_trimmed_away_is_illegal_and_kept_is_not(memory: DramImage, key: str) -> None:
    row = BY_KEY[key]
    needed = frozenset({"set.vl", "set.mr", "mov", "halt"})
    word = encode(row, [1 if operand.field.signed else 30 for operand in row.operands])
    registers = {30: 8}
    if key not in needed:
        assert run(memory, word, registers, instructions=needed) is FaultCause.ILLEGAL_INSTRUCTION
    with_it = Simulator([word, HALT], memory, instructions=needed | {key})
    with_it.registers[30] = 8
    assert with_it.run().state == "halted"


@pytest.mark.parametrize("key", KEYS)
def test_register_that_is_not_there_is_illegal(memory: DramImage, key: str) -> None:
    row = BY_KEY[key]
    positions = [i for i, operand in enumerate(row.operands) if operand.is_register]
    fine = [1 if operand.field.signed else 0 for operand in row.operands]
    for position in positions:
        memory.array(0, DRAM, "u1")[:] = 0x55
        for register in (8, 63):
            values = list(fine)
            values[position] = register
            cause = run(memory, encode(row, values), count=8)
            assert cause is FaultCause.ILLEGAL_INSTRUCTION, (position, register)
        values[position] = 7
        cause = run(memory, encode(row, values), {7: 8}, count=8)
        assert cause is FaultCause.NONE, position


@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [
        ("set.vl", [0, 257, M64, 2**32 + 1, 2**63], [1, 256]),
        ("set.mr", [0, 257, M64, 2**32 + 1, 2**63], [1, 256]),
        ("set.fx", [64, M64, 2**32, 2**63], [0, 63]),
    ],
)
def test_vector_settings(memory: DramImage, key: str, bad: list[int], good: list[int]) -> None:
    word = encode(BY_KEY[key], (10,))
    for value in bad:
        assert run(memory, word, {10: value}) is FaultCause.VECTOR_SETTING, value
    for value in good:
        assert run(memory, word, {10: value}) is FaultCause.NONE, value


VL, MR = 3, 4


def vector_extents(key: str) -> list[int | None]:
    """Bytes that operands A, B and C cover; None where the register is not read."""
    row = BY_KEY[key]
    assert row.width is not None
    w = row.width.bytes
    if key.startswith("m.v.nop"):
        return [MR * w, MR * VL * w, None]
    if key.startswith("m.v"):
        return [MR * w, MR * VL * w, VL * w]
    if row.special:
        return [VL * w, VL * w, None]
    return [VL * w, VL * w, w if key.startswith("v.s.") else VL * w]


@pytest.mark.parametrize("key", [row.key for row in INSTRUCTIONS if row.unit is Unit.VECTOR])
def test_scratchpad_range_of_vectors(memory: DramImage, key: str) -> None:
    row = BY_KEY[key]
    word = encode(row, (10, 11, 12)[: len(row.operands)])
    for position, extent in enumerate(vector_extents(key)):
        register = 10 + position
        fits = {10: 0, 11: 0, 12: 0}
        if extent is None:
            assert run(memory, word, fits | {register: M64}, vl=VL, mr=MR) is FaultCause.NONE
            continue
        last = PAD - extent
        assert run(memory, word, fits | {register: last}, vl=VL, mr=MR) is FaultCause.NONE
        for start in (last + 1, PAD, M64, 2**64 - extent, 2**63, 2**32):
            cause = run(memory, word, fits | {register: start}, vl=VL, mr=MR)
            assert cause is FaultCause.SCRATCHPAD_RANGE, (register, start)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("load", [True, False])
def test_ranges_of_transfers(memory: DramImage, bits: int, load: bool) -> None:
    w = bits // 8
    word = encode(BY_KEY[f"{'ld' if load else 'st'}.sram[{bits}]"], (10, 11, 12))
    pad_register, dram_register = (10, 11) if load else (11, 10)

    def cause(near: int, far: int, length: int, address_bits: int = 33) -> FaultCause:
        memory.array(0, DRAM, "u1")[:] = 0x55
        registers = {pad_register: near, dram_register: far, 12: length}
        return run(memory, word, registers, address_bits=address_bits)

    end = PAD - 3 * w
    assert cause(end, DRAM - 3 * w, 3) is FaultCause.NONE
    assert cause(PAD, DRAM, 0) is FaultCause.NONE
    for near, length in ((end + 1, 3), (PAD + 1, 0), (M64, 0), (M64, 1), (0, M64), (0, 2**61)):
        assert cause(near, 0, length) is FaultCause.SCRATCHPAD_RANGE, (near, length)
        assert cause(near, M64, length) is FaultCause.SCRATCHPAD_RANGE, (near, length)
    for far, length in ((DRAM - 3 * w + 1, 3), (DRAM + 1, 0), (M64, 1), (2**33, 1), (M64, 0)):
        assert cause(0, far, length) is FaultCause.DRAM_RANGE, (far, length)
    assert cause(0, 4096 - w, 1, 12) is FaultCause.NONE
    assert cause(0, 4096 - w + 1, 1, 12) is FaultCause.DRAM_RANGE


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("load", [True, False])
def test_addresses_of_register_transfers(memory: DramImage, bits: int, load: bool) -> None:
    w = bits // 8
    word = encode(BY_KEY[f"{'ld' if load else 'st'}.reg[{bits}]"], (10, 11))
    register = 11 if load else 10

    def cause(address: int, address_bits: int = 33) -> FaultCause:
        memory.array(0, DRAM, "u1")[:] = 0x55
        return run(memory, word, {register: address}, address_bits=address_bits)

    assert cause(DRAM - w) is FaultCause.NONE
    for address in (DRAM, 2**33, 2**64 - w, 2**63):
        assert cause(address) is FaultCause.DRAM_RANGE, address
    for offset in range(1, w):
        assert cause(8 + offset) is FaultCause.MISALIGNED, offset
        assert cause(DRAM + offset) is FaultCause.MISALIGNED, offset
        assert cause(2**64 - offset) is FaultCause.MISALIGNED, offset
    assert cause(4096 - w, 12) is FaultCause.NONE
    assert cause(4096, 12) is FaultCause.DRAM_RANGE


def test_illegal_comes_before_all_else(memory: DramImage) -> None:
    word = encode(BY_KEY["v.v.add[8]"], (7, 7, 8))
    assert run(memory, word, {7: 200}, mr=200, count=8) is FaultCause.ILLEGAL_INSTRUCTION
    word = encode(BY_KEY["ld.reg[32]"], (8, 7))
    assert run(memory, word, {7: 3}, mr=3, count=8) is FaultCause.ILLEGAL_INSTRUCTION


@pytest.mark.parametrize("alignment", [2, 4, 8])
@pytest.mark.parametrize("key", ["m.v.mul.add[64]", "m.v.nop.max[64]", "v.v.add[8]", "v.s.add[16]"])
def test_alignment_of_vectors(memory: DramImage, key: str, alignment: int) -> None:
    word = encode(BY_KEY[key], (10, 11, 12)[: len(BY_KEY[key].operands)])
    for register in (10, 11) if ".nop." in key else (10, 11, 12):
        for offset in range(2 * alignment):
            cause = run(memory, word, {register: offset}, scratchpad_alignment=alignment)
            bad = offset % alignment
            assert cause is (FaultCause.SCRATCHPAD_RANGE if bad else FaultCause.NONE), offset


@pytest.mark.parametrize("mr", [1, 3])
@pytest.mark.parametrize(("bits", "vl", "bad"), [(16, 4, 0), (16, 6, 1), (32, 2, 0), (8, 4, 1)])
def test_alignment_of_rows(memory: DramImage, bits: int, vl: int, mr: int, bad: int) -> None:
    word = encode(BY_KEY[f"m.v.add.min[{bits}]"], (10, 11, 12))
    cause = run(memory, word, vl=vl, mr=mr, scratchpad_alignment=8)
    assert cause is (FaultCause.SCRATCHPAD_RANGE if bad else FaultCause.NONE)


@pytest.mark.parametrize("load", [True, False])
def test_alignment_of_transfers(memory: DramImage, load: bool) -> None:
    word = encode(BY_KEY[f"{'ld' if load else 'st'}.sram[8]"], (10, 11, 12))
    pad_register, dram_register = (10, 11) if load else (11, 10)
    for near in range(9):
        for far in range(9):
            memory.array(0, DRAM, "u1")[:] = 0x55
            registers = {pad_register: near, dram_register: far, 12: 3}
            expected = FaultCause.MISALIGNED if far % 4 else FaultCause.NONE
            expected = FaultCause.SCRATCHPAD_RANGE if near % 4 else expected
            assert run(memory, word, registers, scratchpad_alignment=4) is expected


@pytest.mark.parametrize("alignment", [0, 3, 16])
def test_alignments_that_there_are_not(memory: DramImage, alignment: int) -> None:
    with pytest.raises(SimulatorError, match="scratchpad_alignment must be one of 1, 2, 4, 8, not"):
        Simulator([0], memory, scratchpad_alignment=alignment)


#: A program, and the line about its fault.
_LINES = [
    (
        "mov r1, #3\nld.reg [64-bit] r9, r1\nhalt",
        "t.s:2: ld.reg [64-bit] r9, r1: address 0x3 (r1) is not a multiple of 8",
    ),
    (
        "mov r1, #16\nset.ws r1\nhalt",
        "t.s:2: set.ws r1: address 0x10 (r1) is not a multiple of 32",
    ),
    (
        "mov r1, #32\nset.ws r1\nhalt",
        "t.s:2: set.ws r1: the descriptor at 0x20 (r1) declares no workspace: width must be a "
        "whole number from 1 to 4095, not 0",
    ),
    (
        "mov r1, #300\nset.vl r1\nhalt",
        "t.s:2: set.vl r1: 300 (r1) is not from 1 to 256",
    ),
    ("set.mr r0\nhalt", "t.s:1: set.mr r0: 0 (r0) is not from 1 to 256"),
    (
        "mov r1, #-1\nset.fx r1\nhalt",
        "t.s:2: set.fx r1: -1 (r1) is not from 0 to 63",
    ),
    (
        "mov r1, #16\nset.vl r1\nset.mr r1\nmov r2, #0xfa0\nm.v.mul.add [16-bit] r0, r2, r0\nhalt",
        "t.s:5: m.v.mul.add [16-bit] r0, r2, r0: 512 bytes from 0xfa0 (r2) leave the "
        "scratchpad, 0x0 to 0xfff; VL 16, MR 16",
    ),
    (
        "mov r1, #0xffa\nmov r2, #4\nld.sram [16-bit] r1, r0, r2\nhalt",
        "t.s:3: ld.sram [16-bit] r1, r0, r2: 8 bytes from 0xffa (r1) leave the scratchpad, "
        "0x0 to 0xfff; r2 is 4",
    ),
    (
        "mov r1, #0x1ff8\nmov r2, #2\nst.sram [64-bit] r1, r0, r2\nhalt",
        "t.s:3: st.sram [64-bit] r1, r0, r2: 16 bytes from 0x1ff8 (r1) leave the memory, 0x0 "
        "to 0x1fff; r2 is 2",
    ),
    (
        "mov r1, #0x2000\nst.reg [8-bit] r1, r0\nhalt",
        "t.s:2: st.reg [8-bit] r1, r0: 1 byte from 0x2000 (r1) leaves the memory, 0x0 to 0x1fff",
    ),
    (
        "v.sigmoid [16-bit] r1, r1\nhalt",
        "t.s:1: v.sigmoid [16-bit] r1, r1: this engine is built without v.sigmoid[16]",
    ),
    (
        "mov r63, #1\nhalt",
        "t.s:1: mov r63, #1: this engine has no r63; its registers are r0 to r31",
    ),
    (
        ".word 0xffffffff",
        "t.s:1: .word 0xffffffff: not an instruction; does the program run into data, with a "
        "`halt` missing?",
    ),
    (
        "li r1, #0x10000",
        "t.s:1: mov r1, #65536: ran past the last instruction: is a `halt` missing?",
    ),
    (
        "blt r0, r4, end\nhalt\nend:",
        "t.s:1: blt r0, r4, end: branches to word 2, outside the program, 0 to 1: is a `halt` "
        "missing there?",
    ),
    (
        "back: jmp #-3\nhalt",
        "t.s:1: jmp #-3: branches to word -3, outside the program, 0 to 1",
    ),
]


@pytest.mark.parametrize("kind", [Simulator, CompiledSimulator])
@pytest.mark.parametrize(("source", "line"), _LINES, ids=[source for source, _ in _LINES])
def test_the_line_about_a_fault(
    memory: DramImage, source: str, line: str, kind: type[Simulator]
) -> None:
    memory.array(0, DRAM, "u1")[:] = 0
    keys = frozenset(row.key for row in INSTRUCTIONS if not row.special)
    program = assemble(source, name="t.s")
    outcome = kind(program, memory, registers=32, instructions=keys).run()
    assert outcome.fault == line


@pytest.mark.parametrize("kind", [Simulator, CompiledSimulator])
@pytest.mark.parametrize(
    ("vl", "line"),
    [
        (4, ""),
        (
            6,
            "t.s:3: m.v.add.min [16-bit] r0, r0, r0: a row of 12 bytes is not a multiple of 8, as "
            "this engine needs; VL 6, MR 1",
        ),
    ],
)
def test_the_line_about_rows(memory: DramImage, vl: int, line: str, kind: type[Simulator]) -> None:
    program = assemble(
        f"mov r1, #{vl}\nset.vl r1\nm.v.add.min [16-bit] r0, r0, r0\nhalt", name="t.s"
    )
    outcome = kind(program, memory, scratchpad_alignment=8).run()
    assert outcome.fault == line


@pytest.mark.parametrize(("register", "end"), [(5, ""), (40, ", or without r40")])
def test_without_its_state_an_engine_may_lack_a_register(register: int, end: str) -> None:
    line = fault_line(assemble(f"mov r{register}, #1"), FaultCause.ILLEGAL_INSTRUCTION, 0)
    assert line.endswith(f"this engine is built without mov.imm{end}")


def test_the_line_about_words_without_source(memory: DramImage) -> None:
    outcome = Simulator([encode(BY_KEY["set.vl"], (0,))], memory).run()
    assert outcome.fault == "word 0: set.vl r0: 0 (r0) is not from 1 to 256"
    assert Simulator([], memory).run().fault == "word 0 is outside the program of 0 words"


def test_the_line_about_a_register_of_few_bits(memory: DramImage) -> None:
    narrow = {"register_width": 34, "address_bits": 33}
    program = assemble("mov r1, #1\nsll r1, r1, #33\nhalt", name="t.s")
    line = "t.s:2: sll r1, r1, #33: the result does not fit a register of 34 bits (r1 is 1)"
    assert Simulator(program, memory, **narrow).run().fault == line
    line = "launch: the parameter (r5) 0x200000000 is not an address from 0x0 to 0x1ffffffff"
    assert Simulator(program, memory, parameters=1 << 33, **narrow).run().fault == line


@pytest.mark.parametrize(
    ("access", "text"),
    [
        ("st.reg [8-bit] r2, r0", "1 byte from 0x400 (r2) overlaps the window or the image"),
        ("ld.reg [8-bit] r3, r2", "from which only ld.sram loads"),
        ("ld.sram [8-bit] r0, r3, r4", "2 bytes from 0x3ff (r3) lie in the window"),
    ],
)
def test_the_line_about_a_workspace(memory: DramImage, access: str, text: str) -> None:
    sizes = {"width": 2, "height": 2, "pixel_bytes": 1, "output_width": 2, "output_height": 2}
    memory.write(0, Workspace(image=0x100, window=0x400, kernel=1, **sizes).pack())
    source = f"set.ws r0\nmov r2, #0x400\nmov r3, #0x3ff\nmov r4, #2\n{access}\nhalt"
    line = Simulator(assemble(source, name="t.s"), memory).run().fault
    assert line.startswith(f"t.s:5: {access}: ")
    assert text in line
