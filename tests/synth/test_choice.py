"""The recipe of each unit, chosen by the paths of the joined netlist."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from synth.netlist import Gate, Netlist
from synth.physical.choice import choose
from synth.physical.yosys import CellCount
from synth.timing.cell_library import parse_library
from tests.synth.small_library import LIBRARY

CELLS = parse_library(LIBRARY)
#: Inverters in a row of each recipe of a unit, the smallest first: 0.10 or 0.20 ns each.
LENGTHS = {"front": (6, 4, 2), "back": (5, 3, 2), "other": (0,)}


def results(folder: Path, lengths: Mapping[str, tuple[int, ...]]) -> dict[str, list[CellCount]]:
    """Mapped units; faster ones are larger."""
    return {
        name: [CellCount({}, 20.0 - n, folder / f"{name}{n}" / "netlist") for n in of]
        for name, of in lengths.items()
    }


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
    mapped = results(no_results, LENGTHS)

    def recipes(aim: float) -> tuple[int, ...]:
        chosen = choose(mapped, joined, CELLS, aim, {"other"})
        assert chosen["other"] == 0
        return chosen["front"], chosen["back"]

    # The flip-flop takes 0.09 and 0.07, two inverters 0.30.
    lengths = {4: 0.76, 5: 0.96, 7: 1.26, 8: 1.36, 9: 1.56, 11: 1.86}
    for before, after in pairwise(lengths.values()):
        assert before < after
    # Below what the fastest reach, nothing gets slower.
    assert recipes(0.5) == (2, 2)
    # The unit that saves more comes first.
    assert recipes(1.30) == (1, 1)
    assert recipes(1.45) == (0, 2)
    assert recipes(2.0) == (0, 0)
    # Not chosen again.
    monkeypatch.setattr("synth.physical.choice.Timer", None)
    assert recipes(1.45) == (0, 2)
    with pytest.raises(TypeError):
        recipes(1.46)
