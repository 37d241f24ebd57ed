import hashlib
import pickle
import re
from pathlib import Path

import pytest

from isa.assembly.assembler import assemble
from isa.program import Program, ProgramError, SourceLine
from isa.table import ISA_VERSION

_SOURCE = '.equ STEP, 8\nstart: add r1, r1, #STEP ; a "quoted" step\njmp start\nend:\n'


@pytest.fixture
def program() -> Program:
    return assemble(_SOURCE, name="step.s")


@pytest.fixture
def saved(program: Program, tmp_path: Path) -> Path:
    path = tmp_path / "step.vip"
    program.save(path)
    return path


def _reason(path: Path) -> str:
    with pytest.raises(ProgramError) as error:
        Program.load(path)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_everything_comes_back(program: Program, saved: Path) -> None:
    loaded = Program.load(saved)
    assert loaded == program
    assert loaded.symbols == {"start": 0, "end": 2}
    assert loaded.constants == {"STEP": 8}
    assert loaded.source[1] == SourceLine("step.s", 3, "jmp start")


def test_same_program_gives_the_same_bytes(program: Program, saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.vip"
    Program.load(saved).save(other)
    assert other.read_bytes() == saved.read_bytes()


def test_an_empty_program_and_odd_names_of_sources_come_back(tmp_path: Path) -> None:
    path = tmp_path / "odd.vip"
    Program(()).save(path)
    assert Program.load(path) == Program(())
    odd = Program((1,), source={0: SourceLine("naïve\udcff\n.s", 1, "\t\u2028 ; ü")})
    odd.save(path)
    assert Program.load(path) == odd


def test_truncation_at_every_length_is_refused(saved: Path) -> None:
    content = saved.read_bytes()
    for length in range(len(content)):
        saved.write_bytes(content[:length])
        reason = _reason(saved)
        # Less than the magic word can't be distinguished from another kind of file.
        assert "truncated" in reason or (length < 20 and "not a VIP program" in reason), length


def test_a_flipped_bit_anywhere_is_refused(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    for position in range(len(content)):
        content[position] ^= 1 << position % 8
        saved.write_bytes(content)
        _reason(saved)
        content[position] ^= 1 << position % 8


def test_bytes_after_the_end_are_refused(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes() + b"\n")
    assert "damaged" in _reason(saved)


def test_another_version_is_named(saved: Path) -> None:
    content = saved.read_bytes()
    mark = f"isa={ISA_VERSION} ".encode()
    assert mark in content
    saved.write_bytes(content.replace(mark, f"isa={ISA_VERSION + 1} ".encode()))
    assert _reason(saved).startswith(f"made for version {ISA_VERSION + 1} ")


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02", b"mov r1, #0\n", b"{}", bytes(4096)])
def test_other_files_are_no_programs(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    assert "not a VIP program" in _reason(path)


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        "{}",
        '{"words": 3}',
        '{"words": ["0x1"], "symbols": {}, "constants": {}, "source": []}',
        '{"words": [1], "symbols": {}, "constants": {}, "source": []}',
        '{"words": [], "symbols": {"a": 1}, "constants": {}, "source": []}',
        '{"words": [], "symbols": {"r1": 0}, "constants": {}, "source": []}',
        '{"words": [], "symbols": {}, "constants": {"a": 1.5}, "source": []}',
        '{"words": [], "symbols": {}, "constants": {}, "source": [[0, "f", 1, "x"]]}',
        '{"words": [], "symbols": {}, "constants": {}, "source": [0]}',
        '{"words": [], "symbols": [], "constants": {}, "source": []}',
        "[" * 100_000,
        "not JSON",
    ],
)
def test_contents_that_make_no_sense_are_refused(tmp_path: Path, body: str) -> None:
    """Files with a right checksum, as a mistaken tool would write them."""
    path = tmp_path / "odd.vip"
    digest = hashlib.sha256(body.encode()).hexdigest()
    header = f"vip-program isa={ISA_VERSION} bytes={len(body)} sha256={digest}\n"
    path.write_text(header + body)
    _reason(path)


def test_files_that_can_not_be_read_or_written(program: Program, tmp_path: Path) -> None:
    assert "can't be read" in _reason(tmp_path / "missing.vip")
    assert "can't be read" in _reason(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (tmp_path / "no" / "folder.vip", folder):
        with pytest.raises(ProgramError, match="can't be written"):
            program.save(path)
    assert list(tmp_path.iterdir()) == [folder]


def test_saving_replaces_the_file_and_leaves_nothing_else(saved: Path) -> None:
    Program((7,)).save(saved)
    assert Program.load(saved).words == (7,)
    assert list(saved.parent.iterdir()) == [saved]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (((1 << 32,),), "word 0 is 0x100000000"),
        (((-1,),), "word 0 is -0x1"),
        (((), {"a": 1}), "'a' is at 1"),
        (((), {"r5": 0}), "'r5' can't be the name of a label"),
        (((), {}, {"a b": 0}), "'a b' can't be the name of a constant"),
        (((), {}, {}, {0: SourceLine("f", 1, "")}), "word 0"),
    ],
)
def test_programs_are_checked(parts: tuple[object, ...], message: str) -> None:
    with pytest.raises(ProgramError) as error:
        Program(*parts)
    assert message in str(error.value)


def test_programs_can_not_be_changed_but_copied(program: Program) -> None:
    with pytest.raises(TypeError):
        program.symbols["more"] = 1  # type: ignore[index]
    assert pickle.loads(pickle.dumps(program)) == program
    assert hash(program) == hash(Program.__reduce__(program)[0](*program.__reduce__()[1]))


def test_a_header_that_names_fewer_bytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k.vip"
    Program((0,)).save(path)
    path.write_bytes(re.sub(rb"bytes=\d+", b"bytes=9", path.read_bytes()))
    with pytest.raises(ProgramError, match=r"damaged: .* instead of 9"):
        Program.load(path)
