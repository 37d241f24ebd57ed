"""Area and clock of a mapped engine, both of the same netlist.

An engine mapped for area is smaller and slower than one mapped for speed, so that an area and a
clock belong together only if they are of one netlist.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pe.config import PeConfig
from soc.generate.generate import verilog
from synth.physical.asic import NANGATE45, NANGATE45_AREA, library_of
from synth.physical.corners import Corner, CornerTiming, check_corner, time_corners
from synth.physical.mapping import Progress, engine_netlist
from synth.physical.netlist import Netlist
from synth.physical.targets import find_cells
from synth.timing.cell_library import CellLibrary

__all__ = ["NETLISTS", "TimedNetlist", "logic_ge", "timed_netlist"]

#: Targets of the two netlists that come without a library of the user.
NETLISTS = (NANGATE45_AREA, NANGATE45)


@dataclass(frozen=True, kw_only=True)
class TimedNetlist:
    """A mapped engine.

    Attributes:
        target: that it is mapped to. library: name of its cells.
        logic_ge: gate equivalents of its cells, memories apart.
        corners: its longest paths, at the typical corner first.
    """

    target: str
    library: str
    logic_ge: float
    corners: tuple[CornerTiming, ...]


def logic_ge(netlist: Netlist, library: CellLibrary) -> float:
    """Gate equivalents of the cells of ``netlist``; memories are none of ``library``'s."""
    areas = (library.cells[gate.kind].area for gate in netlist.gates if gate.kind in library.cells)
    return sum(areas) / library.gate_um2


def timed_netlist(
    config: PeConfig,
    target: str,
    others: Sequence[Corner] = (),
    *,
    progress: Progress | None = None,
    jobs: int | None = None,
) -> TimedNetlist:
    """Map the engine ``config`` and time it.

    Parameters:
        target: of standard cells. others: corners beside the target's own.
        progress, jobs: see :func:`synth.physical.mapping.each_unit`.

    Raises:
        SynthesisError: no such target, a corner that can't be timed, or a design that Yosys
            refuses.
    """
    cells, library = find_cells(target)
    typical = Corner(target, library, library_of(target)[1])
    for corner in (typical, *others):
        check_corner(typical, corner)
    netlist = engine_netlist(verilog(replace(config, sram="macro")), cells, progress, jobs)
    return TimedNetlist(
        target=target,
        library=library.name,
        logic_ge=round(logic_ge(netlist, library), 1),
        corners=time_corners(netlist, typical, others),
    )
