"""The tables of a cell library as arrays, so that those of many gates are looked up at once."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .cell_library import Cell, CellLibrary, TimingTable

#: Numbers of nets, gates, pins or tables.
Numbers = NDArray[np.int64]
#: Which of them are chosen.
Flags = NDArray[np.bool_]
#: ns, fF or um2.
Values = NDArray[np.float64]

RISE, FALL = 0, 1
#: Instead of an input: the clock of a flip-flop, which rises at time 0.
CLOCKED = ""

_EDGES = (("cell_rise", "rise_transition"), ("cell_fall", "fall_transition"))
_CONSTRAINTS = ("rise_constraint", "fall_constraint")
_BOTH = ((RISE, RISE), (FALL, RISE), (RISE, FALL), (FALL, FALL))
#: Sense of an arc -> edges of the input and of the output that it causes.
_CAUSES = {
    "positive_unate": ((RISE, RISE), (FALL, FALL)),
    "negative_unate": ((FALL, RISE), (RISE, FALL)),
}
_OF_CLOCK = ((RISE, RISE), (RISE, FALL))


class CellArc(NamedTuple):
    """How an edge of an input (or :data:`CLOCKED`) causes one of an output, and the numbers of the
    tables of its delay and slew."""

    source: str
    output: str
    cause: int
    edge: int
    delay: int
    slew: int


class CellCheck(NamedTuple):
    """How long an edge of an input must be there before the clock, and stay after it: numbers of
    the tables, -1 for none."""

    pin: str
    edge: int
    setup: int
    hold: int


class CellTables:
    """The tables of a library.

    Attributes:
        number: of each cell, by its name.
        arcs, checks: of each cell, by its number.
        inputs: fF of the inputs of all cells at both edges, one cell after the other.
        delays, slews, setups, holds: numbers of the tables of their arcs and checks.
        first_input, first_arc, first_check: where those of each cell begin.
    """

    def __init__(self, library: CellLibrary) -> None:
        self._tables: list[TimingTable] = []
        self._numbers: dict[int, int] = {}
        cells = library.cells.values()
        self.number = {cell.name: place for place, cell in enumerate(cells)}
        self.arcs = [tuple(self._arcs(cell)) for cell in cells]
        self.checks = [tuple(self._checks(cell)) for cell in cells]
        loads = [[cell.pins[pin].edge_loads for pin in cell.inputs] for cell in cells]
        self.inputs, self.first_input = (
            np.array([ff for one in loads for ff in one]).reshape(-1, 2),
            _firsts(loads),
        )
        self.first_arc, self.first_check = _firsts(self.arcs), _firsts(self.checks)
        self.delays = np.array([arc.delay for arcs in self.arcs for arc in arcs], np.int64)
        self.slews = np.array([arc.slew for arcs in self.arcs for arc in arcs], np.int64)
        self.setups, self.holds = (
            np.array([one[column] for checks in self.checks for one in checks], np.int64)
            for column in (2, 3)
        )
        tables = self._tables or [TimingTable((0.0,), (0.0,), (0.0,))]
        self._rows, self._last_row = _axes([table.rows for table in tables])
        self._columns, self._last_column = _axes([table.columns for table in tables])
        high, self._wide = self._rows.shape[1], self._columns.shape[1]
        self._values = np.zeros((len(tables), high, self._wide))
        for place, table in enumerate(tables):
            grid = np.reshape(table.values, (len(table.rows), len(table.columns)))
            # A single value is repeated: it has no slope.
            for axis in (0, 1):
                grid = np.repeat(grid, 2, axis) if grid.shape[axis] == 1 else grid
            self._values[place, : grid.shape[0], : grid.shape[1]] = grid
        self._flat = self._values.ravel()
        self._size = high * self._wide

    def _arcs(self, cell: Cell) -> Iterator[CellArc]:
        kind_of_arc = "_edge" if cell.sequential else "combinational"
        for output in cell.outputs:
            for arc in cell.pins[output].arcs:
                if kind_of_arc not in arc.kind:
                    continue
                sources = [CLOCKED] if cell.sequential else arc.related.split()
                pairs = _OF_CLOCK if cell.sequential else _CAUSES.get(arc.sense, _BOTH)
                for source in sources:
                    for cause, edge in pairs:
                        if all(name in arc.tables for name in _EDGES[edge]):
                            tables = (self._number(arc.tables[name]) for name in _EDGES[edge])
                            yield CellArc(source, output, cause, edge, *tables)

    def _checks(self, cell: Cell) -> Iterator[CellCheck]:
        for name in cell.inputs if cell.sequential else ():
            pin = cell.pins[name]
            for edge, kind in enumerate(() if pin.clock else _CONSTRAINTS):
                setups, holds = (
                    [
                        self._number(arc.tables[kind])
                        for arc in pin.arcs
                        if arc.kind.startswith(check) and kind in arc.tables
                    ]
                    or [-1]
                    for check in ("setup", "hold")
                )
                yield from (CellCheck(name, edge, *pair) for pair in product(setups, holds))

    def _number(self, table: TimingTable) -> int:
        if id(table) not in self._numbers:
            self._numbers[id(table)] = len(self._tables)
            self._tables.append(table)
        return self._numbers[id(table)]

    def at(self, tables: Numbers, rows: Values, columns: Values) -> Values:
        """As :meth:`.cell_library.TimingTable.at`, for many tables."""
        i, along = _place(self._rows, self._last_row, tables, rows)
        j, across = _place(self._columns, self._last_column, tables, columns)
        first = tables * self._size + i * self._wide + j
        flat, wide = self._flat, self._wide
        low, high = flat[first], flat[first + wide]
        low += across * (flat[first + 1] - low)
        high += across * (flat[first + wide + 1] - high)
        result: Values = low + along * (high - low)
        return result


def _firsts(parts: Sequence[Sequence[object]]) -> Numbers:
    return np.cumsum([0, *map(len, parts)])


def _axes(axes: Sequence[tuple[float, ...]]) -> tuple[Values, Numbers]:
    """The axes as rows of one array, and the last place at which a step begins in each."""
    axes = [axis if len(axis) > 1 else (axis[0], axis[0] + 1.0) for axis in axes]
    longest = max(map(len, axes))
    array = np.array([axis + (np.inf,) * (longest - len(axis)) for axis in axes])
    return array, np.array([len(axis) - 2 for axis in axes])


def _place(axes: Values, last: Numbers, tables: Numbers, at: Values) -> tuple[Numbers, Values]:
    """The step of each axis in which a value lies, and how far along the step it is."""
    steps = (axes[tables] <= at[:, None]).sum(axis=1) - 1
    steps = np.clip(steps, 0, last[tables])
    start = axes[tables, steps]
    return steps, (at - start) / (axes[tables, steps + 1] - start)


@lru_cache(maxsize=4)
def tables_of(library: CellLibrary) -> CellTables:
    """The tables of ``library``."""
    return CellTables(library)
