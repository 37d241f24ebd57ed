"""The verb ``layout``: an engine of standard cells, placed, with buffers and sizes for its wires,
and routed.

Unless they are routed, wires span their pins. The clock has a tree, the reset is a net as others
are. Memories are blocks of the areas and times of :mod:`synth.sram`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from hdl.yosys import need_yosys
from pe.config import PeConfig
from soc.generate.generate import verilog
from soc.generate.presets import Design, configuration_json, engine
from support.errors import Shown
from support.extras import together
from support.files import write_file
from support.picture import check_picture
from synth.errors import SynthesisError
from synth.layout.clock_tree import clock_times, of_clock, with_clock, with_clock_tree
from synth.layout.exchange import need_gds_writer, to_def, to_spef, write_gds
from synth.layout.extraction import faults
from synth.layout.floorplan import Floorplan, check_density
from synth.layout.lef import Lef
from synth.layout.parasitics import estimated
from synth.layout.parasitics import routed as of_routes
from synth.layout.placement import PlacedCells, need_placer, place
from synth.layout.repair import adjusted, repaired, without_buffers
from synth.layout.routing import Routes
from synth.netlist import CLOCK, Netlist
from synth.physical.area import AreaRow
from synth.physical.asic import (
    FLOPS_PREFIX,
    LIBERTY_PREFIX,
    nangate_file,
    nangate_lef,
    need_nangate,
)
from synth.physical.mapping import engine_netlist
from synth.physical.targets import find_cells
from synth.physical.units import check_units
from synth.sram import SramTimes
from synth.timing.cell_library import CellLibrary, Wires
from synth.timing.sta import longest_path, shortest_path
from synth.timing.timer import gated_clocks
from vip.progress import Progress, by_part, silent

from .clocks import logic_ge
from .layout_picture import draw

#: Before there are buffers, share of the rows that cells fill where they are closest; after, least
#: sites of a pin. Wires need room as well.
_ROOMY, _PIN_SITES = 0.8, 1.2
#: Most fF of a um of wire.
MOST_WIRE_FF = 100.0
#: Name of the engine in files.
_TOP = "pe"
#: Files of a routed engine.
ROUTED_FILES = ("layout.def", "layout.spef", "layout.gds")


@dataclass(frozen=True)
class Layout(Shown):
    """A placed engine.

    Attributes:
        config: of the engine. target: what it is mapped to. unit: all that is laid out, if any.
        wire: fF and ohm of a micrometre of wire.
        mm2: area of the die.
        steps: ``placed``, without buffers, ``repaired``, with buffers, other sizes of cells and
            placed again, and ``routed``, if it is, with the lengths of its wires: each with
            ``logic_ge`` of its cells, ``cells``, ``wire_mm`` in all, ``loads_mhz``, the clock with
            the load of wires, and ``delays_mhz`` and its path, with their resistance, too.
            Those with a clock tree also have the ``clock_ge`` of its buffers and gates, the mean
            ``clock_ns`` from its port to registers, ``skew_ns`` between any two of them, the
            ``clock_pj`` that charges its nets in a cycle, and ``hold_ns``, the least slack of a
            hold time; ``routed`` has the ``peak_mb`` of memory.
    """

    config: PeConfig
    target: str
    unit: str | None
    wire: Wires
    mm2: float
    steps: Sequence[AreaRow]

    def to_json(self) -> dict[str, object]:
        """Die, wires and steps as plain JSON data."""
        return {
            "target": self.target,
            "unit": self.unit,
            "mm2": self.mm2,
            "wire_ff_per_um": self.wire.ff,
            "wire_ohm_per_um": self.wire.ohm,
            "steps": [step.to_json() for step in self.steps],
            "configuration": configuration_json(self.config),
        }


def layout(
    config: Design = "pe",
    target: str = "nangate45",
    lef: Sequence[Path] = (),
    *,
    density: float = 0.65,
    wire_ff: float | None = None,
    seed: int = 1,
    unit: str | None = None,
    picture: Path | str | None = None,
    beside: Design | None = None,
    route: Path | str | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> Layout:
    """Place an engine, choose buffers and sizes of cells for its wires, and route it.

    ``layout("pe").steps[-1].values["loads_mhz"]`` is its clock with the load of placed wires.
    Mapped units and placements are cached.

    Parameters:
        config: of an engine; one that ``trim`` writes is smaller.
        target: of standard cells: ``nangate45`` or ``liberty:PATH``.
        lef: LEF files of the cells and layers of ``liberty:PATH``; ``nangate45`` has its own.
        density: share of the area between memories that cells fill, above 0 and at most 1.
        wire_ff: fF of a um of wire, at most :data:`MOST_WIRE_FF`; None: of the third layer.
        seed: of the placer; another one gives another placement.
        unit: of the engine, alone; None: all of it.
        picture: file to draw the last placement to, by unit, with wires by layer if it is routed;
            PNG or SVG by its ending.
        beside: another engine, laid out alike and drawn beside it to the same scale.
        route: folder for :data:`ROUTED_FILES` of the routed engine, checked against the rules of
            layers and the netlist; None: it is not routed.
        jobs: tools at a time while units are mapped; None: one per processor.
        progress: called after each unit that is mapped, and before each step.

    Raises:
        SynthesisError: there is no such target or unit, the LEF lacks a cell, pin or layers, or the
            cells can't be placed or routed.
        support.native.CompilerError: the router can't be compiled.
        support.picture.PictureError: ``picture`` has another ending.
        MissingExtraError: Yosys, the library, the placer, gdstk or matplotlib is not installed.
        OSError: a file can't be written.
    """
    file = None if picture is None else Path(picture)
    designs = (config,) if beside is None else (config, beside)
    engines = {_titled(one): engine(one) for one in designs}
    if len(engines) < len(designs) or (beside is not None and file is None):
        raise SynthesisError("an engine beside needs another name, and a picture")
    check_density(density)
    check_units(() if unit is None else (unit,))
    if wire_ff is not None and not 0 <= wire_ff <= MOST_WIRE_FF:
        raise SynthesisError(f"wire_ff must be from 0 to {MOST_WIRE_FF:g}, not {wire_ff:g}")
    if bool(lef) != target.removeprefix(FLOPS_PREFIX).startswith(LIBERTY_PREFIX):
        raise SynthesisError(f"LEF files and a target {LIBERTY_PREFIX}PATH need each other")
    with together():
        need_yosys()
        need_nangate(target)
        need_placer()
        if route is not None:
            need_gds_writer()
        check_picture(file)
    drawn = Lef(*(lef or nangate_lef()))
    _wire(drawn, wire_ff)
    layouts = {
        name: laid_out(
            config,
            target,
            drawn,
            density=density,
            wire_ff=wire_ff,
            seed=seed,
            unit=unit,
            routing=route is not None,
            jobs=jobs,
            progress=progress,
        )
        for name, config in engines.items()
    }
    result, _, routes = next(iter(layouts.values()))
    if route is not None and routes is not None:
        _write(routes, Path(route), wire_ff, None if lef else nangate_file("stdcells.gds"))
    if file is not None:
        draw(file, {name: (placed, wires) for name, (_, placed, wires) in layouts.items()})
    return result


def laid_out(
    config: PeConfig,
    target: str,
    lef: Lef,
    *,
    density: float = 0.65,
    wire_ff: float | None = None,
    seed: int = 1,
    unit: str | None = None,
    routing: bool = False,
    jobs: int | None = None,
    progress: Progress = silent,
) -> tuple[Layout, PlacedCells, Routes | None]:
    """An engine's layout, its placed cells and, with ``routing``, its wires.

    Other parameters and errors: as of :func:`layout`.
    """
    cells, library = find_cells(target)
    wire = _wire(lef, wire_ff)
    report = by_part(progress, f"synthesis for {target}")
    mapped = engine_netlist(verilog(replace(config, sram=cells.sram)), cells, report, jobs, unit)
    netlist = _with_clock_ports(mapped, library)
    die = Floorplan(netlist, lef, node_nm=library.node_nm, density=density)
    count = 2 + routing
    progress("layout", 0, count, "placement")
    placed = place(without_buffers(netlist, library), die, density=_ROOMY, seed=seed)
    progress("layout", 1, count, "clock tree, buffers and sizes")
    last = with_clock_tree(placed, library, wire)
    for better in (repaired, adjusted):
        netlist, start = better(last, library, wire, cells.aim_ns)
        last = place(netlist, die, density=1, pin_sites=_PIN_SITES, seed=seed, start=start)
    steps = [_step("placed", placed, library, wire), _step("repaired", last, library, wire)]
    routes = None
    if routing:
        progress("layout", 2, count, "wires")
        routes = _checked(Routes(last))
        steps.append(_step("routed", last, library, wire, (routes, wire_ff)))
    return Layout(config, target, unit, wire, round(die.mm2, 4), steps), last, routes


def _titled(config: Design) -> str:
    """What a picture calls an engine: its preset, or the folder of its file."""
    if isinstance(config, str):
        return config
    return config.parent.name if isinstance(config, Path) else "engine"


def _checked(routes: Routes) -> Routes:
    """``routes``, which are without faults."""
    for fault in faults(routes):
        raise SynthesisError(f"routing: {fault}")
    return routes


def _write(routes: Routes, folder: Path, wire_ff: float | None, cells: Path | None) -> None:
    """Write :data:`ROUTED_FILES`."""
    folder.mkdir(parents=True, exist_ok=True)
    design, parasitics, drawn = (folder / name for name in ROUTED_FILES)
    write_file(design, "\n".join(to_def(routes, _TOP)) + "\n")
    write_file(parasitics, "\n".join(to_spef(routes, _TOP, wire_ff)) + "\n")
    write_gds(routes, _TOP, drawn, cells)


def _wire(lef: Lef, ff: float | None) -> Wires:
    """A micrometre of wire of the third layer, which long wires use at least."""
    if len(lef.layers) < 3:
        raise SynthesisError(f"LEF has {len(lef.layers)} routing layers; wires need three")
    wire = list(lef.layers.values())[2]
    return wire if ff is None else replace(wire, ff=ff)


def _with_clock_ports(netlist: Netlist, library: CellLibrary) -> Netlist:
    """``netlist`` whose gated clocks are trees, as the clock is, and with ports of the clock and of
    the reset, which is a wire as others are."""
    gated = tuple(gated_clocks(netlist, library))
    trees = {CLOCK: netlist.trees.get(CLOCK, ()), "gated clocks": gated}
    return replace(netlist, inputs={**netlist.inputs, **netlist.trees}, trees=trees)


def _step(
    name: str,
    placed: PlacedCells,
    library: CellLibrary,
    wire: Wires,
    routed: tuple[Routes, float | None] | None = None,
) -> AreaRow:
    """Figures of a placement, with its wires if they are ``routed``, of so many fF per um."""
    if routed is None:
        wires = estimated(placed, library, wire)
        um = sum(estimated(placed, library, Wires(1.0)).ff.values())
    else:
        wires = of_routes(routed[0], library, routed[1])
        um = sum(routed[0].lengths().values())
    macros, netlist = SramTimes(library.node_nm), placed.netlist
    loaded = with_clock(netlist, library, replace(wires, ohm={}, ways={}))
    timed = with_clock(netlist, library, wires)
    loads, delays = (longest_path(netlist, library, macros, of) for of in (loaded, timed))
    values = {
        "logic_ge": round(logic_ge(netlist, library), 1),
        "cells": len(placed.places),
        "wire_mm": round(um / 1000, 1),
        "loads_mhz": loads.fmax_mhz,
        "delays_mhz": delays.fmax_mhz,
    }
    clock = clock_times(netlist, library, wires)
    if clock.at:
        drivers = tuple(gate for gate in netlist.gates if of_clock(gate, library))
        values |= {
            "clock_ge": round(logic_ge(replace(netlist, gates=drivers), library), 1),
            "clock_ns": round(clock.means()[-1], 3),
            "skew_ns": round(clock.skew, 3),
            "clock_pj": round(clock.ff * library.volts**2 / 1000, 2),
            "hold_ns": round(shortest_path(netlist, library, macros, timed).ns, 3),
        }
    if routed is not None:
        values["peak_mb"] = round(getrusage(RUSAGE_SELF).ru_maxrss / 1024)
    return AreaRow(name, values, {}, delays.by_unit())
