"""Simulation of a mapped netlist with recorded inputs: the activity of every cell and memory.

There are no delays, so a net changes at most once per cycle and glitches are not counted.
"""

from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, byref, c_int32, c_int64, c_uint8, c_uint64
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from hdl.sram_macro import SramGeometry
from support.native import compile_library
from support.schema import C, Record, declarations
from synth.errors import SynthesisError
from synth.netlist import RESET, Gate, Netlist
from synth.timing.cell_library import Cell, CellLibrary
from synth.timing.gate_function import MAX_INPUTS, needed_inputs, substituted, truth_table
from synth.timing.registers import is_never
from synth.timing.timer import evaluation_order, gated_clocks

_SOURCE = Path(__file__).with_name("gate_sim.cpp")
#: Weight of one edge of an output in ``Counts.causes``.
WHOLE_EDGE = 60

Array = npt.NDArray[Any]
_Record = TypeVar("_Record", bound=Record)


_Integers = Annotated[Any, C(POINTER(c_int32))]
_Words = Annotated[Any, C(POINTER(c_uint64))]
_Bytes = Annotated[Any, C(POINTER(c_uint8))]
_Number = Annotated[int, C(c_int32)]


class Cells(Record):
    """Cells in the order of evaluation.

    Attributes:
        input_start: count + 1 indices into ``inputs``. inputs: nets; the last input of a flip-flop
            is its state.
        output_start: count + 1 indices into ``outputs`` and ``truth``. outputs: nets.
        truth: truth table per output, over the cell's inputs. needed: per output, a bit for each
            input that it depends on.
        state: net of the state, -1 for a gate. enable: net that lets the clock through, -1 if it
            always runs.
        next: truth table of the next state. bins: count + 1 indices into :attr:`Counts.states`.
    """

    count: _Number
    input_start: _Integers
    inputs: _Integers
    output_start: _Integers
    outputs: _Integers
    truth: _Words
    needed: _Integers
    state: _Integers
    enable: _Integers
    next: _Words
    bins: _Integers


class Macros(Record):
    """Memories.

    Attributes:
        shape: words, bits, read ports, write ports, address bits and shared ports of each.
        pins: of each, bit by bit, in the order of :attr:`hdl.sram_macro.SramGeometry.pins`.
    """

    count: _Number
    shape: _Integers
    pins: _Integers


class Stimulus(Record):
    """Inputs and expected outputs.

    Attributes:
        counted_from: first cycle whose activity counts, and whose outputs are compared.
        input_values, output_values: by cycle. values: initial value of every net.
    """

    nets: _Number
    cycles: _Number
    counted_from: _Number
    inputs: _Number
    outputs: _Number
    input_nets: _Integers
    output_nets: _Integers
    input_values: _Bytes
    output_values: _Bytes
    values: _Bytes


class Counts(Record):
    """Counted activity.

    Attributes:
        toggles: edges of each net. states: cycles that each cell spent in each state of its inputs.
        causes: edges of each output by the input that caused them, in units of 1/60 of an edge.
        accesses: to each port of each macro.
    """

    toggles: _Words
    states: _Words
    causes: _Words
    accesses: _Words


def _filled(record: _Record, **values: Any) -> _Record:
    """``record`` with numbers, and with pointers to arrays, which live as long as it does; those of
    the right type are not copied."""
    arrays, members = [], cast(Any, record)._fields_
    for name, kind in members:
        value = values[name]
        if kind is not c_int32:
            array = np.ascontiguousarray(value, np.dtype(kind._type_))
            # There is nothing to point to in an empty array.
            arrays.append(array if array.size else np.zeros(1, array.dtype))
            value = arrays[-1].ctypes.data_as(kind)
        setattr(record, name, value)
    record.arrays = arrays
    return record


@cache
def simulator() -> Callable[..., int]:
    """The simulator's entry point, compiled unless cached.

    Raises:
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    function = compile_library(
        "power",
        _SOURCE,
        ("-std=c++17", "-O2"),
        generated={"gate_sim.inc": declarations(Cells, Macros, Stimulus, Counts)},
    ).vip_gate_sim
    function.restype = c_int64
    return lambda *arguments: int(function(*arguments))


class Recording(Protocol):
    """A run of a design, as :mod:`sim_tb.cosim.recorded` has them."""

    @property
    def signals(self) -> Mapping[str, Sequence[int]]:
        """Port -> its value in each cycle, just before the clock edge; the reset is one, too."""

    @property
    def running(self) -> tuple[int, int]:
        """The first cycle whose activity counts, and the one after the last."""

    @property
    def work(self) -> Mapping[str, float]:
        """Kind of work done in these cycles -> its amount."""


@dataclass(frozen=True)
class CellActivity:
    """Activity of a cell in the counted cycles.

    Attributes:
        inputs: its input pins without the clock; a flip-flop's state is the last one.
        states: cycles spent in each state of the inputs, input ``i`` in bit ``i``.
        causes: output -> its edges by the input that caused them; inputs that change together
            share an edge.
    """

    inputs: tuple[str, ...]
    states: Array
    causes: Mapping[str, Array]


@dataclass(frozen=True)
class NetlistActivity:
    """Activity of a design in the counted cycles of all runs.

    Attributes:
        cycles: number of cycles counted.
        toggles: net -> edges.
        cells: one per gate of the netlist, None for memories.
        accesses: index of a memory among the gates -> reads of each read port, then writes of each
            write port.
    """

    cycles: int
    toggles: Array
    cells: tuple[CellActivity | None, ...]
    accesses: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True)
class _Model:
    """A cell as simulated: nets of its inputs and outputs, and truth tables."""

    inputs: tuple[str, ...]
    nets: tuple[int, ...]
    outputs: tuple[tuple[str, int, int], ...]
    state: int = -1
    enable: int = -1
    next: int = 0


class GateSimulation:
    """A netlist prepared for simulation.

    Parameters:
        netlist: mapped to ``library``; cells of other types must be memory macros. Flip-flops are
            clocked directly or through one clock gate.
        library: with the functions of its cells.

    Raises:
        SynthesisError: a cell can't be simulated, or gates form a loop.
    """

    def __init__(self, netlist: Netlist, library: CellLibrary) -> None:
        self.netlist = netlist
        self.library = library
        self._states = 0
        gates = netlist.gates
        nets = [bit for gate in gates for bits in gate.pins.values() for bit in bits]
        ports = (*netlist.inputs.values(), *netlist.outputs.values(), *netlist.trees.values())
        nets += [bit for bits in ports for bit in bits]
        self.nets = max([*nets, *netlist.constants], default=0) + 1
        cells = [library.cells.get(gate.kind) for gate in gates]
        self._memories = [place for place, cell in enumerate(cells) if cell is None]
        state = [p for p, cell in enumerate(cells) if cell is not None and cell.sequential]
        logic = [p for p, cell in enumerate(cells) if cell is not None and not cell.sequential]
        order = evaluation_order([gates[place] for place in logic], library)
        #: Indices of the cells among the gates, in the order of evaluation.
        self._order = [*state, *(logic[place] for place in order)]
        self._gated = self._enables()
        self._models = [self._model(gates[place]) for place in self._order]

    def _enables(self) -> dict[int, int]:
        """Gated clock net -> net that enables it."""
        enables = {}
        for clock, number in gated_clocks(self.netlist, self.library).items():
            gate = self.netlist.gates[number]
            cell = self.library.cells[gate.kind]
            data = [pin for pin in cell.inputs if not cell.pins[pin].clock and gate.pins.get(pin)]
            nets = (gate.pins[pin][0] for pin in data)
            (enables[clock],) = (net for net in nets if net not in self.netlist.constants)
        return enables

    def _model(self, gate: Gate) -> _Model:
        cell = self.library.cells[gate.kind]
        if cell.gates_clock:
            pins = tuple(pin for pin in cell.inputs if not cell.pins[pin].clock)
            return _Model(pins, tuple(gate.pins[pin][0] for pin in pins), ())
        if cell.state is not None:
            return self._flip_flop(gate, cell)
        if cell.sequential:
            raise SynthesisError(f"cell {gate.name}: a {gate.kind} can't be simulated")
        outputs = tuple(
            (pin, gate.pins[pin][0], truth_table(cell.pins[pin].function, cell.inputs))
            for pin in cell.outputs
            if gate.pins.get(pin)
        )
        return _Model(cell.inputs, tuple(gate.pins[pin][0] for pin in cell.inputs), outputs)

    def _flip_flop(self, gate: Gate, cell: Cell) -> _Model:
        state = cell.state
        assert state is not None
        nets = {pin: gate.pins[pin][0] for pin in cell.inputs if gate.pins.get(pin)}
        known = self.netlist.constants
        constants = {pin: known[net] for pin, net in nets.items() if net in known}
        asynchronous = (state.clear, state.preset)
        if not all(is_never(text, cell.inputs, constants) for text in asynchronous):
            raise SynthesisError(
                f"cell {gate.name}: a {gate.kind} that is set or cleared without a clock can't be"
                " simulated"
            )
        data = tuple(pin for pin in cell.inputs if not cell.pins[pin].clock)
        inputs = (*data, state.name)
        state_net = self.nets + self._states
        self._states += 1

        def table(function: str) -> int:
            return truth_table(substituted(function, state.opposite), inputs)

        (clock,) = (gate.pins[pin][0] for pin in cell.inputs if cell.pins[pin].clock)
        return _Model(
            inputs=inputs,
            nets=(*(gate.pins[pin][0] for pin in data), state_net),
            outputs=tuple(
                (pin, gate.pins[pin][0], table(cell.pins[pin].function))
                for pin in cell.outputs
                if gate.pins.get(pin)
            ),
            state=state_net,
            enable=self._gated.get(clock, -1),
            next=table(state.next_state),
        )

    def run(self, *recordings: Recording, what: str) -> NetlistActivity:
        """The activity of all recordings, at least one. Each is simulated from its cycle 0, where
        every flip-flop and memory is 0.

        From the first counted cycle on, outputs must be as recorded.

        Parameters:
            what: names the design in messages.

        Raises:
            SynthesisError: an output differs, a port was not recorded, there is nothing to count,
                or the simulator can't be compiled.
        """
        counts = [self._count(recording, what) for recording in recordings]
        cycles = sum(end - start for start, end in (one.running for one in recordings))
        parts = zip(*counts, strict=True)
        return self._activity(cycles, *(sum(part[1:], part[0]) for part in parts))

    def _count(self, recording: Recording, what: str) -> tuple[Array, Array, Array, Array]:
        """What :class:`Counts` has of a run."""
        start, end = recording.running
        recorded = min(map(len, recording.signals.values()), default=0)
        if not 0 <= start < end <= recorded:
            raise SynthesisError(
                f"{what}: can't count cycles {start} to {end} of {recorded} recorded"
            )
        by_port = {**self.netlist.inputs, RESET: self.netlist.trees.get(RESET, ())}
        inputs = _columns(by_port, recording.signals, end, what)
        outputs = _columns(self.netlist.outputs, recording.signals, end, what)
        values = np.zeros(self.nets + self._states, dtype=np.uint8)
        for net, bit in self.netlist.constants.items():
            values[net] = bit
        shapes, ports, accesses = self._macros()
        pins = sum(len(model.outputs) for model in self._models)
        sizes = values.size, int(self._bins()[-1]), (pins, MAX_INPUTS), max(1, sum(accesses))
        toggles, states, causes, used = (np.zeros(size, np.uint64) for size in sizes)
        stimulus = _filled(
            Stimulus(),
            nets=values.size,
            cycles=end,
            counted_from=start,
            inputs=len(inputs[0]),
            outputs=len(outputs[0]),
            input_nets=inputs[0],
            output_nets=outputs[0],
            input_values=inputs[1],
            output_values=outputs[1],
            values=values,
        )
        macros = _filled(Macros(), count=len(shapes), shape=shapes, pins=ports)
        counts = _filled(Counts(), toggles=toggles, states=states, causes=causes, accesses=used)
        records = self._cells(), macros, stimulus, counts
        wrong = simulator()(*map(byref, records))
        if wrong >= 0:
            cycle, place = divmod(wrong, len(outputs[0]))
            raise SynthesisError(
                f"{what}: the netlist behaves differently from its Verilog: in cycle {cycle},"
                f" output bit {place} differs"
            )
        return toggles, states, causes, used

    def _bins(self) -> Array:
        """Index of each cell's first counter of states, and their number."""
        return np.cumsum([0, *(1 << len(model.nets) for model in self._models)])

    def _cells(self) -> Cells:
        """All cells in the simulator's format."""
        models = self._models
        outputs = [(len(model.inputs), *output) for model in models for output in model.outputs]
        return _filled(
            Cells(),
            count=len(models),
            input_start=np.cumsum([0, *(len(model.nets) for model in models)]),
            inputs=[net for model in models for net in model.nets],
            output_start=np.cumsum([0, *(len(model.outputs) for model in models)]),
            outputs=[net for _, _, net, _ in outputs],
            truth=np.array([table for *_, table in outputs], np.uint64),
            needed=[needed_inputs(table, inputs) for inputs, *_, table in outputs],
            state=[model.state for model in models],
            enable=[model.enable for model in models],
            next=np.array([model.next for model in models], np.uint64),
            bins=self._bins(),
        )

    def _macros(self) -> tuple[list[tuple[int, ...]], list[int], list[int]]:
        """Shapes of the memories, nets of their pins port by port, and how many ports they have."""
        shapes: list[tuple[int, ...]] = []
        pins: list[int] = []
        ports: list[int] = []
        for place in self._memories:
            gate = self.netlist.gates[place]
            shape = SramGeometry.parse(gate.kind)
            single = (shape.read_ports, shape.write_ports)
            shapes.append(
                (shape.depth, shape.width, *single, shape.address_bits, shape.shared_ports)
            )
            for name, *_ in shape.pins:
                pins += gate.pins[name]
            ports.append(shape.ports)
        return shapes, pins, ports

    def _activity(
        self,
        cycles: int,
        toggles: Array,
        states: Array,
        causes: Array,
        used: Array,
    ) -> NetlistActivity:
        bins = self._bins()
        activities: list[CellActivity | None] = [None] * len(self.netlist.gates)
        edges = causes / WHOLE_EDGE
        row = 0
        for number, (place, model) in enumerate(zip(self._order, self._models, strict=True)):
            outputs = {}
            for pin, _, _ in model.outputs:
                outputs[pin] = edges[row][: len(model.inputs)]
                row += 1
            activities[place] = CellActivity(
                model.inputs, states[bins[number] : bins[number + 1]], outputs
            )
        accesses, first = {}, 0
        for place in self._memories:
            shape = SramGeometry.parse(self.netlist.gates[place].kind)
            last = first + shape.ports
            accesses[place] = tuple(int(number) for number in used[first:last])
            first = last
        return NetlistActivity(cycles, toggles, tuple(activities), accesses)


def _columns(
    ports: Mapping[str, tuple[int, ...]],
    recorded: Mapping[str, Sequence[int]],
    cycles: int,
    label: str,
) -> tuple[list[int], Array]:
    """Nets of ``ports``, and their values as one row per cycle."""
    nets: list[int] = []
    columns = []
    for name, bits in ports.items():
        if not bits:
            continue
        if name not in recorded:
            raise SynthesisError(f"{label}: port {name} was not recorded")
        size = (len(bits) + 7) // 8
        data = b"".join(value.to_bytes(size, "little") for value in recorded[name][:cycles])
        table = np.frombuffer(data, dtype=np.uint8).reshape(cycles, size)
        columns.append(np.unpackbits(table, axis=1, count=len(bits), bitorder="little"))
        nets += bits
    empty = np.zeros((cycles, 0), dtype=np.uint8)
    return nets, np.concatenate([empty, *columns], axis=1)
