"""Widths, spacings and connections of a layout's GDS according to KLayout, as a check of our own.

KLayout is optional (``pip install klayout``). It reads the shapes of metals 1 to 6 from the GDS,
joins those that touch, also through vias, and says which of them are too thin or too close. Nets
come from the DEF and pins from the LEF: each point of a net's wires and each pin of a cell gets a
label, so that a net in two parts or two nets in one show. Memories have no shapes in the GDS; the
wires that lead to them end where the DEF says so.

The command ``python -m tests.synth.klayout_check FOLDER`` checks what ``vip layout --route FOLDER``
wrote.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from synth.layout.lef import Lef, LefCell
from synth.physical.asic import nangate_lef

#: Number in GDS of the lowest metal; the via above it has the next one, and so on.
_LOWEST = 11
_METALS = 6

#: Layer (``metal1``), x and y in nm.
_Point = tuple[str, int, int]

_CELL = re.compile(r"^- (\w+) (\w+) \+ PLACED \( (\d+) (\d+) \) (\w+) ;")
_PORT = re.compile(
    r"^- \S+ \+ NET (\w+) .* LAYER (\w+) .* PLACED \( (\d+) (\d+) \) N ;", re.MULTILINE
)
_NET = re.compile(r"^- (\w+) \( (.*) \)$")
_PIN = re.compile(r"(\w+) (\S+)")
_WIRE = re.compile(r"(?:ROUTED|NEW) (\w+) \( (\d+) (\d+) \)")


class LayoutFaults(NamedTuple):
    """What KLayout reports: widths and spacings per layer, nets in parts, and joined nets."""

    thin: Mapping[str, int]
    close: Mapping[str, int]
    open: frozenset[str]
    joined: frozenset[str]


def _pin(cell: LefCell, pin: str, x: int, y: int, turn: str) -> _Point | None:
    """A point in the first shape of a placed cell's pin."""
    for layer, left, low, right, top in cell.shapes.get(pin, ()):
        across, up = (left + right) // 2, (low + top) // 2
        if turn in ("FN", "S"):
            across = cell.width - across
        if turn in ("FS", "S"):
            up = cell.height - up
        return layer, x + across, y + up
    return None


def _points(text: str, lef: Lef) -> Iterator[tuple[str, _Point]]:
    """Nets of a DEF, and points at which each has to have a shape."""
    cells: dict[str, tuple[LefCell, int, int, str]] = {}
    net = ""
    for line in text.splitlines():
        if cell := _CELL.match(line):
            name, kind, x, y, turn = cell.groups()
            if kind in lef.cells:
                cells[name] = lef.cells[kind], int(x), int(y), turn
        elif port := _PORT.match(line):
            yield port[1], (port[2], int(port[3]), int(port[4]))
        elif start := _NET.match(line):
            net = start[1]
            for name, pin in _PIN.findall(start[2]):
                if name in cells and (at := _pin(cells[name][0], pin, *cells[name][1:])):
                    yield net, at
        elif wire := _WIRE.search(line):
            yield net, (wire[1], int(wire[2]), int(wire[3]))


def check_gds(gds: Path, text: str, lef: Lef) -> LayoutFaults:
    """What is wrong in a GDS whose nets are those of the DEF in ``text``."""
    import klayout.db as kdb

    metals = list(lef.layers)[:_METALS]
    layout, options = kdb.Layout(), kdb.LoadLayoutOptions()
    numbers = [layout.layer(_LOWEST + place, 0) for place in range(2 * _METALS - 1)]
    options.set_layer_map(layout_map(kdb, numbers), False)
    layout.read(str(gds), options)
    (top,) = layout.top_cells()
    top.flatten(True)

    thin: dict[str, int] = {}
    close: dict[str, int] = {}
    for name, number in zip(metals, numbers[::2], strict=True):
        shapes = kdb.Region(top.begin_shapes_rec(number)).merged()
        unit = 1000 * layout.dbu
        thin[name] = shapes.width_check(round(lef.rules[name]["WIDTH"] / unit)).count()
        close[name] = shapes.space_check(round(lef.rules[name]["SPACING"] / unit)).count()

    labels = {name: layout.layer(100 + place, 0) for place, name in enumerate(metals)}
    nets = set()
    for net, (layer, x, y) in _points(text, lef):
        nets.add(net)
        at = kdb.DTrans(x / 1000, y / 1000)
        top.shapes(labels[layer]).insert(kdb.DText(net, at))
    connected = kdb.LayoutToNetlist(kdb.RecursiveShapeIterator(layout, top, []))
    layers = [connected.make_polygon_layer(number, f"l{number}") for number in numbers]
    for place, layer in enumerate(layers):
        connected.connect(layer)
        if place:
            connected.connect(layers[place - 1], layer)
    for place, name in enumerate(metals):
        connected.connect(layers[2 * place], connected.make_text_layer(labels[name], f"t{place}"))
    connected.extract_netlist()
    (circuit,) = connected.netlist().each_circuit()
    names = [name.split(",") for net in circuit.each_net() if (name := net.name)]
    joined = frozenset(name for group in names if len(group) > 1 for name in group)
    parts = Counter(name for group in names for name in group)
    return LayoutFaults(thin, close, frozenset(net for net in nets if parts[net] != 1), joined)


def layout_map(kdb: Any, numbers: list[int]) -> Any:
    """Only the layers that are checked."""
    layers = kdb.LayerMap()
    for place, number in enumerate(numbers):
        layers.map(kdb.LayerInfo(_LOWEST + place, 0), number)
    return layers


def main() -> None:
    """Check a folder, print what was found, and exit with 1 if there was anything."""
    folder = Path(sys.argv[1])
    text = (folder / "layout.def").read_text()
    faults = check_gds(folder / "layout.gds", text, Lef(*nangate_lef()))
    print("widths", *(f"{name} {count}" for name, count in faults.thin.items()))
    print("spacings", *(f"{name} {count}" for name, count in faults.close.items()))
    print(f"nets in parts {len(faults.open)}: {' '.join(sorted(faults.open)[:10])}")
    print(f"nets joined {len(faults.joined)}: {' '.join(sorted(faults.joined)[:10])}")
    sys.exit(any((*faults.thin.values(), *faults.close.values(), faults.open, faults.joined)))


if __name__ == "__main__":
    main()
