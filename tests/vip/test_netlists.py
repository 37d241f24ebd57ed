"""Area and clock of a mapped engine: of one netlist, and of another for each mapping."""

from dataclasses import replace

import pytest

from soc.generate.presets import preset
from synth.physical.area import synthesise
from vip.synthesis.clocks import NETLISTS, timing

#: As small an engine as there is.
TINY = replace(
    preset("pe-small"),
    instructions=frozenset({"halt", "jmp", "add"}),
    registers=8,
    register_width=24,
    instruction_words=16,
    scratchpad_bytes=64,
    max_vl=1,
    max_mr=1,
    arc_entries=1,
    load_store_queue=2,
    address_bits=12,
    counters=False,
)


@pytest.mark.slow
@pytest.mark.parametrize("target", NETLISTS)
def test_area_and_clock_are_of_one_netlist(target: str) -> None:
    found = timing(TINY, target)
    total = synthesise(TINY, target).total.values
    assert found.logic_ge == pytest.approx(total["logic_ge"], abs=0.5)
    (corner,) = found.corners
    assert corner.pins.fmax_mhz == total["fmax_mhz"]
    assert 0 < corner.wires.fmax_mhz < corner.pins.fmax_mhz


@pytest.mark.slow
def test_the_netlist_for_area_is_smaller() -> None:
    area, speed = (timing(TINY, target) for target in NETLISTS)
    assert area.logic_ge < speed.logic_ge
