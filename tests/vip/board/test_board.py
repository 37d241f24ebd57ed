"""Designs and bit files of boards, and the command."""

import json
from dataclasses import replace

import pytest

from sim_tb.cosim.board import BoardSimulation, DamagedLine
from soc.board.boards import BoardError
from soc.board.serial_transport import SerialTransport
from soc.board.terminal import Terminal
from synth.errors import SynthesisError
from vip.__main__ import main
from vip.board import design as board
from vip.board.design import board_design, build_board
from vip.board.run import run_over, simulate_board


def test_memory_is_what_the_application_needs():
    design = board_design("ulx3s-85f", "fully-connected")
    assert design.chip.tile.vault.bytes == 32 << 10
    assert (design.rate, design.divisor) == (2_000_000, 25)
    whole = board_design("ulx3s-85f", "fully-connected", whole=True, memory_kib=64)
    assert whole.chip.tile.vault.bytes == 64 << 10
    assert whole.chip.pe.instructions > design.chip.pe.instructions
    assert whole.chip.digest != design.chip.digest


@pytest.mark.parametrize(
    ("board", "memory", "message"),
    [
        ("ulx3s-85f", 50, r"^bp on ulx3s-85f: memory must be a multiple of 16 KiB from 64, which "),
        ("ulx3s-85f", 48, r"not 48 KiB$"),
        ("ulx3s-25f", 128, r"to 112, all of the device's, not 128 KiB$"),
    ],
)
def test_memory_that_does_not_fit(board, memory, message):
    with pytest.raises(BoardError, match=message):
        board_design(board, "bp", memory_kib=memory)


@pytest.fixture
def placed(monkeypatch):
    """Bit files of two placements without the tools; calls ``placed(*mhz)`` set their clocks."""

    def place(*rates):
        def bit_file(netlist, board, mhz, seed):
            return bytes([seed]), rates[seed - 1]

        monkeypatch.setattr(board, "bit_file", bit_file)
        monkeypatch.setattr(board, "board_verilog", lambda chip, divisor: None)
        used = {"luts": 1000.0}
        monkeypatch.setattr(board, "map_board", lambda *_: (None, used))

    return place


def test_the_fastest_placement_is_packed(placed):
    placed(51.0, 62.5, 60.0)
    built = build_board(board_design("ulx3s-85f", "bp"), seeds=3)
    assert (built.seed, built.content, built.margin) == (2, b"\2", 0.25)
    assert built.to_json()["seeds"] == {"1": 51.0, "2": 62.5, "3": 60.0}


def test_missed_timing_is_refused(placed):
    placed(45.4)
    design = board_design("ulx3s-85f", "bp")
    with pytest.raises(
        SynthesisError,
        match=r"^bp on ulx3s-85f reaches 45.4 MHz, and its clock is 50: --clock 45 would do$",
    ):
        build_board(design)
    assert build_board(replace(design, mhz=45.0)).margin > 0


def test_the_command(placed, tmp_path, capsys):
    placed(55.0)
    file, report = tmp_path / "a.bit", tmp_path / "a.json"
    arguments = ["board", "build", "ulx3s-85f", "bp", "-o", str(file), "--json", str(report)]
    assert _run(arguments) == 0
    assert file.read_bytes() == b"\1"
    assert json.loads(report.read_text())["margin"] == 0.1
    assert "a margin of 10%" in capsys.readouterr().out
    assert _run(["board", "list"]) == 0
    assert _run(["board", "run", "ulx3s-85f", "bp", "--port", str(tmp_path / "tty")]) == 2
    assert "tty: there is no such port" in capsys.readouterr().err


def _run(arguments):
    import sys

    before, sys.argv = sys.argv, ["vip", *arguments]
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    finally:
        sys.argv = before
    return 0


@pytest.mark.slow
def test_bp_at_the_pins_of_a_board():
    result = simulate_board(board_design("ulx3s-85f", "bp"))
    assert result.match
    assert result.values > 1000
    assert result.resent == 0
    assert result.cycles > 100_000


@pytest.mark.slow
def test_damaged_bytes_at_the_pins_of_a_board(rng):
    """One in a thousand, both ways; the data are written anew for each of three runs."""
    design = board_design("ulx3s-25f", "cnn")
    with BoardSimulation(design.chip, design.divisor) as simulation:
        with Terminal(simulation.terminal, design.rate) as line:
            damaged = DamagedLine(line, rng, 0.001)
            transport = SerialTransport(damaged, patience=3.0)
            results = [run_over(transport, design) for _ in range(3)]
    assert all(result.match for result in results)
    assert damaged.damage.number > 20
    assert transport.resent > 5
