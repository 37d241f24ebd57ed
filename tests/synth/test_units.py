"""Names of units."""

from dataclasses import replace

import pytest

from pe.config import ALL_INSTRUCTIONS
from soc.generate.generate import verilog
from soc.generate.presets import preset
from synth.errors import SynthesisError
from synth.physical.units import NAMES, OPENED, check_units, units


def test_the_names_are_those_of_an_engine_with_everything() -> None:
    config = replace(preset("pe-small"), instructions=ALL_INSTRUCTIONS, sram="macro")
    assert sorted(unit.name for unit in units(verilog(config))) == sorted(NAMES)


def test_other_names_are_refused_without_an_engine() -> None:
    check_units((*NAMES, *OPENED))
    with pytest.raises(SynthesisError, match="unknown unit 'nosuch'; there are: sequencer, "):
        check_units(["scalar", "nosuch"])
