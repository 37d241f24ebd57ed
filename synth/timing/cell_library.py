"""Standard cells from a Liberty file: areas, pins, delays, constraints, energies."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt
from pathlib import Path

from support.files import read_bytes

from .gate_function import FunctionError, truth_table
from .liberty_reader import Group, LibertyError, number, numbers, read_groups, unit

__all__ = [
    "Cell",
    "CellLibrary",
    "CellState",
    "LibertyError",
    "Parasitics",
    "Pin",
    "PowerArc",
    "TimingArc",
    "TimingTable",
    "WireLoad",
    "Wires",
    "parse_library",
    "read_library",
]


@dataclass(frozen=True)
class TimingTable:
    """A table of times.

    Attributes:
        rows, columns: ascending values of the two quantities; one with a single value is ignored.
        values: the times, row by row.
    """

    rows: tuple[float, ...]
    columns: tuple[float, ...]
    values: tuple[float, ...]

    def at(self, row: float, column: float) -> float:
        """The time at ``row`` and ``column``, linearly inter- and extrapolated."""
        rows, columns, values = self.rows, self.columns, self.values
        wide = len(columns)
        across = 0.0
        j = 0
        if wide > 1:
            j = min(max(bisect_right(columns, column) - 1, 0), wide - 2)
            across = (column - columns[j]) / (columns[j + 1] - columns[j])
        if len(rows) == 1:
            low = values[j]
            return low + across * (values[j + 1] - low) if wide > 1 else low
        i = min(max(bisect_right(rows, row) - 1, 0), len(rows) - 2)
        along = (row - rows[i]) / (rows[i + 1] - rows[i])
        at = i * wide + j
        low, high = values[at], values[at + wide]
        if wide > 1:
            low += across * (values[at + 1] - low)
            high += across * (values[at + wide + 1] - high)
        return low + along * (high - low)


#: The NAND gate of the Nangate library, um2, and its node in nm.
_NANGATE_NAND_UM2 = 0.798
_NANGATE_NM = 45.0


@dataclass(frozen=True)
class TimingArc:
    """Delay from an input to an output, or a constraint between two inputs.

    Attributes:
        related: the input at which it starts (for a constraint, the clock).
        kind: Liberty's ``timing_type``; ``combinational`` by default.
        sense: ``positive_unate``, ``negative_unate`` or ``non_unate``.
        tables: by Liberty's names, e.g. ``cell_rise``, ``fall_transition``, ``rise_constraint``:
            ns as a function of slew in ns and load in fF.
    """

    related: str
    kind: str
    sense: str
    tables: Mapping[str, TimingTable]


@dataclass(frozen=True)
class PowerArc:
    """Energy that a cell draws from its supply at an edge of a pin, excluding the pin's load.

    Attributes:
        related: the input that causes an output's edge; "" for an edge of an input itself.
        when: function of other pins that must be true, or "".
        rise, fall: fJ as a function of slew in ns and load in fF.
    """

    related: str
    when: str
    rise: TimingTable
    fall: TimingTable


@dataclass(frozen=True)
class Pin:
    """A pin: direction, load in fF, function (of an output), whether it is a clock, timing arcs,
    energies of its edges, the largest load in fF that it can drive (0: unknown), and its load at a
    rising and at a falling edge."""

    direction: str
    capacitance: float
    function: str
    clock: bool
    arcs: tuple[TimingArc, ...]
    power: tuple[PowerArc, ...] = ()
    max_load: float = 0.0
    edge_loads: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class CellState:
    """The state of a flip-flop.

    Attributes:
        name, inverse: names of the state and its inverse in the functions of outputs.
        next_state: function that is stored when ``clock``, also a function, becomes 1.
        clear, preset: functions that clear and set it asynchronously; "0" for never.
    """

    name: str
    inverse: str
    next_state: str
    clock: str
    clear: str = "0"
    preset: str = "0"

    @property
    def opposite(self) -> Mapping[str, str]:
        """The name of the inverse -> its function of the state."""
        return {self.inverse: f"(!{self.name})"}


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell; equal only to itself.

    Attributes:
        name: in netlists.
        area: in um2.
        pins: by name.
        sequential: whether it has state.
        state: of a flip-flop; None for gates, latches and clock gates.
        gates_clock: whether it is a clock gate.
        leakage: nW, averaged over its states.
        leakages: condition on pins, and nW while it is true.
        usable: whether the library lets tools use it.
    """

    name: str
    area: float
    pins: Mapping[str, Pin]
    sequential: bool
    state: CellState | None = None
    gates_clock: bool = False
    leakage: float = 0.0
    leakages: tuple[tuple[str, float], ...] = ()
    usable: bool = True

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of its inputs, in the file's order."""
        return tuple(name for name, pin in self.pins.items() if pin.direction == "input")

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of its outputs, in the file's order."""
        return tuple(name for name, pin in self.pins.items() if pin.direction == "output")

    def is_gate(self, inputs: int, *tables: int) -> bool:
        """Whether it is a gate with so many inputs and one output, and one of these truth tables
        (:func:`.gate_function.truth_table`)."""
        if self.sequential or len(self.inputs) != inputs or len(self.outputs) != 1:
            return False
        try:
            return truth_table(self.pins[self.outputs[0]].function, self.inputs) in tables
        except FunctionError:
            return False

    @property
    def buffers(self) -> bool:
        """Whether tools may use it as a buffer."""
        return self.usable and self.is_gate(1, 0b10)


@dataclass(frozen=True)
class WireLoad:
    """A statistical wire load: fF by the number of pins that a net drives.

    Attributes:
        loads: fF with 1, 2, ... pins. slope: fF per pin beyond these.
    """

    loads: tuple[float, ...] = ()
    slope: float = 0.0

    def load(self, pins: int) -> float:
        """Load in fF of a net that drives ``pins`` pins."""
        if not self.loads or not pins:
            return self.slope * pins
        return self.loads[min(pins, len(self.loads)) - 1] + self.slope * max(
            0, pins - len(self.loads)
        )


@dataclass(frozen=True)
class Wires:
    """A um of wire of a routing layer: fF and ohm."""

    ff: float
    ohm: float = 0.0


@dataclass(frozen=True)
class Parasitics:
    """What a layout adds to a netlist.

    Attributes:
        ff, ohm: of each net's wire, 0 of others.
        ways: a gate's number in the netlist (-1: a port), pin and bit -> ohm from the net's driver
            instead of the net's, as if all of the net's load were behind half of its wire.
        clock_ns: a gate's number -> when the clock comes there, -1: at registers of ports; of
            others at 0.
    """

    ff: Mapping[int, float]
    ohm: Mapping[int, float]
    ways: Mapping[tuple[int, str, int], float] = field(default_factory=dict)
    clock_ns: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class CellLibrary:
    """A library; equal only to itself.

    Attributes:
        name: in the file.
        cells: by name.
        volts: nominal supply.
        wires: the file's default wire load, empty without one.
    """

    name: str
    cells: Mapping[str, Cell]
    volts: float = 1.0
    wires: WireLoad = field(default_factory=WireLoad)

    @property
    def timed(self) -> bool:
        """Whether any gate has a delay table."""
        return any(
            "cell_rise" in arc.tables
            for cell in self.cells.values()
            for pin in cell.pins.values()
            for arc in pin.arcs
        )

    @property
    def powered(self) -> bool:
        """Whether any cell has energy tables."""
        return any(pin.power for cell in self.cells.values() for pin in cell.pins.values())

    @property
    def gate_um2(self) -> float:
        """Area of the gate equivalent, the smallest NAND gate with two inputs.

        Raises:
            LibertyError: the library has no such gate.
        """
        gates = (cell for cell in self.cells.values() if cell.is_gate(2, 0b0111))
        areas = [cell.area for cell in gates if cell.area > 0]
        if not areas:
            raise LibertyError(f"library {self.name} has no NAND gate with two inputs")
        return min(areas)

    @property
    def node_nm(self) -> float:
        """Feature size in nm, estimated by comparing the smallest NAND gate with Nangate's (45 nm).

        Raises:
            LibertyError: the library has no NAND gate with two inputs.
        """
        return _NANGATE_NM * sqrt(self.gate_um2 / _NANGATE_NAND_UM2)

    def flip_flops(self) -> frozenset[str]:
        """Names of the cells with state, except clock gates."""
        return frozenset(
            name for name, cell in self.cells.items() if cell.sequential and not cell.gates_clock
        )


def parse_library(text: str) -> CellLibrary:
    """Parse the text of a Liberty file.

    Raises:
        LibertyError: it isn't Liberty (the message names the line), or has no cells.
    """
    library = next(read_groups(text).of("library"), None)
    if library is None:
        raise LibertyError("line 1: no library(...) { } in it")
    reader = _CellReader(library)
    cells = {group.name: reader.cell(group) for group in library.of("cell")}
    if not cells:
        raise LibertyError(f"library {library.name} has no cells")
    volts = number(library.values.get("nom_voltage", "1"), "nom_voltage")
    return CellLibrary(library.name, cells, volts, _read_wire_load(library, reader.load))


#: Maximum size of a Liberty file in bytes.
LIBRARY_BYTES = 1 << 27


@lru_cache(maxsize=2)
def read_library(path: Path) -> CellLibrary:
    """The library in the Liberty file ``path``.

    Raises:
        LibertyError: the file can't be read or used; one line says where and why.
    """
    try:
        text = read_bytes(path, LIBRARY_BYTES).decode("utf-8", "replace")
        return parse_library(text)
    except OSError as error:
        raise LibertyError(f"can't read {path}: {error.strerror or error}") from error
    except LibertyError as error:
        raise LibertyError(f"{path}: {error}") from error
    except RecursionError:
        raise LibertyError(f"{path}: its groups are nested too deeply") from None


#: Liberty's names for the quantities of a table's rows and columns; the first ones are defaults.
_SLEW = ("input_net_transition", "input_transition_time", "constrained_pin_transition")
_SECOND = ("total_output_net_capacitance", "related_pin_transition")


class _CellReader:
    """Converts cells from the file's units to ns, fF, fJ and nW."""

    def __init__(self, library: Group) -> None:
        values = library.values
        self.time = unit(
            values.get("time_unit", "1ns"),
            "time_unit",
            {"ns": 1.0, "ps": 1e-3, "fs": 1e-6, "us": 1e3, "ms": 1e6, "s": 1e9},
        )
        load = "".join((library.lists.get("capacitive_load_unit") or ["1", "pf"])[:2])
        self.load = unit(load, "capacitive_load_unit", {"ff": 1.0, "pf": 1e3})
        volt = unit(values.get("voltage_unit", "1V"), "voltage_unit", {"v": 1.0, "mv": 1e-3})
        #: The unit of energy follows from those of load and voltage.
        self.energy = self.load * volt**2
        self.leakage = unit(
            values.get("leakage_power_unit", "1nW"),
            "leakage_power_unit",
            {"nw": 1.0, "pw": 1e-3, "uw": 1e3, "mw": 1e6},
        )
        self.templates = {group.name: group for group in library.groups if "template" in group.kind}

    def cell(self, group: Group) -> Cell:
        place = f"cell {group.name}"
        state = next((_state(group_of_state) for group_of_state in group.of("ff")), None)
        pins = {
            pin.name: self._pin(pin, f"{place}, pin {pin.name}", state) for pin in group.of("pin")
        }
        value = group.values.get("cell_leakage_power", "0")
        gate = "clock_gating_integrated_cell" in group.values
        return Cell(
            name=group.name,
            area=number(group.values.get("area", "0"), f"area of {place}"),
            pins=pins,
            sequential=gate or any(True for _ in group.of("ff", "latch")),
            state=state,
            gates_clock=gate,
            leakage=self.leakage * number(value, f"leakage of {place}"),
            leakages=tuple(
                (
                    group_of_state.values["when"],
                    self.leakage * number(group_of_state.values["value"], place),
                )
                for group_of_state in group.of("leakage_power")
                if "when" in group_of_state.values and "value" in group_of_state.values
            ),
            usable=group.values.get("dont_use", "false").lower() != "true",
        )

    def _pin(self, pin: Group, place: str, state: CellState | None) -> Pin:
        values = pin.values
        # Not every library marks the clocks of its flip-flops.
        clock = ("clock", "clock_gate_clock_pin")
        clocked = state is not None and state.clock.strip("()!' ") == pin.name
        load = values.get("capacitance", "0")
        rise, fall = (
            self.load * number(values.get(f"{edge}_capacitance", load), place)
            for edge in ("rise", "fall")
        )
        return Pin(
            direction=values.get("direction", "input"),
            capacitance=self.load * number(load, place),
            function=values.get("function", ""),
            clock=clocked or any(values.get(name, "false").lower() == "true" for name in clock),
            arcs=tuple(self._arc(timing, place) for timing in pin.of("timing")),
            power=tuple(self._power(power, place) for power in pin.of("internal_power")),
            max_load=self.load * number(values.get("max_capacitance", "0"), place),
            edge_loads=(rise, fall),
        )

    def _arc(self, timing: Group, place: str) -> TimingArc:
        tables = {}
        for table in timing.groups:
            # A gate's tables are indexed by input slew and load, a constraint's by two slews.
            if table.kind.endswith("_constraint"):
                tables[table.kind] = self._table(table, self.time, self.time, place)
            elif table.kind.startswith(("cell_", "rise_", "fall_")):
                tables[table.kind] = self._table(table, self.time, self.load, place)
        return TimingArc(
            timing.values.get("related_pin", ""),
            timing.values.get("timing_type", "combinational"),
            timing.values.get("timing_sense", "non_unate"),
            tables,
        )

    def _power(self, power: Group, place: str) -> PowerArc:
        tables = {
            table.kind: self._table(table, self.energy, self.load, place)
            for table in power.of("rise_power", "fall_power", "power")
        }
        both = tables.get("power", TimingTable((0.0,), (0.0,), (0.0,)))
        return PowerArc(
            related=power.values.get("related_pin", ""),
            when=power.values.get("when", ""),
            rise=tables.get("rise_power", both),
            fall=tables.get("fall_power", both),
        )

    def _table(self, table: Group, value: float, second: float, what: str) -> TimingTable:
        """A table over times and a quantity of unit ``second``. Its template says which index is
        which and provides missing ones."""
        template = self.templates.get(table.name, Group("", ()))
        values = [value * x for x in numbers(table.lists.get("values", []), what)]
        swapped = template.values.get("variable_1") in _SECOND
        axes = []
        for place, names in zip("21" if swapped else "12", (_SLEW, _SECOND), strict=True):
            variable = template.values.get(f"variable_{place}", names[0])
            if variable not in names or "variable_3" in template.values:
                raise LibertyError(f"{what}: table {table.kind} is over {variable} and others")
            index = f"index_{place}"
            axes.append(numbers(table.lists.get(index, template.lists.get(index, [])), what))
        rows = [self.time * x for x in axes[0]] or [0.0]
        columns = [second * x for x in axes[1]] or [0.0]
        if len(values) != len(rows) * len(columns):
            raise LibertyError(
                f"{what}: table {table.kind} has {len(values)} values"
                f" for {len(rows)} x {len(columns)} places"
            )
        if swapped:
            values = [x for place in range(len(rows)) for x in values[place :: len(rows)]]
        return TimingTable(tuple(rows), tuple(columns), tuple(values))


def _state(group: Group) -> CellState:
    name, inverse = (*group.arguments, "", "")[:2]
    return CellState(
        name=name,
        inverse=inverse,
        next_state=group.values.get("next_state", "0"),
        clock=group.values.get("clocked_on", ""),
        clear=group.values.get("clear", "0"),
        preset=group.values.get("preset", "0"),
    )


def _read_wire_load(library: Group, load: float) -> WireLoad:
    """The default wire load of a library, empty without one; fanouts that the file omits are
    interpolated.

    Parameters:
        load: the library's unit of capacitance in fF.

    Raises:
        LibertyError: it can't be read.
    """
    name = library.values.get("default_wire_load")
    for group in library.of("wire_load"):
        if group.name != name:
            continue
        place = f"wire_load {name}"
        unit = load * number(group.values.get("capacitance", "0"), place)
        points = sorted(tuple(numbers(words, place)[:2]) for words in group.repeated)
        if not points or any(len(point) != 2 for point in points):
            raise LibertyError(f"{place}: no fanout_length(pins, length) in it")
        loads = []
        for pins in range(1, int(points[-1][0]) + 1):
            above = next(point for point in points if point[0] >= pins)
            below = next((point for point in reversed(points) if point[0] <= pins), above)
            share = (pins - below[0]) / (above[0] - below[0]) if above != below else 0.0
            loads.append(unit * (below[1] + share * (above[1] - below[1])))
        return WireLoad(tuple(loads), unit * number(group.values.get("slope", "0"), place))
    return WireLoad()
