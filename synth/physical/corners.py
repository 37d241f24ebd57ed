"""Static timing of a mapped engine at several corners: its clock, and the slack of hold times.

A corner is a Liberty file with the same cells as the engine's library. There is no such file for
memories: their times scale with the delay of the smallest inverter or buffer with a fan-out of four
of its kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from support.errors import counted
from synth.errors import SynthesisError
from synth.netlist import Netlist
from synth.sram import SramTimes
from synth.timing.cell_library import CellLibrary
from synth.timing.sta import Path, longest_path, shortest_path
from synth.timing.timer import CLOCK_SLEW_NS

from .asic import weakest_driver

#: Fan-out, in cells of its own kind, of the cell whose delay scales the memories' times.
_FANOUT = 4

#: A corner: its name and its library.
Corner = tuple[str, CellLibrary]


@dataclass(frozen=True)
class CornerTiming:
    """Paths at a corner.

    Attributes:
        corner: its name.
        pins: the longest, with pin loads only. wires: also with the library's default wire load.
        hold: :func:`synth.timing.sta.shortest_path` with pin loads only.
    """

    corner: str
    pins: Path
    wires: Path
    hold: Path

    def to_json(self) -> dict[str, object]:
        """Plain JSON data: clocks in MHz, units and ns of the longest path, slack of hold in ns and
        units of its path."""
        return {
            "corner": self.corner,
            "pins_mhz": self.pins.fmax_mhz,
            "wires_mhz": self.wires.fmax_mhz,
            "critical_path": [{"unit": unit, "ns": ns} for unit, ns in self.pins.by_unit()],
            "hold_slack_ns": self.hold.ns,
            "hold_path": [unit for unit, _ in self.hold.by_unit()],
        }


def stage_ns(library: CellLibrary) -> float:
    """Delay in ns of the smallest inverter or buffer that drives four of its kind: the mean of both
    edges.

    Raises:
        LibertyError: the library has no inverter or buffer.
    """
    cell = weakest_driver(library)
    load = _FANOUT * cell.pins[cell.inputs[0]].capacitance
    delays = [
        arc.tables[edge].at(CLOCK_SLEW_NS, load)
        for arc in cell.pins[cell.outputs[0]].arcs
        for edge in ("cell_rise", "cell_fall")
        if edge in arc.tables
    ]
    return sum(delays) / len(delays)


def check_corners(typical: CellLibrary, corners: Sequence[Corner]) -> None:
    """Check, before the work, that a netlist of ``typical`` can be timed at ``corners``.

    Raises:
        SynthesisError: one has no delays, or lacks a cell of ``typical``.
    """
    for name, library in corners:
        if not library.timed:
            raise SynthesisError(f"corner {name}: its library has no delay tables")
        missing = sorted(set(typical.cells) - set(library.cells))
        if missing:
            raise SynthesisError(
                f"corner {name}: it lacks {counted(len(missing), 'cell')} of {typical.name}, e.g."
                f" {missing[0]}"
            )


def time_corners(
    netlist: Netlist, typical: CellLibrary, corners: Sequence[Corner]
) -> tuple[CornerTiming, ...]:
    """Paths at each corner.

    Parameters:
        netlist: mapped to ``typical``.
        corners: they have passed :func:`check_corners`.
    """
    stage = stage_ns(typical)
    timed = []
    for name, library in corners:
        macros = SramTimes(typical.node_nm, corner=stage_ns(library) / stage)
        pins, wires = (
            longest_path(netlist, library, macros, loads) for loads in (None, library.wires)
        )
        timed.append(CornerTiming(name, pins, wires, shortest_path(netlist, library, macros)))
    return tuple(timed)
