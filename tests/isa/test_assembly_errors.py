import pickle
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.assembly.assembler import AssemblyError, assemble, assemble_file


def _error(text: str, **settings: object) -> AssemblyError:
    with pytest.raises(AssemblyError) as error:
        assemble(text, name="t.s", **settings)
    return error.value


#: The mistaken line with the caret's place marked by ``^``, and what the message says.
_MISTAKES = [
    # Instructions.
    ("^mvo r1, #0", "unknown instruction 'mvo'; did you mean mov?"),
    ("x: ^v.v.ad [16-bit] r1, r2, r3", "did you mean v.v.add"),
    ("^ADD r1, r2, r3", "unknown instruction 'ADD'; did you mean add"),
    ("^wizardry", "unknown instruction 'wizardry'"),
    ("^lw r1, r2", "write ld.reg or ld.sram"),
    ("^mul r1, r2, r3", "there is no scalar product; v.v.mul and v.s.mul multiply vectors"),
    ("^j here", "unknown instruction 'j'; write jmp"),
    ("^loop", "a label ends with a colon: loop:"),
    # Operands.
    ("^m.v.nop.add [16-bit] r1, r2", "the last one is not read: name any register, such as r0"),
    ("mov r1 ^#5", "a comma is missing before '#'"),
    ("li r1, ^N", "a constant operand is written #N"),
    ("mov ^R1, #5", "'R1' is not a register; did you mean r1?"),
    ("mov r1, #^r2", "r2 is a register, written without #"),
    ("mov r1, ^$5", "unexpected '$'; constants begin with #"),
    ("ld.reg [64-bit] r9, ^[r1]", "an address has no brackets"),
    ("mov r1, #5 ^# five", "comments begin with ;"),
    ("^// five", "comments begin with ;"),
    ("^add r1, r2", "add takes 3 operands (a register, a register, a register or a #constant)"),
    ("add r1, r2, r3, ^r4", "add takes 3 operands"),
    ("halt ^r1", "halt takes no operands, not 1"),
    ("^jmp", "jmp takes 1 operand (a label or a #distance), not 0"),
    ("add r1, ^#2, r3", "operand 2 of add must be a register, not a constant"),
    ("set.vl ^#4", "operand 1 of set.vl must be a register, not a constant"),
    ("mov.imm r1, ^r2", "operand 2 of mov.imm must be a #constant, not a name"),
    ("add r1, r2, ^5", "a constant operand is written #5"),
    ("add r1, r2, ^where", "'where' is not a register"),
    ("add r1, r2, ^N", "'N' is a constant, not a register; a constant operand is written #N"),
    ("add ^acx, r2, r3", "'acx' is not a register; did you mean acc?"),
    ("jmp ^r1", "r1 is a register, not a label"),
    ("jmp ^acc", "acc is a register, not a label"),
    ("jmp ^N", "'N' is a constant (line 1), not a label; a distance is written #N"),
    # Widths.
    ("^v.v.add r1, r2, r3", "v.v.add needs a width: [8-bit], [16-bit], [32-bit], [64-bit]"),
    ("v.v.add ^[12-bit] r1, r2, r3", "[12-bit] is not a width of v.v.add; write [8-bit], [16-bit]"),
    ("v.v.add ^[16] r1, r2, r3", "[16] is not a width of v.v.add"),
    ("v.v.add ^[] r1, r2, r3", "[] is not a width of v.v.add"),
    ("v.v.add r1, r2, r3 ^[16-bit]", "unexpected '[16-bit]'"),
    ("add ^[16-bit] r1, r2, r3", "add takes no width"),
    ("li ^[64-bit] r1, #3", "li takes no width"),
    # Ranges.
    ("add ^r64, r1, r2", "there is no register r64; registers are r0 to r63"),
    ("add r1, r2, ^r9999999999999999", "registers are r0 to r63"),
    (
        "add r1, r2, ^#8192",
        "from -8192 to 8191, not 8192; li loads a larger constant into a register",
    ),
    ("add r1, r2, ^#-8193", "must be from -8192 to 8191, not -8193"),
    ("mov r1, ^#524288", "operand 2 of mov must be from -524288 to 524287, not 524288; li takes"),
    ("mov r1, ^#-524289", "must be from -524288 to 524287, not -524289"),
    ("sll r1, r2, ^#64", "operand 3 of sll must be from 0 to 63, not 64"),
    ("srl r1, r2, ^#-1", "operand 3 of srl must be from 0 to 63, not -1"),
    ("jmp ^#8192", "operand 1 of jmp must be from -8192 to 8191, not 8192"),
    ("li r1, ^#0x10000000000000000", "from -9223372036854775808 to 18446744073709551615"),
    ("li r1, ^#-0x8000000000000001", "from -9223372036854775808 to 18446744073709551615"),
    ("^li r1", "write li register, #constant"),
    ("^li r1, r2", "write li register, #constant"),
    ("li ^r64, #0", "registers are r0 to r63"),
    # Names.
    ("jmp ^nowhere", "label 'nowhere' is not defined"),
    ("jmp ^her", "label 'her' is not defined; did you mean here?"),
    ("add r1, r2, #^M", "no constant 'M' is defined above this line"),
    ("add r1, r2, #2 * ^M", "no constant 'M' is defined above this line"),
    ("mov r1, #^here", "no constant 'here' is defined above this line"),
    ("^here: halt", "'here' is already a label (line 3)"),
    ("a: ^a: halt", "'a' is already a label (line 4)"),
    ("^N: halt", "'N' is already a constant (line 1)"),
    ("^r7: halt", "r7 is a register and can't be a label"),
    (".equ ^N, 3", "'N' is already a constant (line 1)"),
    (".equ ^acc, 3", "'acc' is already a register's name (line 2)"),
    (".equ ^r1, 3", "r1 is a register and can't be a constant"),
    (".reg ^here, r3", "'here' is already a label (line 3)"),
    (".reg ^r3, r4", "r3 is a register"),
    # Directives.
    (".equ A ^0", "a comma is missing before '0'"),
    (".equ A ^= 0", "unexpected '='; write .equ NAME, value"),
    ("^.text", "unknown directive .text; there are .equ, .reg, .word"),
    ("^.eqv A, 1", "unknown directive .eqv; did you mean .equ?"),
    ("^.equ A", "write .equ NAME, value"),
    ("^.equ A, 1, 2", "write .equ NAME, value"),
    (".equ ^5, 3", "a name must come first: .equ NAME, value"),
    (".equ A, ^A", "no constant 'A' is defined above this line"),
    (".reg x, ^5", "write .reg NAME, register"),
    (".reg x, ^r99", "registers are r0 to r63"),
    (".reg x, ^N", "'N' is not a register"),
    ("^.word", "write .word value"),
    (".word ^-1", "a word must be from 0 to 0xffffffff, not -0x1"),
    (".word ^0x100000000", "a word must be from 0 to 0xffffffff, not 0x100000000"),
    # Expressions and syntax.
    ("add r1, r2, #1 / ^0", "division by zero"),
    ("add r1, r2, #1 / (^3 - 3)", "division by zero"),
    ("add r1, r2, #1 << ^64", "shifted by 0 to 63, not by 64"),
    ("add r1, r2, #1 >> ^-1", "shifted by 0 to 63, not by -1"),
    (".word ^1 << 63 << 63 << 63", "goes beyond 128 bits"),
    ("add r1, r2, #^09", "'09' is not a number"),
    ("add r1, r2, #^0xfg", "'0xfg' is not a number"),
    ("add r1, r2, #^0x", "'0x' is not a number"),
    ("add r1, r2, #(1^", "the line ends too early; expected ')'"),
    ("add r1, r2, #^", "the line ends too early; expected"),
    ("add r1, r2,^ ; and so on", "the line ends too early; expected"),
    ("add r1, r2, #1^)", "unexpected ')'"),
    ("add r1 ^r2 r3", "a comma is missing before 'r2'"),
    ("add^, r1", "unexpected ','"),
    ("^@", "unexpected '@'"),
    ("add r1, r2, #^'a'", 'unexpected "\'"'),
    ("v.v.add ^[16-bit", "unexpected '['; a width is written like [16-bit]"),
    ("^é: halt", "unexpected 'é'"),
    ("^\x00", "unexpected '\\x00'"),
]
_HEAD = ".equ N, 4\n.reg acc, r9\nhere: halt\n"


def _shown(line: str) -> str:
    """A line as a message shows it: what is no text, as one sign each."""
    return "".join(
        char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in line
    )


@pytest.mark.parametrize(("marked", "message"), _MISTAKES, ids=[m[0] for m in _MISTAKES])
def test_mistakes_are_shown_where_they_are(marked: str, message: str) -> None:
    before, mark, after = marked.partition("^")
    assert mark
    error = _error(f"{_HEAD}{before}{after}\nhalt\n")
    head, line, caret = str(error).split("\n")
    assert head == f"t.s:4:{len(before) + 1}: {error.message}"
    assert message in error.message
    assert line == _shown(before + after)
    assert caret == " " * len(before) + "^"
    assert (error.file, error.line, error.column) == ("t.s", 4, len(before) + 1)


def test_caret_stands_right_below_tabs() -> None:
    error = _error("\t x:\tadd r1,\tr2, r99")
    assert str(error).split("\n")[2] == "\t   \t       \t    ^"
    assert error.column == 18


def test_operator_of_exclusive_or_is_not_a_caret() -> None:
    assert _error("add r1, r2, #1 ^ M").column == 18


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("jmp a\nfoo", 1),
        ("jmp a\na: foo", 2),
        ("jmp a\nfoo\n b: a: halt", 2),
        ("jmp a\njmp b\na: halt", 2),
        ("halt\njmp a\n.equ M, N\n", 2),
    ],
)
def test_the_first_mistake_is_reported(text: str, line: int) -> None:
    assert _error(text).line == line


#: What a line with a mistake defines counts as defined.
_SEVERAL = """.equ A 0
mov r1, #A
\tadd r1, r2
x: .reg acc r9
mov acc, r1
jmp x
jmp nowhere
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_all_mistakes_are_told_at_once(end: str) -> None:
    error = _error(_SEVERAL.replace("x: .reg", "halt\nx: .reg").replace("\n", end))
    heads = [line.split(": ")[0] for line in str(error).split("\n")[::3]]
    assert heads == ["t.s:1:8", "t.s:3:2", "t.s:5:13", "t.s:8:5"]
    assert str(error).count("\n") + 1 == error.lines == 12
    assert [one.line for one in error.rest] == [3, 5, 8]
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_of_many_mistakes_twenty_are_shown() -> None:
    error = _error("foo\n" * 30)
    shown = str(error).split("\n")
    assert len(error.rest) == 29
    assert len(shown) == error.lines == 61
    assert shown[-1] == "and 10 more mistakes"
    assert len(str(_error("foo\n" * 20)).split("\n")) == _error("foo\n" * 20).lines == 60


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"halt\n; gr\xfc\xdfe\n", "line 2 is not UTF-8 text (byte 0xfc); save the file as UTF-8"),
        ("halt\n".encode("utf-16"), "line 1 is not UTF-8 text (byte 0xff); save the file as UTF-8"),
    ],
)
def test_text_in_another_encoding(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.s").write_bytes(content)
    with pytest.raises(AssemblyError) as error:
        assemble_file(tmp_path / "t.s")
    assert str(error.value) == f"{tmp_path / 't.s'}: {message}"


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "t.s").write_bytes(b"\xef\xbb\xbfmov r1, #1\r\n\thalt\r\n")
    assert len(assemble_file(tmp_path / "t.s").words) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [("r1", "'r1' can't be the name of a constant"), ("a b", "'a b'"), ("", "''"), ("5", "'5'")],
)
def test_constants_given_must_have_names(name: str, message: str) -> None:
    error = _error("halt", constants={name: 1})
    assert str(error).startswith("t.s: ")
    assert message in str(error)


def test_constants_given_can_not_be_defined_again() -> None:
    error = _error(".equ N, 1", constants={"N": 1})
    assert error.message == "'N' is already a constant given to the assembler"


@pytest.mark.parametrize(
    "text",
    [
        "mov r1, #" + "-" * 20_000 + "1",
        "mov r1, #" + "(" * 20_000,
        "mov r1, #" + "9" * 20_000,
        "mov r1, #0x" + "f" * 20_000,
        ".equ A, 1 << 62\n" + "\n".join(f".equ A{n}, {'A' if n else ''}" for n in range(3)),
        ".equ A0, 3\n" + "\n".join(f".equ A{n + 1}, A{n} * A{n}" for n in range(64)),
        "add " + "r1, " * 20_000,
        "[" * 20_000,
    ],
    ids=["minus", "parentheses", "digits", "hexadecimal", "empty", "squares", "operands", "widths"],
)
def test_hostile_lines_end_in_one_message(text: str) -> None:
    error = _error(text)
    assert error.line > 0
    assert "\n" not in error.message
    assert len(error.message) < 300


_PIECES = (
    *("add", "mov", "li", "jmp", "halt", "v.v.add", ".equ", ".reg", ".word", "[16-bit]"),
    *("a", "b", "r1", "r2", "r64", "#", ",", ":", ";", "[", "]", "(", ")", "\t", "é"),
    *("0", "1", "0x10", "-1", "+", "-", "*", "/", "<<", ">>", "&", "|", "^", "~"),
)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(_PIECES) | st.text(max_size=3), max_size=12))
def test_any_text_assembles_or_is_refused_in_three_lines(parts: list[str]) -> None:
    text = " ".join(parts)
    message = ""
    try:
        assemble(text, name="t.s")
    except AssemblyError as error:
        message = str(error)
    if message:
        head, line, caret = message.split("\n")
        _, number, column, _ = head.split(":", 3)
        written = text.split("\n")[int(number) - 1].removesuffix("\r")
        assert int(column) <= len(written) + 1
        if len(written) <= 80:
            assert line == _shown(written)
            assert len(caret) == int(column)
        assert len(caret) <= len(line) + 1 <= 170
        assert (head + line + caret).replace("\t", "").isprintable()


@pytest.mark.parametrize("column", [1, 100, 1500, 2900])
def test_of_a_long_line_the_place_is_shown(column: int) -> None:
    written = f"{' ' * (column - 1)}here ; {'x' * (3000 - column)}"
    head, line, caret = str(_error(written)).split("\n")
    assert head.startswith(f"t.s:1:{column}: ")
    assert line[len(caret) - 1 :].startswith("here")
    assert len(line) <= 170


@pytest.mark.parametrize("text", ["a:" * 1_000_000, "x" * 1_000_000, "#" * 5000])
def test_a_line_is_limited(text: str) -> None:
    message = str(_error(f"b undefined\n{text}" if text[0] == "a" else text))
    assert len(message) < 1000


@pytest.mark.parametrize(
    "text", ["(" * 2000 + "1" + ")" * 2000, "1" + "+1" * 2000, "-" * 4000 + "1"]
)
def test_a_deep_expression_is_assembled_or_refused(text: str) -> None:
    with suppress(AssemblyError):
        assemble(f"mov r1, #{text}", name="t.s")


def test_errors_cross_processes() -> None:
    error = _error("foo")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert (copy.line, copy.column, copy.message) == (error.line, error.column, error.message)
