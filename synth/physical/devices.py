"""FPGAs for placement."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from synth.errors import SynthesisError

__all__ = ["DEVICES", "GRADES", "Device", "find_device", "is_device"]

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
