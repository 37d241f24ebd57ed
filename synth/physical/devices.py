"""Devices: FPGAs, and silicon of a given size; their resources, and how much of them is usable."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from support.errors import unknown
from synth.errors import SynthesisError

#: Speed grades of ECP5, slowest first; the slowest is the default.
GRADES = ("6", "7", "8")
#: Fraction of an FPGA that a design may use so that tools close timing without floor plans: the
#: thresholds of AMD's guide for accelerated applications (UG1393, "Timing Closure Considerations"),
#: also used for the other vendor's devices.
FILL: Mapping[str, float] = {"luts": 0.70, "ffs": 0.50, "dsps": 0.80, "brams": 0.80}

_ASIC = "asic:"
_UM2_PER_MM2 = 1e6


@dataclass(frozen=True, kw_only=True)
class Device:
    """An FPGA, or silicon of a given size.

    Attributes:
        name: on the command line.
        part: the vendor's name.
        target: synthesis target (:mod:`synth.physical.targets`) whose cells measure it.
        capacity: measure of :data:`synth.physical.area.MEASURES` -> number on the device.
        source: document with the capacity.
        fill: measure -> usable fraction, above 0 and at most 1.
        bram_kbit: size of a block memory, including parity; 0: it has none.
        placer: nextpnr's option for it, package and speed grade; empty if it can't be placed.
        board: name of one with the device; "": none is known. board_bytes_per_second: peak of all
            its memory, ignoring refresh, bus turnarounds and row activations.
    """

    name: str
    part: str
    target: str
    capacity: Mapping[str, float]
    source: str
    fill: Mapping[str, float]
    bram_kbit: int = 0
    placer: tuple[str, ...] = ()
    board: str = ""
    board_bytes_per_second: float = 0.0

    def most(self, measure: str) -> float:
        """Usable amount of ``measure``."""
        return self.capacity[measure] * self.fill[measure]

    def used(self, needed: Mapping[str, float]) -> dict[str, float]:
        """Used fraction of the usable amount, by measure; above 1: too much."""
        return {name: needed.get(name, 0) / self.most(name) for name in self.capacity}

    def fits(self, needed: Mapping[str, float]) -> bool:
        """Whether a design that needs ``needed`` fits the usable part."""
        return all(part <= 1 for part in self.used(needed).values())

    def shortage(self, needed: Mapping[str, float]) -> str:
        """The measures of ``needed`` that exceed the whole device, in words; "" if it fits."""
        lacking = [
            f"{needed[name]:,.0f} {name} where there are {number:,}"
            f" ({needed[name] - number:,.0f} too many)"
            for name, number in self.capacity.items()
            if needed.get(name, 0) > number
        ]
        return " and ".join(lacking)

    def copies(self, needed: Mapping[str, float]) -> int:
        """Number of copies of a design on the whole device, by resource counts alone."""
        return min(int(n // needed[name]) for name, n in self.capacity.items() if needed.get(name))


def _amd(name: str, source: str, luts: int, brams: int, dsps: int) -> Device:
    """A device of the 7 series or of UltraScale+, which has the same lookup tables and block
    memories, and DSP blocks that can do what those of the 7 series do. There are two flip-flops per
    lookup table."""
    return Device(
        name=name,
        part=name.upper(),
        target="xc7",
        capacity={"luts": luts, "ffs": 2 * luts, "dsps": dsps, "brams": brams},
        source=source,
        fill=FILL,
        bram_kbit=36,
    )


def _ecp5(size: str, luts: int, brams: int, dsps: int) -> Device:
    """An ECP5. The data sheet gives thousands of lookup tables; the exact number is from Project
    Trellis's database, which nextpnr uses."""
    return Device(
        name=f"ecp5-{size}k",
        part=f"LFE5U-{size}F",
        target="ecp5",
        capacity={"luts": luts, "ffs": luts, "dsps": dsps, "brams": brams},
        source="FPGA-DS-02012",
        fill=FILL,
        bram_kbit=18,
        placer=(f"--{size}k", "CABGA381", GRADES[0]),
    )


#: The vendor's board with SCRATCH's device (UG887, "VC709 Evaluation Board"): two DDR3 modules of
#: 64 bits at 1866 MT/s.
_VC709_BYTES = 2 * 8 * 1866e6
#: Name -> FPGA, by family from the smallest. DS180: 7 Series FPGAs Data Sheet: Overview, DS190:
#: Zynq-7000 SoC Data Sheet: Overview, DS891: Zynq UltraScale+ MPSoC Data Sheet: Overview,
#: FPGA-DS-02012: ECP5 and ECP5-5G Family Data Sheet.
DEVICES: Mapping[str, Device] = {
    device.name: device
    for device in (
        _amd("xc7a35t", "DS180", 20_800, 50, 90),
        _amd("xc7a100t", "DS180", 63_400, 135, 240),
        _amd("xc7a200t", "DS180", 134_600, 365, 740),
        _amd("xc7z020", "DS190", 53_200, 140, 220),
        _amd("xczu3eg", "DS891", 70_560, 216, 360),
        _amd("xc7k325t", "DS180", 203_800, 445, 840),
        # SCRATCH's device (section 4).
        replace(
            _amd("xc7vx690t", "DS180", 433_200, 1_470, 3_600),
            board="VC709",
            board_bytes_per_second=_VC709_BYTES,
        ),
        _ecp5("25", 24_288, 56, 28),
        _ecp5("45", 43_848, 108, 72),
        _ecp5("85", 83_640, 208, 156),
    )
}
#: Names of devices that nextpnr can place, also with a speed grade as suffix.
PLACED = tuple(name for name, device in DEVICES.items() if device.placer)


def is_placed(name: str) -> bool:
    """Whether ``name`` is one of :data:`PLACED`, with or without a speed grade of :data:`GRADES` as
    suffix."""
    device, _, grade = name.rpartition("-")
    return name in PLACED or (device in PLACED and grade in GRADES)


def find_device(name: str) -> Device:
    """The device called ``name``: one of :data:`DEVICES`, one of :data:`PLACED` with a speed grade
    as suffix (``ecp5-85k-8``), or ``asic:MM2``, a number of square millimetres at 28 nm.

    All of the silicon is usable: :data:`synth.sram.GATE_UM2` includes room for wires.

    Raises:
        SynthesisError: there is no such device; the message names the devices.
    """
    if name in DEVICES:
        return DEVICES[name]
    if is_placed(name):
        device, _, grade = name.rpartition("-")
        entry = DEVICES[device]
        placer = (*entry.placer[:-1], grade)
        return replace(entry, name=name, part=f"{entry.part}-{grade}", placer=placer)
    if name.startswith(_ASIC):
        return _silicon(name)
    raise SynthesisError(
        f"{unknown('device', name, (*DEVICES, f'{_ASIC}MM2'))} (placed "
        f"devices also with a speed grade: {', '.join(f'{PLACED[0]}-{one}' for one in GRADES)})"
    )


def find_placed(name: str) -> Device:
    """:func:`find_device` for placing.

    Raises:
        SynthesisError: there is no such device, or nextpnr can't place it; the message names the
            devices.
    """
    if name not in DEVICES and not is_placed(name):
        raise SynthesisError(unknown("device", name, PLACED))
    device = find_device(name)
    if not device.placer:
        raise SynthesisError(
            f"device {name!r} can't be placed and routed, only {', '.join(PLACED)} can; vip fit "
            f"counts the engines that fit {name}"
        )
    return device


def _silicon(name: str) -> Device:
    try:
        size = float(name.removeprefix(_ASIC))
    except ValueError:
        size = 0.0
    if not 0 < size <= 10_000:
        raise SynthesisError(
            f"device {name!r}: {_ASIC} needs square millimetres after it, above 0 and at most 10000"
        )
    return Device(
        name=name,
        part=f"{size:g} mm2 at 28 nm",
        target="generic",
        capacity={"area_um2": size * _UM2_PER_MM2},
        source="its name",
        fill={"area_um2": 1.0},
    )
