"""The boards, as data: a table of VIP, and files of users."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

from support.checks import shown
from support.errors import VipError, unknown
from support.files import read_bytes

#: Device -> block RAMs, and nextpnr's option.
DEVICES: Mapping[str, tuple[int, str]] = {
    "LFE5U-25F": (56, "--25k"),
    "LFE5U-45F": (108, "--45k"),
    "LFE5U-85F": (208, "--85k"),
    "LFE5UM5G-85F": (208, "--um5g-85k"),
}
_GRADES = ("6", "7", "8")
_PIN = re.compile(r"[A-Z]{1,2}[1-9][0-9]?")
_PINS = ("clk", "rx", "tx", "led")
#: Largest TOML file of a board, in bytes.
_FILE_BYTES = 1 << 16


class BoardError(VipError):
    """A board that does not exist, or can't be used; the message names what is allowed."""


@dataclass(frozen=True, kw_only=True)
class FpgaBoard:
    """A board with an ECP5 and a serial line. All pins have 3.3 V.

    Attributes:
        name: on the command line.
        device: one of :data:`DEVICES`. package: nextpnr's name. grade: of the device's speed.
        clk: pin of the oscillator. clock_mhz: its rate.
        rx, tx: pins of the serial line, as seen from the device.
        led: pin of a lamp.
        platform: its class in the package ``amaranth-boards``; "": it has none.
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
    platform: str = ""
    loader: str = ""

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("device", self.device, DEVICES),
            ("grade", self.grade, _GRADES),
        ):
            if value not in allowed:
                raise BoardError(
                    f"board {self.name}: {name} must be one of {', '.join(allowed)}, "
                    f"not {shown(value)}"
                )
        if type(self.clock_mhz) not in (int, float) or not 8 <= self.clock_mhz <= 400:
            raise BoardError(
                f"board {self.name}: clock_mhz must be from 8 to 400, not {shown(self.clock_mhz)}"
            )
        users: dict[str, str] = {}
        for port, pin in self.pins.items():
            if not isinstance(pin, str) or not _PIN.fullmatch(pin):
                raise BoardError(
                    f"board {self.name}: {port} must be a pin of the package, such as G2, "
                    f"not {shown(pin)}"
                )
            if pin in users:
                raise BoardError(f"board {self.name}: {port} and {users[pin]} are both pin {pin}")
            users[pin] = port

    @property
    def pins(self) -> Mapping[str, str]:
        """Port of the top module -> pin."""
        return {port: getattr(self, port) for port in _PINS}

    @property
    def block_rams(self) -> int:
        """Block RAMs of 2 KiB on the device."""
        return DEVICES[self.device][0]

    @property
    def placer(self) -> tuple[str, ...]:
        """nextpnr's options for the device."""
        option = DEVICES[self.device][1]
        return option, "--package", self.package, "--speed", self.grade


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
        platform=f"ulx3s:ULX3S_{size}_Platform",
        loader="ulx3s",
    )


def _colorlight(name: str, size: str, led: str) -> FpgaBoard:
    """On the extension board of MuseLab, whose serial line it has; amaranth-boards lacks it. The
    i5's pins are those of litex-boards; the i9's serial line is taken to be the same, unchecked."""
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
            platform="icesugar_pro:ICESugarProPlatform",
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
            platform="icepi_zero:IcepiZero1_3Platform",
            loader="icepi-zero",
        ),
        _colorlight("colorlight-i5", "25F", "U16"),
        _colorlight("colorlight-i9", "45F", "L2"),
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
            platform="ecpix5:ECPIX585Platform",
            loader="ecpix5",
        ),
    )
}


def with_block_rams(number: float) -> str:
    """The end of a message: the boards with so many block RAMs; "" if there is none."""
    names = [board.name for board in BOARDS.values() if board.block_rams >= number]
    return f"; {' or '.join(names)} would do" if names else ""


def find_board(name: str) -> FpgaBoard:
    """The board called ``name``, or the one in the TOML file ``name``, which ends in ``.toml`` and
    has the fields of :class:`FpgaBoard` without ``name``, ``platform`` and ``loader``.

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
        field.name
        for field in fields(FpgaBoard)
        if field.default is MISSING and field.name != "name"
    ]
    for key in content:
        if key not in needed:
            raise BoardError(f"{path}: {unknown('field', key, needed)}")
    for key in needed:
        if key not in content:
            raise BoardError(f"{path}: the field {key} is missing; there are: {', '.join(needed)}")
    return FpgaBoard(name=path.stem, **content)
