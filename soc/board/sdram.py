"""A controller for a board's SDRAM, made with LiteDRAM, between an AXI bus and the board's pins."""

from collections.abc import Mapping
from typing import Any

from hdl.axi import Axi4
from support.extras import need

#: The controller's module.
SDRAM = "sdram"
#: Signals of an SDRAM of 16 bits -> wires of each; that is MT48LC16M16 or one like it.
SDRAM_WIRES: Mapping[str, int] = {
    "clk": 1,
    "cke": 1,
    "cs_n": 1,
    "ras_n": 1,
    "cas_n": 1,
    "we_n": 1,
    "dm": 2,
    "ba": 2,
    "a": 13,
    "dq": 16,
}
#: Bits of a byte address: 32 MiB.
SDRAM_ADDRESS_BITS = 25
#: Clocks of the SDRAM in one of the controller -> phase of its pin in degrees, as LiteX has it.
SDRAM_PHASES: Mapping[int, int] = {1: 90, 2: 180}
#: Up to this clock in MHz, data follow a READ after 2 clocks, else after 3.
_FAST_MHZ = 100.0
#: After the power-up's time the commands follow each other in so many clocks, more than any needs.
_POWER_UP_US, _PACE = 200, 16
_REFRESHES = 8


def need_litedram() -> None:
    """Check that LiteDRAM is installed.

    Raises:
        MissingExtraError: it is not.
    """
    need("litedram", "boards with SDRAM")


def sdram_verilog(bus: Axi4, mhz: float, ratio: int) -> str:
    """Verilog of module :data:`SDRAM`.

    Its ports are ``clk``, ``rst``, ``shifted``, the clock of the SDRAM's pin, and ``twice``, of the
    same frequency; ``ready``, 0 until the SDRAM is initialised; ``axi_*``, which answers ``bus``;
    and the pins ``sdram_*`` with the names of :data:`SDRAM_WIRES`.

    Parameters:
        bus: has 64 bits of data, and at most :data:`SDRAM_ADDRESS_BITS`.
        mhz: of ``clk``.
        ratio: clocks of the SDRAM in one of ``clk``, of :data:`SDRAM_PHASES`.

    Raises:
        MissingExtraError: LiteDRAM is not installed.
    """
    need_litedram()
    from litedram.phy.gensdrphy import GENSDRPHY, HalfRateGENSDRPHY
    from litex.build.io import DDROutput
    from litex.build.lattice.common import lattice_ecp5_special_overrides as cells
    from litex.gen.fhdl.verilog import convert
    from migen import ClockDomain, ClockDomainsRenamer, Module, Record, Signal

    top = Module()
    clk, twice, shifted, rst = (Signal(name=one) for one in ("clk", "twice", "shifted", "rst"))
    ready, pin_clk = Signal(name="ready"), Signal(name=f"{SDRAM}_clk")
    # The controller begins when the SDRAM is ready.
    system, boot = ClockDomain("sys"), ClockDomain("boot")
    doubled = ClockDomain("sys2x", reset_less=True)
    top.clock_domains += system, boot, doubled
    top.comb += [
        system.clk.eq(clk),
        system.rst.eq(~ready),
        boot.clk.eq(clk),
        boot.rst.eq(rst),
        doubled.clk.eq(twice),
    ]
    layout = [(name, wires) for name, wires in SDRAM_WIRES.items() if name != "clk"]
    pads = Record(layout, name=SDRAM)
    latency = 2 if mhz * ratio <= _FAST_MHZ else 3
    phy = (GENSDRPHY if ratio == 1 else HalfRateGENSDRPHY)(pads, mhz * 1e6, cl=latency)
    # After an odd latency, a READ is in the second of the SDRAM's two clocks, so that both words of
    # its data are in one of the controller's.
    phy.settings.rdphase = ratio - 1 & latency
    # It finds the phase of the faster clock, and passes the commands of the power-up.
    top.submodules += ClockDomainsRenamer({"sys": "boot"})(phy)
    top.specials += DDROutput(1, 0, pin_clk, clk=shifted)
    controller, ports = _add_controller(top, phy.settings, bus, round(mhz * 1e6))
    _add_power_up(top, phy, controller, ready, round(_POWER_UP_US * mhz))
    ports |= {clk, twice, shifted, rst, ready, pin_clk, *pads.flatten()}
    text = str(convert(top, ports, name=SDRAM, special_overrides=cells))
    # Its comments have the date.
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("//"))


def _add_controller(top: Any, settings: Any, bus: Axi4, hertz: int) -> tuple[Any, set[Any]]:
    """Add the controller to ``top``, for a PHY of these settings; itself, and its AXI ports."""
    from litedram.core.controller import ControllerSettings, LiteDRAMController
    from litedram.core.crossbar import LiteDRAMCrossbar
    from litedram.frontend.axi import LiteDRAMAXI2Native, LiteDRAMAXIPort
    from litedram.modules import MT48LC16M16

    part = MT48LC16M16(hertz, f"1:{settings.nphases}")
    # Parts of other makers need some ns more.
    part.timing_settings.tRFC += 1
    controller = LiteDRAMController(
        settings, part.geom_settings, part.timing_settings, hertz, ControllerSettings()
    )
    crossbar = LiteDRAMCrossbar(controller.interface)
    axi = LiteDRAMAXIPort(
        data_width=bus.data_bits, address_width=bus.address_bits, id_width=bus.id_bits
    )
    top.submodules += controller, crossbar
    top.submodules += LiteDRAMAXI2Native(axi, crossbar.get_port(data_width=bus.data_bits))
    ports = set()
    for name in bus.members:
        channel = "w" if name.startswith("w") else name[: 2 if name.startswith("a") else 1]
        signal = getattr(getattr(axi, channel), name.removeprefix(channel))
        signal.name_override = f"axi_{name}"
        ports.add(signal)
    return controller, ports


def _add_power_up(top: Any, phy: Any, controller: Any, ready: Any, cycles: int) -> None:
    """Add what gives the PHY the commands of the power-up after some cycles, sets ``ready``, and
    from then on gives it those of the controller.

    All banks are precharged and refreshed, and the mode is set.
    """
    from migen import Case, Cat, If, Signal

    mode = phy.settings.cl << 4 | (phy.settings.nphases.bit_length() - 1)
    commands = [(0, 1, 0, 1 << 10), *[(0, 0, 1, 0)] * _REFRESHES, (0, 0, 0, mode)]
    wait = Signal(max=cycles + 1, reset=cycles)
    step = Signal(max=len(commands) + 1)
    # wait is 0. This and the command are registers: the faster clock of the pins leaves no time to
    # compare and to choose.
    due = Signal()
    phase = phy.dfi.p0
    wires = Cat(phase.cs_n, phase.ras_n, phase.cas_n, phase.we_n, phase.address)
    command = Signal(len(wires), reset=1)
    steps = {
        number: command.eq(row << 1 | column << 2 | write << 3 | address << 4)
        for number, (row, column, write, address) in enumerate(commands)
    }
    top.sync.boot += [
        command.eq(1),
        If(~due, wait.eq(wait - 1), due.eq(wait == 1)).Elif(
            ~ready, due.eq(0), wait.eq(_PACE), step.eq(step + 1), ready.eq(step == len(commands))
        ),
        If(due, Case(step, steps)),
    ]
    top.comb += If(ready, controller.dfi.connect(phy.dfi)).Else(
        *(one.cke.eq(1) for one in phy.dfi.phases), wires.eq(command)
    )


#: Cells of ECP5's pins -> their behaviour, for simulation.
IO_CELLS: Mapping[str, str] = {
    "BB": "module BB(inout B, input I, input T, output O);\n"
    "  assign B = T ? 1'bz : I, O = B;\nendmodule\n",
    **{
        name: f"module {name}(input SCLK, input PD, input SP, input D, output reg Q);\n"
        "  always @(posedge SCLK) if (PD) Q <= 1; else if (SP) Q <= D;\nendmodule\n"
        for name in ("IFS1P3BX", "OFS1P3BX")
    },
    "ODDRX1F": "module ODDRX1F(input SCLK, input RST, input D0, input D1, output Q);\n"
    "  reg high, low;\n  always @(posedge SCLK) begin high <= D0; low <= D1; end\n"
    "  assign Q = SCLK ? high : low;\nendmodule\n",
}
