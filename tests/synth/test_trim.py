"""Trimming: from programs, profiles and a configuration to a smaller configuration."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.program import Declared, Program
from isa.table import BY_KEY, INSTRUCTIONS, Unit
from microkernels.bp.kernel import MatrixPlan
from pe.config import PeConfig
from soc.generate.presets import preset
from synth.analysis.bounds import Sizes
from synth.analysis.contents import Subject
from synth.analysis.profile import Profile, profile_run
from synth.analysis.trim import report
from synth.errors import TrimError
from tests.synth.trimming import trim

FULL = PeConfig()
TIGHT = Sizes(basis="tight")
#: Copies some elements, as many as the memory says; more than 64 in another way.
COPY = assemble(
    """
    mov.imm r6, #0x100
    ld.reg [16-bit] r7, r6
    mov.imm r8, #0x200
    mov.imm r9, #0x400
    mov.imm r10, #64
    bge r10, r7, small
    mov.imm r7, #1
small:
    set.vl r7
    mov.imm r11, #0
    ld.sram [16-bit] r11, r8, r7
    v.v.add [16-bit] r11, r11, r11
    v.drain
    st.sram [16-bit] r9, r11, r7
    memfence
    halt
    """,
    name="copy.s",
)


def copy_profile(*counts: int) -> Profile:
    """COPY's runs with so many elements each."""
    profiles = []
    for count in counts:
        with DramImage(1 << 16) as image:
            image.write(0x100, count.to_bytes(2, "little"))
            profiles.append(profile_run(COPY, image, FULL))
    joined = profiles[0]
    for profile in profiles[1:]:
        joined |= profile
    return joined


def test_bp_kernel_loses_what_it_does_not_use() -> None:
    result = report(MatrixPlan(labels=16).program(None), preset("pe"))
    rows = [BY_KEY[key] for key in result.trimmed.instructions]
    assert not any(row.vertical is not None and row.vertical.name == "MUL" for row in rows)
    assert {
        row.width.bits for row in rows if row.unit is Unit.VECTOR and row.width is not None
    } == {16}
    assert {"sll", "srl", "sra", "and", "or", "xor"}.isdisjoint(result.trimmed.instructions)
    # The barrier stores and loads flags of 64 bits; no other register leaves the engine.
    assert {"st.reg[8]", "st.reg[16]", "st.reg[32]"}.isdisjoint(result.trimmed.instructions)
    assert result.trimmed.instruction_words == 512
    # Constants say where everything lies in the scratchpad; records in memory say how far BP goes.
    assert result.trimmed.scratchpad_bytes == 2048
    assert (result.trimmed.max_vl, result.trimmed.max_mr) == (16, 16)
    assert result.trimmed.register_width == 64
    assert all(bound.basis != "profiled" for bound in result.bounds)


@given(st.lists(st.sampled_from([row for row in INSTRUCTIONS if not row.optional]), min_size=1))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_nothing_grows_and_trimming_twice_changes_nothing(rows: list) -> None:
    # Without operands no branch leaves its word.
    program = Program(tuple(row.match for row in rows))
    trimmed = trim(program, FULL)
    assert rows[0].key in trimmed.instructions
    assert trimmed.instructions <= {row.key for row in rows} | {"halt"}
    assert trimmed.registers == 8
    assert len(program.words) <= trimmed.instruction_words <= max(16, 2 * len(program.words))
    assert trimmed.scratchpad_bytes <= FULL.scratchpad_bytes
    assert trimmed.register_width <= FULL.register_width
    assert trim(program, trimmed) == trimmed


@pytest.mark.parametrize(("register", "registers"), [(6, 8), (7, 8), (8, 16), (31, 32), (32, 64)])
def test_registers_grow_with_the_highest(register: int, registers: int) -> None:
    trimmed = trim(assemble(f"mov.imm r{register}, #1\nhalt\n"), FULL)
    assert trimmed.registers == registers


@pytest.mark.parametrize(("words", "size"), [(1, 16), (16, 16), (17, 32), (1024, 1024)])
def test_instruction_buffer_holds_the_program(words: int, size: int) -> None:
    program = assemble("mov r6, r7\n" * (words - 1) + "halt\n")
    assert trim(program, FULL).instruction_words == size


def test_halt_stays() -> None:
    assert trim(assemble("top: jmp top\n"), FULL).instructions == {"jmp", "halt"}


def test_words_that_constants_never_reach_are_not_needed() -> None:
    program = assemble("mov.imm r6, #3\nblt r6, r7, far\nhalt\nfar: sub r8, r6, r6\nhalt\n")
    assert trim(program, FULL).instructions == {"mov.imm", "blt", "halt"}


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        # 32 elements of 4 bytes from byte 100 on.
        (
            "mov.imm r6, #32\nset.vl r6\nmov.imm r7, #100\nv.v.add [32-bit] r7, r7, r7\nhalt\n",
            {"scratchpad_bytes": 256, "max_vl": 32, "max_mr": 1, "address_bits": 12},
        ),
        (
            "mov.imm r6, #200\nset.mr r6\nmov.imm r6, #5\nset.vl r6\n"
            "m.v.nop.add [8-bit] r0, r0, r0\nhalt\n",
            {"scratchpad_bytes": 1024, "max_vl": 5, "max_mr": 200},
        ),
        # The last byte stored is 0x100003.
        (
            "mov.imm r6, #0x40000\nsll r6, r6, #2\nst.reg [32-bit] r6, r0\nhalt\n",
            {"address_bits": 21, "register_width": 22},
        ),
        # 2 ** 30 takes 32 bits in all.
        ("mov.imm r6, #1\nsll r6, r6, #30\nhalt\n", {"register_width": 32}),
        # The place that an address names does not matter, but the value must be an address.
        ("ld.reg [8-bit] r6, r5\nhalt\n", {"address_bits": 33, "register_width": 34}),
        ("ld.reg [64-bit] r6, r0\nhalt\n", {"address_bits": 12, "register_width": 64}),
        # From bytes 4 and 12 on; from 6 on; a matrix of bytes.
        (
            "mov.imm r6, #4\nadd r7, r6, #8\nv.v.add [16-bit] r6, r7, r7\nhalt\n",
            {"scratchpad_alignment": 4},
        ),
        (
            "mov.imm r6, #6\nld.sram [16-bit] r6, r0, r0\nhalt\n",
            {"scratchpad_alignment": 2},
        ),
        ("m.v.add.add [8-bit] r0, r0, r0\nhalt\n", {"scratchpad_alignment": 1}),
        ("m.v.add.add [32-bit] r0, r0, r0\nhalt\n", {"scratchpad_alignment": 4}),
        ("halt\n", {"scratchpad_alignment": 8}),
        ("halt\n", {"arc_entries": 1, "load_store_queue": 2, "scratchpad_bytes": 64}),
        ("st.sram [8-bit] r0, r0, r0\nhalt\n", {"arc_entries": 20, "load_store_queue": 64}),
    ],
)
def test_sizes_that_constants_prove(text: str, sizes: dict) -> None:
    result = report(assemble(text), FULL)
    assert {name: getattr(result.trimmed, name) for name in sizes} == sizes
    assert all(bound.basis != "profiled" for bound in result.bounds)


def test_profile_says_what_data_decides() -> None:
    result = report(COPY, FULL, [copy_profile(20, 70, 33)])
    bounds = {bound.name: bound for bound in result.bounds}
    assert (bounds["max_vl"].value, bounds["max_vl"].basis) == (64, "proved")
    assert bounds["scratchpad_bytes"].size == 128
    # The number of elements has 16 bits, whatever it is.
    assert (bounds["register_width"].size, bounds["register_width"].basis) == (20, "proved")
    assert bounds["arc_entries"].basis == "given"
    few = report(COPY, FULL, [copy_profile(10, 70, 20)], sizes=TIGHT)
    bounds = {bound.name: bound for bound in few.bounds}
    assert (bounds["max_vl"].value, bounds["max_vl"].basis) == (20, "profiled")
    assert bounds["scratchpad_bytes"].size == 64


def test_what_hardware_had_in_flight_decides_about_its_tables() -> None:
    profile = replace(copy_profile(20, 70), in_flight=(2, 9))
    trimmed = trim(COPY, FULL, [profile])
    assert (trimmed.arc_entries, trimmed.load_store_queue) == (2, 16)
    bounds = {bound.name: bound for bound in report(COPY, FULL, [profile]).bounds}
    assert (bounds["arc_entries"].basis, bounds["arc_entries"].value) == ("profiled", 2)
    assert "waits" in bounds["arc_entries"].guard
    assert "take the same cycles" in bounds["arc_entries"].why
    slower = replace(profile, in_flight=(1, 4), slower=0.01)
    found = {bound.name: bound for bound in report(COPY, FULL, [slower]).bounds}
    assert (found["arc_entries"].size, found["load_store_queue"].size) == (1, 4)
    assert "at most 1.00% more cycles" in found["arc_entries"].why


#: The contents of the memory decide about everything.
WILD = assemble(
    "ld.reg [32-bit] r6, r5\nset.vl r6\nld.sram [8-bit] r0, r6, r6\n"
    "blt r6, r0, never\nhalt\nnever: sub r6, r6, r6\nhalt\n",
    name="wild.s",
)


def wild_profile(count: int) -> Profile:
    with DramImage(1 << 16) as image:
        image.write(0x300, count.to_bytes(4, "little"))
        return profile_run(WILD, image, FULL, parameters=0x300)


def test_profile_that_does_not_cover_the_program_is_refused() -> None:
    profile = copy_profile(20)
    # Everything that could be larger after the branch is proved.
    assert trim(COPY, FULL, [profile]) == trim(COPY, FULL)
    program = assemble("ld.reg [16-bit] r6, r0\nblt r6, r0, more\nld.sram [8-bit] r0, r6, r6\n"
                       "more: halt\n", name="sides.s")  # fmt: skip
    with DramImage(1 << 16) as image:
        image.write(0, b"\x08\0")
        profile = profile_run(program, image, FULL)
    with pytest.raises(
        TrimError, match=r"not cover .*: word 1 \(sides.s:2\) is never taken; declare"
    ):
        trim(program, FULL, [profile])
    allowed = report(program, FULL, [profile], sizes=Sizes(allow_uncovered=True))
    bounds = {bound.name: bound for bound in allowed.bounds}
    assert bounds["scratchpad_bytes"].size == 64
    assert bounds["scratchpad_bytes"].basis == "profiled"
    assert bounds["scratchpad_bytes"].guard == "SCRATCHPAD_RANGE"


def test_proofs_know_what_can_not_be_without_a_fault() -> None:
    # VL is at least 1 after set.vl, so the branch is never taken.
    result = report(WILD, FULL, [wild_profile(100)])
    assert "sub" not in result.trimmed.instructions
    bounds = {bound.name: bound for bound in result.bounds}
    assert (bounds["max_vl"].value, bounds["max_vl"].basis) == (100, "profiled")
    assert bounds["max_vl"].guard == "VECTOR_SETTING"
    assert (bounds["address_bits"].size, bounds["address_bits"].guard) == (12, "DRAM_RANGE")
    assert bounds["address_bits"].why == "word 0 (wild.s:1)"
    assert (bounds["register_width"].size, bounds["register_width"].basis) == (32, "proved")
    tight = report(WILD, FULL, [wild_profile(100)], sizes=TIGHT)
    bounds = {bound.name: bound for bound in tight.bounds}
    assert (bounds["register_width"].size, bounds["register_width"].guard) == (
        20,
        "REGISTER_RANGE",
    )


def test_unions_take_the_most_of_all() -> None:
    one = assemble("mov.imm r6, #200\nset.vl r6\nv.v.add [8-bit] r0, r0, r0\nhalt\n", name="a.s")
    other = assemble("mov.imm r40, #100\nset.mr r40\nhalt\n", name="b.s")
    both = trim([one, other], FULL)
    parts = trim(one, FULL), trim(other, FULL)
    assert both.instructions == parts[0].instructions | parts[1].instructions
    for name in ("registers", "max_vl", "max_mr", "scratchpad_bytes", "register_width"):
        assert getattr(both, name) == max(getattr(part, name) for part in parts)
    result = report([Subject(program=one, name="a"), Subject(program=other, name="b")], FULL)
    assert {bound.name: bound.why for bound in result.bounds}["max_mr"] == "b: word 1 (b.s:2)"
    # One that is profiled does not make the other's sizes less than is proved.
    mixed = report([Subject(program=one, name="one"), WILD], FULL, [wild_profile(100)])
    assert (mixed.trimmed.max_vl, mixed.trimmed.scratchpad_bytes) == (200, 256)
    bounds = {bound.name: bound for bound in mixed.bounds}
    assert bounds["max_vl"].why == "one: word 1 (a.s:2)"
    assert (bounds["max_vl"].basis, bounds["max_vl"].profiled) == ("profiled", ("program 2",))
    assert bounds["max_mr"].profiled == ()


def test_matrices_that_no_run_reached_fault_where_their_rows_are_not_aligned() -> None:
    program = assemble(
        "ld.reg [64-bit] r6, r5\nmov r8, r6\nld.sram [8-bit] r6, r6, r0\nbge r8, r7, few\n"
        "m.v.add.add [8-bit] r6, r6, r6\nfew: halt\n"
    )
    with DramImage(1 << 16) as image:
        profile = profile_run(program, image, FULL)
    assert 4 not in profile.facts.executed
    result = report(program, FULL, [profile], sizes=Sizes(allow_uncovered=True))
    assert "m.v.add.add[8]" in result.trimmed.instructions
    alignment = next(bound for bound in result.bounds if bound.name == "scratchpad_alignment")
    assert (alignment.basis, alignment.size) == ("profiled", 8)
    assert alignment.guard.startswith("SCRATCHPAD_RANGE")


@pytest.mark.parametrize(("vl", "alignment"), [(4, 8), (6, 4), (5, 2)])
def test_rows_of_matrices_decide_the_alignment(vl: int, alignment: int) -> None:
    program = assemble(
        f"mov r1, #{vl}\nset.vl r1\nmov r2, #64\nmov r3, #128\n"
        "m.v.add.min [16-bit] r2, r3, r0\nmemfence\nhalt\n"
    )
    assert trim(program, FULL).scratchpad_alignment == alignment


def test_only_programs_that_load_need_a_run_on_hardware() -> None:
    profile = replace(copy_profile(20, 70), in_flight=(2, 9))
    trimmed = trim([COPY, assemble("halt\n")], FULL, [profile])
    assert (trimmed.arc_entries, trimmed.load_store_queue) == (2, 16)


def test_given_address_bits() -> None:
    program = assemble("ld.reg [8-bit] r6, r5\nhalt\n")
    result = report(program, FULL, sizes=Sizes(address_bits=20))
    assert (result.trimmed.address_bits, result.trimmed.register_width) == (20, 21)
    assert {bound.name: bound.basis for bound in result.bounds}["address_bits"] == "given"
    with pytest.raises(TrimError, match="at most the configuration's 33, not 40"):
        trim(program, FULL, address_bits=40)
    launched = Subject(program=program, parameters=1 << 20)
    with pytest.raises(TrimError, match="20 address bits do not reach parameters at 0x100000"):
        report(launched, FULL, sizes=Sizes(address_bits=20))


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        ({"parameters": 1 << 33}, "parameters must be a whole number from 0 to 8589934591"),
        ({"declared": Declared(slots=0)}, "slots must be a whole number from 1 to 65536, not 0"),
    ],
)
def test_launches_that_never_happen_are_refused(launch: dict[str, Any], message: str) -> None:
    with pytest.raises(TrimError, match=message):
        trim(Subject(program=COPY, **launch), FULL)


def test_sizes_by_another_basis_are_refused() -> None:
    with pytest.raises(TrimError, match="basis must be one of proved, runs, tight, not 'prove'"):
        Sizes(basis="prove")  # type: ignore[arg-type]


def test_memory_has_the_parameter_block_of_a_launch_even_if_no_word_reads_it() -> None:
    launched = Subject(program=assemble("halt\n"), parameters=0x100000)
    assert trim(launched, FULL).address_bits == 21
    assert trim(launched.program, FULL).address_bits == 12


def test_rom_and_counters() -> None:
    program = assemble("halt\n")
    assert trim(program, FULL, rom=True).program == program.words
    assert trim(program, FULL).program is None
    assert not trim(program, FULL).counters
    assert trim(program, FULL, keep_counters=True).counters
    with pytest.raises(TrimError, match="a ROM holds one program, not 2"):
        trim([program, assemble("v.drain\nhalt\n")], FULL, rom=True)
    assert trim([program, program], FULL, rom=True).program == program.words
    with pytest.raises(TrimError, match="no program"):
        trim([], FULL)


@pytest.mark.parametrize(
    ("text", "config", "message"),
    [
        ("add r6, r6, r6\nhalt\n", {"instructions": frozenset({"halt"})}, "word 0.* has no add"),
        ("mov r6, r40\nhalt\n", {"registers": 32}, "uses r40, the configuration ends at r31"),
        ("mov r6, r7\n" * 20, {"instruction_words": 16}, "20 words, the instruction buffer 16"),
    ],
)
def test_programs_must_run_on_the_configuration(text: str, config: dict, message: str) -> None:
    with pytest.raises(TrimError, match=message):
        trim(assemble(text), replace(FULL, **config))


def test_profile_of_another_program_is_refused() -> None:
    with pytest.raises(TrimError, match="belongs to none of the programs"):
        trim(assemble("halt\n"), FULL, [copy_profile(20)])
    with pytest.raises(TrimError, match="different programs"):
        _ = copy_profile(20) | wild_profile(3)


def test_report_names_what_went_and_why_the_rest_stays() -> None:
    text = "add r6, r7, r8\nadd r6, r6, r6\nloop: jmp loop\n"
    result = report(assemble(text, name="a.s"), FULL)
    assert result.kept[Unit.SCALAR] == ("add", "jmp")
    assert "sub" in result.removed[Unit.SCALAR]
    assert not result.kept[Unit.VECTOR]
    assert set(result.removed[Unit.LOAD_STORE]) == {
        row.key for row in FULL.rows_of(Unit.LOAD_STORE)
    }
    assert result.why("add") == "add is needed by 2 words, the first is word 0 (a.s:1)"
    assert result.why("jmp") == "jmp is needed by one word, word 2 (a.s:3)"
    assert "without it" in result.why("halt")
    assert result.why("sub") == "sub is removed: no reachable word needs it"
    with pytest.raises(TrimError, match="no instruction or unit 'fly'"):
        result.why("fly")
    assert result.why("scalar") == (
        "scalar: 3 words of 2 instructions; rarest jmp, at word 2 (a.s:3)"
    )
    assert result.why("vector") == "vector: no reachable word needs it"
    data = result.to_json()
    assert data["bounds"]["registers"]["size"] == 16
    assert data["removed"]["scalar"] == list(result.removed[Unit.SCALAR])
