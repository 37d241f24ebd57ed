"""The netlists of a processing engine: each unit mapped separately, and all of them joined."""

import gzip
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from hdl.emission import Emission
from hdl.sram_macro import SramGeometry, macro_model, macro_stub
from pe.config import PeConfig
from soc.generate.generate import verilog as emitted
from support.cache import ResultCache, content_key
from support.errors import unknown
from support.processes import workers
from synth.errors import SynthesisError
from synth.netlist import Netlist, join, read_module
from synth.sram import SramTimes
from synth.timing.cell_library import CellLibrary, parse_library
from synth.timing.timer import Timer

from .cell_models import fpga_models, library_models
from .targets import Target, find_target
from .units import OPENED, OTHER, EngineUnit, closure, units
from .yosys import CellCount, Run, run

#: Called with a unit's name, the number of finished units and the number of all.
Progress = Callable[[str, int, int], None]

_Result = TypeVar("_Result")
#: Comment lines, which contain whole configurations and would make equal modules differ.
_COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)


def map_module(
    unit: EngineUnit,
    module: str,
    target: Target,
    emission: Emission,
    *,
    recipe: int = 0,
    verilog: bool = False,
) -> CellCount:
    """``module``, one of ``unit``, mapped to ``target`` with its submodules.

    The netlist is ``verilog``, or JSON for standard cells; ``recipe`` is one of the target's.

    Results are cached by content (:func:`synth.physical.yosys.run`).

    Raises:
        SynthesisError: Yosys refuses the design.
    """
    work = _work(unit, module, target, emission, recipe, verilog)
    return run(work, what=f"synthesis of {module} for {target.name}")


def _work(
    unit: EngineUnit, module: str, target: Target, emission: Emission, recipe: int, verilog: bool
) -> Run:
    sources = {name: _COMMENT.sub("", emission.modules[name]) for name in closure(emission, module)}
    boxes: tuple[str, ...] = ()
    if unit.opened:
        boxes = tuple(name for name in emission.instances[module] if name in sources)
        sources = {name: text for name, text in sources.items() if name in (*boxes, module)}
    used = {part for name in sources for part in emission.instances[name]}
    for name in sorted(used.intersection(emission.black_boxes)):
        sources[name] = macro_stub(SramGeometry.parse(name))
    return Run(
        top=module,
        sources=sources,
        boxes=boxes,
        commands=target.recipes[recipe],
        files=target.files,
        liberty=target.liberty,
        netlist="v" if verilog else "json" if target.library is not None else "",
    )


def each_unit(
    chosen: Sequence[EngineUnit],
    work: Callable[[EngineUnit], _Result],
    progress: Progress | None,
    jobs: int | None,
) -> tuple[_Result, ...]:
    """Results of ``work`` for each unit, several at a time.

    Parameters:
        progress: called after each unit.
        jobs: units in parallel; one per processor by default.
    """
    done = 0

    def measured(unit: EngineUnit) -> _Result:
        nonlocal done
        result = work(unit)
        done += 1
        if progress is not None:
            progress(unit.name, done, len(chosen))
        return result

    with workers(jobs) as pool:
        futures = [pool.submit(measured, unit) for unit in chosen]
        return tuple(future.result() for future in futures)


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
    """The recipe of each module, cached by content: a unit mapped for speed is up to a half larger
    than one mapped for area, and most units are not on the longest path.

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


def choose_recipes(
    chosen: Sequence[EngineUnit],
    target: Target,
    emission: Emission,
    progress: Progress | None = None,
    jobs: int | None = None,
) -> Mapping[str, int]:
    """The recipe of ``target`` for each module of units: of all units of an engine, the best for
    their netlist (:func:`choose`); of some, the best for each alone.

    Nothing is mapped if the target has one recipe.

    Parameters:
        progress, jobs: see :func:`each_unit`.

    Raises:
        SynthesisError: Yosys refuses the design.
    """
    modules = [name for unit in chosen for name, _ in unit.modules]
    recipes = dict.fromkeys(modules, 0)
    if target.library is None or len(target.recipes) == 1:
        return recipes
    unit_of = {name: unit for unit in chosen for name, _ in unit.modules}

    def mapped(name: str, recipe: int) -> CellCount:
        return map_module(unit_of[name], name, target, emission, recipe=recipe)

    def work(unit: EngineUnit) -> None:
        """What each choice needs, several units at a time."""
        for name, _ in unit.modules:
            for recipe in (0, len(target.recipes) - 1):
                mapped(name, recipe)

    each_unit(chosen, work, progress, jobs)
    keys = {
        name: [
            _work(unit_of[name], name, target, emission, recipe, verilog=False).key
            for recipe in range(len(target.recipes))
        ]
        for name in modules
    }
    whole = emission.top in modules
    glue = {name for unit in chosen if unit.opened for name, _ in unit.modules}
    parts = [modules] if whole else [[name] for name in modules if name not in glue]
    # Those of one netlist and its last candidates.
    read = lru_cache(maxsize=2 * len(modules))(read_module)

    def joined(of: Mapping[str, CellCount]) -> Netlist:
        return _joined(of, emission.top, read)

    for part in parts:
        of_part = {name: keys[name] for name in part}
        recipes |= choose(of_part, mapped, joined, target.library, target.aim_ns, glue)
    return recipes


def unit_netlist(module: str, result: CellCount) -> Netlist:
    """The netlist of a module that was mapped separately; its cells belong to the unit
    ``module``."""
    return _joined({module: result}, "")


def engine_netlist(
    emission: Emission,
    target: Target,
    progress: Progress | None = None,
    jobs: int | None = None,
    unit: str | None = None,
) -> Netlist:
    """The netlist of an engine: the mapped units, joined without optimisation across them.

    Parameters:
        emission: of an engine with memory macros. target: of standard cells.
        progress, jobs: see :func:`each_unit`.
        unit: of this unit alone.

    Raises:
        SynthesisError: Yosys refuses the design, or the engine has no such unit of its own cells.
    """
    parts = units(emission)
    if unit is not None:
        parts = tuple(part for part in parts if not part.opened)
        if unit not in (names := [part.name for part in parts]):
            raise SynthesisError(unknown("unit", unit, names))
        parts = (parts[names.index(unit)],)
    recipes = choose_recipes(parts, target, emission, progress, jobs)

    def work(unit: EngineUnit) -> dict[str, CellCount]:
        return {
            name: map_module(unit, name, target, emission, recipe=recipes[name])
            for name, _ in unit.modules
        }

    mapped = each_unit(parts, work, None, jobs)
    return _joined({name: one for of in mapped for name, one in of.items()}, emission.top)


def _joined(
    results: Mapping[str, CellCount],
    top: str,
    read: Callable[[Path, str], dict[str, Any]] = read_module,
) -> Netlist:
    """The netlist of modules: of the engine's, if ``top`` is among them, or of a single one."""
    bodies: dict[str, dict[str, Any]] = {}
    for name, result in results.items():
        assert result.netlist is not None
        bodies[name] = read(result.netlist, name)
    if top not in results:
        (top,) = results
        return join(top, bodies.get, lambda name: name)
    return join(top, bodies.get, lambda name: OTHER if name in (top, *OPENED) else name)


def mapped_verilog(
    config: PeConfig, target: str, progress: Progress | None = None
) -> tuple[PeConfig, str]:
    """An engine whose units are mapped to ``target``: its configuration, with memories as of the
    target or, of flip-flops, macros; and the Verilog of its netlist with models of all cells.

    Parameters:
        target: see :func:`synth.physical.targets.find_target`.
        progress: see :func:`synth.physical.mapping.each_unit`.

    Raises:
        SynthesisError: Yosys refuses the design, or a cell has no model.
    """
    chosen = find_target(target)
    design = replace(config, sram=chosen.sram)
    emission = emitted(design)
    parts = units(emission)
    recipes = choose_recipes(parts, chosen, emission)

    def work(unit: EngineUnit) -> list[CellCount]:
        return [
            map_module(unit, name, chosen, emission, recipe=recipes[name], verilog=True)
            for name, _ in unit.modules
        ]

    mapped = [one for of in each_unit(parts, work, progress, None) for one in of]
    netlists = [gzip.decompress(one.netlist.read_bytes()).decode() for one in mapped if one.netlist]
    cells = {name for one in mapped for name in one.cells}
    memories = cells.intersection(emission.black_boxes)
    models = [macro_model(SramGeometry.parse(name)) for name in sorted(memories)]
    models.append(_models(chosen, cells - memories - set(emission.modules)))
    # A simulation looks into behavioural memories, of which cells leave nothing.
    unread = replace(design, sram="macro") if chosen.sram == "behavioural" else design
    return unread, "".join([*models, *netlists])


def _models(target: Target, cells: Iterable[str]) -> str:
    if target.liberty:
        return library_models(parse_library(target.files[target.liberty]), cells)
    return fpga_models(target.name, cells)
