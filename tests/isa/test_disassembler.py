import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.assembly.assembler import assemble
from isa.assembly.disassembler import disassemble
from isa.program import Program, ProgramError
from isa.table import BY_KEY, INSTRUCTIONS, Instruction, encode


@st.composite
def _words(draw: st.DrawFn) -> int:
    """Instruction words of every kind, near misses, and noise."""
    row = draw(st.sampled_from(INSTRUCTIONS))
    values = [
        draw(st.integers(operand.field.range[0], operand.field.range[-1]) | st.integers(-9, 9))
        for operand in row.operands
    ]
    clipped = [
        min(max(value, operand.field.range[0]), operand.field.range[-1])
        for value, operand in zip(values, row.operands, strict=True)
    ]
    word = encode(row, clipped)
    return draw(
        st.sampled_from([word, word, word, word ^ 1 << draw(st.integers(0, 31))])
        | st.integers(0, 0xFFFF_FFFF)
    )


@settings(deadline=None, derandomize=True)
@given(st.lists(_words(), max_size=30))
def test_any_words_come_back(words: list[int]) -> None:
    assert assemble(disassemble(words)).words == tuple(words)


@pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda row: row.key)
def test_every_instruction_comes_back(row: Instruction) -> None:
    ends = [encode(row, [operand.field.range[end] for operand in row.operands]) for end in (0, -1)]
    assert assemble(disassemble(ends)).words == tuple(ends)


@settings(deadline=None, derandomize=True)
@given(st.lists(_words(), min_size=1, max_size=12), st.data())
def test_labels_of_a_program_are_kept(words: list[int], data: st.DataObject) -> None:
    places = data.draw(
        st.dictionaries(
            # Names that the disassembler gives itself, too.
            st.sampled_from(["start", "a.b", "L0", "L1", "L1_", "L2", "add", "r1x"]),
            st.integers(0, len(words)),
        )
    )
    program = assemble(disassemble(Program(tuple(words), places)))
    assert program.words == tuple(words)
    assert places.items() <= program.symbols.items()


def test_text_is_what_a_person_would_write() -> None:
    source = (
        "start:\n"
        "    mov r1, #-5\n"
        "    ld.sram [16-bit] r14, r10, r61\n"
        "L2:\n"
        "    m.v.add.min [8-bit] r16, r15, r11\n"
        "    add r1, r1, #8\n"
        "    blt r1, r2, L2\n"
        "    jmp start\n"
        "    jmp #-7\n"
        "    halt\n"
    )
    program = assemble(source)
    assert disassemble(Program(program.words, {"start": 0})) == source


def test_labels_made_up_differ_from_those_of_the_program() -> None:
    jump = encode(BY_KEY["jmp"], (2,))
    halt = encode(BY_KEY["halt"], ())
    program = Program((jump, halt, halt), {"L2": 1, "L2_": 0})
    again = assemble(disassemble(program))
    assert again.words == program.words
    assert again.symbols == {"L2": 1, "L2_": 0, "L2__": 2}


def test_words_that_assembly_can_not_write_are_data() -> None:
    shift = encode(BY_KEY["sll.imm"], (1, 2, 64))
    text = disassemble([0, shift, encode(BY_KEY["halt"], ())])
    assert text.splitlines()[0].strip() == ".word 0x00000000"
    assert text.splitlines()[1].strip().startswith(f".word {shift:#010x}")
    assert text.splitlines()[2].strip() == "halt"
    assert disassemble([]) == ""


def test_branches_out_of_the_program_keep_their_distance() -> None:
    jump = BY_KEY["jmp"]
    words = [encode(jump, (-1,)), encode(jump, (2,)), encode(jump, (1,))]
    assert disassemble(words) == "    jmp #-1\n    jmp L3\n    jmp L3\nL3:\n"


@pytest.mark.parametrize("word", [-1, 1 << 32])
def test_more_than_32_bits_are_refused(word: int) -> None:
    with pytest.raises(ProgramError, match="word 1"):
        disassemble([0, word])
