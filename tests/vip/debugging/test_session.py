"""Commands, views and refusals of ``vip debug``."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import vip as api
from isa.program import Program
from vip.debugging.commands import COMMANDS, DebugSession
from vip.debugging.views import DebugError, element_type

SOURCE = """
.equ COUNT, 3
    li r8, #COUNT
    li r9, #0
    li r10, #-5
loop:
    add r9, r9, #2
    sub r8, r8, #1
    bne r8, r0, loop
    st.reg [16-bit] r5, r10
    halt
"""


@pytest.fixture
def session(tmp_path: Path):
    with api.debug(api.assemble(SOURCE), "pe-small", memory=bytes(range(64))) as debugger:
        yield DebugSession(debugger)


def test_each_command_has_its_reply(session: DebugSession) -> None:
    assert session.execute("break loop")[0].start == 3
    assert session.execute("b loop+2")[0].start == 5
    assert session.execute("c").place == "loop"
    assert session.execute("c").pc == 5
    assert session.execute("registers r9") == {9: 2}
    assert session.execute("d 2") == "deleted 2"
    assert [session.execute("c").time for _ in range(2)] == [6, 9]
    assert session.execute("back 2").time == 7
    assert session.execute("rc").time == 6
    assert session.execute("go 100").state == "halted"
    assert session.execute("e memory 0 i16 -5") == "memory has -5"
    assert session.execute("bs").pc == 7
    assert session.execute("g 2").time == 2
    expected = np.frombuffer(bytes(range(16)), "<i2").tolist()
    assert session.execute("memory 0 i16").values.tolist() == [expected]
    assert session.execute("memory 0 2x4 u8").values.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert session.execute("p")[0].start == 3


def test_a_store_is_taken_back(session: DebugSession) -> None:
    before = session.execute("memory 0 4 x16").values.tolist()
    session.execute("watch memory 0 2")
    hit = session.execute("c").hits[0]
    assert (hit.before, hit.after) == (b"\0\1", b"\xfb\xff")
    session.execute("back")
    assert session.execute("memory 0 4 x16").values.tolist() == before


def test_reading_is_watched(tmp_path: Path) -> None:
    source = "li r9, #8\nld.reg [64-bit] r10, r9\nst.reg [64-bit] r9, r10\nhalt\n"
    with api.debug(api.assemble(source)) as debugger:
        debugger.watch("memory", 15, 1, "read")
        assert debugger.resume().pc == 2
        assert debugger.resume().state == "halted"


def test_a_fault_ends_the_run_and_can_be_left(session: DebugSession) -> None:
    with api.debug(Program((0xFFFFFFFF,))) as debugger:
        stop = debugger.resume()
        assert (stop.state, stop.cause, stop.time) == ("faulted", "ILLEGAL_INSTRUCTION", 0)
        assert stop.next.text == ".word 0xffffffff"
        assert debugger.back().reason == "launch"


def test_elements_have_a_type(session: DebugSession) -> None:
    kind = session.execute("memory 0x10 2 i16/4").type
    assert [kind.text(int(number)) for number in (24, -8)] == ["1.5", "-0.5"]
    assert session.execute("memory 0x10 1 x32").type.text(0x13121110) == "13121110"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("brake loop", "did you mean break"),
        ("frobnicate", "there are: break, watch"),
        ("break lop", "did you mean loop?"),
        ("break loop+9", "outside the program, 0 to 7"),
        ("break 8", "outside the program, 0 to 7"),
        ("break :1", "line"),
        ("break", "usage: break PLACE"),
        ("watch scratchpad 0 999999", "outside the scratchpad"),
        ("watch memory 0x200000000 1", "outside the memory"),
        ("watch memory 0 0", "at least 1"),
        ("watch r64", "outside the register"),
        ("watch disk 0 1", "scratchpad or memory"),
        ("watch scratchpad 0 8 execute", "write, read or access"),
        ("scratchpad 0 4x4 i17", "not an element type"),
        ("scratchpad 0 4by4 i16", "not a shape"),
        ("memory 0 999999x999999", "65536 elements"),
        ("memory nowhere", "not a number"),
        ("registers 9", "not a register"),
        ("step 0", "steps must be"),
        ("step -1", "not a number"),
        ("delete 1", "no point 1"),
        ("go 99999999999999999999999", "time must be"),
        ("expect r9", "usage: expect"),
        ("expect memory 0 i16", "needs START TYPE VALUE"),
        ("", "unknown command ''"),
    ],
)
def test_bad_commands_are_one_line(session: DebugSession, line: str, words: str) -> None:
    with pytest.raises(DebugError) as error:
        session.execute(line)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_every_command_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "debugging.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert re.search(rf"`{name}[ `]", guide), name


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "loop.s"
    path.write_text(SOURCE)
    return path


def test_a_script_and_its_json(vip, program: Path) -> None:
    Path("session.txt").write_text("# to the end\nbreak loop\n\ncontinue # once\nexpect r8 3\n")
    code, out, err = vip("debug", program, "--script", "session.txt", "--json", "out.json")
    assert (code, err) == (0, "")
    assert "(vip) continue\nbreakpoint 1 after 3 instructions at loop" in out
    report = json.loads(Path("out.json").read_text())
    assert [each["command"] for each in report["replies"]] == [
        "break loop",
        "continue",
        "expect r8 3",
    ]
    assert report["replies"][1]["reply"]["hits"][0]["pc"] == 3


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("break lop", 2, "session.txt:2: no label 'lop'"),
        ("nonsense", 2, "session.txt:2: unknown command 'nonsense'"),
        ("expect r9 7", 1, "session.txt:2: expect r9 7: r9 is 0 (0x0)"),
    ],
)
def test_a_script_that_fails(vip, program: Path, line: str, code: int, words: str) -> None:
    Path("session.txt").write_text(f"step\n{line}\nstep\n")
    ended, out, err = vip("debug", program, "--script", "session.txt")
    assert ended == code
    assert re.fullmatch(rf"vip: {re.escape(words)}[^\n]*\n", err)
    assert out.count("(vip)") == 1


def test_the_prompt(vip, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter(["help", "step", "", "brake", "registers", "quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines))
    code, out, err = vip("debug", program)
    assert code == 0
    assert "after 2 instructions" in out
    assert "r8" in out
    assert "did you mean break" in err


def test_the_prompt_completes_labels(vip, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vip.cli.commands.debug import _Prompt

    with api.debug(program) as debugger:
        prompt = _Prompt(DebugSession(debugger), lambda line, reply: None)
        assert prompt.completedefault("lo") == ["loop"]
        assert prompt.completenames("re") == ["reverse", "registers"]


def test_memory_of_the_user_is_not_changed(program: Path, tmp_path: Path) -> None:
    image = tmp_path / "image.bin"
    image.write_bytes(bytes(64))
    with api.debug(program, memory=image) as debugger:
        assert debugger.resume().state == "halted"
        assert debugger.matrix("memory", 0, 1, 1, element_type("i16")).values == [[-5]]
    assert image.read_bytes() == bytes(64)
