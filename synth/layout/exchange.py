"""Files of a routed layout: DEF, SPEF and GDS.

Gate n of the netlist is ``gn`` in them, and net n is ``nn``; bits of ports have their own names.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from support.files import read_bytes
from synth.errors import SynthesisError

from .placement import What
from .routing import Array, Routes, moved

#: Numbers in GDS of the lowest routing layer, the cut above it, and so on: of FreePDK45.
_GDS_LAYER = 11
#: Most bytes of a library in GDS.
_GDS_BYTES = 256 << 20
#: Units in GDS in a nanometre, and GDS's numbers of a unit in um and in m: of Nangate's cells.
_GDS_NM = 10
_GDS_UNITS = bytes.fromhex("3d68db8bac710cb4386df37f675ef6ec")
_GDS_HALF_TURN = bytes.fromhex("42b4000000000000")
#: Records of GDS, with their type of data.
_HEADER, _BGNLIB, _LIBNAME, _UNITS, _ENDLIB = 0x0002, 0x0102, 0x0206, 0x0305, 0x0400
_BGNSTR, _STRNAME, _ENDSTR = 0x0502, 0x0606, 0x0700
_BOUNDARY, _SREF, _LAYER, _DATATYPE, _XY, _ENDEL, _SNAME, _STRANS, _ANGLE = (
    *(0x0800, 0x0A00, 0x0D02, 0x0E02),
    *(0x1003, 0x1100, 0x1206, 0x1A01, 0x1C05),
)


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
    site, step = plan.lef.site_nm, plan.lef.row_nm // plan.lef.row
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
    for net, place, track, start, end in routes.tracks().tolist():
        ends = [lattice.nm(*((at, track) if place % 2 else (track, at))) for at in (start, end)]
        (x, y), (to_x, to_y) = ends
        if start != end:
            wires[net].append(f"{lattice.layers[place]} ( {x} {y} ) ( {to_x} {to_y} )")
    for net, place, x, start, end in routes.jogs().tolist():
        (x, y), (to_x, to_y) = lattice.nm(x, start), lattice.nm(x, end)
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
    lattice, lef = routes.lattice, routes.lattice.lef
    yield '*SPEF "IEEE 1481-1998"'
    yield f'*DESIGN "{top}"\n*DATE ""\n*VENDOR "VIP"\n*PROGRAM "VIP"\n*VERSION "1"'
    yield '*DESIGN_FLOW ""\n*DIVIDER /\n*DELIMITER :\n*BUS_DELIMITER [ ]'
    yield "*T_UNIT 1 NS\n*C_UNIT 1 FF\n*R_UNIT 1 OHM\n*L_UNIT 1 HENRY"
    wires = [lef.layers[name] for name in lattice.layers]
    cuts = [lef.rules[cut].get("RESISTANCE", 0) / 1000 for cut in lattice.cuts]
    trees, reached = _trees(routes), set(map(tuple, routes.pin_vias().tolist()))
    netlist = routes.placed.netlist
    ports = {**dict.fromkeys(netlist.inputs, "I"), **dict.fromkeys(netlist.outputs, "O")}
    for net, terminals in routes.nets.items():
        farads: defaultdict[str, float] = defaultdict(float)
        resistors: list[tuple[str, str, float]] = []
        # Nodes of the lattice get numbers, pins keep their names.
        names: dict[tuple[int, int, int], str] = {}
        for a, b, place, um in trees[net]:
            ends = [names.setdefault(node, f"n{net}:{len(names) + 1}") for node in (a, b)]
            if um:
                load = um * (wires[place].ff if wire_ff is None else wire_ff)
                for end in ends:
                    farads[end] += load / 2
            resistors.append((ends[0], ends[1], um * wires[place].ohm if um else cuts[place + 1]))
        for terminal in terminals:
            for place, x, y in routes.places[terminal]:
                fixed = len(routes.places[terminal]) == 1
                if fixed or (net, x, y) in reached:
                    node = names.setdefault((place, x, y), f"n{net}:{len(names) + 1}")
                    ohm = cuts[0] if (net, x, y) in reached else 0.0
                    resistors.append((name_of(routes, terminal), node, ohm))
        yield f"\n*D_NET n{net} {sum(farads.values()):.5g}\n*CONN"
        for number, terminal in enumerate(terminals):
            way = ports[terminal[1]] if terminal[0] < 0 else "I" if number else "O"
            yield f"*{'P' if terminal[0] < 0 else 'I'} {name_of(routes, terminal)} {way}"
        yield "*CAP"
        for number, (end, part) in enumerate(farads.items(), 1):
            yield f"{number} {end} {part:.5g}"
        yield "*RES"
        for number, (one, other, ohm) in enumerate(resistors, 1):
            # Some readers take no resistor of 0.
            yield f"{number} {one} {other} {max(ohm, 1e-3):.5g}"
        yield "*END"


def _trees(routes: Routes) -> Mapping[int, list[tuple[Any, Any, int, float]]]:
    """Of each net, its wires from one node to the next, and its vias: both nodes, the layer (of a
    via the lower one), and its length in um."""
    lattice = routes.lattice
    trees: defaultdict[int, list[tuple[Any, Any, int, float]]] = defaultdict(list)
    points: defaultdict[tuple[int, int, int], set[int]] = defaultdict(set)

    def point(net: int, place: int, x: int, y: int) -> None:
        points[net, place, y if place % 2 else x].add(x if place % 2 else y)

    for net, place, x, y in routes.ends.tolist():
        point(net, place, x, y)
    for net, place, x, y in routes.vias().tolist():
        point(net, place, x, y)
        point(net, place + 1, x, y)
        trees[net].append(((place, x, y), (place + 1, x, y), place, 0.0))
    for net, place, x, *ends in routes.jogs().tolist():
        for y in ends:
            point(net, place, x, y)
        trees[net].append(((place, x, ends[0]), (place, x, ends[1]), place, 0.0))
    for net, place, track, start, end in routes.tracks().tolist():
        inner = sorted({start, end, *(v for v in points[net, place, track] if start <= v <= end)})
        pitch = lattice.pitch(place, along=True) / 1000
        for a, b in pairwise(inner):
            ends = [(place, at, track) if place % 2 else (place, track, at) for at in (a, b)]
            trees[net].append((ends[0], ends[1], place, (b - a) * pitch))
    return trees


def to_gds(routes: Routes, top: str, library: Path | None = None) -> Iterator[bytes]:
    """The records of GDS: the cells of ``library`` that are used, and the layout.

    Raises:
        SynthesisError: the library has other units, or is no GDS.
        OSError: it can't be read.
    """
    placed = routes.placed
    plan = placed.floorplan
    kinds = {gate.kind for gate in placed.netlist.gates if gate.name not in plan.blocks}
    date = struct.pack(">12h", *(1970, 1, 1, 0, 0, 0) * 2)
    yield _record(_HEADER, struct.pack(">h", 600))
    yield _record(_BGNLIB, date) + _record(_LIBNAME, _text(top)) + _record(_UNITS, _GDS_UNITS)
    if library is not None:
        yield from _structures(library, kinds)
    yield _record(_BGNSTR, date) + _record(_STRNAME, _text(top))
    site, step = plan.lef.site_nm, plan.lef.row_nm // plan.lef.row
    for gate in placed.netlist.gates:
        if gate.name in plan.blocks:
            continue
        cell, turn = plan.lef.cells[gate.kind], placed.turns[gate.name]
        x, y = (at * size for at, size in zip(placed.places[gate.name], (site, step), strict=True))
        # A cell is mirrored at the x axis, and then turned by half.
        if turn in ("FN", "S"):
            x += cell.width
        if turn in ("FS", "S"):
            y += cell.height
        yield _record(_SREF) + _record(_SNAME, _text(gate.kind))
        yield _record(_STRANS, struct.pack(">H", 0x8000 if turn in ("FN", "FS") else 0))
        if turn in ("FN", "S"):
            yield _record(_ANGLE, _GDS_HALF_TURN)
        yield _record(_XY, struct.pack(">2i", _GDS_NM * x, _GDS_NM * y)) + _record(_ENDEL)
    yield _boxes(routes.shapes())
    yield _record(_ENDSTR) + _record(_ENDLIB)


def _record(kind: int, data: bytes = b"") -> bytes:
    return struct.pack(">HH", 4 + len(data), kind) + data


def _text(name: str) -> bytes:
    return name.encode() + b"\0" * (len(name) % 2)


def _boxes(shapes: Array) -> bytes:
    """Boundaries of shapes as in :meth:`~synth.layout.routing.Routes.shapes`."""
    head = _record(_BOUNDARY) + struct.pack(">HH", 6, _LAYER)
    between = struct.pack(">HHhHH", 6, _DATATYPE, 0, 44, _XY)
    fields = [("head", f"V{len(head)}"), ("layer", ">i2"), ("between", f"V{len(between)}")]
    rows = np.zeros(len(shapes), np.dtype([*fields, ("corners", ">i4", 10), ("end", "V4")]))
    rows["head"], rows["between"] = np.void(head), np.void(between)
    rows["end"], rows["layer"] = np.void(_record(_ENDEL)), _GDS_LAYER + shapes[:, 1]
    rows["corners"] = _GDS_NM * shapes[:, [2, 3, 2, 5, 4, 5, 4, 3, 2, 3]]
    return rows.tobytes()


def _structures(library: Path, names: set[str]) -> Iterator[bytes]:
    """The structures ``names`` of a library, as they are in its file."""
    data = read_bytes(library, _GDS_BYTES)
    at = start = 0
    used = False
    while at + 4 <= len(data):
        size, kind = struct.unpack_from(">HH", data, at)
        if size < 4:
            break
        content = data[at + 4 : at + size]
        if kind == _UNITS and content != _GDS_UNITS:
            raise SynthesisError(f"{library}: its unit is not 0.1 nm")
        if kind == _BGNSTR:
            start = at
        if kind == _STRNAME:
            used = content.rstrip(b"\0").decode("ascii", "replace") in names
        at += size
        if kind == _ENDSTR and used:
            yield data[start:at]
        if kind == _ENDLIB:
            return
    raise SynthesisError(f"{library}: it is no GDS file, or ends too early")
