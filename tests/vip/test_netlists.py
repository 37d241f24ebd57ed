"""Area and clock of a mapped engine are of one netlist."""

import pytest

from synth.errors import SynthesisError
from synth.physical.area import synthesise
from tests.small_engine import TINY
from vip.synthesis.clocks import timing


def test_a_clock_of_nothing_is_refused() -> None:
    with pytest.raises(SynthesisError, match="must be above 0 MHz, not 0"):
        timing(TINY, mhz=0)


@pytest.mark.slow
def test_area_and_clock_are_of_one_netlist() -> None:
    found = timing(TINY)
    total = synthesise(TINY, "nangate45").total.values
    assert found.logic_ge == pytest.approx(total["logic_ge"], abs=0.5)
    (corner,) = found.corners
    assert corner.pins.fmax_mhz == total["fmax_mhz"]
    assert 1000 <= corner.wires.fmax_mhz < corner.pins.fmax_mhz
