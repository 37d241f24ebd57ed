from pathlib import Path

import pytest

from isa.assembly.assembler import AssemblyError, assemble, assemble_file
from isa.program import listing
from isa.table import BY_KEY, INSTRUCTIONS, Instruction, Role, decode, encode

#: The code of thesis Figure 6.3, without the lines that it leaves out.
FIGURE_6_3 = """\
update_loop:
    mov r1, #0; set j variable
    ; Load data such as block size,
j_loop:
    mov r2, #0; set i variable
    ld.sram [16-bit] r14, r10, r61
i_loop:
    ld.sram [16-bit] r11, r7, r61
    v.v.add [16-bit] r11, r11, r12
    m.v.add.min [16-bit] r16, r15, r11
    v.s.sub [16-bit] r14, r16, r16
    st.sram [16-bit] r10, r14, r61
    add r2, r2, #1
    blt r2, r20, i_loop
    add r1, r1, #1
    blt r1, r21, j_loop
"""


def _word(key: str, *values: int) -> int:
    return encode(BY_KEY[key], values)


def _only(text: str, **settings: int) -> int:
    (word,) = assemble(text, **settings).words
    return word


def _spelling(row: Instruction, values: list[int]) -> str:
    operands = [
        f"r{value}" if operand.is_register else f"#{value}"
        for operand, value in zip(row.operands, values, strict=True)
    ]
    width = "" if row.width is None else f" [{row.width.bits}-bit]"
    return f"{row.mnemonic}{width} {', '.join(operands)}"


def test_thesis_figure_6_3() -> None:
    program = assemble(FIGURE_6_3)
    assert program.words == (
        _word("mov.imm", 1, 0),
        _word("mov.imm", 2, 0),
        _word("ld.sram[16]", 14, 10, 61),
        _word("ld.sram[16]", 11, 7, 61),
        _word("v.v.add[16]", 11, 11, 12),
        _word("m.v.add.min[16]", 16, 15, 11),
        _word("v.s.sub[16]", 14, 16, 16),
        _word("st.sram[16]", 10, 14, 61),
        _word("add.imm", 2, 2, 1),
        _word("blt", 2, 20, -6),
        _word("add.imm", 1, 1, 1),
        _word("blt", 1, 21, -10),
    )
    assert program.symbols == {"update_loop": 0, "j_loop": 1, "i_loop": 3}


@pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda row: row.key)
def test_every_instruction_as_the_table_spells_it(row: Instruction) -> None:
    values = [
        operand.field.range[-1 - number] if operand.role is not Role.SHIFT else 63
        for number, operand in enumerate(row.operands)
    ]
    assert decode(_only(_spelling(row, values))) == (row, tuple(values))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("0x7f", 127),
        ("0b101", 5),
        ("-8192", -8192),
        ("+3", 3),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("1 << 2 + 1", 8),
        ("1 << 3 >> 1", 4),
        ("-1 >> 60", -1),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("~0", -1),
        ("~5 & 0xff", 250),
        ("6 | 1 ^ 3 & 2", 7),
        ("--2", 2),
        ("SIZE * 2", 24),
        ("GIVEN + SIZE", 17),
        ("1 << 60 >> 59", 2),
    ],
)
def test_expressions(expression: str, value: int) -> None:
    text = f".equ SIZE, 4 * 3\nadd r1, r2, #{expression}"
    assert _only(text, constants={"GIVEN": 5}) == _word("add.imm", 1, 2, value)


def test_names_of_constants_and_registers() -> None:
    program = assemble(
        ".equ size, 16 ; elements\n.reg acc, r12\n.reg total, acc\n.word size << 4\n"
        "add total, acc, #size"
    )
    assert program.words == (256, _word("add.imm", 12, 12, 16))
    assert program.constants == {"size": 16}


def test_labels_anywhere_and_targets_in_words() -> None:
    program = assemble(
        "a: b: jmp end\n\n  c:\n; nothing\nbeq r1,r2,a;x\njmp #-2\nbne r1, r2, #2\nend:"
    )
    assert program.words == (
        _word("jmp", 4),
        _word("beq", 1, 2, -1),
        _word("jmp", -2),
        _word("bne", 1, 2, 2),
    )
    assert program.symbols == {"a": 0, "b": 0, "c": 1, "end": 4}


@pytest.mark.parametrize("text", ["", "\n\n", "; only a comment", "\r\n \t \r\n"])
def test_nothing_to_assemble(text: str) -> None:
    assert assemble(text).words == ()


def test_line_ends_of_windows() -> None:
    assert assemble(FIGURE_6_3.replace("\n", "\r\n")) == assemble(FIGURE_6_3)


def test_words_know_their_lines() -> None:
    program = assemble("x: halt\nli r3, #0x123456789\n", name="some.s")
    assert len(program.words) > 2
    assert program.source[0] == ("some.s", 1, "x: halt")
    assert {program.source[n] for n in range(1, len(program.words))} == {
        ("some.s", 2, "li r3, #0x123456789")
    }


def test_branches_reach_their_range_and_no_further() -> None:
    back = "a:\n" + ".word 0\n" * 8192
    assert assemble(back + "jmp a").words[-1] == _word("jmp", -8192)
    forth = "jmp a\n" + ".word 0\n" * 8190
    assert assemble(forth + "a:").words[0] == _word("jmp", 8191)
    with pytest.raises(AssemblyError, match=r":8195:5: 'a' is -8193 words away.* -8192 to 8191"):
        assemble("a:\n" + ".word 0\n" * 8193 + "jmp a")
    with pytest.raises(AssemblyError, match=r":1:5: 'a' is 8192 words away"):
        assemble("jmp a\n" + ".word 0\n" * 8191 + "a:")


def test_longest_program() -> None:
    assert len(assemble("halt\nhalt", max_words=2).words) == 2
    with pytest.raises(AssemblyError, match=":3:2: the program is longer than 2 words"):
        assemble("halt\nhalt\n halt", max_words=2)
    # Labels after the end are not called undefined.
    with pytest.raises(AssemblyError, match=r"^[^\n]*:3:1: the program is longer than 2 words"):
        assemble("blt r1, r2, end\nhalt\nhalt\nend: halt", max_words=2)
    with pytest.raises(AssemblyError, match=":1:1: the program is longer than 2 words"):
        assemble("li r1, #0x123456789abcdef", max_words=2)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "program.s"
    path.write_text("add r1, r1, #STEP ; für")
    program = assemble_file(path, constants={"STEP": 8}, max_words=1)
    assert program.source[0].file == str(path)
    with pytest.raises(AssemblyError, match="longer than 0 words"):
        assemble_file(path, constants={"STEP": 8}, max_words=0)
    path.write_bytes(b"\xef\xbb\xbfhalt\n")
    assert assemble_file(path).words == assemble("halt").words
    path.write_bytes(b"halt \xff")
    for bad, reason in (
        (path, "UTF-8"),
        (tmp_path / "none.s", "can't be read"),
        (tmp_path, "read"),
    ):
        with pytest.raises(AssemblyError) as error:
            assemble_file(bad)
        assert str(error.value).startswith(f"{bad}: ")
        assert reason in str(error.value)
        assert "\n" not in str(error.value)


def test_listing_shows_words_lines_and_labels() -> None:
    program = assemble("a: jmp a ; x\nb:\n  li r1, #0x123456789\nend:\n", name="l.s")
    lines = listing(program).splitlines()
    assert lines[0].split() == ["0", f"{program.words[0]:08x}", "1", "a:", "jmp", "a", ";", "x"]
    assert lines[1].strip() == "b:"
    assert lines[2].split() == ["1", f"{program.words[1]:08x}", "3", "li", "r1,", "#0x123456789"]
    assert lines[3].split() == ["2", f"{program.words[2]:08x}"]
    assert lines[-1].strip() == "end:"
    assert len(lines) == len(program.words) + 2
