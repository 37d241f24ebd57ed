"""Buffers for the long wires of a placement.

A net with too much load gets a tree of buffers: its pins are halved along the longer side of the
box around them until a buffer can drive each part, and buffers follow each other along what is
left.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from synth.errors import SynthesisError
from synth.netlist import Gate, Netlist
from synth.physical.asic import is_single
from synth.timing.cell_library import Cell, CellLibrary
from synth.timing.registers import port_register

from .floorplan import Place
from .placement import PlacedCells, What

#: The cells' own limits of loads are far beyond those at which they are fast.
_SPARE = 4
#: A pin, or a buffer by its number.
_Input = What | int


@dataclass(frozen=True)
class _Sink:
    """What a net drives: where it is in um, its load in fF, and what it is."""

    at: tuple[float, float]
    ff: float
    what: _Input


class _Trees:
    """Buffers of one netlist.

    Parameters:
        ff: load of a um of wire. most: that a driver may have, in fF.
        input_ff: load of a buffer. net: first of the new nets.
    """

    def __init__(self, ff: float, most: float, input_ff: float, net: int) -> None:
        self._ff, self._most, self._input_ff, self._net = ff, most, input_ff, net
        #: Net, unit and place of each buffer.
        self.buffers: list[tuple[int, str, tuple[float, float]]] = []
        #: The net of each input.
        self.nets: dict[_Input, int] = {}

    def drive(
        self, net: int, unit: str, source: tuple[float, float], sinks: Sequence[_Sink]
    ) -> None:
        """Connect ``sinks`` to ``net``, whose driver is at ``source``."""
        xs, ys = zip(source, *(sink.at for sink in sinks), strict=True)
        um = max(xs) - min(xs) + max(ys) - min(ys)
        if um * self._ff + sum(sink.ff for sink in sinks) > self._most:
            if len(sinks) > 1:
                sinks = [self._led(unit, source, part) for part in _halves(sinks)]
            reach = max(1.0, self._most / len(sinks) / self._ff)
            sinks = [self._nearer(unit, source, sink, reach) for sink in sinks]
        for sink in sinks:
            self.nets[sink.what] = net

    def _led(self, unit: str, source: tuple[float, float], sinks: Sequence[_Sink]) -> _Sink:
        """A buffer that drives ``sinks``, in their box where the source is nearest; one alone needs
        none."""
        if len(sinks) == 1:
            return sinks[0]
        xs, ys = zip(*(sink.at for sink in sinks), strict=True)
        x, y = (
            min(max(at, min(axis)), max(axis)) for at, axis in zip(source, (xs, ys), strict=True)
        )
        return self._insert(unit, (x, y), sinks)

    def _nearer(self, unit: str, source: tuple[float, float], sink: _Sink, reach: float) -> _Sink:
        """``sink``, or the first of the buffers on the way to it, at most ``reach`` um away."""
        while (away := sum(abs(a - b) for a, b in zip(source, sink.at, strict=True))) > reach:
            step = max((self._most - sink.ff) / self._ff, reach / 2)
            share = min(step, away - reach / 2) / away
            x, y = (b + (a - b) * share for a, b in zip(source, sink.at, strict=True))
            sink = self._insert(unit, (x, y), [sink])
        return sink

    def _insert(self, unit: str, at: tuple[float, float], sinks: Sequence[_Sink]) -> _Sink:
        number, net = len(self.buffers), self._net
        self._net += 1
        self.buffers.append((net, unit, at))
        self.drive(net, unit, at, sinks)
        return _Sink(at, self._input_ff, number)


def _halves(sinks: Sequence[_Sink]) -> tuple[Sequence[_Sink], Sequence[_Sink]]:
    """On both sides of the middle of the longer side of their box."""
    xs, ys = zip(*(sink.at for sink in sinks), strict=True)
    side = int(max(ys) - min(ys) > max(xs) - min(xs))
    order = sorted(sinks, key=lambda sink: sink.at[side])
    middle = (order[0].at[side] + order[-1].at[side]) / 2
    cut = sum(sink.at[side] < middle for sink in order) or len(order) // 2
    return order[:cut], order[cut:]


def buffered(
    placed: PlacedCells, library: CellLibrary, *, ff: float, most: float
) -> tuple[Netlist, Mapping[str, Place]]:
    """The netlist of ``placed`` with buffers, and where each of its cells should be.

    Parameters:
        ff: load of a um of wire. most: load in fF of wire and pins that a cell may drive.

    Raises:
        SynthesisError: the library has no buffer for so much.
    """
    netlist = placed.netlist
    register = port_register(library)
    end_ff = register.cell.pins[register.data].capacitance
    sinks: defaultdict[int, list[_Sink]] = defaultdict(list)
    sources: dict[int, tuple[str, tuple[float, float]]] = {}
    for net, at, (number, name, bit), drives in placed.pins():
        gate = netlist.gates[number] if number >= 0 else None
        if drives:
            sources[net] = "other" if gate is None else gate.unit, at
        else:
            cell = library.cells.get(gate.kind) if gate is not None else None
            load = end_ff if cell is None else cell.pins[name].capacitance
            sinks[net].append(_Sink(at, load, (number, name, bit)))
    cell = _buffer(library, most)
    (entry,), (end,) = cell.inputs, cell.outputs
    trees = _Trees(ff, most, cell.pins[entry].capacitance, _highest(netlist) + 1)
    for net, (unit, at) in sources.items():
        if sinks[net]:
            trees.drive(net, unit, at, sinks[net])
    gates = [
        replace(
            gate,
            pins={
                name: tuple(trees.nets.get((place, name, n), bit) for n, bit in enumerate(bits))
                for name, bits in gate.pins.items()
            },
        )
        for place, gate in enumerate(netlist.gates)
    ]
    outputs = {
        name: tuple(trees.nets.get((-1, name, number), bit) for number, bit in enumerate(bits))
        for name, bits in netlist.outputs.items()
    }
    site, step = placed.floorplan.lef.um
    places = dict(placed.places)
    for number, (net, unit, (x, y)) in enumerate(trees.buffers):
        pins = {entry: (trees.nets[number],), end: (net,)}
        gates.append(Gate(f"wire_buffer_{number}", cell.name, unit, pins))
        places[gates[-1].name] = round(x / site), round(y / step)
    return replace(netlist, gates=tuple(gates), outputs=outputs), places


def _buffer(library: CellLibrary, most: float) -> Cell:
    """The smallest buffer that may drive :data:`_SPARE` times ``most``."""
    for cell in sorted(library.cells.values(), key=lambda cell: (cell.area, cell.name)):
        if is_single(cell, 0b10) and cell.pins[cell.outputs[0]].max_load >= _SPARE * most:
            return cell
    raise SynthesisError(
        f"library {library.name} has no buffer that may drive {_SPARE * most:g} fF"
    )


def _highest(netlist: Netlist) -> int:
    return max(bit for gate in netlist.gates for bits in gate.pins.values() for bit in bits)
