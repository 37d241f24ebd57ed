"""The recipe of each unit, chosen by the paths of the joined netlist."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from synth.netlist import Gate, Netlist
from synth.physical.mapping import choose
from synth.physical.yosys import CellCount
from synth.timing.cell_library import parse_library
from tests.synth.small_library import LIBRARY

CELLS = parse_library(LIBRARY)
#: Inverters in a row of each recipe of a unit, the smallest first: 0.10 or 0.20 ns each.
LENGTHS = {"front": (6, 4, 2), "back": (5, 3, 2), "other": (0,)}


def mapped(name: str, recipe: int) -> CellCount:
    """Faster ones are larger."""
    return CellCount({}, 20.0 - LENGTHS[name][recipe])


def joined(chosen: Mapping[str, CellCount]) -> Netlist:
    """A row of all inverters from an input to an output."""
    names = [
        (name, place)
        for name, of in chosen.items()
        for place in range(20 - round(of.area))
        if name != "other"
    ]
    gates = [
        Gate(f"{name}{place}", "INV", name, {"A": (net,), "Y": (net + 1,)})
        for net, (name, place) in enumerate(names)
    ]
    return Netlist({"a": (0,)}, {"y": (len(gates),)}, tuple(gates))


def test_units_are_as_small_as_the_path_across_them_allows(
    no_results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[tuple[str, int]] = []
    keys = {name: list(map(str, of)) for name, of in LENGTHS.items()}

    def noted(name: str, recipe: int) -> CellCount:
        tried.append((name, recipe))
        return mapped(name, recipe)

    def recipes(aim: float) -> tuple[int, ...]:
        chosen = choose(keys, noted, joined, CELLS, aim, {"other"})
        assert chosen["other"] == 0
        return chosen["front"], chosen["back"]

    # Flip-flops take 0.16, two inverters 0.30: 0.76 at least, 1.86 at most. Nothing gets slower.
    assert recipes(0.5) == (2, 2)
    # The first module comes first where both are as large; what follows its choice isn't mapped.
    tried.clear()
    assert recipes(1.30) == (1, 1)
    assert ("front", 0) in tried
    tried.clear()
    assert recipes(1.45) == (0, 2)
    assert ("front", 1) not in tried
    assert recipes(2.0) == (0, 0)
    # Not chosen again.
    monkeypatch.setattr("synth.physical.mapping.Timer", None)
    assert recipes(1.45) == (0, 2)
    with pytest.raises(TypeError):
        recipes(1.46)
