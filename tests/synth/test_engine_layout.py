"""A whole engine's layout: no conflicts, and its clock with wires also according to OpenSTA."""

import pytest

from soc.generate.presets import preset
from synth.layout.clock_tree import with_clock
from synth.layout.lef import Lef
from synth.layout.parasitics import routed
from synth.physical.asic import nangate_lef
from synth.physical.targets import find_cells
from synth.sram import SramTimes
from synth.timing.sta import longest_path
from tests.synth.open_sta import find_open_sta, routed_path
from vip.synthesis.layout import laid_out

WIRE_FF = 0.105


@pytest.mark.slow
@pytest.mark.skipif(find_open_sta() is None, reason="OpenSTA is not installed")
def test_open_sta_agrees_on_an_engine_with_its_clock_tree() -> None:
    pytest.importorskip("coloquinte")
    cells, library = find_cells("nangate45")
    lef = Lef(*nangate_lef())
    layout, placed, routes = laid_out(preset("pe"), "nangate45", lef, wire_ff=WIRE_FF, routing=True)
    assert routes is not None
    times, wires = SramTimes(library.node_nm), routed(routes, library, WIRE_FF)
    ours = longest_path(placed.netlist, library, times, with_clock(placed.netlist, library, wires))
    assert ours.fmax_mhz == layout.steps[-1].values["delays_mhz"]
    theirs = routed_path(placed.netlist, library, cells, routes, WIRE_FF)
    assert theirs.ns == pytest.approx(ours.ns, rel=0.02)
