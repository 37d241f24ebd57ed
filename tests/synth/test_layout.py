"""Layouts: LEF files good and bad, legal placements, and what their wires cost."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hdl.sram_macro import SramGeometry
from synth.errors import SynthesisError
from synth.layout.floorplan import Floorplan
from synth.layout.lef import Lef
from synth.layout.placement import PlacedCells, place
from synth.layout.repair import repaired, without_buffers
from synth.netlist import Gate, Netlist
from synth.physical.asic import nangate_lef
from synth.physical.targets import find_cells
from synth.sram import SramTimes, sram_um2
from synth.timing.cell_library import CellLibrary, Parasitics, Wires
from synth.timing.sta import longest_path
from synth.timing.timer import Timer
from vip.synthesis.clocks import logic_ge
from vip.synthesis.layout_picture import draw

CELLS = """
LAYER via1 TYPE CUT ; END via1
LAYER metal1 TYPE ROUTING ; WIDTH 0.5 ; RESISTANCE RPERSQ 0.25 ;
  CAPACITANCE CPERSQDIST 0.0001 ; EDGECAPACITANCE 0.00002 ; END metal1
VIARULE rule GENERATE LAYER metal1 ; WIDTH 1 TO 2 ; END rule
MACRO INV # a comment
  SIZE 0.4 BY 1.4 ;
  PIN A DIRECTION INPUT ; PORT LAYER metal1 ; RECT 0 0.2 0.2 0.4 ; RECT 0.2 0.4 0.4 0.6 ; END END A
  PIN Y DIRECTION OUTPUT ; PORT LAYER metal1 ; POLYGON 0.1 1 0.3 1 0.3 1.2 ; END END Y
  OBS LAYER metal1 ; RECT 0 0 1 1 ; END
END INV
MACRO BUF SIZE 0.6 BY 1.4 ; END BUF
END LIBRARY
"""


@pytest.fixture(scope="module")
def library() -> CellLibrary:
    return find_cells("nangate45")[1]


@pytest.fixture(scope="module")
def lef() -> Lef:
    return Lef(*nangate_lef())


def lef_of(text: str, folder: Path) -> Lef:
    path = folder / "cells.lef"
    path.write_text(text)
    return Lef(path)


def test_sizes_pins_and_wires_are_read(tmp_path: Path) -> None:
    lef = lef_of(CELLS, tmp_path)
    cell = lef.cells["INV"]
    assert (cell.width, cell.height, cell.outputs) == (400, 1400, {"Y"})
    assert cell.pins == {"A": (200, 400), "Y": (200, 1100)}
    assert list(lef.layers) == ["metal1"]
    assert lef.layers["metal1"].ohm == 0.5
    assert lef.layers["metal1"].ff == pytest.approx(1000 * (0.5 * 0.0001 + 2 * 0.00002))
    assert (lef.site_nm, lef.row_nm, lef.row) == (200, 1400, 7)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SIZE 0.4 BY 1.4 ;", "", "cell INV has no size"),
        ("RECT 0 0.2 0.2 0.4 ; RECT 0.2 0.4 0.4 0.6 ;", "", "cells.lef:8: pin A has no shape"),
        ("RECT 0 0.2 0.2", "RECT 0 0.2 wide", "cells.lef:8: a length is not a number"),
        ("END INV", "END INW", "cells.lef:11: END INW instead of END INV"),
        ("WIDTH 0.5 ;", "", "cells.lef:4: layer metal1 lacks its width"),
        ("END BUF\nEND LIBRARY", "", "cells.lef:12: it ends too early"),
        (CELLS, "VERSION 5.6 ;", "no cell"),
    ],
)
def test_a_bad_file_is_one_line(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in CELLS
    with pytest.raises(SynthesisError, match=message) as error:
        lef_of(CELLS.replace(old, new), tmp_path)
    assert "\n" not in str(error.value)


def test_layout_and_library_agree_on_every_cell(lef: Lef, library: CellLibrary) -> None:
    shared = library.cells.keys() & lef.cells.keys()
    assert len(shared) > 100
    for name in shared:
        cell, drawn = library.cells[name], lef.cells[name]
        assert drawn.width * drawn.height / 1e6 == pytest.approx(cell.area, rel=1e-3)
        assert drawn.outputs == set(cell.outputs)
        assert drawn.pins.keys() >= {*cell.inputs, *cell.outputs}


MEMORY = SramGeometry(64, 16, 1, 1).name


def random_netlist(seed: int, gates: int = 400, memories: int = 4) -> Netlist:
    """Gates and flip-flops that read some of the nets before them, and equal memories."""
    draw = random.Random(seed)
    nets = list(range(8))
    cells = []
    for number in range(gates):
        kind, pins = draw.choice(
            [("NAND2_X1", ("A1", "A2", "ZN")), ("INV_X2", ("A", "ZN")), ("DFF_X1", ("D", "Q"))]
        )
        ends = [draw.choice(nets[-40:]) if draw.random() < 0.9 else nets[0] for _ in pins[1:]]
        nets.append(number + 8)
        bits = {pin: (net,) for pin, net in zip(pins, [*ends, nets[-1]], strict=True)}
        clock = {"CK": (-1,)} if kind == "DFF_X1" else {}
        cells.append(Gate(f"g{number}", kind, f"unit{number % 3}", {**bits, **clock}))
    for number in range(memories):
        read = tuple(range(len(nets), len(nets) + 16))
        nets += read
        pins = {"r0_data": read, "w0_data": tuple(draw.choices(nets[8:], k=16))}
        cells.append(Gate(f"memory{number}", MEMORY, "scratchpad", pins))
    outputs = {"out": tuple(nets[-8:])}
    return Netlist({"in": tuple(nets[:8])}, outputs, tuple(cells), {"clk": (-1,)})


@pytest.fixture(scope="module")
def placed(lef: Lef) -> PlacedCells:
    pytest.importorskip("coloquinte")
    netlist = random_netlist(1)
    return place(netlist, Floorplan(netlist, lef, node_nm=45, density=0.3), density=0.6)


def corners(placement: PlacedCells) -> Iterator[tuple[str, int, int, int, int]]:
    """Name, left, low, right and top of cells and memories, in nm, by the LEF and the model."""
    lef = placement.floorplan.lef
    for gate in placement.netlist.gates:
        if gate.kind == MEMORY:
            box = placement.floorplan.blocks[gate.name]
            x, y, wide, high = box.x, box.y, box.width * lef.site_nm, box.height * 200
            area = sram_um2(SramGeometry.parse(MEMORY)) * (45 / 28) ** 2
            assert area <= wide * high / 1e6 < 1.1 * area
        else:
            x, y = placement.places[gate.name]
            wide, high = lef.cells[gate.kind].width, lef.cells[gate.kind].height
        yield gate.name, x * lef.site_nm, y * 200, x * lef.site_nm + wide, y * 200 + high


def test_cells_and_memories_are_beside_each_other_on_the_die(placed: PlacedCells) -> None:
    lef, die = placed.floorplan.lef, placed.floorplan.die
    assert (lef.site_nm, lef.row_nm) == (190, 7 * 200)
    boxes = list(corners(placed))
    assert len(boxes) == len(placed.netlist.gates)
    for name, left, low, right, top in boxes:
        assert 0 <= left < right <= die.width * 190, name
        assert 0 <= low < top <= die.height * 200, name
        assert low % 1400 == 0
    for (_, a, b, c, d), (_, left, low, right, top) in combinations(boxes, 2):
        assert c <= left or right <= a or d <= low or top <= b


def test_pins_have_room(placed: PlacedCells) -> None:
    gates = [gate for gate in placed.netlist.gates if gate.kind != MEMORY]
    wide = place(placed.netlist, placed.floorplan, density=1, pin_sites=2, start=placed.places)
    boxes = sorted((wide.box(gate).y, wide.box(gate).x, gate.kind) for gate in gates)
    room = {"NAND2_X1": 6, "INV_X2": 4, "DFF_X1": 4}
    for (y, x, kind), (above, after, _) in pairwise(boxes):
        assert y != above or after - x >= room[kind]


def test_a_placement_that_is_not_legal_is_found(placed: PlacedCells) -> None:
    moved = {**placed.places, "g1": placed.places["g2"]}
    assert any("g1" in fault for fault in replace(placed, places=moved).faults())
    x, y = placed.places["g1"]
    for place_of in ((x, y + 1), (-1, y), (placed.floorplan.die.width, y)):
        moved = {**placed.places, "g1": place_of}
        assert "g1 is on no row" in list(replace(placed, places=moved).faults())


def half_perimeters(placed: PlacedCells) -> dict[int, float]:
    """Net -> half the perimeter of the box around its pins, in um."""
    boxes: dict[int, list[float]] = {}
    for net, (x, y), _, _ in placed.pins():
        box = boxes.setdefault(net, [x, y, x, y])
        box[:] = min(box[0], x), min(box[1], y), max(box[2], x), max(box[3], y)
    return {net: right - left + top - low for net, (left, low, right, top) in boxes.items()}


def test_the_placer_makes_wires_shorter(placed: PlacedCells) -> None:
    lengths = half_perimeters(placed)
    assert -1 not in lengths
    shuffled = random.Random(3)
    places = list(placed.places.values())
    shuffled.shuffle(places)
    apart = replace(placed, places=dict(zip(placed.places, places, strict=True)))
    assert sum(lengths.values()) < 0.7 * sum(half_perimeters(apart).values())
    gates = placed.netlist.gates
    one = next(gate for gate in placed.netlist.gates if gate.kind == "INV_X2")
    inner = {name: at for _, at, (gate, name, _), _ in placed.pins() if gates[gate] is one}
    cell = placed.floorplan.lef.cells["INV_X2"]
    left, low = placed.places[one.name]
    for name, (x, y) in inner.items():
        a, b = cell.pins[name]
        if placed.turns[one.name] in ("FN", "S"):
            a = cell.width - a
        if placed.turns[one.name] in ("FS", "S"):
            b = cell.height - b
        assert (x, y) == pytest.approx((left * 0.19 + a / 1000, low * 0.2 + b / 1000))


def test_engines_beside_each_other_have_the_same_scale(placed: PlacedCells, tmp_path: Path) -> None:
    netlist = random_netlist(2, gates=150, memories=1)
    plan = Floorplan(netlist, placed.floorplan.lef, node_nm=45, density=0.3)
    small = place(netlist, plan, density=0.6)
    draw(tmp_path / "a.png", {"four": (placed, None), "one": (small, None)})
    with Image.open(tmp_path / "a.png") as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    tall = (abs(pixels - np.array((209, 214, 222))).max(2) < 4).sum(0)
    columns = np.flatnonzero(tall)
    left, right, *_ = np.split(columns, np.flatnonzero(np.diff(columns) > 80) + 1)
    # Two memories are one above the other, each as large as the other engine's.
    assert tall[left].max() == pytest.approx(2 * tall[right].max(), rel=0.02)


WIRE = Wires(ff=0.4, ohm=8.0)


def wires_of(wire: Wires, um: Mapping[int, float]) -> Parasitics:
    """Nets with so many um of a wire."""
    ff, ohm = ({net: one * of for net, one in um.items()} for of in (wire.ff, wire.ohm))
    return Parasitics(ff, ohm)


def timer_of(placement: PlacedCells, library: CellLibrary) -> Timer:
    wires = wires_of(WIRE, half_perimeters(placement))
    return Timer(placement.netlist, library, SramTimes(45), wires)


def touching(placement: PlacedCells) -> float:
    """The share of cells that end where another one begins."""
    boxes = [placement.box(gate) for gate in placement.netlist.gates if gate.kind != MEMORY]
    starts = {(box.x, box.y) for box in boxes}
    return sum((box.x + box.width, box.y) in starts for box in boxes) / len(boxes)


def test_repair_is_faster_legal_and_changes_no_function(
    placed: PlacedCells, library: CellLibrary
) -> None:
    before = placed.netlist
    timer = timer_of(placed, library)
    aim = 0.35 * float(timer.end_ns.max())
    netlist, places = repaired(placed, library, WIRE, aim)
    legal = place(netlist, placed.floorplan, density=0.6, start=places)
    assert timer_of(legal, library).end_ns.max() < 1.2 * aim
    assert touching(legal) < 0.1
    added = netlist.gates[len(before.gates) :]
    assert added
    entries = {gate.pins["Z"]: gate.pins["A"] for gate in added}

    def source(bits: tuple[int, ...]) -> tuple[int, ...]:
        while bits in entries:
            bits = entries[bits]
        return bits

    larger = 0
    for old, new in zip(before.gates, netlist.gates, strict=False):
        assert new.kind.split("_X")[0] == old.kind.split("_X")[0]
        larger += new.kind != old.kind
        assert new.pins.keys() == old.pins.keys()
        for pin, bits in new.pins.items():
            assert tuple(source((bit,))[0] for bit in bits) == old.pins[pin]
    assert larger
    ends = [source((bit,))[0] for bit in netlist.outputs["out"]]
    assert tuple(ends) == before.outputs["out"]
    easy, _ = repaired(placed, library, WIRE, 6 * aim)
    assert logic_ge(easy, library) < 0.98 * logic_ge(netlist, library)
    bare = without_buffers(netlist, library)
    assert [gate.pins for gate in bare.gates] == [gate.pins for gate in before.gates]
    assert bare.outputs == before.outputs


def test_time_left_at_pins_agrees_with_the_longest_path(
    placed: PlacedCells, library: CellLibrary
) -> None:
    timer = timer_of(placed, library)
    period = float(timer.end_ns.max())
    slack = {
        pin: ns - timer.arrival[pin[1]] - timer.wire_ns[pin[1]]
        for pin, ns in timer.needs(period).items()
    }
    assert min(slack.values()) == pytest.approx(0.0, abs=1e-9)
    end = int(timer.end_ns.argmax())
    assert slack[int(timer.end_gate[end]), int(timer.end_node[end])] == pytest.approx(0, abs=1e-9)


def test_cells_that_do_not_fit_are_refused(placed: PlacedCells) -> None:
    crowd = random_netlist(2, gates=2500)
    with pytest.raises(SynthesisError, match=r"^placement: "):
        place(crowd, placed.floorplan, density=0.6)


@pytest.mark.parametrize(
    ("density", "kind", "message"),
    [
        (0, "INV_X1", "density must be above 0 and at most 1, not 0"),
        (1.5, "INV_X1", "not 1.5"),
        (0.6, "ODD_X1", "LEF lacks cell ODD_X1, e.g. g"),
        (0.6, "FILLCELL_X1", "LEF: cell FILLCELL_X1 lacks pin A"),
    ],
)
def test_netlists_that_have_no_floorplan(lef: Lef, density: float, kind: str, message: str) -> None:
    netlist = Netlist({}, {}, (Gate("g", kind, "unit", {"A": (0,), "ZN": (1,)}),))
    with pytest.raises(SynthesisError, match=message):
        Floorplan(netlist, lef, node_nm=45, density=density)


def test_a_wire_takes_the_time_of_its_load_and_of_its_resistance(library: CellLibrary) -> None:
    netlist = Netlist(
        {"in": (0,)},
        {},
        (
            Gate("a", "INV_X1", "unit", {"A": (0,), "ZN": (1,)}),
            Gate("b", "DFF_X1", "unit", {"D": (1,), "CK": (2,), "Q": (3,)}),
        ),
        {"clk": (2,)},
    )
    macros = SramTimes(45)

    def ns(wires: Parasitics | None) -> float:
        return longest_path(netlist, library, macros, wires).ns

    um, ff, ohm = 200.0, 0.1, 40.0
    assert ns(wires_of(Wires(0.0), {1: um})) == ns(None)
    loaded = ns(wires_of(Wires(ff), {1: um}))
    assert loaded > ns(None) + 0.05
    behind = um * ohm * (um * ff / 2 + library.cells["DFF_X1"].pins["D"].capacitance)
    assert ns(wires_of(Wires(ff, ohm), {1: um})) == pytest.approx(
        loaded + 0.69e-6 * behind, rel=0.01
    )
