"""Usable part of a device: an FPGA's cells, or square millimetres of silicon."""

from collections.abc import Mapping
from dataclasses import dataclass

from synth.errors import SynthesisError

from .devices import DEVICES

__all__ = ["FILL", "Board", "Budget", "find_budget"]

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
        memory: its memory, as text.
        bytes_per_second: peak of all of its memory, without pauses for refresh, turns of the bus
            and opening of rows.
    """

    name: str
    memory: str
    bytes_per_second: float


#: The vendor's board with SCRATCH's device (UG887, "VC709 Evaluation Board").
_VC709 = Board(
    name="VC709",
    memory="two DDR3 modules of 64 bits at 1866 MT/s",
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
    """The device called ``name``: ``xc7vx690t``, one of :data:`synth.physical.devices.DEVICES`, or
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
