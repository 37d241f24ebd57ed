"""Static timing of a mapped engine at several corners, by our analysis and by OpenSTA.

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
from synth.timing.open_sta import find_open_sta, open_sta_path
from synth.timing.sta import CLOCK_SLEW_NS, Path, longest_path

from .asic import weakest_driver

#: Fan-out, in cells of its own kind, of the cell whose delay scales the memories' times.
_FANOUT = 4


@dataclass(frozen=True)
class Corner:
    """A corner: its name, its library and the text of the library's file."""

    name: str
    library: CellLibrary
    text: str


@dataclass(frozen=True)
class CornerTiming:
    """Longest paths at a corner.

    Attributes:
        corner: its name.
        pins: with pin loads only. wires: also with the library's default wire load.
        open_sta_pins, open_sta_wires: the same by OpenSTA; None if it is not installed.
    """

    corner: str
    pins: Path
    wires: Path
    open_sta_pins: Path | None
    open_sta_wires: Path | None

    def to_json(self) -> dict[str, object]:
        """Plain JSON data: clocks in MHz, and units and ns of the longest path."""
        report: dict[str, object] = {"corner": self.corner}
        for name in ("pins", "wires", "open_sta_pins", "open_sta_wires"):
            path: Path | None = getattr(self, name)
            report[f"{name}_mhz"] = None if path is None else path.fmax_mhz
        report["critical_path"] = [{"unit": unit, "ns": ns} for unit, ns in self.pins.by_unit()]
        return report


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


def check_corner(typical: Corner, corner: Corner) -> None:
    """Check, before the work, that a netlist of ``typical`` can be timed at ``corner``.

    Raises:
        SynthesisError: it has no delays, or lacks a cell of ``typical``.
    """
    if not corner.library.timed:
        raise SynthesisError(f"corner {corner.name}: its library has no delay tables")
    missing = sorted(set(typical.library.cells) - set(corner.library.cells))
    if missing:
        raise SynthesisError(
            f"corner {corner.name}: it lacks {counted(len(missing), 'cell')} of"
            f" {typical.library.name}, e.g. {missing[0]}"
        )


def time_corners(
    netlist: Netlist, typical: Corner, others: Sequence[Corner] = ()
) -> tuple[CornerTiming, ...]:
    """Longest paths at each corner, ``typical`` first.

    Parameters:
        netlist: mapped to the library of ``typical``.

    Raises:
        SynthesisError: as :func:`check_corner` and :func:`synth.timing.open_sta.open_sta_path`.
    """
    for corner in (typical, *others):
        check_corner(typical, corner)
    command = find_open_sta()
    stage = stage_ns(typical.library)
    timed = []
    for corner in (typical, *others):
        library = corner.library
        macros = SramTimes(typical.library.node_nm, corner=stage_ns(library) / stage)
        checks = [
            command
            and open_sta_path(netlist, library, corner.text, macros, wires=wires, command=command)
            for wires in (False, True)
        ]
        timed.append(
            CornerTiming(
                corner.name,
                longest_path(netlist, library, macros),
                longest_path(netlist, library, macros, library.wires),
                checks[0] or None,
                checks[1] or None,
            )
        )
    return tuple(timed)
