"""What a board's bit file holds: a chip behind a serial line, its clock and its pins."""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import In, Out, connect

from hdl.component import Component
from hdl.config import ConfigurationError
from hdl.emission import Emission, emit, shared_instance
from soc.chip.chip import Chip
from soc.chip.config import ChipConfig

from .boards import FpgaBoard
from .uart import Uart

#: Modules: of all of a bit file, of its clock (:func:`synth.physical.bitstream.pll_verilog`), and
#: of what has that clock.
TOP = "top"
PLL = "pll"
DESIGN = "board"


class SerialChip(Component):
    """A chip and its serial line.

    Parameters:
        config: of the chip; ``host_data`` is "serial", and its memory is on the chip.
        divisor: see :class:`soc.board.uart.Uart`.

    Members:
        rx (in, 1), tx (out, 1): the serial line.
        host_interrupt (out, 1): see :class:`soc.chip.chip.Chip`.

    Raises:
        ConfigurationError: the chip has another host port, or memory outside.
    """

    def __init__(self, config: ChipConfig, *, divisor: int) -> None:
        if config.host_data != "serial" or not config.tile.on_board:
            raise ConfigurationError(
                "a board needs a chip with host_data 'serial' and vaults of on-chip memory"
            )
        self.config = config
        self.divisor = divisor
        super().__init__({"rx": In(1), "tx": Out(1), "host_interrupt": Out(1)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        chip, uart = Chip(self.config), Uart(divisor=self.divisor)
        m.submodules.chip = shared_instance(chip, platform)
        m.submodules.uart = shared_instance(uart, platform)
        connect(m, uart.received, chip.received)
        connect(m, chip.sent, uart.sent)
        m.d.comb += [
            uart.rx.eq(self.rx),
            self.tx.eq(uart.tx),
            self.host_interrupt.eq(chip.host_interrupt),
        ]
        return m


def board_verilog(config: ChipConfig, *, divisor: int) -> Emission:
    """Verilog of :data:`DESIGN`; raises as :class:`SerialChip`."""
    return emit(SerialChip(config, divisor=divisor), DESIGN)


def top_verilog() -> str:
    """Verilog of :data:`TOP`: the clock, a reset until it is steady, and the pins ``clk``, ``rx``,
    ``tx`` and ``led``, which shows the interrupt."""
    return (
        f"module {TOP}(input clk, input rx, output tx, output led);\n"
        f"  wire fast, locked;\n"
        "  reg [4:0] steady = 0;\n"
        f"  {PLL} {PLL} (.clkin(clk), .clkout0(fast), .locked(locked));\n"
        f"  always @(posedge fast)\n"
        "    if (!locked) steady <= 0;\n"
        "    else if (!(&steady)) steady <= steady + 1;\n"
        f"  {DESIGN} {DESIGN} (.clk(fast), .rst(!(&steady)), .rx(rx), .tx(tx),"
        " .host_interrupt(led));\n"
        "endmodule\n"
    )


def constraints(board: FpgaBoard) -> str:
    """The pins of :data:`TOP` on ``board``, as nextpnr reads them (LPF)."""
    lines = [f'FREQUENCY PORT "clk" {board.clock_mhz:g} MHZ;']
    for port, pin in board.pins.items():
        lines.append(f'LOCATE COMP "{port}" SITE "{pin}";')
        lines.append(f'IOBUF PORT "{port}" IO_TYPE=LVCMOS33;')
    return "\n".join(lines) + "\n"
