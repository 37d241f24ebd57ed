"""Times of all edges in a mapped netlist, level by level with the arrays of :mod:`.tables`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

import numpy as np

from hdl.sram_macro import MacroError, SramGeometry
from synth.errors import SynthesisError
from synth.netlist import Gate, Netlist
from synth.sram import SramTimes

from .cell_library import CellLibrary, Parasitics, WireLoad
from .registers import port_register
from .tables import CLOCKED, Flags, Numbers, Values, tables_of

#: Slew of the clock, and of edges that have not yet arrived.
CLOCK_SLEW_NS = 0.02
#: ns until half of the supply is reached behind a resistance of an ohm with a load of a fF.
RC_NS = 0.69e-6


def evaluation_order(gates: Sequence[Gate], library: CellLibrary) -> tuple[int, ...]:
    """Indices into ``gates``, each after those that it depends on.

    Parameters:
        gates: combinational only.

    Raises:
        SynthesisError: gates form a loop.
    """

    def nets(gate: Gate, direction: str) -> list[int]:
        pins = library.cells[gate.kind].pins
        return [
            bits[0] for pin, bits in gate.pins.items() if bits and pins[pin].direction == direction
        ]

    driver = {bit: place for place, gate in enumerate(gates) for bit in nets(gate, "output")}
    order: TopologicalSorter[int] = TopologicalSorter()
    for place, gate in enumerate(gates):
        order.add(place, *(driver[bit] for bit in nets(gate, "input") if bit in driver))
    try:
        return tuple(order.static_order())
    except CycleError as error:
        names = ", ".join(gates[place].name for place in error.args[1][:3])
        raise SynthesisError(f"gates form a combinational loop: {names}") from None


def gated_clocks(netlist: Netlist, library: CellLibrary) -> Mapping[int, int]:
    """Net of each gated clock -> number of its clock gate."""
    return {
        bit: number
        for number, gate in enumerate(netlist.gates)
        if gate.kind in library.cells and library.cells[gate.kind].gates_clock
        for pin in library.cells[gate.kind].outputs
        for bit in gate.pins.get(pin, ())
    }


def port_gates(netlist: Netlist, library: CellLibrary) -> list[Gate]:
    """The register of each bit of a port, of the unit ``input`` or ``output``."""
    register = port_register(library)
    return [
        Gate(name, register.cell.name, unit, {pin: (bit,)})
        for unit, pin, ports in (
            ("input", register.output, netlist.inputs),
            ("output", register.data, netlist.outputs),
        )
        for name, bits in ports.items()
        for bit in bits
    ]


class Timer:
    """Times of all edges in a netlist.

    A node is an edge of a net: twice the net's place, plus 1 if it falls; one more is the clock.

    Attributes:
        gates: those of the netlist, then :func:`port_gates`.
        cell: number of each gate's cell in ``tables``, -1 for a memory; after a change,
            :meth:`run` brings all times up to date.
        nets: bit of the netlist -> place of its net.
        load: of each node, in fF.
        arrival, slew: of each node, in ns; before an edge arrives, -inf and the clock's slew.
        arc_gate, arc_slot, arc_from, arc_to: gate and nodes of each arc, and its place in the list
            of the cell's arcs. arc_ns: its delay, with the wire before it, or the clock's. levels:
            where those of each level begin; groups: of each, where those to the same node begin.
        wire_ohm: of each net. wire_ns: delay of the wire behind each node.
        pin_gate, pin_slot, pin_net: the inputs of cells.
        clock_ns: when the clock comes at each gate.
        end_gate, end_node, end_ns: where each path ends, and its length with setup, or without
            hold.
    """

    def __init__(
        self,
        netlist: Netlist,
        library: CellLibrary,
        macros: SramTimes,
        wires: WireLoad | Parasitics | None = None,
        begins: Callable[[Gate], bool] | None = None,
        *,
        earliest: bool = False,
    ) -> None:
        """Parameters and errors: see :func:`synth.timing.sta.longest_paths`.

        ``earliest``: times are those of the first edges and steepest slews instead of the last and
        flattest; before one arrives, its time is inf."""
        self._reduce: np.ufunc = np.minimum if earliest else np.maximum
        self._never = np.inf if earliest else -np.inf
        self.library, self.tables, self._macros = library, tables_of(library), macros
        self.gates = [*netlist.gates, *port_gates(netlist, library)]
        self.cell = np.array([self.tables.number.get(gate.kind, -1) for gate in self.gates])
        bits = {bit for gate in self.gates for pin in gate.pins.values() for bit in pin}
        self.nets = {bit: place for place, bit in enumerate(sorted(bits))}
        self.clock = 2 * len(self.nets)
        self._connect()
        self._connect_memories(begins)
        self._load_wires(wires or WireLoad())
        self._sort(begins)
        self._lay(netlist, wires if isinstance(wires, Parasitics) else Parasitics({}, {}))
        self.run()

    def _connect(self) -> None:
        """Pins, arcs and checks of the cells."""
        pins: list[tuple[Numbers, ...]] = []
        arcs: list[tuple[Numbers, ...]] = []
        checks: list[tuple[Numbers, ...]] = []
        for cell in self.library.cells.values():
            number = self.tables.number[cell.name]
            places = np.flatnonzero(self.cell == number)
            if not len(places):
                continue
            net = {name: self._nets_of(name, places) for name in cell.pins}
            for slot, name in enumerate(cell.inputs):
                pins.append(_present(net[name] >= 0, places, slot, net[name]))
            for slot, arc in enumerate(self.tables.arcs[number]):
                out = net[arc.output]
                begin, there = np.full_like(out, self.clock), out >= 0
                if arc.source != CLOCKED:
                    begin = 2 * net[arc.source] + arc.cause
                    there = there & (net[arc.source] >= 0)
                arcs.append(_present(there, places, slot, begin, 2 * out + arc.edge))
            for slot, check in enumerate(self.tables.checks[number]):
                node = 2 * net[check.pin] + check.edge
                checks.append(_present(net[check.pin] >= 0, places, slot, node))
        self.pin_gate, self.pin_slot, self.pin_net = _joined(pins, 3)
        self.arc_gate, self.arc_slot, self.arc_from, self.arc_to = _joined(arcs, 4)
        self._check_gate, self._check_slot, self._check_node = _joined(checks, 3)

    def _nets_of(self, pin: str, places: Numbers) -> Numbers:
        """The net at ``pin`` of each gate, -1 for none."""
        gates, nets = self.gates, self.nets
        return np.array(
            [
                nets[bits[0]] if (bits := gates[place].pins.get(pin)) else -1
                for place in places.tolist()
            ]
        )

    def _connect_memories(self, begins: Callable[[Gate], bool] | None) -> None:
        """Nets that memories read, and those that they drive with the time of an access."""
        reads, driven, ends, keys = [], [], [], []
        for place in np.flatnonzero(self.cell < 0).tolist():
            gate = self.gates[place]
            try:
                geometry = SramGeometry.parse(gate.kind)
            except MacroError:
                raise SynthesisError(
                    f"cell {gate.name} of type {gate.kind} is not in the library"
                ) from None
            access, setup = self._macros.access_ns(geometry), self._macros.setup_ns(geometry)
            for pin, bits in gate.pins.items():
                if not gate.outputs(pin):
                    reads += [self.nets[bit] for bit in bits]
                    ends += [(place, 2 * self.nets[bit] + e, setup) for bit in bits for e in (0, 1)]
                    keys += [(place, pin, bit) for bit in range(len(bits)) for _ in (0, 1)]
                elif begins is None or begins(gate):
                    driven += [(place, self.nets[bit], access) for bit in bits]
        self._reads = np.array(reads, np.int64)
        self._ends, self._end_keys = _columns(ends), keys
        self._driven = _columns(driven)

    def _load_wires(self, wires: WireLoad | Parasitics) -> None:
        data = port_register(self.library)
        count = len(self.nets)
        of_memories = np.bincount(self._reads, minlength=count)
        loads = np.array(data.cell.pins[data.data].edge_loads)
        self.wire_ohm = np.zeros(count)
        if isinstance(wires, Parasitics):
            self._wire_ff, self.wire_ohm = (
                np.array([of.get(bit, 0.0) for bit in self.nets]) for of in (wires.ff, wires.ohm)
            )
        else:
            pins = np.bincount(self.pin_net, minlength=count) + of_memories
            by_pins = np.array([wires.load(number) for number in range(pins.max(initial=0) + 1)])
            self._wire_ff = by_pins[pins]
        self._fixed = self._wire_ff[:, None] + of_memories[:, None] * loads

    def _sort(self, begins: Callable[[Gate], bool] | None) -> None:
        """Order the arcs by level, and within it by the node to which they lead."""
        clocked = self.arc_from == self.clock
        level = np.where(clocked, 0, self._levels(~clocked)[self.arc_gate])
        order = np.lexsort((self.arc_to, level))
        if begins is not None:
            from_clock = order[clocked[order]]
            chosen = np.array([begins(self.gates[place]) for place in self.arc_gate[from_clock]])
            order = order[~np.isin(order, from_clock[~chosen.astype(bool)])]
        for name in ("arc_gate", "arc_slot", "arc_from", "arc_to"):
            setattr(self, name, getattr(self, name)[order])
        level = level[order]
        self.levels = np.searchsorted(level, np.arange(level.max(initial=-1) + 2))
        changes = np.flatnonzero(np.diff(self.arc_to, prepend=-1) | np.diff(level, prepend=-1))
        at = np.searchsorted(changes, self.levels)
        self.groups = [changes[a:b] for a, b in pairwise(at)]

    def _lay(self, netlist: Netlist, layout: Parasitics) -> None:
        """How much of its net's resistance each arc and each end are behind, and when the clock
        comes at each gate."""
        tables, count = self.tables, len(netlist.gates)
        clocks = [layout.clock_ns.get(place, 0.0) for place in range(count)]
        ports = [layout.clock_ns.get(-1, 0.0)] * (len(self.gates) - count)
        self.clock_ns = np.array([*clocks, *ports])
        clocked = self.arc_from == self.clock
        self._launch_ns = np.where(clocked, self.clock_ns[self.arc_gate], 0.0)
        outputs = [
            (-1, name, n) for name, bits in netlist.outputs.items() for n in range(len(bits))
        ]
        keys = dict(enumerate(outputs, len(self.gates) - len(outputs)))
        ohm = np.append(self.wire_ohm, 0.0)

        def shares(of: Iterable[tuple[int, str, int]], nets: Numbers) -> Values:
            if not layout.ways:
                return np.ones(len(nets))
            ways = np.array([layout.ways.get(key, -1.0) for key in of])
            return np.where((ways >= 0) & (ohm[nets] > 0), ways / np.maximum(ohm[nets], 1e-9), 1.0)

        def pins(of: Sequence[Sequence[Any]], gates: Numbers, slots: Numbers) -> Iterator[Any]:
            places = zip(gates.tolist(), self.cell[gates].tolist(), slots.tolist(), strict=True)
            return ((gate, of[cell][slot], 0) for gate, cell, slot in places)

        arcs = pins(
            [[arc.source for arc in of] for of in tables.arcs], self.arc_gate, self.arc_slot
        )
        checks = pins(
            [[check.pin for check in of] for of in tables.checks],
            self._check_gate,
            self._check_slot,
        )
        ends = [*(keys.get(pin[0], pin) for pin in checks), *self._end_keys]
        nodes = np.concatenate([self._check_node, self._ends[1].astype(np.int64)])
        self._arc_way, self._end_way = shares(arcs, self.arc_from // 2), shares(ends, nodes // 2)

    def _levels(self, through: Flags) -> Numbers:
        """Level of each gate: one more than the highest of those that drive it; 0 for others.

        Parameters:
            through: whether each arc leads through a gate.
        """
        count = len(self.gates)
        driver = np.full(len(self.nets), -1)
        driver[self.arc_to[through] // 2] = self.arc_gate[through]
        before, after = driver[self.arc_from[through] // 2], self.arc_gate[through]
        gates = np.unique(after)
        before, after = before[before >= 0], after[before >= 0]
        pairs = np.unique(before * count + after)
        before, after = pairs // count, pairs % count
        first = np.searchsorted(before, np.arange(count + 1))
        waiting = np.bincount(after, minlength=count)
        level = np.zeros(count, np.int64)
        ready, now, done = gates[waiting[gates] == 0], 0, 0
        while len(ready):
            now, done = now + 1, done + len(ready)
            level[ready] = now
            number = first[ready + 1] - first[ready]
            offset = np.repeat(first[ready] - np.cumsum(number) + number, number)
            reached = after[offset + np.arange(number.sum())]
            np.subtract.at(waiting, reached, 1)
            reached = np.unique(reached)
            ready = reached[waiting[reached] == 0]
        if done < len(gates):
            evaluation_order([self.gates[place] for place in gates], self.library)
        return level

    def run(self) -> None:
        """Times of all nodes and ends.

        Raises:
            SynthesisError: gates form a loop.
        """
        tables, count = self.tables, len(self.nets)
        pins = tables.first_input[self.cell[self.pin_gate]] + self.pin_slot
        loads = tables.inputs[pins]
        of_pins = [np.bincount(self.pin_net, loads[:, edge], count) for edge in (0, 1)]
        loads = self._fixed + np.stack(of_pins, 1)
        self.load = loads.ravel()
        # To its end, half of a wire's own load and all of the pins' pass its resistance.
        wire_ns = RC_NS * self.wire_ohm[:, None] * (loads - self._wire_ff[:, None] / 2)
        self.wire_ns = np.append(wire_ns.ravel(), 0.0)
        self.arrival = np.full(2 * count + 1, self._never)
        self.slew = np.full(2 * count + 1, CLOCK_SLEW_NS)
        self.arrival[self.clock] = 0.0
        for place, net, access in self._driven.T.tolist():
            nodes = slice(2 * int(net), 2 * int(net) + 2)
            drives = [self._macros.drive(access, load) for load in self.load[nodes].tolist()]
            self.arrival[nodes], self.slew[nodes] = zip(*drives, strict=True)
            self.arrival[nodes] += self.clock_ns[int(place)]
        places = tables.first_arc[self.cell[self.arc_gate]] + self.arc_slot
        delays, slews = tables.delays[places], tables.slews[places]
        load = self.load[self.arc_to]
        self.arc_ns = self._arc_way * self.wire_ns[self.arc_from] + self._launch_ns
        for (first, last), groups in zip(pairwise(self.levels), self.groups, strict=True):
            at = slice(first, last)
            begin = self.arc_from[at]
            before = self.slew[begin]
            self.arc_ns[at] += tables.at(delays[at], before, load[at])
            time = self.arrival[begin] + self.arc_ns[at]
            slew = tables.at(slews[at], before, load[at])
            slew[np.isinf(time)] = self._never
            to, starts = self.arc_to[groups], groups - first
            self.arrival[to] = self._reduce.reduceat(time, starts)
            slew = self._reduce.reduceat(slew, starts)
            self.slew[to] = np.where(np.isinf(slew), CLOCK_SLEW_NS, slew)
        self._finish()

    def _finish(self) -> None:
        tables = self.tables
        checks = tables.first_check[self.cell[self._check_gate]] + self._check_slot
        earliest = self._never > 0
        chosen = (tables.holds if earliest else tables.setups)[checks]
        slew = self.slew[self._check_node]
        needed = tables.at(np.maximum(chosen, 0), slew, np.full(len(slew), CLOCK_SLEW_NS))
        needed = np.where(chosen < 0, 0.0, needed)
        needed = -needed if earliest else np.maximum(needed, 0.0)
        self.end_gate = np.concatenate([self._check_gate, self._ends[0].astype(np.int64)])
        self.end_node = np.concatenate([self._check_node, self._ends[1].astype(np.int64)])
        self.end_ns = self.arrival[self.end_node] - self.clock_ns[self.end_gate]
        self.end_ns += self._end_way * self.wire_ns[self.end_node]
        # Inputs of memories are assumed to need no hold.
        self.end_ns += np.concatenate([needed, self._ends[2] * (not earliest)])

    def kinds(self) -> list[str]:
        """The kind of each of ``gates``, by :attr:`cell`."""
        names = list(self.library.cells)
        cells = zip(self.gates, self.cell.tolist(), strict=True)
        return [gate.kind if cell < 0 else names[cell] for gate, cell in cells]

    def required(self, period_ns: float) -> Values:
        """When an edge must arrive at each node at the latest, so that all paths end in time."""
        required = np.full(len(self.arrival), np.inf)
        there = np.isfinite(self.end_ns)
        node = self.end_node[there]
        np.minimum.at(required, node, self.arrival[node] + period_ns - self.end_ns[there])
        for first, last in reversed(list(pairwise(self.levels))):
            at = slice(first, last)
            needed = required[self.arc_to[at]] - self.arc_ns[at]
            np.minimum.at(required, self.arc_from[at], needed)
        return required

    def needs(self, period_ns: float) -> Mapping[tuple[int, int], float]:
        """When an edge must arrive at the latest at the inputs of a gate, behind the wire: by the
        gate and the node; those that start no path and end none are absent."""
        starts = self.arc_from != self.clock
        of_arcs = self.required(period_ns)[self.arc_to] - self.arc_ns
        of_arcs += self._arc_way * self.wire_ns[self.arc_from]
        there = np.isfinite(self.end_ns)
        node = self.end_node[there]
        of_ends = period_ns + self.arrival[node] - self.end_ns[there]
        of_ends += self._end_way[there] * self.wire_ns[node]
        gate = np.concatenate([self.arc_gate[starts], self.end_gate[there]])
        node = np.concatenate([self.arc_from[starts], node])
        ns = np.concatenate([of_arcs[starts], of_ends])
        order = np.lexsort((-ns, node, gate))
        ends = zip(gate[order].tolist(), node[order].tolist(), strict=True)
        # The earliest of each comes last, and stays.
        return dict(zip(ends, ns[order].tolist(), strict=True))

    def slopes(self) -> Values:
        """ns that each node comes later for each fF more, at its driver's slowest arc."""
        tables, load = self.tables, self.load[self.arc_to]
        delays = tables.delays[tables.first_arc[self.cell[self.arc_gate]] + self.arc_slot]
        slew = self.slew[self.arc_from]
        later = tables.at(delays, slew, load + 1.0) - tables.at(delays, slew, load)
        slopes = np.zeros(len(self.arrival))
        np.maximum.at(slopes, self.arc_to, later)
        for _, net, access in self._driven.T.tolist():
            more, _ = self._macros.drive(access, 1.0)
            slopes[2 * int(net) : 2 * int(net) + 2] = more - access
        return slopes

    def back(self, node: int) -> Iterator[tuple[int, int]]:
        """Gates of the latest (or earliest) path to ``node``, the last first, each with the node it
        drives."""
        while node != self.clock:
            arcs = np.flatnonzero(self.arc_to == node)
            times = self.arrival[self.arc_from[arcs]] + self.arc_ns[arcs]
            if not len(arcs):
                (driven,) = np.flatnonzero(self._driven[1] == node // 2)[:1]
                yield int(self._driven[0][driven]), node
                return
            arc = arcs[times.argmin() if self._never > 0 else times.argmax()]
            yield int(self.arc_gate[arc]), node
            node = int(self.arc_from[arc])


def _present(there: Flags, places: Numbers, slot: int, *nodes: Numbers) -> tuple[Numbers, ...]:
    chosen = places[there]
    return chosen, np.full(len(chosen), slot), *(node[there] for node in nodes)


def _joined(parts: Sequence[tuple[Numbers, ...]], width: int) -> tuple[Numbers, ...]:
    if not parts:
        return (np.zeros(0, np.int64),) * width
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _columns(rows: Sequence[tuple[float, ...]]) -> Values:
    """Three columns of ``rows``."""
    return np.array(rows, np.float64).reshape(-1, 3).T
