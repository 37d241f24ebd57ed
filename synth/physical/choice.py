"""The choice of a recipe for each unit: as small as the paths of the whole netlist allow.

A unit mapped for speed is up to a half larger than one mapped for area, and most units are not on
the longest path.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence

from support.cache import content_key
from support.files import write_atomically
from synth.netlist import Netlist
from synth.sram import SramTimes
from synth.timing.cell_library import CellLibrary
from synth.timing.timer import Timer

from .yosys import CellCount, cache_folder

#: Part of every key: changes with the way of choosing.
_FORMAT = "1"

#: Module -> its mapped results, by recipe.
Results = Mapping[str, Sequence[CellCount]]
#: Joins these results, of one module or of all.
Joined = Callable[[Mapping[str, CellCount]], Netlist]


def choose(
    results: Results, joined: Joined, library: CellLibrary, aim_ns: float, glue: Collection[str]
) -> Mapping[str, int]:
    """The recipe of each module, cached by content.

    The netlist of all starts with the fastest result of each. A smaller one takes its place if the
    longest path, with the library's wires, then takes ``aim_ns`` at most, or does not get longer.

    Parameters:
        glue: modules that contain the others, timed with these only.
    """
    names = {
        module: [one.netlist.parent.name for one in of if one.netlist is not None]
        for module, of in results.items()
    }
    file = cache_folder() / "recipes" / f"{content_key(_FORMAT, names, aim_ns)}.json"
    try:
        cached: dict[str, int] = json.loads(file.read_text(encoding="utf-8"))
        return {module: cached[module] for module in results}
    except (OSError, ValueError, LookupError, TypeError):
        pass

    def ns(chosen: Mapping[str, CellCount]) -> float:
        timer = Timer(joined(chosen), library, SramTimes(library.node_nm), library.wires)
        return float(timer.end_ns.max(initial=0.0))

    fronts = {
        module: _front(of, [0.0 if module in glue else ns({module: one}) for one in of])
        for module, of in results.items()
    }
    chosen = {module: front[-1][1] for module, front in fronts.items()}
    limit = max(aim_ns, ns(chosen))
    for module in sorted(fronts, key=lambda name: -_saving(fronts[name])):
        for alone, result in fronts[module][:-1]:
            if alone <= limit and ns({**chosen, module: result}) <= limit:
                chosen[module] = result
                break
    recipes = {module: list(of).index(chosen[module]) for module, of in results.items()}
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(recipes).encode())
    return recipes


def _front(results: Sequence[CellCount], ns: Sequence[float]) -> list[tuple[float, CellCount]]:
    """Results that are faster than each smaller one, the smallest first, with their ``ns``."""
    front: list[tuple[float, CellCount]] = []
    for alone, result in sorted(zip(ns, results, strict=True), key=lambda one: one[1].area):
        if not front or alone < front[-1][0]:
            front.append((alone, result))
    return front


def _saving(front: Sequence[tuple[float, CellCount]]) -> float:
    """Area between the fastest and the smallest."""
    return front[-1][1].area - front[0][1].area
