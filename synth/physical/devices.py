"""Devices: FPGAs for placement, and the usable part of an FPGA or of silicon."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from synth.errors import SynthesisError

__all__ = [
    "DEVICES",
    "FILL",
    "GRADES",
    "Board",
    "Budget",
    "Device",
    "find_budget",
    "find_device",
    "is_device",
]

#: Speed grades, the slowest first; a device whose name gives none is of that.
GRADES = ("6", "7", "8")


@dataclass(frozen=True, kw_only=True)
class Device:
    """An FPGA.

    Attributes:
        name: on the command line.
        part: the vendor's name.
        option: nextpnr's option for it.
        package: of the chip.
        speed: speed grade.
        capacity: measure of :data:`synth.physical.area.MEASURES` -> number on the device.
    """

    name: str
    part: str
    option: str
    package: str
    speed: str
    capacity: Mapping[str, int]

    def shortage(self, needed: Mapping[str, float]) -> str:
        """The measures of ``needed`` that exceed the device, in words; "" if it fits."""
        lacking = [
            f"{needed[name]:,.0f} {name} where there are {number:,}"
            f" ({needed[name] - number:,.0f} too many)"
            for name, number in self.capacity.items()
            if needed.get(name, 0) > number
        ]
        return " and ".join(lacking)

    def copies(self, needed: Mapping[str, float]) -> int:
        """Number of copies of a design that fit, by numbers alone."""
        return min(int(n // needed[name]) for name, n in self.capacity.items() if needed.get(name))


def _ecp5(size: str, luts: int, brams: int, dsps: int) -> Device:
    return Device(
        name=f"ecp5-{size}k",
        part=f"LFE5U-{size}F",
        option=f"--{size}k",
        package="CABGA381",
        speed=GRADES[0],
        capacity={"luts": luts, "ffs": luts, "dsps": dsps, "brams": brams},
    )


#: Name -> device.
DEVICES: Mapping[str, Device] = {
    device.name: device
    for device in (
        _ecp5("25", 24_288, 56, 28),
        _ecp5("45", 43_848, 108, 72),
        _ecp5("85", 83_640, 208, 156),
    )
}


def is_device(name: str) -> bool:
    """Whether :func:`find_device` finds ``name``."""
    device, _, grade = name.rpartition("-")
    return name in DEVICES or (device in DEVICES and grade in GRADES)


def find_device(name: str) -> Device:
    """The device called ``name``, with its speed grade at the end or without: ``ecp5-85k-8``.

    Raises:
        SynthesisError: there is none; the message names the devices.
    """
    if not is_device(name):
        raise SynthesisError(
            f"unknown device {name!r}; there are: {', '.join(DEVICES)},"
            f" each also with a speed grade at the end, -{', -'.join(GRADES)}"
        )
    if name in DEVICES:
        return DEVICES[name]
    device, _, grade = name.rpartition("-")
    entry = DEVICES[device]
    return replace(entry, name=name, part=f"{entry.part}-{grade}", speed=grade)


#: Part of an FPGA that a design may use so that tools close timing without floor plans: the
#: thresholds of AMD's guide for accelerated applications (UG1393, "Timing Closure Considerations"),
#: taken for the other vendor's devices too.
FILL: Mapping[str, float] = {"luts": 0.70, "ffs": 0.50, "dsps": 0.80, "brams": 0.80}

_ASIC = "asic:"
_UM2_PER_MM2 = 1e6
#: SCRATCH's device (section 4), as in the vendor's product table; block RAMs of 36 Kbit.
_XC7VX690T = {"luts": 433_200, "ffs": 866_400, "dsps": 3_600, "brams": 1_470}


@dataclass(frozen=True, kw_only=True)
class Board:
    """A board that carries a device.

    Attributes:
        name: its name.
        bytes_per_second: peak of all of its memory, without pauses for refresh, turns of the bus
            and opening of rows.
    """

    name: str
    bytes_per_second: float


#: The vendor's board with SCRATCH's device (UG887, "VC709 Evaluation Board"): two DDR3 modules of
#: 64 bits at 1866 MT/s.
_VC709 = Board(
    name="VC709",
    bytes_per_second=2 * 8 * 1866e6,
)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A device, and its usable part.

    Attributes:
        name: on the command line.
        target: synthesis target (:mod:`synth.physical.targets`).
        capacity: measure of :data:`synth.physical.area.MEASURES` -> number on the device.
        fill: measure -> usable part, above 0 and at most 1.
        board: one that carries the device; None: none is known.
    """

    name: str
    target: str
    capacity: Mapping[str, float]
    fill: Mapping[str, float]
    board: Board | None = None

    def most(self, measure: str) -> float:
        """Usable number of ``measure``."""
        return self.capacity[measure] * self.fill[measure]

    def used(self, needed: Mapping[str, float]) -> dict[str, float]:
        """Used part of the usable number, by measure; above 1: too much."""
        return {name: needed.get(name, 0) / self.most(name) for name in self.capacity}

    def fits(self, needed: Mapping[str, float]) -> bool:
        """Whether a design that needs ``needed`` fits."""
        return all(part <= 1 for part in self.used(needed).values())


def find_budget(name: str) -> Budget:
    """The device called ``name``: ``xc7vx690t``, one of :data:`DEVICES`, or
    ``asic:MM2``, a number of square millimetres at 28 nm.

    All of the silicon is usable: :data:`synth.sram.GATE_UM2` includes room for wires.

    Raises:
        SynthesisError: there is none; the message names the devices.
    """
    if name == "xc7vx690t":
        return Budget(name=name, target="xc7", capacity=_XC7VX690T, fill=FILL, board=_VC709)
    if name in DEVICES:
        return Budget(name=name, target="ecp5", capacity=DEVICES[name].capacity, fill=FILL)
    if name.startswith(_ASIC):
        try:
            size = float(name.removeprefix(_ASIC))
        except ValueError:
            size = 0.0
        if 0 < size <= 10_000:
            area = {"area_um2": size * _UM2_PER_MM2}
            return Budget(name=name, target="generic", capacity=area, fill={"area_um2": 1.0})
        raise SynthesisError(
            f"device {name!r}: {_ASIC} needs square millimetres after it, above 0 and at most 10000"
        )
    names = ", ".join(("xc7vx690t", *DEVICES, f"{_ASIC}MM2"))
    raise SynthesisError(f"unknown device {name!r}; there are: {names}")
