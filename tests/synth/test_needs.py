"""Analysis of programs: what can be reached, and what it needs."""

import pytest

from isa.assembly.assembler import assemble
from isa.program import Program
from isa.table import BY_KEY, FIELD_A, INSTRUCTIONS, Unit
from synth.analysis.needs import Needs, needed, union
from synth.errors import TrimError


def addresses(needs: Needs) -> dict[str, tuple[int, ...]]:
    """Key -> word addresses, from the reported places."""
    return {
        key: tuple(int(place.removeprefix("word ").split()[0]) for place in places)
        for key, places in needs.uses.items()
    }


def test_straight_code() -> None:
    text = "mov.imm r7, #3\nadd r8, r7, r7\nadd r9, r8, r7\nhalt\n"
    needs = needed(assemble(text, name="a.s"))
    assert addresses(needs) == {"add": (1, 2), "mov.imm": (0,), "halt": (3,)}
    assert needs.uses["add"] == ("word 1 (a.s:2)", "word 2 (a.s:3)")
    assert needs.words == needs.reachable == 4
    assert needs.highest_register == 9


def test_both_sides_of_a_branch_and_loops() -> None:
    needs = needed(
        assemble(
            """
            top: blt r1, r2, far
                 sub r3, r1, r2
                 jmp top
            far: xor r3, r1, r2
                 beq r3, r1, top
                 halt
            """
        )
    )
    assert addresses(needs) == {
        "sub": (1,),
        "xor": (3,),
        "blt": (0,),
        "beq": (4,),
        "jmp": (2,),
        "halt": (5,),
    }


def test_code_behind_jump_or_halt_is_not_needed() -> None:
    needs = needed(
        assemble("jmp end\nmul: v.v.mul [64-bit] r60, r61, r62\nend: halt\nsll r63, r63, r63\n")
    )
    assert needs.instructions == {"jmp", "halt"}
    assert needs.words == 4
    assert needs.reachable == 2
    assert needs.highest_register == 5


def test_paths_out_of_the_program_end() -> None:
    needs = needed(assemble("top: blt r1, r2, top\nadd r1, r1, r2\n"))
    assert needs.instructions == {"blt", "add"}
    # A branch to before the program.
    word = BY_KEY["jmp"].match | 0x3FFF
    assert needed(Program((word,))).instructions == {"jmp"}


def test_registers_that_are_named_but_not_read_count() -> None:
    """The decoder refuses their numbers all the same."""
    row = BY_KEY["m.v.nop.add[16]"]
    word = row.match | FIELD_A.insert(6) | 41 << 8
    assert needed(Program((word,))).highest_register == 41


def test_start_registers_count() -> None:
    assert needed(assemble("halt\n")).highest_register == 5


@pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda row: row.key)
def test_every_instruction_needs_itself(row) -> None:
    assert needed(Program((row.match,))).instructions == {row.key}


def test_histogram_counts_by_unit_and_width() -> None:
    needs = needed(
        assemble(
            "v.v.add [16-bit] r6, r7, r8\nv.s.mul [16-bit] r6, r7, r8\n"
            "v.v.min [8-bit] r6, r7, r8\nld.reg [64-bit] r6, r5\nadd r6, r6, r6\nhalt\n"
        )
    )
    assert needs.histogram() == {
        Unit.SCALAR: {"-": 1},
        Unit.VECTOR: {"16": 2, "8": 1},
        Unit.LOAD_STORE: {"64": 1},
        Unit.ISSUE: {"-": 1},
    }
    assert needs.to_json()["uses"]["v.v.min[8]"] == 1
    assert needs.types() == {
        Unit.SCALAR: {"add": 1},
        Unit.VECTOR: {"add": 1, "compare": 1, "multiply": 1},
        Unit.LOAD_STORE: {"load": 1},
        Unit.ISSUE: {"end": 1},
    }


@pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda row: row.key)
def test_every_instruction_has_a_type(row) -> None:
    assert row.work.isalpha()


def test_pairs_and_constants() -> None:
    needs = needed(
        assemble(
            "m.v.mul.add [16-bit] r6, r7, r8\nm.v.mul.add [8-bit] r6, r7, r8\n"
            "m.v.nop.max [16-bit] r6, r7, r8\nadd r6, r6, #-5\nadd r6, r6, #9\n"
            "mov.imm r6, #700\nbeq r1, r2, end\nend: halt\n"
        )
    )
    assert needs.pairs() == {"nop.max": {"16": 1}, "mul.add": {"8": 1, "16": 1}}
    assert needs.immediates == {"imm14": (-5, 9), "imm20": (700, 700), "distance": (1, 1)}


def test_words_that_never_run_can_be_left_out() -> None:
    program = assemble("mov.imm r6, #1\nsub r40, r6, r6\nhalt\n")
    needs = needed(program, {0, 2})
    assert needs.instructions == {"mov.imm", "halt"}
    assert (needs.reachable, needs.highest_register) == (2, 6)


def test_union_has_what_any_program_needs() -> None:
    one = needed(assemble("add r6, r20, #3\nhalt\n", name="one.s"), name="one")
    other = needed(assemble("sub r6, r6, r6\nadd r6, r6, #-7\nhalt\n"), name="other")
    both = union([one, other])
    assert both.uses["add.imm"][0] == "one: word 0 (one.s:1)"
    assert both.uses["add.imm"][1].startswith("other: word 1")
    assert both.instructions == {"add.imm", "sub", "halt"}
    assert (both.words, both.reachable, both.highest_register) == (3, 5, 20)
    assert both.immediates["imm14"] == (-7, 3)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (Program(()), "empty"),
        (Program((0,)), r"word 0: 0x00000000 is not an instruction"),
    ],
)
def test_refused_programs(program: Program, message: str) -> None:
    with pytest.raises(TrimError, match=message) as error:
        needed(program)
    assert "\n" not in str(error.value)


def test_message_names_the_source_line() -> None:
    program = assemble("nop_is_missing: halt\n", name="kernel.s")
    broken = Program((0,), source={0: program.source[0]})
    with pytest.raises(TrimError, match=r"word 0 \(kernel.s:1\)"):
        needed(broken)
