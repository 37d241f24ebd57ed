"""Power of a mapped engine by unit, from the activity of its gates and memories and the energy
tables of its library."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache

import numpy as np

from hdl.sram_macro import SramGeometry
from pe.config import PeConfig
from soc.generate.presets import configuration_json
from support.errors import Shown
from synth.errors import SynthesisError
from synth.netlist import CLOCK, Netlist
from synth.physical.area import TOTAL
from synth.sram import SramTimes, access_fj, leakage_nw
from synth.timing.cell_library import Cell, CellLibrary, PowerArc
from synth.timing.gate_function import FunctionError, substituted, truth_table
from synth.timing.sta import NetState, net_states
from synth.timing.timer import CLOCK_SLEW_NS, gated_clocks

from .gate_sim import Array, CellActivity, GateSimulation, NetlistActivity, Recording

#: Pins per buffer of the clock tree.
FANOUT = 16


def _buffer(library: CellLibrary, load: float) -> Cell:
    """The smallest buffer that drives ``load`` fF."""
    buffers = (cell for cell in library.cells.values() if cell.area and cell.is_gate(1, 0b10))
    most = ((cell, cell.pins[cell.outputs[0]].max_load) for cell in buffers)
    candidates = [cell for cell, ff in most if not ff or ff >= load]
    if not candidates:
        raise SynthesisError(f"library {library.name} has no buffer that drives {load:.0f} fF")
    return min(candidates, key=lambda cell: (cell.area, cell.name))


def clock_tree(library: CellLibrary, sinks: int, pin_ff: float) -> tuple[int, float, float]:
    """A clock tree to ``sinks`` pins of ``pin_ff`` fF each, with :data:`FANOUT` pins per buffer:
    number of buffers, fJ per cycle in wires and buffers, and leakage in nW. The flip-flops' clock
    pins and internal energy do not count.

    Raises:
        SynthesisError: no buffer of the library is strong enough.
    """
    buffers, energy, leakage = 0, 0.0, 0.0
    while sinks > 1:
        fanout = min(FANOUT, sinks)
        wire = library.wires.load(fanout)
        load = fanout * pin_ff + wire
        cell = _buffer(library, load)
        number = -(-sinks // FANOUT)
        (name,) = cell.inputs
        inside = sum(
            arc.rise.at(CLOCK_SLEW_NS, load) + arc.fall.at(CLOCK_SLEW_NS, load)
            for arc in cell.pins[cell.outputs[0]].power
        ) / max(1, len(cell.pins[cell.outputs[0]].power))
        pin_ff = cell.pins[name].capacitance
        # Each net rises and falls once per cycle, which takes its full charge once.
        energy += number * ((wire + pin_ff) * library.volts**2 + inside)
        leakage += number * cell.leakage
        buffers += number
        sinks = number
    return buffers, energy, leakage


#: Node of the thesis's engine (7.1.3), the usual supply at that node, and the engine's clock.
THESIS_NM, THESIS_VOLTS, THESIS_MHZ = 28.0, 0.9, 1250.0


@dataclass(frozen=True)
class PowerRow:
    """Energy of a unit, or of the whole engine, in fJ per cycle, and its leakage.

    Attributes:
        unit: its name.
        clock: at the clock pins of its flip-flops and clock gates, and in the tree to them.
        cells: inside its gates and flip-flops when data change.
        nets: in the pins and wires that it drives.
        memories: accesses to its memories.
        leakage: in nW.
    """

    unit: str
    clock: float = 0.0
    cells: float = 0.0
    nets: float = 0.0
    memories: float = 0.0
    leakage: float = 0.0

    @property
    def dynamic(self) -> float:
        """Everything except leakage, in fJ per cycle."""
        return self.clock + self.cells + self.nets + self.memories

    def milliwatts(self, mhz: float) -> float:
        """Power at a clock of ``mhz``."""
        return self.dynamic * mhz * 1e-6 + self.leakage * 1e-6

    def scaled(self, dynamic: float, leakage: float) -> "PowerRow":
        """The row with its energies multiplied by ``dynamic`` and its leakage by ``leakage``."""
        values = {name: dynamic * getattr(self, name) for name in _PARTS}
        return PowerRow(self.unit, **{**values, "leakage": leakage * self.leakage})

    def parts(self, mhz: float) -> dict[str, float]:
        """``mw`` at a clock of ``mhz``, and its breakdown: ``clock_mw`` and so on."""
        parts = {name: getattr(self, name) for name in _PARTS}
        leakage = parts.pop("leakage")
        milliwatts = {"mw": round(self.milliwatts(mhz), 4)}
        milliwatts |= {f"{name}_mw": round(value * mhz * 1e-6, 4) for name, value in parts.items()}
        return {**milliwatts, "leakage_mw": round(leakage * 1e-6, 4)}

    def to_json(self, mhz: float) -> dict[str, object]:
        """The row as plain JSON data at a clock of ``mhz``: ``unit`` and :meth:`parts`."""
        return {"unit": self.unit, **self.parts(mhz)}


#: Parts of a row.
_PARTS = tuple(item.name for item in fields(PowerRow) if item.name != "unit")


@dataclass(frozen=True)
class PowerReport(Shown):
    """Power of an engine while it runs a program.

    Attributes:
        library: name of the cell library.
        node_nm, volts: of the library.
        cycles: number of cycles counted.
        gates: number of gates simulated.
        rows: one per unit, largest first.
        total: their sum.
        work: kind of work done in these cycles -> its amount.
        fmax_mhz: highest clock of the netlist in MHz; 0 if it was not timed.
        config: of the engine; None: only its netlist is known. kernel: what it ran.
        mhz: clock at which power is stated.
    """

    library: str
    node_nm: float
    volts: float
    cycles: int
    gates: int
    rows: tuple[PowerRow, ...]
    total: PowerRow
    work: Mapping[str, float] = field(default_factory=dict)
    fmax_mhz: float = 0.0
    config: PeConfig | None = None
    kernel: str = ""
    mhz: float = 1000.0

    @property
    def milliwatts(self) -> float:
        """Power at :attr:`mhz`."""
        return self.total.milliwatts(self.mhz)

    def energy_pj(self, kind: str, mhz: float) -> float:
        """pJ per item of work ``kind`` at a clock of ``mhz``."""
        mw = self.total.milliwatts(mhz)
        return mw * self.cycles / self.work[kind] / mhz * 1e3

    def at_thesis_node(self) -> "PowerReport":
        """The report scaled to 28 nm and 0.9 V: energies scale with the node and the square of the
        supply, leakage per gate with the node and the supply."""
        node, volts = THESIS_NM / self.node_nm, THESIS_VOLTS / self.volts
        scale = node * volts**2, node * volts
        return replace(
            self,
            node_nm=THESIS_NM,
            volts=THESIS_VOLTS,
            rows=tuple(row.scaled(*scale) for row in self.rows),
            total=self.total.scaled(*scale),
            fmax_mhz=0.0,
        )

    def to_json(self) -> dict[str, object]:
        """The power as plain JSON data: at the requested clock, at the fastest, and scaled to the
        thesis's node."""
        return {
            "kernel": self.kernel,
            "fmax_mhz": self.fmax_mhz,
            **self.stated(self.mhz),
            "at_fmax": self.stated(self.fmax_mhz) if self.fmax_mhz else None,
            "at_28_nm": self.at_thesis_node().stated(THESIS_MHZ),
            "configuration": None if self.config is None else configuration_json(self.config),
        }

    def stated(self, mhz: float) -> dict[str, object]:
        """The report at a clock of ``mhz`` as plain JSON data."""
        return {
            "library": self.library,
            "node_nm": round(self.node_nm, 1),
            "volts": self.volts,
            "mhz": mhz,
            "cycles": self.cycles,
            "gates": self.gates,
            **self.total.parts(mhz),
            "pj_per": {kind: round(self.energy_pj(kind, mhz), 4) for kind in self.work},
            "units": [row.to_json(mhz) for row in self.rows],
        }


def check_energies(library: CellLibrary) -> None:
    """Refuse a library whose cells have no energies.

    Raises:
        SynthesisError: they have none.
    """
    if not library.powered:
        raise SynthesisError(f"library {library.name} has no energies (internal_power)")


def measure_power(
    netlist: Netlist,
    library: CellLibrary,
    recordings: Sequence[Recording],
    *,
    what: str,
) -> PowerReport:
    """Simulate ``netlist`` with ``recordings`` and add up the energies of its activity.

    Parameters:
        netlist: of an engine, mapped to ``library``.
        library: with energies.
        what: names the design in messages.
        recordings: at least one; each is simulated from its own first cycle.

    Raises:
        SynthesisError: the library has no energies; also as :meth:`GateSimulation.run`.
    """
    check_energies(library)
    simulation = GateSimulation(netlist, library)
    activity = simulation.run(*recordings, what=what)
    work: Counter[str] = Counter()
    for one in recordings:
        work.update(one.work)
    return estimate(netlist, library, activity, work)


def estimate(
    netlist: Netlist, library: CellLibrary, activity: NetlistActivity, work: Mapping[str, float]
) -> PowerReport:
    """Add up the energies of ``activity``, in which ``work`` was done.

    Raises:
        SynthesisError: as :func:`synth.timing.sta.longest_paths` and :func:`clock_tree`.
    """
    node = library.node_nm
    nets = net_states(netlist, library, SramTimes(node), library.wires)
    sums = _Sums(netlist, library, activity, nets)
    rows = sums.rows()
    total = PowerRow(
        TOTAL,
        **{
            item.name: sum(getattr(row, item.name) for row in rows) for item in fields(PowerRow)[1:]
        },
    )
    return PowerReport(
        library=library.name,
        node_nm=node,
        volts=library.volts,
        cycles=activity.cycles,
        gates=len(netlist.gates),
        rows=tuple(sorted(rows, key=lambda row: -row.dynamic)),
        total=total,
        work=dict(work),
    )


class _Sums:
    """Energies by unit, in fJ over all cycles."""

    def __init__(
        self,
        netlist: Netlist,
        library: CellLibrary,
        activity: NetlistActivity,
        nets: Mapping[int, NetState],
    ) -> None:
        self.netlist = netlist
        self.library = library
        self.activity = activity
        self.nets = nets
        self.parts: dict[str, defaultdict[str, float]] = {}
        #: Clock net -> cycles in which it ran.
        self.clocked = dict.fromkeys(netlist.trees.get(CLOCK, ()), activity.cycles)
        #: Clock net -> flip-flops of each unit on it; fF of the largest clock pin.
        self.sinks: dict[int, Counter[str]] = {}
        self.pin_ff = 0.0

    def rows(self) -> list[PowerRow]:
        """A row per unit, in fJ per cycle."""
        self._find_clocks()
        for place, gate in enumerate(self.netlist.gates):
            if gate.kind in self.library.cells:
                self._cell(place)
            else:
                self._memory(place)
        self._trees()
        cycles = self.activity.cycles
        return [
            PowerRow(
                unit,
                **{name: part[name] / (1 if name == "leakage" else cycles) for name in _PARTS},
            )
            for unit, part in self.parts.items()
        ]

    def _find_clocks(self) -> None:
        for bit, number in gated_clocks(self.netlist, self.library).items():
            activity = self.activity.cells[number]
            assert activity is not None
            self.clocked[bit] = _clocked_cycles(activity)

    def _part(self, unit: str) -> defaultdict[str, float]:
        return self.parts.setdefault(unit, defaultdict(float))

    def _cell(self, place: int) -> None:
        gate, did = self.netlist.gates[place], self.activity.cells[place]
        cell = self.library.cells[gate.kind]
        assert did is not None
        toggles, part = self.activity.toggles, self._part(gate.unit)
        clocked = 0
        for pin in cell.inputs:
            if cell.pins[pin].clock:
                bit = gate.pins[pin][0]
                clocked = self.clocked.get(bit, 0)
                self.sinks.setdefault(bit, Counter())[gate.unit] += 1
                self.pin_ff = max(self.pin_ff, cell.pins[pin].capacitance)
                part["clock"] += clocked * cell.pins[pin].capacitance * self.library.volts**2
        inputs = [
            (float(toggles[gate.pins[pin][0]]), self.nets[gate.pins[pin][0]])
            for pin in did.inputs
            if pin in cell.pins
        ]
        outputs = [
            self.nets[gate.pins[pin][0]] if gate.pins.get(pin) else None for pin in cell.outputs
        ]
        for name, energy in _cell_energy(cell, did, inputs, outputs, clocked).items():
            part[name] += energy
        if not cell.gates_clock:
            part["nets"] += sum(
                self._charge(bit) for pin in cell.outputs for bit in gate.pins.get(pin, ())
            )

    def _charge(self, bit: int) -> float:
        """fJ of all edges of a net; each edge takes half the energy of a full swing of its load."""
        load = self.nets[bit].load
        return float(self.activity.toggles[bit]) * load * self.library.volts**2 / 2

    def _memory(self, place: int) -> None:
        gate = self.netlist.gates[place]
        part = self._part(gate.unit)
        geometry = SramGeometry.parse(gate.kind)
        accesses = sum(self.activity.accesses[place])
        part["memories"] += accesses * access_fj(geometry, self.library.node_nm, self.library.volts)
        cells = self.library.cells.values()
        gate_nw = min(cell.leakage for cell in cells if cell.area == self.library.gate_um2)
        part["leakage"] += leakage_nw(
            geometry, self.library.node_nm, gate_nw, self.library.gate_um2
        )
        part["nets"] += sum(
            self._charge(bit)
            for pin, bits in gate.pins.items()
            if gate.outputs(pin)
            for bit in bits
        )

    def _trees(self) -> None:
        """Divide the tree of each clock among the units in proportion to their flip-flops."""
        for bit, units in self.sinks.items():
            sinks = sum(units.values())
            _, energy, leakage = clock_tree(self.library, sinks, self.pin_ff)
            for unit, number in units.items():
                share = number / sinks
                self._part(unit)["clock"] += share * energy * self.clocked.get(bit, 0)
                self._part(unit)["leakage"] += share * leakage


#: Rows of :func:`_condition`, by level of the clock.
_LOW, _HIGH = 0, 1


@lru_cache(maxsize=65536)
def _condition(cell: Cell, inputs: tuple[str, ...], when: str) -> Array | None:
    """Masks of ``when`` over the values of ``inputs`` (outputs replaced by their functions), for a
    low and a high clock; None if ``when`` can't be evaluated."""
    functions = {pin: cell.pins[pin].function for pin in cell.outputs}
    opposite = {} if cell.state is None else cell.state.opposite
    outputs = {pin: f"({substituted(of, opposite)})" for pin, of in functions.items() if of}
    text = substituted(when or "1", outputs)
    clocks = [pin for pin in cell.inputs if cell.pins[pin].clock]
    masks = []
    for level in "01":
        try:
            table = truth_table(substituted(text, dict.fromkeys(clocks, level)), inputs)
        except FunctionError:
            return None
        rows = 1 << len(inputs)
        masks.append(np.array([table >> row & 1 for row in range(rows)], dtype=float))
    return np.stack(masks)


def _edge(
    cell: Cell, activity: CellActivity, arcs: Sequence[PowerArc], slew: float, load: float
) -> float:
    """fJ of one edge, the mean of rise and fall.

    Arcs are weighted by how often their conditions were true with the clock high, which is when
    data are assumed to settle.
    """
    weights, energies = [], []
    for arc in arcs:
        condition = _condition(cell, activity.inputs, arc.when)
        weights.append(0.0 if condition is None else float(activity.states @ condition[_HIGH]))
        energies.append((arc.rise.at(slew, load) + arc.fall.at(slew, load)) / 2)
    if not energies:
        return 0.0
    if not sum(weights):
        return float(np.mean(energies))
    return float(np.average(energies, weights=weights))


def _clocked_cycles(activity: CellActivity) -> int:
    """Cycles in which a clock gate, whose only input is its enable, passed the clock."""
    return int(activity.states[1])


def _cell_energy(
    cell: Cell,
    activity: CellActivity,
    inputs: Sequence[tuple[float, NetState]],
    outputs: Sequence[NetState | None],
    clocked: int,
) -> dict[str, float]:
    """Parts of a row over the counted cycles: ``cells`` (fJ at edges of outputs and data inputs),
    ``clock`` (fJ at edges of the clock), and mean ``leakage`` (nW).

    Parameters:
        activity: of the cell.
        inputs: number of edges and net of each pin in ``activity.inputs``, without the state.
        outputs: net of each of ``cell.outputs``, None if unconnected.
        clocked: cycles in which its clock ran.
    """
    pins = dict(zip(activity.inputs, inputs, strict=False))
    internal = 0.0
    for pin, net in zip(cell.outputs, outputs, strict=True):
        causes = activity.causes.get(pin)
        if causes is None or net is None:
            continue
        for name, edges in zip(activity.inputs, causes, strict=True):
            if not edges:
                continue
            # The state changes with the clock.
            of = [arc for arc in cell.pins[pin].power if _related(cell, arc, name)]
            slew = pins[name][1].slew if name in pins else CLOCK_SLEW_NS
            internal += edges * _edge(cell, activity, of, slew, net.load)
    clock = 0.0
    if cell.gates_clock:
        for pin, net in zip(cell.outputs, outputs, strict=True):
            if net is not None:
                edge = _edge(cell, activity, cell.pins[pin].power, CLOCK_SLEW_NS, net.load)
                clock += 2 * _clocked_cycles(activity) * edge
    for pin in cell.inputs:
        input_arcs = [arc for arc in cell.pins[pin].power if not arc.related]
        if cell.pins[pin].clock:
            clock += 2 * clocked * _edge(cell, activity, input_arcs, CLOCK_SLEW_NS, 0.0)
        elif input_arcs and pin in pins:
            edges, state = pins[pin]
            internal += edges * _edge(cell, activity, input_arcs, state.slew, 0.0)
    return {"cells": internal, "clock": clock, "leakage": _leakage(cell, activity)}


def _related(cell: Cell, arc: PowerArc, name: str) -> bool:
    related = arc.related.split()
    if cell.state is not None and name == cell.state.name:
        return any(cell.pins[pin].clock for pin in related if pin in cell.pins)
    return name in related


def _leakage(cell: Cell, activity: CellActivity) -> float:
    """Mean over the states that occurred, with the clock high half of the time."""
    total = float(activity.states.sum())
    seen = power = 0.0
    for when, leakage in cell.leakages:
        condition = _condition(cell, activity.inputs, when)
        if condition is None:
            return cell.leakage
        share = float(activity.states @ (condition[_HIGH] + condition[_LOW])) / 2
        seen += share
        power += leakage * share
    # States that the file omits get its mean.
    return (power + (total - seen) * cell.leakage) / total
