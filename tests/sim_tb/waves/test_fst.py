"""FST waveforms have what the VCD has that they are made of."""

from pathlib import Path

import pytest

from sim_tb.waves.cycles import TraceError
from sim_tb.waves.fst import write_fst

VCD = """$timescale 1ps $end
$scope module top $end
$var wire 1 ! clk $end
$scope module unit $end
$var wire 1 ! clk $end
$var wire 5 " level [4:0] $end
$var string 1 text0 stage $end
$upscope $end
$upscope $end
$enddefinitions $end
#0
0!
b0 "
s text0
#5
1!
b101 "
sm.v.add\\x20r1\\\\ text0
#10
bx "
0!
#15
bz1 "
"""


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "a.vcd").write_text(text)
    write_fst(tmp_path / "a.vcd", tmp_path / "a.fst")
    return tmp_path / "a.fst"


def test_all_signals_and_changes_are_there(tmp_path: Path) -> None:
    pytest.importorskip("pylibfst")
    from pylibfst import ffi, helpers, lib

    context = lib.fstReaderOpen(str(written(tmp_path, VCD)).encode())
    assert context != ffi.NULL
    _, signals = helpers.get_scopes_signals2(context)
    handles = {name: signal.handle for name, signal in signals.by_name.items()}
    assert set(handles) == {"top.clk", "top.unit.clk", "top.unit.level [4:0]", "top.unit.stage"}
    assert handles["top.clk"] == handles["top.unit.clk"]
    assert lib.fstReaderGetTimescale(context) == -12
    seen: dict[int, list[tuple[int, str]]] = {}

    def note(_: object, time: int, handle: int, value: bytes) -> None:
        seen.setdefault(handle, []).append((time, helpers.string(value)))

    def note_text(_: object, time: int, handle: int, value: bytes, length: int) -> None:
        text = bytes(ffi.buffer(value, length)).decode()
        seen.setdefault(handle, []).append((time, text))

    lib.fstReaderSetFacProcessMaskAll(context)
    helpers.fstReaderIterBlocks2(context, note, note_text)
    lib.fstReaderClose(context)
    assert seen[handles["top.clk"]] == [(0, "0"), (5, "1"), (10, "0")]
    assert seen[handles["top.unit.level [4:0]"]] == [
        (0, "00000"),
        (5, "00101"),
        (10, "xxxxx"),
        (15, "zzzz1"),
    ]
    assert seen[handles["top.unit.stage"]] == [(0, ""), (5, "m.v.add r1\\")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends before its signals"),
        (VCD.replace("$enddefinitions", "$end"), "ends before its signals"),
        (VCD + "1?\n", "'1\\?' is not a change"),
        (VCD + "#x\n", "'#x' is not a change"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    pytest.importorskip("pylibfst")
    with pytest.raises(TraceError, match=message):
        written(tmp_path, text)
    assert not (tmp_path / "a.fst").exists()
