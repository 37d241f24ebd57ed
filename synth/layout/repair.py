"""Buffers for the wires of a placement.

The netlist that is placed has none; the net of each driver then gets a tree of buffers by the
dynamic programming of van Ginneken: the pins are halved along the longer side of the box around
them, and each part has options that trade its load against the time left to its driver. Pins that
are much more urgent than the others also get a tree apart from theirs.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from synth.errors import SynthesisError
from synth.netlist import CLOCK, Gate, Netlist
from synth.sram import SramTimes
from synth.timing.cell_library import Cell, CellLibrary, Wires
from synth.timing.registers import port_register
from synth.timing.timer import RC_NS, Timer

from .clock_tree import balanced, of_clock, with_clock
from .floorplan import Place
from .parasitics import estimated
from .placement import PlacedCells, What
from .sizing import sized

#: Loads of which the slope of a delay is taken, in loads of the buffer itself.
_LOADS = 5.0, 15.0
#: Nets with less, in loads of the smallest buffer, get no buffers.
_LIGHT = 9.0
#: A wire has places for buffers so far apart that it loads them with so many smallest buffers.
_APART = 8.0
#: ns, in times of the smallest buffer, which a driver and a buffer should at most take for a load.
_MOST_NS, _MOST_BUFFER_NS = 3.0, 1.75
#: What 1 ns costs beyond them, in ns.
_OVER = 10.0
#: Price of area where time is short and where there is enough, which all of a net's pins must
#: then have left, in times of the smallest buffer, each also as a share of its area.
_SHORT, _EASY, _ENOUGH = 0.03, 0.2, 2.5
#: How much more time, in times of the smallest buffer, makes a tree of its own worth a try.
_URGENT = 0.25
#: Most options of a part.
_OPTIONS = 7
#: Time of pins at which no path ends, in ns.
_FREE_NS = 9.0

#: Each time that buffers are chosen and cells sized: the aim of sizes, as a share of the clock's,
#: and the price of a um2 in ns.
_ROUNDS = (1.0, 0.02), (0.96, 0.01)
#: How often cells change in each of them.
_TURNS = 11

#: A place in um.
_At = tuple[float, float]
#: A pin: its place, its load in fF, the ns until an edge that leaves the driver at 0 must be there,
#: and what it is.
_Sink = tuple[_At, float, float, What]
#: What a net drives: pins, and buffers with what is behind them.
_Tree = tuple["What | _Behind", ...]
#: One way to drive some pins: the load of its root in fF, the ns left there were the wire without
#: resistance, its um2, the tree, and the um from the root to the farthest pin or buffer.
_Option = tuple[float, float, float, _Tree, float]


@dataclass(frozen=True)
class _Buffer:
    """A buffer: its load in fF, its delay in ns without load and for each fF, its pins."""

    cell: Cell
    ff: float
    ns: float
    slope: float
    entry: str
    end: str


class _Behind(NamedTuple):
    """A buffer, its place, and what it drives."""

    buffer: _Buffer
    at: _At
    tree: _Tree


def without_buffers(netlist: Netlist, library: CellLibrary) -> Netlist:
    """``netlist`` without buffers, which were chosen before places were known."""
    before: dict[int, int] = {}
    others = []
    for gate in netlist.gates:
        cell = library.cells.get(gate.kind)
        if cell is not None and cell.buffers:
            ((entry,), (end,)) = gate.pins[cell.inputs[0]], gate.pins[cell.outputs[0]]
            before[end] = entry
        else:
            others.append(gate)

    def source(bit: int) -> int:
        while bit in before:
            bit = before[bit]
        return bit

    def sources(pins: Mapping[str, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
        return {name: tuple(map(source, bits)) for name, bits in pins.items()}

    gates = tuple(replace(gate, pins=sources(gate.pins)) for gate in others)
    return replace(netlist, gates=gates, outputs=sources(netlist.outputs))


def _buffers(library: CellLibrary) -> Sequence[_Buffer]:
    """Each that is faster with a load than all smaller ones, the smallest first.

    Raises:
        SynthesisError: the library has none.
    """
    single = [cell for cell in library.cells.values() if cell.buffers]
    if not single:
        raise SynthesisError(f"library {library.name} has no buffer")
    chosen: list[_Buffer] = []
    for cell in sorted(single, key=lambda cell: (cell.area, cell.name)):
        (entry,), (end,) = cell.inputs, cell.outputs
        ff = cell.pins[entry].capacitance
        slew = _longest(cell, "transition", 0.0, ff * sum(_LOADS) / 2)
        low, high = (_longest(cell, "cell_", slew, ff * many) for many in _LOADS)
        slope = (high - low) / (ff * (_LOADS[1] - _LOADS[0]))
        if not chosen or slope < chosen[-1].slope / 1.5:
            chosen.append(_Buffer(cell, ff, low - slope * ff * _LOADS[0], slope, entry, end))
    return chosen


def _longest(cell: Cell, kind: str, slew: float, load: float) -> float:
    """The longest time by a cell's tables of a kind."""
    arcs = (arc for pin in cell.outputs for arc in cell.pins[pin].arcs)
    tables = (arc.tables[name] for arc in arcs for name in arc.tables if kind in name)
    return max((table.at(slew, load) for table in tables), default=0.0)


class _Trees:
    """Trees of buffers for wires of a layer."""

    def __init__(self, library: CellLibrary, wire: Wires) -> None:
        self.smallest, *_ = self._buffers = _buffers(library)
        #: fF of a um of wire, and ns for a um and fF.
        self._ff, self._delay = wire.ff, RC_NS * wire.ohm
        small = self.smallest
        #: Time of the smallest buffer.
        self.unit = small.ns + small.slope * small.ff * _LOADS[0]
        self._step = _APART * small.ff / wire.ff if wire.ff else float("inf")
        #: ns for a um2.
        self._price = 0.0

    def tree(self, source: _At, sinks: Sequence[_Sink], slope: float) -> _Tree:
        """The best for a driver that needs ``slope`` ns for each fF."""
        ns, tree = self._best(source, sinks, slope, _EASY)
        if ns < _ENOUGH * self.unit:
            _, tree = self._best(source, sinks, slope, _SHORT)
        return tree

    def _best(
        self, source: _At, sinks: Sequence[_Sink], slope: float, price: float
    ) -> tuple[float, _Tree]:
        """The ns left at the driver, and the tree."""
        self._price = price * self.unit / self.smallest.cell.area
        ways = [self._halved(source, sinks)]
        order = sorted(sinks, key=lambda sink: sink[2])
        gaps = [after[2] - before[2] for before, after in pairwise(order)]
        if len(gaps) > 1 and max(gaps) > _URGENT * self.unit:
            cut = gaps.index(max(gaps)) + 1
            ways.append(self._joined(source, order[:cut], order[cut:]))
        options = [option for at, part in ways for option in self._moved(part, at, source)]
        most = _MOST_NS * self.unit
        best = max(options, key=lambda option: self._worth(option, slope, most))
        return self._left(best) - slope * best[0], best[3]

    def _left(self, option: _Option) -> float:
        """The ns left at the root, behind which all of the load passes the resistance."""
        return option[1] - self._delay * option[4] * option[0]

    def _worth(self, option: _Option, slope: float, most: float) -> float:
        later = slope * option[0]
        return self._left(option) - later - self._price * option[2] - _OVER * max(0.0, later - most)

    def _halved(self, source: _At, sinks: Sequence[_Sink]) -> tuple[_At, list[_Option]]:
        """Where the box around ``sinks`` is nearest to ``source``, and the options there."""
        if len(sinks) == 1:
            ((at, ff, ns, what),) = sinks
            return at, [(ff, ns, 0.0, (what,), 0.0)]
        xs, ys = zip(*(sink[0] for sink in sinks), strict=True)
        side = int(max(ys) - min(ys) > max(xs) - min(xs))
        order = sorted(sinks, key=lambda sink: sink[0][side])
        middle = (order[0][0][side] + order[-1][0][side]) / 2
        cut = sum(sink[0][side] < middle for sink in order) or len(order) // 2
        return self._joined(source, order[:cut], order[cut:])

    def _joined(
        self, source: _At, one: Sequence[_Sink], other: Sequence[_Sink]
    ) -> tuple[_At, list[_Option]]:
        xs, ys = zip(*(sink[0] for part in (one, other) for sink in part), strict=True)
        x, y = (
            min(max(at, min(axis)), max(axis)) for at, axis in zip(source, (xs, ys), strict=True)
        )
        parts = []
        for part in (one, other):
            at, options = self._halved(source, part)
            parts.append(self._moved(options, at, (x, y)))
        both = [
            (a + b, min(left, right), um2 + more, tree + further, max(um, far))
            for a, left, um2, tree, um in parts[0]
            for b, right, more, further, far in parts[1]
        ]
        return (x, y), self._buffered(self._useful(both), (x, y))

    def _moved(self, options: list[_Option], start: _At, end: _At) -> list[_Option]:
        """The options at the other end of a wire."""
        um = abs(start[0] - end[0]) + abs(start[1] - end[1])
        if not um:
            return options
        steps = max(1, ceil(um / self._step))
        own = um / steps
        ff = self._ff * own
        for step in range(1, steps + 1):
            options = [
                (load + ff, ns, um2, tree, far + own) for load, ns, um2, tree, far in options
            ]
            if um / steps >= self._step / 2:
                share = step / steps
                x, y = (a + (b - a) * share for a, b in zip(start, end, strict=True))
                options = self._buffered(options, (x, y))
        return options

    def _buffered(self, options: list[_Option], at: _At) -> list[_Option]:
        """The options, and those with a buffer before the best for it."""
        more = []
        most = _MOST_BUFFER_NS * self.unit
        for buffer in self._buffers:
            slope = buffer.slope
            best = max(options, key=lambda option: self._worth(option, slope, most))
            ns = self._left(best) - buffer.ns - slope * best[0]
            behind = (_Behind(buffer, at, best[3]),)
            more.append((buffer.ff, ns, best[2] + buffer.cell.area, behind, 0.0))
        return self._useful([*options, *more])

    def _useful(self, options: list[_Option]) -> list[_Option]:
        """Some of those that are better than all with less load."""
        price = self._price
        order = [(option[0], price * option[2] - self._left(option)) for option in options]
        useful: list[_Option] = []
        best = float("-inf")
        for number in sorted(range(len(options)), key=order.__getitem__):
            option, worth = options[number], -order[number][1]
            if worth > best:
                useful.append(option)
                best = worth
        if len(useful) > _OPTIONS:
            apart = (len(useful) - 1) / (_OPTIONS - 1)
            useful = [useful[round(number * apart)] for number in range(_OPTIONS)]
        return useful


def buffered(
    placed: PlacedCells, library: CellLibrary, wire: Wires, timer: Timer, period_ns: float
) -> PlacedCells:
    """``placed`` with a tree of buffers for each heavy net, all where they should be, which is not
    yet legal.

    Parameters:
        placed: without buffers.
        wire: a um of it.
        timer: of ``placed``, or of an earlier result for it: gates get its sizes, and buffers are
            where its paths have no time to lose.

    Raises:
        SynthesisError: the library has no buffer.
    """
    trees, time = _Trees(library, wire), _Time(placed.netlist, timer, period_ns)
    gates = placed.netlist.gates
    sources: dict[int, tuple[_At, int]] = {}
    sinks: defaultdict[int, list[_Sink]] = defaultdict(list)
    for net, at, what, drives in placed.pins():
        if drives:
            sources[net] = at, what[0]
        else:
            sinks[net].append((at, *time.of(net, what), what))
    root = placed.netlist.inputs.get(CLOCK, ())
    chosen = []
    for net, (source, number) in sources.items():
        if net in root or (number >= 0 and of_clock(gates[number], library)):
            continue
        xs, ys = zip(source, *(sink[0] for sink in sinks[net]), strict=True)
        load = wire.ff * (max(xs) - min(xs) + max(ys) - min(ys))
        load += sum(ff for _, ff, _, _ in sinks[net])
        if sinks[net] and load >= _LIGHT * trees.smallest.ff:
            unit = gates[number].unit if number >= 0 else "other"
            chosen.append((net, unit, trees.tree(source, sinks[net], time.slope(net))))
    return _grown(placed, timer.kinds()[: len(gates)], chosen)


class _Time:
    """Loads of pins, and the time that an edge has to get there, by an earlier timing."""

    def __init__(self, netlist: Netlist, timer: Timer, period_ns: float) -> None:
        self._timer, self._kinds, self._slopes = timer, timer.kinds(), timer.slopes()
        self._needs = timer.needs(period_ns)
        register = port_register(timer.library)
        self._end_ff = register.cell.pins[register.data].capacitance
        ends = [(name, bit) for name, bits in netlist.outputs.items() for bit in range(len(bits))]
        first = len(timer.gates) - len(ends)
        self._ports = {end: place for place, end in enumerate(ends, first)}

    def slope(self, net: int) -> float:
        """ns for each fF of a net's driver."""
        node = 2 * self._timer.nets[net]
        return float(self._slopes[node : node + 2].max())

    def of(self, net: int, pin: What) -> tuple[float, float]:
        """The load of a pin in fF, and the ns left after the net's driver, were it without load."""
        timer, (number, name, bit) = self._timer, pin
        if number >= 0:
            gate = timer.gates[number]
            cell = timer.library.cells.get(self._kinds[number])
            end = gate.pins[name][bit]
        else:
            number, cell = self._ports[name, bit], None
            ((end,),) = timer.gates[number].pins.values()
        nodes = 2 * timer.nets[net], 2 * timer.nets[end]
        left = _FREE_NS
        for edge in (0, 1):
            root = nodes[0] + edge
            need = self._needs.get((number, nodes[1] + edge), _FREE_NS)
            loaded = float(timer.arrival[root] - self._slopes[root] * timer.load[root])
            # An edge that never comes has arrived at minus infinity.
            left = min(left, need - loaded)
        return self._end_ff if cell is None else cell.pins[name].capacitance, left


def _grown(
    placed: PlacedCells, sizes: Sequence[str], chosen: Sequence[tuple[int, str, _Tree]]
) -> PlacedCells:
    """``placed`` with other kinds of gates, and trees at nets, each of a unit."""
    netlist, nets = placed.netlist, dict[What, int]()
    site, step = placed.floorplan.lef.um
    places, turns = dict(placed.places), dict(placed.turns)
    buffers: list[Gate] = []
    free = 1 + max(bit for gate in netlist.gates for bits in gate.pins.values() for bit in bits)
    left = list(chosen)
    while left:
        net, unit, tree = left.pop()
        for part in tree:
            if not isinstance(part, _Behind):
                nets[part] = net
                continue
            name, end = f"wire_buffer_{len(buffers)}", free + len(buffers)
            pins = {part.buffer.entry: (net,), part.buffer.end: (end,)}
            buffers.append(Gate(name, part.buffer.cell.name, unit, pins))
            places[name] = round(part.at[0] / site), round(part.at[1] / step)
            turns[name] = "N"
            left.append((end, unit, part.tree))

    def moved(number: int, pins: Mapping[str, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
        return {
            name: tuple(nets.get((number, name, place), bit) for place, bit in enumerate(bits))
            for name, bits in pins.items()
        }

    gates = [
        replace(gate, kind=size, pins=moved(number, gate.pins))
        for number, (gate, size) in enumerate(zip(netlist.gates, sizes, strict=True))
    ]
    outputs = moved(-1, netlist.outputs)
    grown = replace(netlist, gates=(*gates, *buffers), outputs=outputs)
    return replace(placed, netlist=grown, places=places, turns=turns)


def repaired(
    placed: PlacedCells, library: CellLibrary, wire: Wires, aim_ns: float
) -> tuple[Netlist, Mapping[str, Place]]:
    """The netlist of ``placed`` with buffers and other sizes of cells, so that paths take
    ``aim_ns``, and where each of its cells should be.

    Parameters:
        placed: without buffers. wire: a um of it.

    Raises:
        SynthesisError: the library has no buffer.
    """
    timer = _timer(placed, library, wire)
    for share, price in _ROUNDS:
        grown = buffered(placed, library, wire, timer, aim_ns)
        timer = _timer(grown, library, wire)
        sized(timer, share * aim_ns, price=price, turns=_TURNS)
    return _with_sizes(grown.netlist, timer), grown.places


def adjusted(
    placed: PlacedCells, library: CellLibrary, wire: Wires, aim_ns: float
) -> tuple[Netlist, Mapping[str, Place]]:
    """As :func:`repaired`, for a legal placement of its result: other sizes of cells, and of the
    clock's drivers, since cells and wires are not quite where they should be."""
    better = balanced(placed, library, wire)
    timer = _timer(better, library, wire)
    share, price = _ROUNDS[-1]
    sized(timer, share * aim_ns, price=price, turns=_TURNS)
    return _with_sizes(better.netlist, timer), placed.places


def _timer(cells: PlacedCells, library: CellLibrary, wire: Wires) -> Timer:
    wires = with_clock(cells.netlist, library, estimated(cells, library, wire))
    return Timer(cells.netlist, library, SramTimes(library.node_nm), wires)


def _with_sizes(netlist: Netlist, timer: Timer) -> Netlist:
    kinds = timer.kinds()[: len(netlist.gates)]
    gates = zip(netlist.gates, kinds, strict=True)
    return replace(netlist, gates=tuple(replace(gate, kind=kind) for gate, kind in gates))
