"""The clock's tree of placed cells: a driver for each cluster of registers, and buffers above.

A cluster's driver is a buffer, or the clock gate of its registers, of which each cluster has one.
All drivers are at the same level, those that are near share a buffer, and so on up to the clock's
port. Sizes of buffers and gates are such that the clock comes everywhere at the same time.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from operator import itemgetter
from random import Random

from synth.netlist import CLOCK, Gate, Netlist
from synth.timing.cell_library import Cell, CellLibrary, Parasitics, Wires
from synth.timing.registers import port_register
from synth.timing.timer import CLOCK_SLEW_NS, RC_NS, gated_clocks

from .parasitics import estimated, spanning
from .placement import PlacedCells, What

#: Unit of the buffers of the tree.
UNIT = "clock"
#: fF that a driver of registers should have at most, and how much more those above have.
_LEAF_FF, _MORE = 30.0, 2.0
#: fF for each fF of a driver's input, when its size is first chosen, and at least of a buffer's.
_GAIN, _LEAST_GAIN = 9.0, 2.0
#: ns that an edge may take at most.
_MOST_SLEW_NS = 0.09
#: How often sizes change, and of what share of the drivers.
_TURNS, _SHARE = 30, 0.5

#: A pin: its place in um, its fF, and what it is.
_Pin = tuple[tuple[float, float], float, What]


@dataclass(frozen=True)
class ClockTimes:
    """When the clock rises.

    Attributes:
        at: number of a register, memory or gate -> ns at its pin, after the clock's port.
        above: that number -> that of its driver, -1: the port; those above others come first.
        slew: number of a driver -> ns of the edge at its input. load: fF at its output.
        ff: of all nets of the clock with their pins.
    """

    at: Mapping[int, float]
    above: Mapping[int, int]
    slew: Mapping[int, float]
    load: Mapping[int, float]
    ff: float

    def of_registers(self) -> Mapping[int, float]:
        """When it comes at each register and memory."""
        return {number: ns for number, ns in self.at.items() if number not in self.slew}

    @property
    def skew(self) -> float:
        """ns between the first and the last of them."""
        times = self.of_registers().values()
        return max(times, default=0.0) - min(times, default=0.0)

    def means(self) -> Mapping[int, float]:
        """The mean time of the registers behind each driver, and behind the port (-1)."""
        sums: defaultdict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for number, driver in reversed(list(self.above.items())):
            ns, of = sums[number] if number in self.slew else (self.at[number], 1.0)
            sums[driver][0] += ns
            sums[driver][1] += of
        return {number: ns / of for number, (ns, of) in sums.items()}


def clock_pin(kind: str, library: CellLibrary) -> str | None:
    """The pin at which a register, memory, clock gate or buffer takes a clock."""
    cell = library.cells.get(kind)
    if cell is None:
        return CLOCK
    if cell.sequential:
        return next((name for name in cell.inputs if cell.pins[name].clock), None)
    return cell.inputs[0] if cell.buffers else None


def _ends(gate: Gate, library: CellLibrary) -> str | None:
    """The pin at which it passes a clock on."""
    cell = library.cells.get(gate.kind)
    passes = cell is not None and (cell.gates_clock or cell.buffers)
    return cell.outputs[0] if cell is not None and passes else None


def clock_times(netlist: Netlist, library: CellLibrary, wires: Parasitics) -> ClockTimes:
    """When the clock comes at each gate that its tree reaches from the port ``clk``, if it has one:
    without it, no clock comes anywhere."""
    if netlist.trees:
        return ClockTimes({}, {}, {}, {}, 0.0)
    gates = netlist.gates
    pins: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    entries = {kind: clock_pin(kind, library) for kind in {gate.kind for gate in gates}}
    for number, gate in enumerate(gates):
        pin = entries[gate.kind]
        if pin is not None and pin in gate.pins:
            pins[gate.pins[pin][0]].append((number, pin))
    at: dict[int, float] = {}
    above: dict[int, int] = {}
    slews: dict[int, float] = {}
    loads: dict[int, float] = {}
    total = 0.0
    waiting = [(root, 0.0, CLOCK_SLEW_NS, -1) for root in netlist.inputs.get(CLOCK, ())]
    for net, ns, slew, driver in waiting:
        own = wires.ff.get(net, 0.0)
        load = own + sum(_ff(gates[number], pin, library) for number, pin in pins[net])
        total += load
        if driver >= 0:
            cell = library.cells[gates[driver].kind]
            later, slew = _edge(cell, slew, load)
            ns += later
            loads[driver] = load
        for number, pin in pins[net]:
            above[number] = driver
            ohm = wires.ways.get((number, pin, 0), wires.ohm.get(net, 0.0))
            at[number] = ns + RC_NS * ohm * (load - own / 2)
            end = _ends(gates[number], library)
            if end is not None:
                slews[number] = slew
                waiting.append((gates[number].pins[end][0], at[number], slew, number))
    return ClockTimes(at, above, slews, loads, total)


def with_clock(netlist: Netlist, library: CellLibrary, wires: Parasitics) -> Parasitics:
    """``wires`` with the times of the clock, if it has a tree; at ports their mean."""
    times = clock_times(netlist, library, wires)
    return replace(wires, clock_ns={**times.at, -1: times.means().get(-1, 0.0)})


def of_clock(gate: Gate, library: CellLibrary) -> bool:
    """Whether it drives a clock."""
    cell = library.cells.get(gate.kind)
    return gate.unit == UNIT or (cell is not None and cell.gates_clock)


def _ff(gate: Gate, pin: str, library: CellLibrary) -> float:
    """Load of a pin; of a memory's, that of the smallest flip-flop."""
    cell = library.cells.get(gate.kind)
    if cell is None:
        register = port_register(library)
        return register.cell.pins[register.data].capacitance
    return cell.pins[pin].capacitance


def _edge(cell: Cell, slew: float, load: float) -> tuple[float, float]:
    """Delay and slew of a rising edge through a buffer or clock gate."""
    tables = [arc.tables for arc in cell.pins[cell.outputs[0]].arcs if "cell_rise" in arc.tables]
    return (
        max(table["cell_rise"].at(slew, load) for table in tables),
        max(table["rise_transition"].at(slew, load) for table in tables),
    )


def with_clock_tree(placed: PlacedCells, library: CellLibrary, wire: Wires) -> PlacedCells:
    """``placed`` with the tree of the clock at its port ``clk``, all where it should be, which is
    not yet legal. Nets of clocks are wires then.

    Parameters:
        wire: a um of it.

    Raises:
        SynthesisError: the library has no buffer.
    """
    tree = _Tree(placed, library, wire)
    if CLOCK in placed.netlist.inputs:
        tree.grow()
    return tree.balanced()


class _Tree:
    """A tree that grows from registers to the port."""

    def __init__(self, placed: PlacedCells, library: CellLibrary, wire: Wires) -> None:
        self._placed, self._library, self._wire = placed, library, wire
        self._gates = list(placed.netlist.gates)
        self._places, self._turns = dict(placed.places), dict(placed.turns)
        bits = (bit for gate in self._gates for of in gate.pins.values() for bit in of)
        self._free = count(1 + max(bits))
        self._buffers = _family(library, lambda cell: cell.buffers)
        self._numbers = count()

    def grow(self) -> None:
        """Add all drivers."""
        (root,) = self._placed.netlist.inputs[CLOCK]
        pins: defaultdict[int, list[_Pin]] = defaultdict(list)
        gate_of = gated_clocks(self._placed.netlist, self._library)
        bare = replace(self._placed, netlist=replace(self._placed.netlist, trees={}))
        for net, at, what, drives in bare.pins():
            if drives or what[0] < 0:
                continue
            gate = self._gates[what[0]]
            if what[1] != clock_pin(gate.kind, self._library):
                continue
            if net in gate_of or (net == root and _ends(gate, self._library) is None):
                pins[net].append((at, _ff(gate, what[1], self._library), what))
        level = []
        for net, of in pins.items():
            for number, cluster in enumerate(self._clusters(of, _LEAF_FF)):
                level.append(self._driver(net, gate_of.get(net), number, cluster))
        most = _LEAF_FF
        while len(level) > 1:
            most *= _MORE
            level = [
                self._driver(root, None, number, cluster)
                for number, cluster in enumerate(self._clusters(level, most))
            ]
        for _, _, (top, pin, _) in level:
            self._rewire(top, pin, root)

    def _clusters(self, pins: Sequence[_Pin], most: float) -> Iterator[Sequence[_Pin]]:
        """Pins that are near each other, with their wires of ``most`` fF."""
        load = sum(ff for _, ff, _ in pins)
        if load < most:
            um = sum(length for _, _, length in spanning([at for at, _, _ in pins]))
            load += self._wire.ff * um
        if load <= most or len(pins) == 1:
            yield pins
            return
        xs, ys = zip(*(at for at, _, _ in pins), strict=True)
        side = int(max(ys) - min(ys) > max(xs) - min(xs))
        order = sorted(pins, key=lambda pin: pin[0][side])
        for half in (order[: len(order) // 2], order[len(order) // 2 :]):
            yield from self._clusters(half, most)

    def _driver(self, net: int, gate: int | None, copy: int, pins: Sequence[_Pin]) -> _Pin:
        """Drive ``pins`` of ``net`` by a buffer, or by its ``gate`` or a copy of it; its input."""
        xs, ys = zip(*(at for at, _, _ in pins), strict=True)
        at = (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2
        load = sum(ff for _, ff, _ in pins)
        load += self._wire.ff * sum(um for _, _, um in spanning([pin[0] for pin in pins]))
        if gate is not None and not copy:
            number, end = gate, net
        else:
            end = next(self._free)
            name = f"clock_{next(self._numbers)}"
            number = len(self._gates)
            if gate is None:
                fitting = [kind for kind, ff in self._buffers if _GAIN * ff >= load]
                cell = self._library.cells[fitting[0] if fitting else self._buffers[-1][0]]
                self._gates.append(Gate(name, cell.name, UNIT, {cell.outputs[0]: (end,)}))
            else:
                old = self._gates[gate]
                of = _ends(old, self._library)
                assert of is not None
                self._gates.append(replace(old, name=name, pins={**old.pins, of: (end,)}))
        driver = self._gates[number]
        site, step = self._placed.floorplan.lef.um
        self._places[driver.name] = round(at[0] / site), round(at[1] / step)
        self._turns[driver.name] = "N"
        for _, _, (sink, pin, _) in pins:
            self._rewire(sink, pin, end)
        entry = clock_pin(driver.kind, self._library)
        assert entry is not None
        return at, _ff(driver, entry, self._library), (number, entry, 0)

    def _rewire(self, number: int, pin: str, net: int) -> None:
        gate = self._gates[number]
        self._gates[number] = replace(gate, pins={**gate.pins, pin: (net,)})

    def balanced(self) -> PlacedCells:
        """The cells, with sizes of the tree's drivers at which the clock comes everywhere at nearly
        the same time."""
        netlist = replace(self._placed.netlist, gates=tuple(self._gates), trees={})
        placed = replace(self._placed, netlist=netlist, places=self._places, turns=self._turns)
        return balanced(placed, self._library, self._wire)


def _family(library: CellLibrary, belongs: Callable[[Cell], bool]) -> list[tuple[str, float]]:
    """Cells and the load of their input, the weakest first."""
    cells = [cell for cell in library.cells.values() if cell.usable and belongs(cell)]
    inputs = [(cell, cell.pins[cell.inputs[0]].capacitance) for cell in cells]
    return [(cell.name, ff) for cell, ff in sorted(inputs, key=lambda one: (one[1], one[0].name))]


def balanced(placed: PlacedCells, library: CellLibrary, wire: Wires) -> PlacedCells:
    """``placed`` with sizes of its tree's drivers at which the clock comes everywhere at nearly the
    same time.

    Parameters:
        wire: a um of it.
    """
    wires, draw = estimated(placed, library, wire), Random(1)
    gates = list(placed.netlist.gates)
    used = (library.cells[gate.kind] for gate in gates if gate.kind in library.cells)
    pins = {cell.inputs for cell in used if cell.gates_clock}
    kinds = {
        False: _family(library, lambda cell: cell.buffers),
        True: _family(library, lambda cell: cell.gates_clock and cell.inputs in pins),
    }
    best: tuple[float, tuple[Gate, ...]] = float("inf"), tuple(gates)
    for _ in range(_TURNS):
        netlist = replace(placed.netlist, gates=tuple(gates))
        times = clock_times(netlist, library, wires)
        best = min(best, (times.skew, netlist.gates), key=itemgetter(0))
        behind = times.means()
        target = behind.get(-1, 0.0)
        later: dict[int, float] = {-1: 0.0}
        # Those above come first, so that those behind need not make up for them.
        for number, slew in times.slew.items():
            cell, load = library.cells[gates[number].kind], times.load[number]
            now, _ = _edge(cell, slew, load)
            above = later[times.above[number]]
            options = [(abs(behind[number] + above - target), cell.name, above)]
            # Some at a time, since each is a load of another one.
            for kind, ff in kinds[cell.gates_clock] if draw.random() < _SHARE else ():
                ns, steep = _edge(library.cells[kind], slew, load)
                more = above + ns - now
                if steep <= _MOST_SLEW_NS and (cell.gates_clock or _LEAST_GAIN * ff <= load):
                    options.append((abs(behind[number] + more - target), kind, more))
            _, kind, later[number] = min(options)
            gates[number] = replace(gates[number], kind=kind)
    return replace(placed, netlist=replace(placed.netlist, gates=best[1]))
