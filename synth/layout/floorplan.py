"""The floorplan of an engine: its memories as blocks at the edges, rows of cells between them.

Memories of the commonest shape, the banks of the scratchpad, stand in a shelf along the north edge
and one along the south edge, the others in columns along the west and the east edge. Ports are
evenly around the die, in their order. Lengths are in sites and steps of
:class:`synth.layout.lef.Lef`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt

from hdl.sram_macro import MacroError, SramGeometry
from synth.errors import SynthesisError
from synth.netlist import Gate, Netlist
from synth.sram import sram_um2

from .lef import Lef

#: Free space around a memory, in rows.
_HALO = 2

#: A place, from the lower left corner of the die or of a memory.
Place = tuple[int, int]


@dataclass(frozen=True)
class Box:
    """A rectangle: its lower left corner, and its size."""

    x: int
    y: int
    width: int
    height: int

    def overlaps(self, other: "Box") -> bool:
        """Whether they share any area."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )


def check_density(density: float) -> None:
    """Check before the work that cells can fill that share of an area.

    Raises:
        SynthesisError: it is not above 0 and at most 1.
    """
    if not 0 < density <= 1:
        raise SynthesisError(f"density must be above 0 and at most 1, not {density:g}")


class Floorplan:
    """The floorplan of a netlist, on a die from (0, 0).

    Parameters:
        node_nm: feature size, which decides the size of memories (:mod:`synth.sram`).
        density: share of the area between the memories that cells fill, above 0 and at most 1.

    Attributes:
        lef: with its grid and its cells.
        die: all of it.
        blocks: memory -> its place.
        pins: memory -> pin -> places of its bits, from the block's corner.
        ports: port -> places of its bits, at the edge of the die.

    Raises:
        SynthesisError: the LEF lacks a cell or a pin, or ``density`` is out of range.
    """

    def __init__(self, netlist: Netlist, lef: Lef, *, node_nm: float, density: float) -> None:
        check_density(density)
        self.lef = lef
        macros = _memories(netlist, lef)
        sizes = {macro.name: _size(macro, lef, node_nm) for macro in macros}
        kinds = Counter(macro.kind for macro in macros)
        common = next((kind for kind, number in kinds.most_common(1) if number > 1), "")
        banks = [macro.name for macro in macros if macro.kind == common]
        others = [macro.name for macro in macros if macro.kind != common]
        cells = sum(lef.cells[gate.kind].width for gate in netlist.gates if gate.kind in lef.cells)
        area = cells / lef.site_nm * lef.row / density
        self.die, self.blocks = _arranged(lef, sizes, banks, others, area)
        self.pins: dict[str, Mapping[str, Sequence[Place]]] = {}
        for macro in macros:
            box, count = self.blocks[macro.name], sum(map(len, macro.pins.values()))
            places = _facing(box, count, self.die, macro.name in others)
            self.pins[macro.name] = _split(places, macro.pins)
        ports = {**netlist.inputs, **netlist.outputs}
        around = _around(self.die.width, self.die.height, sum(map(len, ports.values())))
        self.ports = _split(around, ports)

    @property
    def mm2(self) -> float:
        """Area of the die."""
        site, step = self.lef.um
        return self.die.width * site * self.die.height * step / 1e6

    def rows(self) -> Iterator[Box]:
        """The parts of rows that no memory or its surroundings cover, from the south."""
        height, halo = self.lef.row, _HALO * self.lef.row
        blocks = sorted(self.blocks.values(), key=lambda box: box.x)
        for y in range(0, self.die.height - height + 1, height):
            left = 0
            for box in blocks:
                if box.y - halo < y + height and y < box.y + box.height + halo:
                    if box.x - halo > left:
                        yield Box(left, y, box.x - halo - left, height)
                    left = max(left, box.x + box.width + halo)
            if left < self.die.width:
                yield Box(left, y, self.die.width - left, height)


def _arranged(
    lef: Lef,
    sizes: Mapping[str, tuple[int, int]],
    banks: Sequence[str],
    others: Sequence[str],
    area: float,
) -> tuple[Box, dict[str, Box]]:
    """The die, and the place of each memory.

    Parameters:
        sizes: of memories. banks: those in the shelves. others: those in the columns.
        area: that cells need, in units of the grid.
    """
    halo = _HALO * lef.row
    shelves = banks[0::2], banks[1::2]
    columns: tuple[list[str], list[str]] = [], []
    for name in sorted(others, key=lambda name: -sizes[name][1]):
        min(columns, key=lambda column: _length(column, sizes, 1, halo)).append(name)
    tall = max(_length(column, sizes, 1, halo) for column in columns)
    taken = sum((sizes[name][0] + halo) * (sizes[name][1] + halo) for name in others)
    site, step = lef.um
    # In um both sides of the middle are alike where no memory decides.
    side = sum(max((sizes[name][0] + halo for name in column), default=0) for column in columns)
    shelf = max(_length(names, sizes, 0, halo) + halo for names in shelves)
    width = max(shelf, side + 1, ceil(sqrt((area + taken) * step / site)))
    middle = ceil(max(tall, (area + taken) / width) / lef.row) * lef.row
    north, south = (max((sizes[name][1] + halo for name in of), default=0) for of in shelves)
    height = south + middle + north
    blocks: dict[str, Box] = {}
    for shelf_of, top in zip(shelves, (height, 0), strict=True):
        gap = (width - _length(shelf_of, sizes, 0, 0)) // (len(shelf_of) + 1)
        x = gap
        for name in shelf_of:
            size = sizes[name]
            blocks[name] = Box(x, max(0, top - size[1]), *size)
            x += size[0] + gap
    for column, east in zip(columns, (False, True), strict=True):
        free = middle + halo - _length(column, sizes, 1, halo)
        y = south + free // 2 // lef.row * lef.row
        for name in column:
            size = sizes[name]
            blocks[name] = Box(width - size[0] if east else 0, y, *size)
            y += size[1] + halo
    return Box(0, 0, width, height), blocks


def _length(
    names: Iterable[str], sizes: Mapping[str, tuple[int, int]], axis: int, halo: int
) -> int:
    """Of memories along an axis, each with the space after it."""
    return sum(sizes[name][axis] + halo for name in names)


def _memories(netlist: Netlist, lef: Lef) -> Sequence[Gate]:
    """The memory macros, by name; other cells are in ``lef`` with their pins."""
    macros = []
    for gate in netlist.gates:
        cell = lef.cells.get(gate.kind)
        if cell is not None:
            for pin in gate.pins:
                if pin not in cell.pins:
                    raise SynthesisError(f"LEF: cell {gate.kind} lacks pin {pin}")
            continue
        try:
            SramGeometry.parse(gate.kind)
        except MacroError:
            raise SynthesisError(f"LEF lacks cell {gate.kind}, e.g. {gate.name}") from None
        macros.append(gate)
    return sorted(macros, key=lambda macro: macro.name)


def _size(macro: Gate, lef: Lef, node_nm: float) -> tuple[int, int]:
    """A square of the memory's area, of whole rows and sites."""
    side = 1000 * sqrt(sram_um2(SramGeometry.parse(macro.kind))) * node_nm / 28.0
    return ceil(side / lef.site_nm), ceil(side / lef.row_nm) * lef.row


def _facing(box: Box, count: int, die: Box, column: bool) -> Iterator[Place]:
    """Places evenly along the side of a memory that faces the cells: of one in a column the
    eastern or western side, of another the upper or lower one."""
    east = 0 if 2 * box.x + box.width > die.width else box.width
    north = 0 if 2 * box.y + box.height > die.height else box.height
    for odd in range(1, 2 * count, 2):
        if column:
            yield east, odd * box.height // (2 * count)
        else:
            yield odd * box.width // (2 * count), north


def _around(width: int, height: int, count: int) -> Iterator[Place]:
    """Places evenly around the die, clockwise from its lower left corner."""
    corners = ((0, 0), (0, height), (width, height), (width, 0), (0, 0))
    for odd in range(1, 2 * count, 2):
        left = odd * (width + height) // count
        for (x, y), (to_x, to_y) in pairwise(corners):
            length = abs(to_x - x) + abs(to_y - y)
            if left <= length:
                yield x + (to_x - x) * left // length, y + (to_y - y) * left // length
                break
            left -= length


def _split(
    places: Iterator[Place], groups: Mapping[str, Sequence[int]]
) -> Mapping[str, Sequence[Place]]:
    """The next of ``places`` for each bit of each group."""
    return {name: [next(places) for _ in bits] for name, bits in groups.items()}
