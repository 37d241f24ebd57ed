"""The table of boards against amaranth-boards, and boards of users."""

from dataclasses import fields
from importlib import import_module

import pytest

from soc.board.boards import BOARDS, BoardError, FpgaBoard, find_board
from soc.board.design import constraints
from soc.board.sdram import SDRAM_WIRES

_PACKAGES = {"BG256": "CABGA256", "BG381": "CABGA381", "BG554": "CABGA554"}
FILE = """
device = "LFE5U-25F"
package = "CABGA381"
grade = "6"
clk = "G2"
clock_mhz = 25
rx = "M1"
tx = "L4"
led = "B2"
"""


def _described(package):
    return [board for board in BOARDS.values() if board.platform.startswith(package)]


def test_every_board_is_described_elsewhere():
    assert len(_described("amaranth_boards.")) + len(_described("litex_boards.")) == len(BOARDS)


@pytest.mark.parametrize("board", _described("litex_boards."))
def test_pins_are_those_of_litex_boards(board):
    module, parameters = board.platform.split(":")
    names = dict(zip(("board", "revision"), parameters.split(), strict=False))
    platform = import_module(module).Platform(**names)
    pins = {}
    for signal, number, *parts in platform.constraint_manager.available:
        for part in parts:
            of = getattr(part, "constraints", [part])
            found = [one for constraint in of for one in getattr(constraint, "identifiers", [])]
            pins[signal, number, getattr(part, "name", "")] = found
    assert pins[platform.default_clk_name, 0, ""] == [board.clk]
    assert platform.default_clk_period == pytest.approx(1e3 / board.clock_mhz)
    assert (pins["serial", 0, "rx"], pins["serial", 0, "tx"]) == ([board.rx], [board.tx])
    lamps = [found for (signal, _, _), found in pins.items() if "led_n" in signal]
    assert [board.led] in lamps
    part = "".join(board.part)
    assert platform.device in (part, f"{board.device}-{board.grade}BG381C")


@pytest.mark.parametrize("board", _described("amaranth_boards."))
def test_pins_are_those_of_amaranth_boards(board):
    module, name = board.platform.split(":")
    platform = getattr(import_module(module), name)
    resources = {(one.name, one.number): one for one in platform.resources}
    clock = resources[platform.default_clk, 0]
    uart = {part.name: part.ios[0] for part in resources["uart", 0].ios if hasattr(part, "name")}
    lamps = {
        pin
        for (kind, _), one in resources.items()
        if "led" in kind
        for io in one.ios
        for pins in ([io] if hasattr(io, "names") else getattr(io, "ios", []))
        for pin in getattr(pins, "names", [])
    }
    assert (platform.device, platform.speed) == (board.device, board.grade)
    assert _PACKAGES[platform.package] == board.package
    assert (clock.ios[0].names, clock.clock.period) == ([board.clk], _period(board.clock_mhz))
    assert (uart["rx"].names, uart["rx"].dir) == ([board.rx], "i")
    assert (uart["tx"].names, uart["tx"].dir) == ([board.tx], "o")
    assert board.led in lamps
    if board.sdram:
        parts = {part.name: part.ios[0] for part in resources["sdram", 0].ios if part.ios}
        named = {
            "cke": "clk_en",
            "dm": "dqm",
            **{f"{one}_n": one for one in ("cs", "ras", "cas", "we")},
        }
        assert {name: pins.split() for name, pins in board.sdram.items()} == {
            name: parts[named.get(name, name)].names for name in SDRAM_WIRES
        }


def _period(mhz):
    # As Amaranth's Clock keeps it.
    clock = import_module("amaranth.build").Clock(mhz * 1e6)
    return clock.period


def test_a_board_of_a_user(tmp_path):
    path = tmp_path / "mine.toml"
    pins = "".join(f'{name} = "{pins}"\n' for name, pins in find_board("ulx3s-25f").sdram.items())
    path.write_text(f"{FILE}[sdram]\n{pins}")
    board = find_board(str(path))
    assert board == FpgaBoard(
        **{field.name: getattr(find_board("ulx3s-25f"), field.name) for field in fields(FpgaBoard)}
        | {"name": "mine", "platform": "", "loader": ""}
    )
    assert 'LOCATE COMP "rx" SITE "M1";\n' in constraints(board)
    assert 'FREQUENCY PORT "clk" 25 MHZ;\n' in constraints(board)
    assert 'IOBUF PORT "sdram_dq[15]" IO_TYPE=LVCMOS33 SLEWRATE=FAST;\n' in constraints(
        board, sdram=True
    )
    assert "sdram" not in constraints(board)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"L4"', '"M1"', r"^board mine: tx and rx are both pin M1$"),
        ('"L4"', '"4L"', r"^board mine: tx must be a pin of the package, such as G2, not '4L'$"),
        ('"L4"', "4", r"^board mine: tx must be a pin of the package, such as G2, not 4$"),
        ("-25F", "-99F", r"^board mine: device must be one of LFE5U-25F, .*, not 'LFE5U-99F'$"),
        ('grade = "6"', "grade = 6", r"^board mine: grade must be one of 6, 7, 8, not 6$"),
        ("= 25", "= 1000", r"^board mine: clock_mhz must be from 8 to 400, not 1000$"),
        ("led", "lamp", r"mine.toml: unknown field 'lamp'; there are: device, "),
        ('led = "B2"', "", r"mine.toml: the field led is missing; there are: device, "),
        ('"LFE5U-25F"', '"GW2AR-LV18"', r"^board mine: grade must be one of C8/I7, not '6'$"),
        (
            "led =",
            "sdram = { clk = 'F19' }\nled =",
            r"^board mine: sdram must have the pins of clk ",
        ),
        ("clk =", "clk", r"mine.toml: not a TOML file: "),
    ],
)
def test_bad_files(tmp_path, old, new, message):
    assert old in FILE
    path = tmp_path / "mine.toml"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(BoardError, match=message):
        find_board(str(path))


def test_a_board_with_a_gowin(tmp_path):
    path = tmp_path / "mine.toml"
    text = FILE.replace('"6"', '"C8/I7"').replace("LFE5U-25F", "GW2A-LV18")
    path.write_text(text)
    board = find_board(str(path))
    assert 'IO_LOC "tx" L4;\nIO_PORT "tx" IO_TYPE=LVCMOS33;\n' in constraints(board)
    assert board.block_rams == 46
    path.write_text(text + "sdram = { clk = 'F19' }\n")
    with pytest.raises(BoardError, match=r"^board mine: no controller has sdram on GW2A-LV18$"):
        find_board(str(path))


def test_an_unknown_board():
    with pytest.raises(BoardError, match=r"^unknown board 'ulx3s'; there are: ulx3s-25f, "):
        find_board("ulx3s")
