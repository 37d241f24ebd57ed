"""Static timing of a mapped netlist: the longest path of each unit and of the whole design.

Delays and slews come from the library's tables; rising and falling edges are tracked separately.
There is no layout, so loads are those of the pins, plus a statistical wire load if there is one.
The clock is ideal. Units are timed as if their ports were registered: inputs come from flip-flops
clocked at time 0 and outputs end in flip-flops. Memories have the times of :mod:`synth.sram`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from hdl.sram_macro import MacroError, SramGeometry
from synth.errors import SynthesisError
from synth.netlist import Gate, Netlist
from synth.sram import SramTimes

from .cell_library import Cell, CellLibrary, TimingArc, WireLoad
from .registers import port_register

#: Slew of the clock, and of edges that have not yet arrived.
CLOCK_SLEW_NS = 0.02
_RISE, _FALL = 0, 1
_EDGES = (("cell_rise", "rise_transition"), ("cell_fall", "fall_transition"))


@dataclass(frozen=True)
class Path:
    """A path from register to register: its length in ns, and its cells, each with the time in ns
    at its output (of the last cell: at its input, plus its setup time)."""

    ns: float
    steps: tuple[tuple[Gate, float], ...]

    @property
    def fmax_mhz(self) -> float:
        """Highest clock in MHz that it allows; 0 if the path is empty."""
        return round(1000 / self.ns, 1) if self.ns else 0.0

    def by_unit(self) -> tuple[tuple[str, float], ...]:
        """Units in path order, and the ns spent in each."""
        parts: list[tuple[str, float]] = []
        before = 0.0
        for gate, ns in self.steps:
            spent, before = ns - before, ns
            if parts and parts[-1][0] == gate.unit:
                parts[-1] = gate.unit, parts[-1][1] + spent
            else:
                parts.append((gate.unit, spent))
        return tuple((unit, round(ns, 3)) for unit, ns in parts)


@dataclass
class NetState:
    """A net.

    Attributes:
        load: of the pins that it drives and of its wire, in fF. pins: how many it drives.
        arrival, slews: of a rising and a falling edge, in ns; before an edge arrives, -1 and the
            clock's slew.
        source: what causes each edge.
    """

    load: float = 0.0
    pins: int = 0
    arrival: list[float] = field(default_factory=lambda: [-1.0, -1.0])
    slews: list[float] = field(default_factory=lambda: [CLOCK_SLEW_NS, CLOCK_SLEW_NS])
    source: list[tuple["NetState", int, Gate] | Gate | None] = field(
        default_factory=lambda: [None, None]
    )

    @property
    def slew(self) -> float:
        """Mean slew of the two edges in ns."""
        return sum(self.slews) / 2


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


class _Analysis:
    def __init__(
        self,
        netlist: Netlist,
        library: CellLibrary,
        macros: SramTimes,
        wires: WireLoad | None = None,
        begins: Callable[[Gate], bool] | None = None,
    ) -> None:
        self.netlist = netlist
        self.wires = wires
        self.begins = begins
        self.library = library
        self.macros = macros
        self.nets: dict[int, NetState] = {}
        self.register = port_register(library)

    def net(self, bit: int) -> NetState:
        state = self.nets.get(bit)
        if state is None:
            state = self.nets[bit] = NetState()
        return state

    def run(self) -> None:
        gates = self.netlist.gates
        data = self.register.cell.pins[self.register.data]
        for bits in self.netlist.outputs.values():
            self._load(bits, data.capacitance)
        for gate in gates:
            cell = self.library.cells.get(gate.kind)
            for pin, bits in gate.pins.items():
                if cell is not None and cell.pins[pin].direction == "input":
                    self._load(bits, cell.pins[pin].capacitance)
                elif cell is None and not gate.outputs(pin):
                    self._load(bits, data.capacitance)
        if self.wires is not None:
            for net in self.nets.values():
                net.load += self.wires.load(net.pins)
        port = self.register.cell
        for name, bits in self.netlist.inputs.items():
            for bit in bits:
                gate = Gate(name, port.name, "input", {})
                self._launch(bit, port, gate, self.register.output)
        combinational = []
        for gate in gates:
            cell = self.library.cells.get(gate.kind)
            if cell is None:
                self._read(gate)
            elif cell.sequential:
                for pin, bits in gate.pins.items():
                    if cell.pins[pin].direction == "output":
                        self._launch(bits[0], cell, gate, pin)
            else:
                combinational.append(gate)
        for place in evaluation_order(combinational, self.library):
            self._pass(combinational[place])

    def _load(self, bits: Iterable[int], capacitance: float) -> None:
        for bit in bits:
            net = self.net(bit)
            net.load += capacitance
            net.pins += 1

    def _launch(self, bit: int, cell: Cell, gate: Gate, pin: str) -> None:
        """Propagate a clock edge to the output of a flip-flop."""
        if self.begins is not None and not self.begins(gate):
            return
        net = self.net(bit)
        for arc in cell.pins[pin].arcs:
            if not arc.kind.endswith("_edge"):
                continue
            for edge, (delay, slew) in enumerate(_EDGES):
                if delay in arc.tables:
                    self._arrive(
                        net,
                        edge,
                        arc.tables[delay].at(CLOCK_SLEW_NS, net.load),
                        arc.tables[slew].at(CLOCK_SLEW_NS, net.load),
                        gate,
                    )

    def _read(self, gate: Gate) -> None:
        """Propagate a clock edge to the outputs of a memory, whose reads take one cycle."""
        try:
            geometry = SramGeometry.parse(gate.kind)
        except MacroError:
            raise SynthesisError(
                f"cell {gate.name} of type {gate.kind} is not in the library"
            ) from None
        if self.begins is not None and not self.begins(gate):
            return
        access = self.macros.access_ns(geometry)
        for pin, bits in gate.pins.items():
            if gate.outputs(pin):
                for bit in bits:
                    net = self.net(bit)
                    for edge in (_RISE, _FALL):
                        time, slew = self.macros.drive(access, net.load)
                        self._arrive(net, edge, time, slew, gate)

    def _arrive(
        self,
        net: NetState,
        edge: int,
        time: float,
        slew: float,
        source: tuple[NetState, int, Gate] | Gate,
    ) -> None:
        first = net.arrival[edge] < 0
        if time > net.arrival[edge]:
            net.arrival[edge] = time
            net.source[edge] = source
        net.slews[edge] = slew if first else max(net.slews[edge], slew)

    def _pass(self, gate: Gate) -> None:
        """Propagate edges through a gate."""
        cell = self.library.cells[gate.kind]
        for pin, bits in gate.pins.items():
            if cell.pins[pin].direction != "output" or not bits:
                continue
            out = self.net(bits[0])
            for arc in cell.pins[pin].arcs:
                if not arc.kind.startswith("combinational"):
                    continue
                for related in arc.related.split():
                    if not gate.pins.get(related):
                        continue
                    self._through(gate, arc, self.net(gate.pins[related][0]), out)

    def _through(self, gate: Gate, arc: TimingArc, source: NetState, out: NetState) -> None:
        for edge, (delay, slew) in enumerate(_EDGES):
            if delay not in arc.tables:
                continue
            for cause in (_RISE, _FALL):
                if arc.sense == "positive_unate" and cause != edge:
                    continue
                if arc.sense == "negative_unate" and cause == edge:
                    continue
                if source.arrival[cause] < 0:
                    continue
                before = source.slews[cause]
                self._arrive(
                    out,
                    edge,
                    source.arrival[cause] + arc.tables[delay].at(before, out.load),
                    arc.tables[slew].at(before, out.load),
                    (source, cause, gate),
                )

    def ends(self) -> Iterable[tuple[float, int, NetState, Gate]]:
        """The end of each path: its time with setup, edge, net and cell."""
        for gate in self.netlist.gates:
            cell = self.library.cells.get(gate.kind)
            if cell is None:
                setup = self.macros.setup_ns(SramGeometry.parse(gate.kind))
                for pin, bits in gate.pins.items():
                    if not gate.outputs(pin):
                        for bit in bits:
                            yield from self._end(self.net(bit), gate, (), setup)
            elif cell.sequential:
                for pin, bits in gate.pins.items():
                    if cell.pins[pin].direction == "input" and not cell.pins[pin].clock:
                        yield from self._end(self.net(bits[0]), gate, cell.pins[pin].arcs, 0.0)
        data = self.register.cell.pins[self.register.data]
        for name, port in self.netlist.outputs.items():
            gate = Gate(name, self.register.cell.name, "output", {})
            for bit in port:
                yield from self._end(self.net(bit), gate, data.arcs, 0.0)

    def _end(
        self, net: NetState, gate: Gate, arcs: Iterable[TimingArc], setup: float
    ) -> Iterable[tuple[float, int, NetState, Gate]]:
        for edge, name in enumerate(("rise_constraint", "fall_constraint")):
            if net.arrival[edge] < 0:
                continue
            needed = [
                arc.tables[name].at(net.slews[edge], CLOCK_SLEW_NS)
                for arc in arcs
                if arc.kind.startswith("setup") and name in arc.tables
            ]
            yield net.arrival[edge] + max([setup, *needed]), edge, net, gate

    def path(self, end: tuple[float, int, NetState, Gate]) -> Path:
        time, edge, net, gate = end
        steps = [(gate, round(time, 4))]
        source = net.source[edge]
        while source is not None:
            arrival = round(net.arrival[edge], 4)
            if isinstance(source, Gate):
                steps.append((source, arrival))
                break
            before, cause, through = source
            steps.append((through, arrival))
            net, edge = before, cause
            source = net.source[edge]
        return Path(round(time, 4), tuple(reversed(steps)))


def longest_paths(
    netlist: Netlist,
    library: CellLibrary,
    macros: SramTimes,
    wires: WireLoad | None = None,
    *,
    begins: Callable[[Gate], bool] | None = None,
    ends: Callable[[Gate], bool] | None = None,
) -> Mapping[str, Path]:
    """Longest path that ends in each unit.

    Parameters:
        netlist: mapped to ``library``; cells of other types must be memory macros.
        library: with delay tables. macros: times of memories.
        wires: loads of wires, by default none.
        begins, ends: whether paths begin or end at a register, memory or port (a gate of the unit
            ``input`` or ``output``); by default at all.

    Returns:
        By unit; ``output`` for paths that end at an output. Units without a path are absent.

    Raises:
        SynthesisError: a cell is neither a memory nor in the library, or gates form a loop.
    """
    analysis = _Analysis(netlist, library, macros, wires, begins)
    analysis.run()
    longest: dict[str, tuple[float, int, NetState, Gate]] = {}
    for end in analysis.ends():
        if ends is not None and not ends(end[3]):
            continue
        unit = end[3].unit
        if unit not in longest or end[0] > longest[unit][0]:
            longest[unit] = end
    return {unit: analysis.path(end) for unit, end in sorted(longest.items())}


def longest_path(
    netlist: Netlist,
    library: CellLibrary,
    macros: SramTimes | None = None,
    wires: WireLoad | None = None,
) -> Path:
    """The longest of :func:`longest_paths`, or one of 0 ns if there is none; memories are at the
    library's node by default."""
    paths = longest_paths(netlist, library, macros or SramTimes(library.node_nm), wires)
    return max(paths.values(), key=lambda path: path.ns, default=Path(0.0, ()))


def net_states(
    netlist: Netlist, library: CellLibrary, macros: SramTimes, wires: WireLoad
) -> Mapping[int, NetState]:
    """State of each net; parameters and errors as for :func:`longest_paths`."""
    analysis = _Analysis(netlist, library, macros, wires)
    analysis.run()
    return analysis.nets
