"""The verb ``timing``: area and clock of a mapped engine, both of the same netlist."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hdl.yosys import need_yosys
from pe.config import PeConfig
from soc.generate.generate import verilog
from soc.generate.presets import Design, configuration_json, engine
from support.errors import Shown
from support.extras import together
from synth.errors import SynthesisError
from synth.netlist import Netlist
from synth.physical.asic import LIBERTY_PREFIX, NANGATE45, library_of, need_nangate
from synth.physical.corners import CornerTiming, check_corners, time_corners
from synth.physical.mapping import engine_netlist
from synth.physical.targets import AIM_MHZ, find_cells
from synth.timing.cell_library import CellLibrary
from vip.progress import Progress, by_part, silent


@dataclass(frozen=True, kw_only=True)
class TimedNetlist(Shown):
    """A mapped engine.

    Attributes:
        config: of the engine.
        target: what it is mapped to. library: name of its cells.
        logic_ge: gate equivalents of its cells, without memories.
        corners: its longest paths, those at the typical corner first.
    """

    config: PeConfig
    target: str
    library: str
    logic_ge: float
    corners: tuple[CornerTiming, ...]

    def to_json(self) -> dict[str, object]:
        """Area and paths as plain JSON data."""
        return {
            "target": self.target,
            "logic_ge": self.logic_ge,
            "corners": [row.to_json() for row in self.corners],
            "configuration": configuration_json(self.config),
        }


def logic_ge(netlist: Netlist, library: CellLibrary) -> float:
    """Gate equivalents of the cells of ``netlist`` that ``library`` has, so without memories."""
    areas = (library.cells[gate.kind].area for gate in netlist.gates if gate.kind in library.cells)
    return sum(areas) / library.gate_um2


def timing(
    config: Design = "pe",
    target: str = NANGATE45,
    corners: Sequence[Path] = (),
    *,
    mhz: float = AIM_MHZ,
    jobs: int | None = None,
    progress: Progress = silent,
) -> TimedNetlist:
    """Time the mapped engine at several corners.

    ``timing("pe").corners[0].pins.fmax_mhz`` is the clock with the loads of pins alone.

    Parameters:
        config: of an engine.
        target: of standard cells: ``nangate45`` or ``liberty:PATH``; after ``flops:``, memories are
            flip-flops, too.
        corners: Liberty files of the same cells, timed beside the target's own.
        mhz: clock, with the library's wires, for which the netlist is as small as possible.
        jobs: tools at a time; None: one per processor.
        progress: called after each unit that is mapped.

    Raises:
        SynthesisError: there is no such target, the clock is not above 0, a corner can't be timed,
            or Yosys refuses the design.
    """
    if not mhz > 0:
        raise SynthesisError(f"the clock to map for must be above 0 MHz, not {mhz:g}")
    chosen = engine(config)
    further = [(path.name, library_of(f"{LIBERTY_PREFIX}{path}")[0]) for path in corners]
    with together():
        need_yosys()
        need_nangate(target)
    cells, library = find_cells(target)
    cells = replace(cells, aim_ns=1000 / mhz)
    libraries = [(target, library), *further]
    check_corners(library, libraries)
    report = by_part(progress, f"synthesis for {target}")
    netlist = engine_netlist(verilog(replace(chosen, sram=cells.sram)), cells, report, jobs)
    return TimedNetlist(
        config=chosen,
        target=target,
        library=library.name,
        logic_ge=round(logic_ge(netlist, library), 1),
        corners=time_corners(netlist, library, libraries),
    )
