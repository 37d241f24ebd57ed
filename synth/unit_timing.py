"""Longest paths of units alone, and of an engine put together from them."""

from collections.abc import Callable, Mapping
from typing import Any

from hdl.emission import Emission

from .asic import node_nm
from .cell_library import CellLibrary
from .netlist import join, read_module
from .sram_timing import SramTimes
from .sta import Path, longest_paths
from .units import OPENED, OTHER
from .yosys import CellCount

__all__ = ["time_engine", "time_unit"]


def time_unit(module: str, result: CellCount, library: CellLibrary) -> Path:
    """Longest path of a module that was mapped alone, with registers at its ports.

    Raises:
        SynthesisError: see :func:`synth.sta.longest_paths`.
    """
    return _longest({module: result}, module, library, lambda _: module)


def time_engine(emission: Emission, results: Mapping[str, CellCount], library: CellLibrary) -> Path:
    """Longest path of an engine: the mapped units, joined; nothing is changed across borders.

    Parameters:
        results: every unit's top module, and those that connect units -> its netlist.

    Raises:
        SynthesisError: see :func:`synth.sta.longest_paths`.
    """
    glue = {emission.top, *OPENED}
    return _longest(results, emission.top, library, lambda name: OTHER if name in glue else name)


def _longest(
    results: Mapping[str, CellCount], top: str, library: CellLibrary, unit: Callable[[str], str]
) -> Path:
    bodies: dict[str, dict[str, Any]] = {}
    for name, result in results.items():
        assert result.netlist is not None
        bodies[name] = read_module(result.netlist, name)
    netlist = join(top, bodies.get, unit)
    paths = longest_paths(netlist, library, SramTimes(node_nm(library)))
    return max(paths.values(), key=lambda path: path.ns, default=Path(0.0, ()))
