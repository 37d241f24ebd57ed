"""The choice of a recipe for each unit: as small as the paths of the whole netlist allow.

A unit mapped for speed is up to a half larger than one mapped for area, and most units are not on
the longest path.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from support.cache import ResultCache, content_key
from synth.netlist import Netlist
from synth.sram import SramTimes
from synth.timing.cell_library import CellLibrary
from synth.timing.timer import Timer

from .yosys import CellCount

#: Part of every key: changes with the way of choosing.
_FORMAT = "2"

#: Maps a module by a recipe.
Mapped = Callable[[str, int], CellCount]
#: Joins these results, of one module or of all.
Joined = Callable[[Mapping[str, CellCount]], Netlist]


def choose(
    keys: Mapping[str, Sequence[str]],
    mapped: Mapped,
    joined: Joined,
    library: CellLibrary,
    aim_ns: float,
    glue: Collection[str],
) -> Mapping[str, int]:
    """The recipe of each module, cached by content.

    The netlist of all starts with the last recipe of each, that for speed. The first that is
    smaller takes its place if the longest path, with the library's wires, then takes ``aim_ns`` at
    most, or does not get longer; larger modules come first. Those after it are not mapped.

    Parameters:
        keys: module -> a hash of what each recipe depends on.
        glue: modules that contain the others, timed with these only.
    """
    cache, key = ResultCache("synthesis/recipes"), content_key(_FORMAT, keys, aim_ns)
    cached: dict[str, int] | None = cache.known(key)
    if cached is not None:
        return cached

    def ns(chosen: Mapping[str, CellCount]) -> float:
        timer = Timer(joined(chosen), library, SramTimes(library.node_nm), library.wires)
        return float(timer.end_ns.max(initial=0.0))

    recipes = {module: len(of) - 1 for module, of in keys.items()}
    chosen = {module: mapped(module, last) for module, last in recipes.items()}
    limit = max(aim_ns, ns(chosen))
    for module in sorted(chosen, key=lambda name: -chosen[name].area):
        for recipe in range(recipes[module]):
            one = mapped(module, recipe)
            if one.area >= chosen[module].area or (
                module not in glue and len(chosen) > 1 and ns({module: one}) > limit
            ):
                continue
            if ns({**chosen, module: one}) <= limit:
                chosen[module], recipes[module] = one, recipe
                break
    cache.keep(key, recipes)
    return recipes
