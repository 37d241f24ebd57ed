"""Proofs about programs with declared memory hold for all other data."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.program import Declared, Numbers, Program, Span
from pe.config import PeConfig
from synth.analysis import values
from synth.analysis.contents import Contents, Subject, contents_of
from synth.analysis.values import Study, analyse
from synth.errors import DeclarationError
from tests.synth.test_values import assert_within
from tests.synth.trimming import profile_to_end, trim

SMALL = PeConfig(scratchpad_bytes=1024, address_bits=14, max_vl=64)
LAUNCH = {"parameters": (0, 0), "slot": (0, 0)}
BYTES = 1 << 14
#: From address 0 on: a table of constants, bounded numbers, numbers that the program stores, data.
TABLE, BOUNDED, OWN, DATA = Span(0, 64), Span(64, 32), Span(96, 16), Span(128, 512)
DECLARED = Declared(
    constants=(TABLE,),
    numbers=(Numbers(BOUNDED, 1, 40), Numbers(OWN, -1000, 1000)),
    slots=1,
)


@st.composite
def statements(draw: st.DrawFn, depth: int = 2) -> list[str]:
    """Statements on registers r6 to r11; r12 to r15 are for addresses and counters."""

    def register() -> str:
        return f"r{draw(st.integers(6, 11))}"

    found: list[str] = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(
            st.sampled_from(("load", "index", "own", "alu", "vector", "if", "loop", "sram"))
        )
        if kind == "load":
            width = draw(st.sampled_from((1, 2, 4, 8)))
            area = draw(st.sampled_from((TABLE, BOUNDED, OWN, DATA)))
            place = area.start + width * draw(st.integers(0, area.size // width - 1))
            found += [f"mov.imm r12, #{place}", f"ld.reg [{8 * width}-bit] {register()}, r12"]
        elif kind == "index":
            # A table that data choose from.
            found += [
                f"and r12, {register()}, #{draw(st.sampled_from((8, 24, 56, 120, 127)))}",
                "and r12, r12, #-8",
                f"ld.reg [64-bit] {register()}, r12",
            ]
        elif kind == "own":
            where = draw(st.sampled_from((OWN.start, OWN.start + 8, DATA.start)))
            found += [f"mov.imm r12, #{where}", f"st.reg [64-bit] r12, {register()}"]
            if draw(st.booleans()):
                found.append(f"ld.reg [64-bit] {register()}, r12")
        elif kind == "alu":
            name = draw(st.sampled_from(("add", "sub", "and", "or", "xor", "sra", "sll", "srl")))
            other = draw(st.one_of(st.integers(0, 40).map("#{}".format), st.just(register())))
            found.append(f"{name} {register()}, {register()}, {other}")
        elif kind == "vector":
            size = register()
            found += [
                f"and r13, {size}, #63",
                "add r13, r13, #1",
                "set.vl r13",
                f"and r12, {register()}, #127",
                "v.v.add [16-bit] r12, r12, r0",
            ]
        elif kind == "sram":
            found += [
                f"and r12, {register()}, #248",
                f"add r12, r12, #{DATA.start}",
                f"and r13, {register()}, #63",
                f"{draw(st.sampled_from(('ld', 'st')))}.sram [16-bit] r0, r12, r13",
            ]
        elif kind == "if" and depth:
            name = draw(st.sampled_from(("blt", "bge", "beq", "bne")))
            label = f"l{draw(st.integers(0, 10**9))}"
            body = draw(statements(depth - 1))
            found += [f"{name} {register()}, {register()}, {label}", *body, f"{label}:"]
        elif kind == "loop" and depth:
            label = f"l{draw(st.integers(0, 10**9))}"
            counter = f"r{13 + depth}"
            body = draw(statements(depth - 1))
            found += [
                f"and {counter}, {register()}, #{draw(st.sampled_from((3, 15)))}",
                f"{label}:",
                *body,
                f"add {counter}, {counter}, #-1",
                f"blt r0, {counter}, {label}",
            ]
    return found


def memory(seed: int, table: int) -> bytes:
    """Contents: constants of ``table``, everything else of ``seed``."""
    rng = np.random.default_rng(seed)
    content = bytearray(rng.bytes(1024))
    content[: TABLE.end] = np.random.default_rng(table).integers(0, 90, 8, np.int64).tobytes()
    content[BOUNDED.start : BOUNDED.end] = rng.integers(1, 41, 4, np.int64).tobytes()
    content[OWN.start : OWN.end] = rng.integers(-1000, 1001, 2, np.int64).tobytes()
    return bytes(content)


def known(table: int) -> Contents:
    return contents_of(DECLARED, memory(0, table), BYTES)


def assembled(lines: Sequence[str]) -> Program | None:
    """None where a label would stand twice."""
    labels = [line for line in lines if line.endswith(":")]
    if len(set(labels)) < len(labels):
        return None
    return assemble("\n".join([*lines, "halt", ""]))


@pytest.mark.parametrize("effort", [(250_000, 2_000, 6), (40, 1, 1), (400, 2, 6)])
@given(lines=statements(), table=st.integers(0, 99), seed=st.integers(0, 10**6))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_proofs_hold_for_all_data(
    effort: tuple[int, int, int], lines: list[str], table: int, seed: int
) -> None:
    program = assembled(lines)
    if program is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        for name, value in zip(("_STEPS", "_FORKS", "_ATTEMPTS"), effort, strict=True):
            patch.setattr(values, name, value)
        patch.setattr(values, "_STEADY_STEPS", effort[0])
        try:
            proved = analyse(program, SMALL, LAUNCH, known(table))
        except DeclarationError:
            # A transfer that may overlap: nothing is claimed.
            return
    for data in (seed, seed + 1):
        with DramImage(BYTES) as image:
            image.write(0, memory(data, table))
            seen = profile_to_end(program, image, SMALL)
        assert_within(seen.facts, proved.facts)


@given(lines=statements(), table=st.integers(0, 99), seed=st.integers(0, 10**6))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_trimmed_engine_does_the_same_on_all_data(lines: list[str], table: int, seed: int) -> None:
    program = assembled(lines)
    if program is None:
        return
    subject = Subject(
        program=program, memories=(memory(0, table),), declared=DECLARED, parameters=0
    )
    try:
        trimmed = trim(subject, SMALL)
    except DeclarationError:
        return
    ends = []
    for config in (SMALL, trimmed):
        with DramImage(BYTES) as image:
            image.write(0, memory(seed, table))
            simulator = Simulator(program, image, **config.limits)
            outcome = simulator.run(1_000_000)
            registers = simulator.registers + [0] * (SMALL.registers - config.registers)
            ends.append((outcome, registers, image.read(0, BYTES)))
    assert ends[0] == ends[1]


@given(lines=statements(), table=st.integers(0, 99), seed=st.integers(0, 10**6))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_steady_programs_do_the_same_with_all_data(lines: list[str], table: int, seed: int) -> None:
    program = assembled(lines)
    if program is None:
        return
    try:
        if not analyse(program, SMALL, LAUNCH, known(table)).steady:
            return
    except DeclarationError:
        return
    runs = []
    for data in (seed, seed + 1):
        with DramImage(BYTES) as image:
            image.write(0, memory(data, table))
            simulator = Simulator(program, image, **SMALL.limits)
            outcome = simulator.run(1_000_000)
            runs.append((outcome.state, outcome.executed, list(simulator.visits)))
    assert runs[0] == runs[1]


def found(text: str, declared: Declared = DECLARED, content: bytes = bytes(8)) -> Study:
    return analyse(assemble(text), SMALL, LAUNCH, contents_of(declared, content, BYTES))


def test_loads_of_constants_are_known() -> None:
    text = "ld.reg [16-bit] r6, r0\nadd r6, r6, #1\nhalt\n"
    content = (0xFFFE).to_bytes(8, "little")
    assert found(text, content=memory(0, 0)[:96] + bytes(16)).facts.written[1][0] > 0
    everything = Declared(constants=(Span(0, 8),))
    assert found(text, everything, content).facts.written == {0: (-2, -2), 1: (-1, -1)}
    assert found(text, Declared(), content).facts.written[0] == (-32768, 32767)
    # Half of the number is data.
    assert found(text, Declared(constants=(Span(0, 1),)), content).facts.written[0][0] == -32768


def test_an_own_number_is_known_from_its_store_on() -> None:
    text = (
        "mov.imm r6, #96\nld.reg [64-bit] r7, r6\nmov.imm r8, #5\nst.reg [64-bit] r6, r8\n"
        "ld.reg [64-bit] r9, r6\nhalt\n"
    )
    proved = found(text, content=memory(0, 0))
    assert proved.facts.written[1] == (-1000, 1000)
    assert proved.facts.written[4] == (5, 5)
    assert proved.steady


def test_what_data_decide_is_not_steady() -> None:
    place = "mov.imm r6, #128\nld.reg [8-bit] r7, r6\n"
    for rest, word in (
        ("beq r7, r0, end\nmov r8, r0\nend: halt\n", 2),
        ("and r7, r7, #8\nst.reg [64-bit] r7, r0\nhalt\n", 3),
        ("and r7, r7, #8\nld.sram [8-bit] r7, r0, r0\nhalt\n", 3),
        ("and r7, r7, #8\nld.sram [8-bit] r0, r6, r7\nhalt\n", 3),
        ("and r7, r7, #8\nv.v.add [8-bit] r0, r7, r0\nhalt\n", 3),
        ("and r7, r7, #8\nadd r7, r7, #1\nset.vl r7\nhalt\n", 4),
    ):
        proved = found(place + rest, Declared())
        assert (proved.varying, proved.steady) == ({word}, False), rest
    assert found(place + "st.reg [64-bit] r6, r7\nhalt\n", Declared()).steady


def test_slots_that_a_program_reads_are_not_steady() -> None:
    program = assemble("mov r6, r3\nhalt\n")
    assert not analyse(program, SMALL, {"slot": (0, 3)}).steady
    assert analyse(program, SMALL, {"slot": (2, 2)}).steady
    assert analyse(assemble("halt\n"), SMALL, {"slot": (0, 3)}).steady


@pytest.mark.parametrize(
    "text",
    [
        "mov.imm r6, #56\nst.reg [64-bit] r6, r0\nhalt\n",
        "mov.imm r6, #64\nst.reg [32-bit] r6, r0\nhalt\n",
        "mov.imm r6, #60\nmov.imm r7, #3\nst.sram [16-bit] r0, r6, r7\nhalt\n",
        "mov.imm r8, #128\nld.reg [8-bit] r6, r8\nand r6, r6, #120\nst.reg [64-bit] r6, r0\nhalt\n",
    ],
)
def test_declared_memory_that_a_run_may_overwrite_is_refused(text: str) -> None:
    with pytest.raises(DeclarationError, match=r"word \d .*may store to 0x.* declared as") as error:
        found(text, content=memory(0, 0))
    data = "--constant 0x80:1 or --range 0x80:1 for r6, which word 1"
    assert (data in str(error.value)) == ("r8" in text)
