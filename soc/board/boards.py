"""The boards, as data: a table of VIP, and files of users."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path

from support.checks import shown
from support.errors import VipError, unknown
from support.files import read_bytes

from .families import FAMILIES, FpgaFamily
from .sdram import SDRAM, SDRAM_WIRES

_PINS = ("clk", "rx", "tx", "led")
#: Largest TOML file of a board, in bytes.
_FILE_BYTES = 1 << 16


class BoardError(VipError):
    """A board that does not exist, or can't be used; the message names what is allowed."""


@dataclass(frozen=True, kw_only=True)
class FpgaBoard:
    """A board with an FPGA and a serial line. All pins have 3.3 V.

    Attributes:
        name: on the command line.
        device: of :data:`soc.board.families.FAMILIES`. package: nextpnr's name. grade: of the
            device's speed.
        clk: pin of the oscillator. clock_mhz: its rate.
        rx, tx: pins of the serial line, as seen from the device.
        led: pin of a lamp.
        sdram: signal of :data:`soc.board.sdram.SDRAM_WIRES` -> its pins, separated by spaces;
            empty: there is none.
        platform: what describes it: a class in ``amaranth_boards``, or a module of
            ``litex_boards`` and the parameters of its platform; "": nothing.
        loader: its name in openFPGALoader; "": it has none.

    Raises:
        BoardError: an unknown device or grade, no name of a pin, or a pin twice.
    """

    name: str
    device: str
    package: str
    grade: str
    clk: str
    clock_mhz: float
    rx: str
    tx: str
    led: str
    sdram: Mapping[str, str] = field(default_factory=dict)
    platform: str = ""
    loader: str = ""

    def __post_init__(self) -> None:
        self._check("device", FAMILIES)
        self._check("grade", self.family.grades)
        if type(self.clock_mhz) not in (int, float) or not 8 <= self.clock_mhz <= 400:
            raise BoardError(
                f"board {self.name}: clock_mhz must be from 8 to 400, not {shown(self.clock_mhz)}"
            )
        if self.sdram and not self.family.sdram:
            raise BoardError(f"board {self.name}: no controller has sdram on {self.device}")
        if self.sdram and (
            type(self.sdram) is not dict
            or {name: len(str(pins).split()) for name, pins in self.sdram.items()} != SDRAM_WIRES
        ):
            raise BoardError(
                f"board {self.name}: sdram must have the pins of "
                + ", ".join(f"{name} ({wires})" for name, wires in SDRAM_WIRES.items())
            )
        users: dict[str, str] = {}
        for port, pin in self.pins.items():
            if not isinstance(pin, str) or not self.family.pin.fullmatch(pin):
                raise BoardError(
                    f"board {self.name}: {port} must be a pin of the package, such as "
                    f"{self.family.example}, not {shown(pin)}"
                )
            if pin in users:
                raise BoardError(f"board {self.name}: {port} and {users[pin]} are both pin {pin}")
            users[pin] = port

    def _check(self, name: str, allowed: Collection[str]) -> None:
        value = getattr(self, name)
        if value not in allowed:
            raise BoardError(
                f"board {self.name}: {name} must be one of {', '.join(allowed)}, not {shown(value)}"
            )

    @property
    def family(self) -> FpgaFamily:
        """The family of the device."""
        return FAMILIES[self.device]

    @property
    def part(self) -> tuple[str, str, str]:
        """Device, package and grade, as tools of the family take them."""
        return self.device, self.package, self.grade

    @property
    def pins(self) -> Mapping[str, str]:
        """Port of the top module -> pin."""
        pins = {port: getattr(self, port) for port in _PINS}
        for name, places in self.sdram.items():
            wires = places.split()
            for number, pin in enumerate(wires):
                pins[f"{SDRAM}_{name}" + (f"[{number}]" if len(wires) > 1 else "")] = pin
        return pins

    @property
    def block_rams(self) -> int:
        """Block RAMs of 2 KiB on the device."""
        return self.family.devices[self.device][0]


def _ulx3s(size: str) -> FpgaBoard:
    return FpgaBoard(
        name=f"ulx3s-{size.lower()}",
        device=f"LFE5U-{size}",
        package="CABGA381",
        grade="6",
        clk="G2",
        clock_mhz=25,
        rx="M1",
        tx="L4",
        led="B2",
        sdram={
            "clk": "F19",
            "cke": "F20",
            "cs_n": "P20",
            "ras_n": "R20",
            "cas_n": "T19",
            "we_n": "T20",
            "dm": "U19 E20",
            "ba": "P19 N20",
            "a": "M20 M19 L20 L19 K20 K19 K18 J20 J19 H20 N19 G20 G19",
            "dq": "J16 L18 M18 N18 P18 T18 T17 U20 E19 D20 D19 C20 E18 F18 J18 J17",
        },
        platform=f"amaranth_boards.ulx3s:ULX3S_{size}_Platform",
        loader="ulx3s",
    )


def _colorlight(name: str, size: str, led: str, platform: str) -> FpgaBoard:
    """On the extension board of MuseLab, whose serial line it has."""
    return FpgaBoard(
        name=name,
        device=f"LFE5U-{size}",
        package="CABGA381",
        grade="6",
        clk="P3",
        clock_mhz=25,
        rx="H18",
        tx="J17",
        led=led,
        platform=f"litex_boards.platforms.colorlight_i5:{platform}",
        loader=name,
    )


#: Name -> board.
BOARDS: Mapping[str, FpgaBoard] = {
    board.name: board
    for board in (
        _ulx3s("25F"),
        _ulx3s("85F"),
        FpgaBoard(
            name="icesugar-pro",
            device="LFE5U-25F",
            package="CABGA256",
            grade="6",
            clk="P6",
            clock_mhz=25,
            rx="A9",
            tx="B9",
            led="B11",
            sdram={
                "clk": "R15",
                "cke": "L16",
                "cs_n": "A14",
                "ras_n": "B16",
                "cas_n": "G16",
                "we_n": "A15",
                "dm": "C16 T15",
                "ba": "G15 B14",
                "a": "H15 B13 B12 J16 J15 R12 K16 R13 T13 K15 A13 R14 T14",
                "dq": "F16 E15 F15 D14 E16 C15 D16 B15 R16 P16 P15 N16 N14 M16 M15 L15",
            },
            platform="amaranth_boards.icesugar_pro:ICESugarProPlatform",
        ),
        FpgaBoard(
            name="icepi-zero",
            device="LFE5U-25F",
            package="CABGA256",
            grade="6",
            clk="M1",
            clock_mhz=50,
            rx="K16",
            tx="K15",
            led="E13",
            sdram={
                "clk": "A3",
                "cke": "B4",
                "cs_n": "B12",
                "ras_n": "A12",
                "cas_n": "B13",
                "we_n": "A13",
                "dm": "B14 B3",
                "ba": "A11 B11",
                "a": "B10 A9 B9 A8 B8 A7 B7 A6 B6 A5 A10 B5 A4",
                "dq": "B16 C14 C16 C15 D16 A15 B15 A14 A2 B2 E2 D1 C2 C1 C3 B1",
            },
            platform="amaranth_boards.icepi_zero:IcepiZero1_3Platform",
            loader="icepi-zero",
        ),
        _colorlight("colorlight-i5", "25F", "U16", "i5 7.0"),
        _colorlight("colorlight-i9", "45F", "L2", "i9 7.2"),
        FpgaBoard(
            name="ecpix5-85f",
            device="LFE5UM5G-85F",
            package="CABGA554",
            grade="8",
            clk="K23",
            clock_mhz=100,
            rx="R26",
            tx="R24",
            led="T23",
            platform="amaranth_boards.ecpix5:ECPIX585Platform",
            loader="ecpix5",
        ),
        FpgaBoard(
            name="tang-nano-20k",
            device="GW2AR-LV18",
            package="QN88",
            grade="C8/I7",
            clk="4",
            clock_mhz=27,
            rx="70",
            tx="69",
            led="15",
            platform="litex_boards.platforms.sipeed_tang_nano_20k:",
            loader="tangnano20k",
        ),
    )
}


def with_block_rams(number: float) -> str:
    """The end of a message: the boards with so many block RAMs; "" if there is none."""
    names = [board.name for board in BOARDS.values() if board.block_rams >= number]
    return f"; {' or '.join(names)} would do" if names else ""


def with_sdram() -> str:
    """The names of the boards with an SDRAM."""
    return ", ".join(board.name for board in BOARDS.values() if board.sdram)


def find_board(name: str) -> FpgaBoard:
    """The board called ``name``, or the one in the TOML file ``name``, which ends in ``.toml`` and
    has the fields of :class:`FpgaBoard` without ``name``, ``platform`` and ``loader``; ``sdram`` is
    optional.

    Raises:
        BoardError: there is none, or the file has an unknown or no field, or a bad value.
        OSError: the file can't be read.
    """
    if not name.endswith(".toml"):
        if name not in BOARDS:
            raise BoardError(f"{unknown('board', name, BOARDS)}; or a file ending in .toml")
        return BOARDS[name]
    path = Path(name)
    try:
        content = tomllib.loads(read_bytes(path, _FILE_BYTES).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BoardError(f"{path}: not a TOML file: {error}") from None
    needed = [
        one.name
        for one in fields(FpgaBoard)
        if one.default is one.default_factory is MISSING and one.name != "name"
    ]
    allowed = [*needed, "sdram"]
    for key in content:
        if key not in allowed:
            raise BoardError(f"{path}: {unknown('field', key, allowed)}")
    for key in needed:
        if key not in content:
            raise BoardError(f"{path}: the field {key} is missing; there are: {', '.join(needed)}")
    return FpgaBoard(name=path.stem, **content)
