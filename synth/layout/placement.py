"""Placement of a mapped netlist by Coloquinte, and the length of the wires that it needs."""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from importlib.metadata import version
from itertools import pairwise
from math import ceil
from operator import itemgetter
from pathlib import Path
from typing import Any

from support.cache import build_folder, content_key
from support.extras import need
from support.files import write_atomically, write_file
from support.processes import run_tool
from support.scratch import scratch_folder
from synth.errors import SynthesisError
from synth.netlist import Gate, Netlist

from .floorplan import Box, Floorplan, Place
from .lef import Rectangle

_PLACER = "coloquinte"
_WORKER = Path(__file__).with_name("placer.py")
#: Part of every key: changes with the format of the cached result.
_FORMAT = "1"
#: Most of the rows that cells and the space between them fill.
_FULL = 0.95
#: How much the placer tries, from 1 to 9. With 1 wires are 5 % longer; 3 takes three times as long.
_EFFORT = 3


#: A pin by its gate's number in the netlist (-1: a port), its name, and the number of its bit.
What = tuple[int, str, int]


@dataclass(frozen=True)
class PlacedCells:
    """Where the cells of a netlist are.

    Attributes:
        floorplan: with the memories, the ports and the grid.
        places: lower left corner of each cell in rows, by name.
        turns: orientation of each: N, FN (left and right changed), FS (up and down), S (both).
    """

    netlist: Netlist
    floorplan: Floorplan
    places: Mapping[str, Place]
    turns: Mapping[str, str]

    def box(self, gate: Gate) -> Box:
        """Where a cell or memory is."""
        lef = self.floorplan.lef
        if gate.name in self.floorplan.blocks:
            return self.floorplan.blocks[gate.name]
        width = lef.cells[gate.kind].width // lef.site_nm
        return Box(*self.places[gate.name], width, lef.row)

    def drawn(self, gate: Gate, box: Rectangle) -> Rectangle:
        """Where ``box`` of a cell of orientation N is in the layout."""
        lef, turn = self.floorplan.lef, self.turns[gate.name]
        cell, (left, low, right, top) = lef.cells[gate.kind], box
        if turn in ("FN", "S"):
            left, right = cell.width - right, cell.width - left
        if turn in ("FS", "S"):
            low, top = cell.height - top, cell.height - low
        x, y = (at * nm for at, nm in zip(self.places[gate.name], lef.grid_nm, strict=True))
        return left + x, low + y, right + x, top + y

    def faults(self) -> Iterator[str]:
        """What is not legal: cells off the rows, or over each other; a line for each."""
        rows: defaultdict[int, list[Box]] = defaultdict(list)
        for row in self.floorplan.rows():
            rows[row.y].append(row)
        cells: defaultdict[int, list[tuple[int, Box, str]]] = defaultdict(list)
        for gate in self.netlist.gates:
            if gate.name in self.floorplan.blocks:
                continue
            box = self.box(gate)
            end = box.x + box.width
            if not any(row.x <= box.x and end <= row.x + row.width for row in rows[box.y]):
                yield f"{gate.name} is on no row"
            cells[box.y].append((box.x, box, gate.name))
        for boxes in cells.values():
            for (_, left, name), (_, right, other) in pairwise(sorted(boxes, key=itemgetter(0))):
                if left.overlaps(right):
                    yield f"{name} is over {other}"

    def pins(self) -> Iterator[tuple[int, tuple[float, float], What, bool]]:
        """Each pin of a net that is a wire (not of clocks, resets and constants): its net, its
        place in um, what it is, and whether it drives the net."""
        plan, netlist = self.floorplan, self.netlist
        site, step = plan.lef.um
        skipped = _trees(netlist)

        def of(
            gate: int, name: str, bits: Sequence[int], places: Sequence[Any], drives: bool
        ) -> Iterator[tuple[int, tuple[float, float], What, bool]]:
            for number, (bit, at) in enumerate(zip(bits, places, strict=True)):
                if bit not in skipped:
                    yield bit, at, (gate, name, number), drives

        for number, gate in enumerate(netlist.gates):
            box = self.box(gate)
            x, y = box.x * site, box.y * step
            for name, bits in gate.pins.items():
                if gate.name in plan.blocks:
                    places = [(x + a * site, y + b * step) for a, b in plan.pins[gate.name][name]]
                    yield from of(number, name, bits, places, gate.outputs(name))
                    continue
                cell, turn = plan.lef.cells[gate.kind], self.turns[gate.name]
                a, b = cell.pins[name]
                a = cell.width - a if turn in ("FN", "S") else a
                b = cell.height - b if turn in ("FS", "S") else b
                places = [(x + a / 1000, y + b / 1000)] * len(bits)
                yield from of(number, name, bits, places, name in cell.outputs)
        for ports, drives in ((netlist.inputs, True), (netlist.outputs, False)):
            for name, bits in ports.items():
                places = [(a * site, b * step) for a, b in plan.ports[name]]
                yield from of(-1, name, bits, places, drives)


def _trees(netlist: Netlist) -> set[int]:
    """Nets that do not count as wires of a placement: clocks, resets and constants."""
    return {bit for bits in netlist.trees.values() for bit in bits} | set(netlist.constants)


def need_placer() -> None:
    """Check before the work that the placer is installed.

    Raises:
        MissingExtraError: it is not.
    """
    need(_PLACER, "layouts")


def place(
    netlist: Netlist,
    floorplan: Floorplan,
    *,
    density: float,
    pin_sites: float = 0,
    seed: int = 1,
    start: Mapping[str, Place] | None = None,
) -> PlacedCells:
    """Place the cells of ``netlist`` into the rows of ``floorplan``; 50,000 take a minute.

    Parameters:
        density: share of the rows that cells fill where they are closest.
        pin_sites: least sites for each pin of a cell, so that wires have room to reach them.
        seed: another one gives another placement.
        start: cell -> where it should be; then cells move as little as the rows need, and to
            shorten wires nearby.

    Raises:
        SynthesisError: the cells do not fit, or the placement is not legal.
        MissingExtraError: the placer is not installed.
    """
    need_placer()
    plan, lef = floorplan, floorplan.lef
    cells = [gate for gate in netlist.gates if gate.name not in plan.blocks]
    memories = [gate for gate in netlist.gates if gate.name in plan.blocks]
    middle = plan.die.width // 2, plan.die.height // 2
    trees = _trees(netlist)
    widths = [
        max(lef.cells[gate.kind].width // lef.site_nm, ceil(pin_sites * pins))
        for gate in cells
        for pins in [sum(bit not in trees for bits in gate.pins.values() for bit in bits)]
    ]
    boxes = [
        *(
            (*(start[gate.name] if start else middle), width, lef.row)
            for gate, width in zip(cells, widths, strict=True)
        ),
        *(astuple(plan.blocks[gate.name]) for gate in memories),
        *((*at, 0, 0) for name in (*netlist.inputs, *netlist.outputs) for at in plan.ports[name]),
    ]
    nets = _nets(netlist, plan, cells, memories)
    rows = list(map(astuple, plan.rows()))
    used = sum(widths) / sum(width for _, _, width, _ in rows)
    work = {
        "boxes": boxes,
        "cells": len(cells),
        "rows": rows,
        "nets": [pins for pins in nets if len(pins) > 1],
        "density": min(_FULL, used / density),
        "global": not start,
        "effort": _EFFORT,
        "seed": seed,
    }
    places = _run(json.dumps(work))
    names = [gate.name for gate in cells]
    placed = PlacedCells(
        netlist,
        plan,
        {name: (x, y) for name, (x, y, _) in zip(names, places, strict=True)},
        {name: turn for name, (_, _, turn) in zip(names, places, strict=True)},
    )
    for fault in placed.faults():
        raise SynthesisError(f"placement: {fault}")
    return placed


def _run(work: str) -> list[tuple[int, int, str]]:
    """Place and orientation of each cell of a circuit, cached by its content."""
    file = build_folder() / "placements" / f"{content_key(_FORMAT, version(_PLACER), work)}.json"
    if not file.is_file():
        with scratch_folder("placement") as folder:
            write_file(folder / "circuit.json", work)
            command = [sys.executable, "-I", str(_WORKER)]
            process = run_tool(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if process.returncode != 0:
                said = process.stderr.decode(errors="replace").strip().splitlines()
                raise SynthesisError(f"placement: {said[-1] if said else 'it was ended'}")
            result = (folder / "places.json").read_bytes()
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, result)
    places: list[tuple[int, int, str]] = json.loads(file.read_text(encoding="utf-8"))
    return places


def _nets(
    netlist: Netlist, plan: Floorplan, cells: list[Gate], memories: list[Gate]
) -> Iterator[list[tuple[int, int, int]]]:
    """The pins of each net: number of the box, and place from its corner."""
    nets: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    site, step = plan.lef.grid_nm
    for number, gate in enumerate(cells):
        for pin, bits in gate.pins.items():
            x, y = plan.lef.cells[gate.kind].pins[pin]
            for bit in bits:
                nets[bit].append((number, x // site, y // step))
    for number, gate in enumerate(memories, len(cells)):
        for pin, bits in gate.pins.items():
            for bit, (x, y) in zip(bits, plan.pins[gate.name][pin], strict=True):
                nets[bit].append((number, x, y))
    ports = {**netlist.inputs, **netlist.outputs}
    ends = [bit for name in ports for bit in ports[name]]
    for number, bit in enumerate(ends, len(cells) + len(memories)):
        nets[bit].append((number, 0, 0))
    skipped = _trees(netlist)
    return (pins for net, pins in nets.items() if net not in skipped)
