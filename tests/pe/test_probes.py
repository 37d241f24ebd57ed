"""The names that components declare for proofs are in their Verilog."""

import importlib
import re

import pytest

from hdl.component import Probes
from hdl.emission import Emission, emit
from pe.core import Pe
from soc.generate.presets import preset


@pytest.fixture(scope="module")
def engine() -> Emission:
    return emit(Pe(preset("pe-small")), "pe")


def test_names_are_in_the_verilog(engine: Emission) -> None:
    missing = []
    probed = 0
    for module, place in engine.classes.items():
        file, _, kind = place.rpartition(".")
        probes = getattr(getattr(importlib.import_module(file), kind), "probes", None)
        names = () if probes is None else probes.names
        probed += bool(names)
        text = engine.modules[module]
        missing += [f"{kind}.{name}" for name in names if not re.search(rf"\b{name}\b", text)]
    assert missing == []
    assert probed > 10


def test_a_probe_has_the_path_of_its_instance() -> None:
    probes = Probes("occupied", "fire_next").within("dispatch")
    assert probes.occupied == "dispatch.occupied"
    assert probes.within("pe").fire_next == "pe.dispatch.fire_next"


def test_a_name_that_is_not_declared_is_refused() -> None:
    with pytest.raises(AttributeError, match="no probe 'held'; there are: occupied"):
        _ = Probes("occupied").held
