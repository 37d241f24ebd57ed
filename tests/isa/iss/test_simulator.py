"""The simulator's scalar side: start state, arithmetic, branches, loads and stores, set-up."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from isa.image import DramImage
from isa.iss.simulator import Simulator, SimulatorError
from isa.program import Program
from isa.run import EngineEnd
from isa.table import BY_KEY, encode

M64 = 2**64 - 1
HALT = encode(BY_KEY["halt"], ())


def word(key: str, *operands: int) -> int:
    return encode(BY_KEY[key], operands)


@pytest.fixture
def memory() -> Iterator[DramImage]:
    with DramImage(4096) as image:
        yield image


def test_start_state(memory: DramImage) -> None:
    simulator = Simulator(
        [HALT], memory, pe_index=11, vault=12, slot=13, pe_count=14, parameters=2**63 + 5
    )
    assert simulator.registers == [0, 11, 12, 13, 14, 2**63 + 5] + [0] * 58
    assert (simulator.vl, simulator.mr, simulator.fx, simulator.pc) == (1, 1, 0, 0)
    assert simulator.scratchpad.dtype == np.uint8
    assert simulator.scratchpad.tobytes() == bytes(4096)
    assert simulator.executed == Counter()
    assert Simulator([HALT], memory).registers[:6] == [0, 0, 0, 0, 1, 0]
    small = Simulator([HALT], memory, registers=8, scratchpad_bytes=256, scratchpad=b"\7" * 256)
    assert len(small.registers) == 8
    assert small.scratchpad.tobytes() == b"\7" * 256


@pytest.mark.parametrize(
    ("key", "b", "c", "expected"),
    [
        ("add", M64, 2, 1),
        ("sub", 1, 3, M64 - 1),
        ("sll", 3, 63, 2**63),
        ("sll", 3, 64, 3),
        ("srl", M64, 60, 15),
        ("srl", 2**63, M64, 1),
        ("sra", 2**63, 63, M64),
        ("sra", 2**62, 61, 2),
        ("and", 0b1100, 0b1010, 0b1000),
        ("or", 0b1100, 0b1010, 0b1110),
        ("xor", 0b1100, 0b1010, 0b0110),
    ],
)
def test_scalar_registers(memory: DramImage, key: str, b: int, c: int, expected: int) -> None:
    simulator = Simulator([word(key, 63, 10, 11), word(key, 10, 10, 11), HALT], memory)
    simulator.registers[10], simulator.registers[11] = b, c
    assert simulator.run() == EngineEnd(state="halted", pc=2, executed=3)
    assert simulator.registers[63] == simulator.registers[10] == expected
    assert simulator.registers[11] == c


@pytest.mark.parametrize(
    ("key", "b", "constant", "expected"),
    [
        ("add.imm", 5, -8192, M64 - 8186),
        ("add.imm", 5, 8191, 8196),
        ("sub.imm", 5, -1, 6),
        ("sll.imm", 1, 63, 2**63),
        ("srl.imm", 2**63, 63, 1),
        ("sra.imm", 2**63, 62, M64 - 1),
        ("sra.imm", 2**63, -2, M64 - 1),
        ("and.imm", M64, -2, M64 - 1),
        ("or.imm", 0, -1, M64),
        ("xor.imm", 0b101, 0b110, 0b011),
    ],
)
def test_scalar_constant(memory: DramImage, key: str, b: int, constant: int, expected: int) -> None:
    simulator = Simulator([word(key, 20, 10, constant), HALT], memory)
    simulator.registers[10] = b
    simulator.run()
    assert (simulator.registers[20], simulator.registers[10]) == (expected, b)


def test_moves(memory: DramImage) -> None:
    program = [
        word("mov.imm", 10, -(2**19)),
        word("mov", 11, 10),
        word("mov.imm", 0, 2**19 - 1),
        HALT,
    ]
    simulator = Simulator(program, memory)
    simulator.run()
    assert simulator.registers[10] == simulator.registers[11] == 2**64 - 2**19
    assert simulator.registers[0] == 2**19 - 1


@pytest.mark.parametrize(
    ("key", "a", "b", "taken"),
    [
        ("blt", M64, 0, True),
        ("blt", 0, M64, False),
        ("blt", 4, 4, False),
        ("bge", 4, 4, True),
        ("bge", 2**63, 2**63 - 1, False),
        ("bge", 2**63 - 1, 2**63, True),
        ("beq", 7, 7, True),
        ("beq", 7, 2**32 + 7, False),
        ("bne", 7, 7, False),
        ("bne", 7, 2**63 + 7, True),
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_branches(
    memory: DramImage, key: str, a: int, b: int, taken: bool, backwards: bool
) -> None:
    if backwards:
        program = [word("jmp", 2), HALT, word(key, 10, 11, -1), HALT]
        source, target = 2, 1
    else:
        program = [word(key, 10, 11, 2), HALT, HALT]
        source, target = 0, 2
    simulator = Simulator(program, memory)
    simulator.registers[10], simulator.registers[11] = a, b
    outcome = simulator.run()
    assert outcome == EngineEnd(
        state="halted", pc=target if taken else source + 1, executed=3 if backwards else 2
    )
    assert simulator.executed[key] == 1


def test_loop_step_and_limit(memory: DramImage) -> None:
    program = [word("mov.imm", 10, 5), word("sub.imm", 10, 10, 1), word("bne", 10, 0, -1), HALT]
    simulator = Simulator(program, memory)
    assert simulator.run(0) == EngineEnd(state="running", pc=0, executed=0)
    assert simulator.step() == EngineEnd(state="running", pc=1, executed=1)
    assert simulator.step() == EngineEnd(state="running", pc=2, executed=2)
    assert simulator.step() == EngineEnd(state="running", pc=1, executed=3)
    assert (simulator.registers[10], simulator.pc) == (4, 1)
    assert simulator.run(8) == EngineEnd(state="running", pc=3, executed=11)
    end = EngineEnd(state="halted", pc=3, executed=12)
    assert simulator.run() == end
    assert simulator.run() == simulator.step() == end
    assert simulator.executed == Counter({"mov.imm": 1, "sub.imm": 5, "bne": 5, "halt": 1})
    assert simulator.pc == 3


def test_vector_settings(memory: DramImage) -> None:
    simulator = Simulator(
        [word("set.vl", 10), word("set.mr", 11), word("set.fx", 12), HALT], memory
    )
    simulator.registers[10:13] = [256, 255, 63]
    assert simulator.run().state == "halted"
    assert (simulator.vl, simulator.mr, simulator.fx) == (256, 255, 63)


def test_waits_do_nothing(memory: DramImage) -> None:
    simulator = Simulator([word("v.drain"), word("memfence"), HALT], memory)
    before = list(simulator.registers)
    assert simulator.run() == EngineEnd(state="halted", pc=2, executed=3)
    assert simulator.registers == before


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_register_loads_and_stores(memory: DramImage, bits: int) -> None:
    size = bits // 8
    pattern = bytes(range(1, 17))
    for address in range(0, 16, size):
        for top in (0x7F, 0x80):
            memory.write(0, pattern)
            memory.write(address + size - 1, bytes([top]))
            load = Simulator([word(f"ld.reg[{bits}]", 20, 21), HALT], memory)
            load.registers[21] = address
            assert load.run().state == "halted"
            expected = int.from_bytes(memory.read(address, size), "little")
            assert load.registers[20] == (
                expected | (M64 >> bits << bits) if top == 0x80 else expected
            )
            assert load.registers[20] < 2**64
        memory.write(0, pattern)
        store = Simulator([word(f"st.reg[{bits}]", 21, 20), HALT], memory)
        store.registers[20], store.registers[21] = 0xF1F2F3F4F5F6F7F8, address
        assert store.run().state == "halted"
        value = bytes([0xF8, 0xF7, 0xF6, 0xF5, 0xF4, 0xF3, 0xF2, 0xF1])[:size]
        assert memory.read(0, 16) == pattern[:address] + value + pattern[address + size :]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("near", [0, 1, 7, 250])
@pytest.mark.parametrize("far", [0, 3, 31, 4089])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_scratchpad_loads_and_stores(
    memory: DramImage, bits: int, near: int, far: int, count: int
) -> None:
    length = count * bits // 8
    if near + length > 256 or far + length > 4096:
        near, far = 256 - length, 4096 - length
    rng = np.random.default_rng(bits + near + far + count)
    dram, pad = rng.bytes(4096), rng.bytes(256)
    memory.write(0, dram)
    for key, registers in ((f"ld.sram[{bits}]", (near, far)), (f"st.sram[{bits}]", (far, near))):
        memory.write(0, dram)
        simulator = Simulator(
            [word(key, 20, 21, 22), HALT], memory, scratchpad_bytes=256, scratchpad=pad
        )
        simulator.registers[20:23] = [*registers, count]
        assert simulator.run().state == "halted"
        expected_pad, expected_dram = bytearray(pad), bytearray(dram)
        for i in range(length):
            if key.startswith("ld"):
                expected_pad[near + i] = dram[far + i]
            else:
                expected_dram[far + i] = pad[near + i]
        assert simulator.scratchpad.tobytes() == expected_pad
        assert memory.read(0, 4096) == expected_dram


def test_takes_a_program_object_and_changes_by_the_host(memory: DramImage) -> None:
    simulator = Simulator(Program(words=(word("v.v.add[8]", 10, 11, 12), HALT)), memory)
    simulator.scratchpad[:3] = [3, 4, 5]
    simulator.registers[10:13] = [2, 0, 1]
    assert simulator.run().state == "halted"
    assert simulator.scratchpad[:4].tolist() == [3, 4, 7, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scratchpad_bytes": 63}, "scratchpad_bytes must be .* from 64 to 65536, not 63"),
        ({"registers": 65}, "registers must be .* from 8 to 64, not 65"),
        ({"registers": 7}, "registers must be .* not 7"),
        ({"address_bits": 41}, "address_bits must be .* from 12 to 40, not 41"),
        ({"instruction_words": 15}, "instruction_words must be .* from 16 to 8192, not 15"),
        ({"register_width": 33}, "register_width must be .* from 34 to 64, not 33"),
        (
            {"register_width": 19, "address_bits": 12},
            "register_width must be .* from 20 to 64, not 19",
        ),
        ({"max_vl": 0}, "max_vl must be .* from 1 to 256, not 0"),
        ({"max_mr": 257}, "max_mr must be .* from 1 to 256, not 257"),
        ({"register_width": 40, "pe_index": 1 << 16}, "pe_index must be .* to 65535, not 65536"),
        ({"pe_index": -1}, "pe_index must be .* not -1"),
        ({"parameters": 2**64}, "parameters must be .* not 18446744073709551616"),
        ({"instructions": frozenset({"halt", "jump"})}, "'jump' is not in the instruction table"),
        ({"scratchpad": bytes(9)}, "scratchpad contents of 9 bytes given for one of 4096"),
        ({"program": [0] * 1025}, "a program of 1025 words does not fit .* of 1024"),
        ({"program": [0, 2**32]}, "word 1 of the program must be .* not 4294967296"),
        ({"program": [-1]}, "word 0 of the program must be .* not -1"),
    ],
)
def test_refuses_what_it_cannot_be(
    memory: DramImage, arguments: dict[str, object], message: str
) -> None:
    arguments = {"program": [HALT], "memory": memory} | arguments
    with pytest.raises(SimulatorError, match=message):
        Simulator(**arguments)  # type: ignore[arg-type]


def test_refuses_a_negative_limit(memory: DramImage) -> None:
    with pytest.raises(SimulatorError, match="limit must be 0 or more, not -1"):
        Simulator([HALT], memory).run(-1)


def test_memory_is_the_file(tmp_path: Path) -> None:
    with DramImage(64, tmp_path / "dram") as memory:
        simulator = Simulator([word("st.reg[16]", 0, 10), HALT], memory)
        simulator.registers[10] = 0x1234
        simulator.run()
    assert (tmp_path / "dram").read_bytes() == b"\x34\x12" + bytes(62)
