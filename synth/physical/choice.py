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
    file = cache_folder() / "recipes" / f"{content_key(_FORMAT, keys, aim_ns)}.json"
    try:
        cached: dict[str, int] = json.loads(file.read_text(encoding="utf-8"))
        return {module: cached[module] for module in keys}
    except (OSError, ValueError, LookupError, TypeError):
        pass

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
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(recipes).encode())
    return recipes
