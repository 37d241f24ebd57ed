"""Files of a routed layout: DEF, SPEF and GDS.

Gate n of the netlist is ``gn`` in them, and net n is ``nn``; bits of ports have their own names.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from math import pi
from pathlib import Path
from typing import Any

from support.extras import need

from .parasitics import Point, net_trees
from .placement import What
from .routing import Routes, moved

#: Numbers in GDS of the lowest routing layer, the cut above it, and so on: of FreePDK45.
_GDS_LAYER = 11


def name_of(routes: Routes, terminal: What) -> str:
    """A pin as DEF and SPEF name it: of a port, or ``gate:pin``."""
    number, pin, bit = terminal
    if number < 0:
        ports = {**routes.placed.netlist.inputs, **routes.placed.netlist.outputs}
        return f"{pin}[{bit}]" if len(ports[pin]) > 1 else pin
    wide = len(routes.placed.netlist.gates[number].pins[pin]) > 1
    return f"g{number}:{pin}_{bit}" if wide else f"g{number}:{pin}"


def to_def(routes: Routes, top: str) -> Iterator[str]:
    """The lines of DEF 5.6: cells, and the wires of nets."""
    placed, lattice = routes.placed, routes.lattice
    plan = placed.floorplan
    site, step = plan.lef.grid_nm
    netlist = placed.netlist
    yield 'VERSION 5.6 ;\nDIVIDERCHAR "/" ;\nBUSBITCHARS "[]" ;'
    yield f"DESIGN {top} ;\nUNITS DISTANCE MICRONS 1000 ;"
    yield f"DIEAREA ( 0 0 ) ( {plan.die.width * site} {plan.die.height * step} ) ;"
    yield f"COMPONENTS {len(netlist.gates)} ;"
    for number, gate in enumerate(netlist.gates):
        block = plan.blocks.get(gate.name)
        x, y = placed.places[gate.name] if block is None else (block.x, block.y)
        how = f"PLACED ( {x * site} {y * step} ) {placed.turns.get(gate.name, 'N')}"
        yield f"- g{number} {gate.kind} + {how} ;"
    yield "END COMPONENTS"
    pins = [
        (net, terminal)
        for net, terminals in routes.nets.items()
        for terminal in terminals
        if terminal[0] < 0
    ]
    yield f"PINS {len(pins)} ;"
    for net, terminal in pins:
        ((place, x, y),) = routes.places[terminal]
        way = "INPUT" if terminal[1] in netlist.inputs else "OUTPUT"
        at = "( {} {} )".format(*lattice.nm(x, y))
        along, across = lattice.half(place)
        wide, high = (along, across) if place % 2 else (across, along)
        yield (
            f"- {name_of(routes, terminal)} + NET n{net} + DIRECTION {way}"
            f" + LAYER {lattice.layers[place]} ( -{wide} -{high} ) ( {wide} {high} )"
            f" + PLACED {at} N ;"
        )
    yield f"END PINS\nNETS {len(routes.nets)} ;"
    wires = _def_wires(routes)
    for net, terminals in routes.nets.items():
        names = [
            f"PIN:{name}" if ":" not in name else name
            for name in (name_of(routes, terminal) for terminal in terminals)
        ]
        yield f"- n{net} " + " ".join("( {} {} )".format(*name.split(":")) for name in names)
        if wires[net]:
            yield "  + ROUTED " + "\n    NEW ".join(wires[net])
        yield "  ;"
    yield "END NETS\nEND DESIGN"


def _def_wires(routes: Routes) -> defaultdict[int, list[str]]:
    """Of each net, its wires and vias as DEF has them."""
    lattice = routes.lattice
    wires: defaultdict[int, list[str]] = defaultdict(list)
    for net, place, *nodes in [*routes.tracks().tolist(), *routes.jogs().tolist()]:
        (x, y), (to_x, to_y) = lattice.nm(*nodes[:2]), lattice.nm(*nodes[2:])
        if (x, y) != (to_x, to_y):
            wires[net].append(f"{lattice.layers[place]} ( {x} {y} ) ( {to_x} {to_y} )")
    for net, place, x, y in routes.vias().tolist():
        (at_x, at_y), name = lattice.nm(x, y), lattice.vias[place + 1][0]
        wires[net].append(f"{lattice.layers[place]} ( {at_x} {at_y} ) {name}")
    for net, x, y in routes.pin_vias().tolist():
        at_x, at_y = lattice.nm(x, y)
        pad, *stubs = routes.pads[net, x, y]
        for left, low, right, top in stubs:
            half = min(right - left, top - low) // 2
            corners = f"( {left + half} {low + half} ) ( {right - half} {top - half} )"
            wires[net].append(f"{lattice.metal} {corners}")
        of = next(
            via
            for via in lattice.vias[0]
            if pad == moved(lattice.shape(via, lattice.metal), at_x, at_y)
        )
        wires[net].append(f"{lattice.metal} ( {at_x} {at_y} ) {of}")
    return wires


def to_spef(routes: Routes, top: str, wire_ff: float | None = None) -> Iterator[str]:
    """The lines of SPEF: of each net its resistors, and its capacitance to ground.

    Parameters:
        wire_ff: fF of a um on each layer; None: of the layer.
    """
    yield '*SPEF "IEEE 1481-1998"'
    yield f'*DESIGN "{top}"\n*DATE ""\n*VENDOR "VIP"\n*PROGRAM "VIP"\n*VERSION "1"'
    yield '*DESIGN_FLOW ""\n*DIVIDER /\n*DELIMITER :\n*BUS_DELIMITER [ ]'
    yield "*T_UNIT 1 NS\n*C_UNIT 1 FF\n*R_UNIT 1 OHM\n*L_UNIT 1 HENRY"
    netlist = routes.placed.netlist
    ports = {**dict.fromkeys(netlist.inputs, "I"), **dict.fromkeys(netlist.outputs, "O")}
    for net, tree in net_trees(routes, wire_ff):
        # Nodes of the lattice get numbers, pins keep their names.
        names: dict[Point, str] = {pin: name_of(routes, pin) for pin in tree.terminals}
        for one, other, _ in tree.resistors:
            for point in (one, other):
                names.setdefault(point, f"n{net}:{len(names) + 1}")
        yield f"\n*D_NET n{net} {sum(tree.ff.values()):.5g}\n*CONN"
        for number, terminal in enumerate(tree.terminals):
            way = ports[terminal[1]] if terminal[0] < 0 else "I" if number else "O"
            yield f"*{'P' if terminal[0] < 0 else 'I'} {name_of(routes, terminal)} {way}"
        yield "*CAP"
        for number, (end, part) in enumerate(tree.ff.items(), 1):
            yield f"{number} {names[end]} {part:.5g}"
        yield "*RES"
        for number, (one, other, ohm) in enumerate(tree.resistors, 1):
            # Some readers take no resistor of 0.
            yield f"{number} {names[one]} {names[other]} {max(ohm, 1e-3):.5g}"
        yield "*END"


def need_gds_writer() -> None:
    """Check before the work that the package that writes GDS is installed.

    Raises:
        MissingExtraError: it is not.
    """
    need("gdstk", "layouts in GDS")


def write_gds(routes: Routes, top: str, path: Path, library: Path | None = None) -> None:
    """Write GDS: the cells of ``library`` that are used, as they are there, and the layout.

    Raises:
        OSError: the library can't be read, or the file can't be written.
    """
    import gdstk

    placed = routes.placed
    plan = placed.floorplan
    drawn: dict[str, Any] = {} if library is None else gdstk.read_rawcells(library)
    # Raw cells keep the unit of their file.
    unit, precision = (1e-6, 1e-9) if library is None else gdstk.gds_units(library)
    layout, um = gdstk.Cell(top), 1e-9 / unit
    used: set[str] = set()
    for gate in placed.netlist.gates:
        if gate.name in plan.blocks:
            continue
        used.add(gate.kind)
        cell, turn = plan.lef.cells[gate.kind], placed.turns[gate.name]
        at = zip(placed.places[gate.name], plan.lef.grid_nm, strict=True)
        x, y = (place * nm for place, nm in at)
        # A cell is mirrored at the x axis, and then turned by half.
        half_turn, mirrored = turn in ("FN", "S"), turn in ("FN", "FS")
        origin = (x + half_turn * cell.width) * um, (y + (turn in ("FS", "S")) * cell.height) * um
        layout.add(
            gdstk.Reference(
                drawn.get(gate.kind, gate.kind), origin, half_turn * pi, x_reflection=mirrored
            )
        )
    for _, layer, left, low, right, high in routes.shapes().tolist():
        corners = (left * um, low * um), (right * um, high * um)
        layout.add(gdstk.rectangle(*corners, layer=_GDS_LAYER + layer))
    file = gdstk.Library(top, unit, precision)
    file.add(layout, *(drawn[kind] for kind in sorted(used & drawn.keys())))
    # The same layout is the same file.
    file.write_gds(path, timestamp=datetime(1970, 1, 1))
