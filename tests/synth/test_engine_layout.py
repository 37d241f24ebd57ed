"""A whole engine's layout: no conflicts, and its clock with wires also according to OpenSTA."""

import pytest

from soc.generate.presets import preset
from synth.layout import exchange
from synth.layout.clock_tree import clock_times, with_clock
from synth.layout.lef import Lef
from synth.layout.parasitics import routed
from synth.physical.targets import find_cells
from synth.sram import SramTimes
from synth.timing.sta import longest_path
from tests.synth.open_sta import find_open_sta, open_sta_path
from vip.synthesis.layout import laid_out, nangate_lef

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
    command = find_open_sta()
    assert command
    assert cells.liberty
    theirs = open_sta_path(
        placed.netlist,
        library,
        cells.files[cells.liberty],
        times,
        spef=exchange.to_spef(routes, "vip_timing", WIRE_FF),
        ports_ns=clock_times(placed.netlist, library, wires).means()[-1],
        command=command,
    )
    assert theirs.ns == pytest.approx(ours.ns, rel=0.02)
