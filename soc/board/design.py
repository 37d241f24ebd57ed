"""What a board's bit file holds: a chip behind a serial line, its clock and its pins."""

from collections.abc import Mapping

from amaranth.hdl import Elaboratable, Module, Shape
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import Axi4
from hdl.component import Component
from hdl.config import ConfigurationError
from hdl.emission import emit, shared_instance
from memory.axi.layout import AxiConfig
from soc.chip.chip import Chip
from soc.chip.config import ChipConfig

from .boards import FpgaBoard
from .families import PLL
from .sdram import SDRAM, SDRAM_WIRES, sdram_verilog
from .uart import Uart

#: Modules: of all of a bit file, and of what has the clock of :data:`soc.board.families.PLL`.
TOP = "top"
DESIGN = "board"


class SerialChip(Component):
    """A chip and its serial line.

    Parameters:
        config: of the chip, of one vault; ``host_data`` is "serial".
        divisor: see :class:`soc.board.uart.Uart`.

    Members:
        rx (in, 1), tx (out, 1): the serial line.
        host_interrupt (out, 1): see :class:`soc.chip.chip.Chip`.
        axi (out, :class:`hdl.axi.Axi4`): to the vault's memory, unless that is on the chip.

    Raises:
        ConfigurationError: the chip has another host port, several vaults, or a DRAM controller.
    """

    def __init__(self, config: ChipConfig, *, divisor: int) -> None:
        bus = axi_bus(config)
        if config.host_data != "serial" or config.vaults > 1 or not (bus or config.tile.on_board):
            raise ConfigurationError(
                "a board needs a chip with host_data 'serial' and one vault, of on-chip memory or "
                "with an AXI bus"
            )
        self.config = config
        self.divisor = divisor
        outside = {"axi": Out(bus)} if bus else {}
        super().__init__({"rx": In(1), "tx": Out(1), "host_interrupt": Out(1), **outside})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        chip, uart = Chip(self.config), Uart(divisor=self.divisor)
        m.submodules.chip = shared_instance(chip, platform)
        m.submodules.uart = shared_instance(uart, platform)
        connect(m, uart.received, chip.received)
        connect(m, chip.sent, uart.sent)
        if axi_bus(self.config):
            connect(m, chip.axi[0], flipped(self.axi))
        m.d.comb += [
            uart.rx.eq(self.rx),
            self.tx.eq(uart.tx),
            self.host_interrupt.eq(chip.host_interrupt),
        ]
        return m


def axi_bus(config: ChipConfig) -> Axi4 | None:
    """The bus of a chip's vaults to their memory; None: it is no AXI bus."""
    vault = config.tile.vault
    return vault.bus if isinstance(vault, AxiConfig) else None


def board_verilog(
    config: ChipConfig, *, divisor: int, mhz: float, sdram: int = 1
) -> Mapping[str, str]:
    """Verilog of :data:`TOP`, without the PLL: name of each module -> text.

    Parameters:
        config, divisor: see :class:`SerialChip`.
        mhz: of its clock.
        sdram: clocks of the SDRAM in one of the chip, if its memory is outside.

    Raises:
        ConfigurationError: as :class:`SerialChip`.
        MissingExtraError: memory outside needs LiteDRAM, which is not installed.
    """
    modules = dict(emit(SerialChip(config, divisor=divisor), DESIGN).modules)
    bus = axi_bus(config)
    if bus:
        modules[SDRAM] = sdram_verilog(bus, mhz, sdram)
    return {**modules, TOP: top_verilog(bus)}


def top_verilog(bus: Axi4 | None) -> str:
    """Verilog of :data:`TOP`: the clock, a reset until it is steady, and the pins ``clk``, ``rx``,
    ``tx`` and ``led``, which shows the interrupt; with a bus, the SDRAM's."""
    pins, wires, clocks, ports, memory = "", "", "", "", ""
    reset = "!(&steady)"
    if bus:
        for name, number in SDRAM_WIRES.items():
            pins += f", {'inout' if name == 'dq' else 'output'} [{number - 1}:0] {SDRAM}_{name}"
        for name, member in bus.members.items():
            bits = Shape.cast(member.shape).width
            wires += f"  wire [{bits - 1}:0] axi_{name};\n"
            ports += f", .axi__{name}(axi_{name})"
        wires += "  wire shifted, twice, ready;\n"
        clocks = ", .clkout1(shifted), .clkout2(twice)"
        # The controller is far from most of what waits for it.
        reset = "halt"
        inner = [f"axi_{name}" for name in bus.members] + [f"{SDRAM}_{one}" for one in SDRAM_WIRES]
        memory = "  reg halt = 1;\n  always @(posedge fast) halt <= !(&steady && ready);\n"
        memory += f"  {SDRAM} {SDRAM} (.clk(fast), .twice(twice), .shifted(shifted), "
        memory += ".rst(!(&steady)), .ready(ready), "
        memory += ", ".join(f".{one}({one})" for one in inner) + ");\n"
    return (
        f"module {TOP}(input clk, input rx, output tx, output led{pins});\n"
        f"  wire fast, locked;\n{wires}"
        "  reg [4:0] steady = 0;\n"
        f"  {PLL} {PLL} (.clkin(clk), .clkout0(fast){clocks}, .locked(locked));\n"
        "  always @(posedge fast)\n"
        "    if (!locked) steady <= 0;\n"
        "    else if (!(&steady)) steady <= steady + 1;\n"
        f"{memory}"
        f"  {DESIGN} {DESIGN} (.clk(fast), .rst({reset}), .rx(rx), .tx(tx),"
        f" .host_interrupt(led){ports});\n"
        "endmodule\n"
    )


def constraints(board: FpgaBoard, *, sdram: bool = False) -> str:
    """The pins of :data:`TOP` on ``board``, as the family's placer reads them; ``sdram``: those of
    the SDRAM, too."""
    pins = {port: pin for port, pin in board.pins.items() if sdram or not port.startswith(SDRAM)}
    return board.family.pins(pins, board.clock_mhz)
