"""Sizes of cells by the times of all paths.

The objective is the sum of exp((end - aim) / tau) over the ends of paths, and a price of area. Its
gradient by the delay of each arc says what a larger or smaller cell gains or costs: at its own
arcs, by slower or faster edges behind them, and by its load on those that drive it.
"""

from collections import defaultdict
from itertools import pairwise

import numpy as np

from synth.timing.cell_library import CellLibrary
from synth.timing.tables import CellTables, Numbers, Values
from synth.timing.timer import RC_NS, Timer

from .clock_tree import UNIT

#: Share of the aim in which the weight of a path falls to 1/e.
_TAU = 0.03
#: Highest exponent of a weight.
_MOST = 4.0
#: A step of slew, in ns, and one of load, in fF, for slopes.
_SLEW, _LOAD = 0.005, 1.0
#: Share of the cells that change size at a time: since each counts on the others as they are.
_SHARE = 0.3


def sized(timer: Timer, aim_ns: float, *, price: float, turns: int) -> None:
    """Choose the size of each cell in ``timer``, so that all paths take ``aim_ns`` at most, or as
    little as they can, with the least area.

    Parameters:
        price: of a um2, in ns of a path that takes ``aim_ns``. turns: how often cells change.
    """
    area = np.array([cell.area for cell in timer.library.cells.values()])
    most = _most_ff(timer.library)
    larger, smaller = _neighbours(timer.library, timer.tables, most)
    draw = np.random.default_rng(1)
    # Registers of ports are not in the netlist, and clocks have their sizes.
    inside = np.array([gate.unit not in ("input", "output", UNIT) for gate in timer.gates])
    real = (timer.cell >= 0) & inside

    def score() -> tuple[float, float]:
        longest = float(timer.end_ns.max(initial=0.0))
        return max(aim_ns, longest), float(area[timer.cell[real]].sum())

    best, sizes = score(), timer.cell.copy()
    for _ in range(turns):
        gradient = _Gradient(timer, aim_ns)
        gain, chosen = np.zeros(len(timer.gates)), timer.cell.copy()
        for step in (larger, smaller):
            other = np.where(real, step[timer.cell], -1)
            fits = other >= 0
            if step is smaller:
                fits &= gradient.heaviest <= most[other]
            other = np.where(fits, other, timer.cell)
            gains = -gradient.costs(other) - price * (area[other] - area[timer.cell])
            better = fits & (gains > gain)
            gain[better], chosen[better] = gains[better], other[better]
        changes = np.flatnonzero(gain > 0)
        changes = changes[draw.random(len(changes)) < _SHARE]
        timer.cell[changes] = chosen[changes]
        timer.run()
        if score() < best:
            best, sizes = score(), timer.cell.copy()
    timer.cell = sizes
    timer.run()


def _most_ff(library: CellLibrary) -> Values:
    """The largest load in fF of each cell."""
    pins = [[cell.pins[pin].max_load for pin in cell.outputs] for cell in library.cells.values()]
    return np.array([max(of, default=0.0) or np.inf for of in pins])


def _neighbours(library: CellLibrary, tables: CellTables, most: Values) -> tuple[Numbers, Numbers]:
    """The next larger and the next smaller cell of the same function, -1 for none."""
    alike = defaultdict(list)
    for name, number in tables.number.items():
        cell = library.cells[name]
        functions = tuple((pin, cell.pins[pin].function) for pin in cell.outputs)
        arcs = tuple((arc.source, arc.output, arc.cause, arc.edge) for arc in tables.arcs[number])
        checks = tuple((check.pin, check.edge) for check in tables.checks[number])
        if cell.usable and arcs and not cell.gates_clock:
            key = cell.inputs, functions, cell.state, arcs, checks
            alike[key].append((cell.area, float(most[number]), number))
    larger, smaller = (np.full(len(tables.number), -1) for _ in range(2))
    for family in alike.values():
        for (_, _, small), (_, _, large) in pairwise(sorted(family)):
            larger[small], smaller[large] = large, small
    return larger, smaller


class _Gradient:
    """What the objective gains or loses by times.

    Attributes:
        heaviest: the largest load in fF that each gate has.
    """

    def __init__(self, timer: Timer, aim_ns: float) -> None:
        self._timer = timer
        self._spread(aim_ns, _TAU * aim_ns)
        tables, nodes = timer.tables, len(timer.arrival)
        self._slew, self._load = timer.slew[timer.arc_from], timer.load[timer.arc_to]
        self.heaviest = np.zeros(len(timer.gates))
        np.maximum.at(self.heaviest, timer.arc_gate, self._load)
        places = tables.first_arc[timer.cell[timer.arc_gate]] + timer.arc_slot
        slew, load = self._slew, self._load
        self._delays, self._slews = (
            tables.at(of[places], slew, load) for of in (tables.delays, tables.slews)
        )
        by_slew, slew_by_slew = (
            (tables.at(of[places], slew + _SLEW, load) - now) / _SLEW
            for of, now in ((tables.delays, self._delays), (tables.slews, self._slews))
        )
        by_load, slew_by_load = (
            (tables.at(of[places], slew, load + _LOAD) - now) / _LOAD
            for of, now in ((tables.delays, self._delays), (tables.slews, self._slews))
        )
        # Slews count at the gates behind them, and at those behind these.
        near = _sums(timer.arc_from, self._weight * by_slew, nodes)
        beyond = self._share * slew_by_slew * near[timer.arc_to]
        self._by_slew = near + _sums(timer.arc_from, beyond, nodes)
        behind = self._share * self._by_slew[timer.arc_to] * slew_by_load
        self._by_load = _sums(timer.arc_to, self._weight * by_load + behind, nodes)
        self._by_load[:-1] += RC_NS * np.repeat(timer.wire_ohm, 2) * self._of_nodes[:-1]

    def _spread(self, aim_ns: float, tau: float) -> None:
        """Weights of nodes and arcs, from the ends of paths backwards: that of a node is shared by
        the arcs to it, by how late their edges come."""
        timer = self._timer
        there = np.isfinite(timer.end_ns)
        late = np.exp(np.minimum((timer.end_ns[there] - aim_ns) / tau, _MOST))
        weight = _sums(timer.end_node[there], late, len(timer.arrival))
        comes = timer.arrival[timer.arc_from] + timer.arc_ns
        arrives = np.isfinite(comes)
        share = np.zeros(len(comes))
        share[arrives] = np.exp((comes[arrives] - timer.arrival[timer.arc_to[arrives]]) / tau)
        self._weight = np.zeros(len(comes))
        for (first, last), groups in reversed(
            list(zip(pairwise(timer.levels), timer.groups, strict=True))
        ):
            at = slice(first, last)
            total = np.add.reduceat(share[at], groups - first)
            share[at] /= np.repeat(np.maximum(total, 1e-30), np.diff([*groups, last]))
            self._weight[at] = weight[timer.arc_to[at]] * share[at]
            np.add.at(weight, timer.arc_from[at], self._weight[at])
        self._share, self._of_nodes = share, weight

    def costs(self, other: Numbers) -> Values:
        """What the objective would gain if each cell, and no other one, were ``other``."""
        timer, tables = self._timer, self._timer.tables
        arcs = np.flatnonzero(other[timer.arc_gate] != timer.cell[timer.arc_gate])
        gate = timer.arc_gate[arcs]
        places = tables.first_arc[other[gate]] + timer.arc_slot[arcs]
        later, slower = (
            tables.at(of[places], self._slew[arcs], self._load[arcs]) - now[arcs]
            for of, now in ((tables.delays, self._delays), (tables.slews, self._slews))
        )
        slower *= self._share[arcs] * self._by_slew[timer.arc_to[arcs]]
        costs = _sums(gate, self._weight[arcs] * later + slower, len(timer.gates))
        pins = np.flatnonzero(other[timer.pin_gate] != timer.cell[timer.pin_gate])
        gate, slot, node = timer.pin_gate[pins], timer.pin_slot[pins], 2 * timer.pin_net[pins]
        more: Values = tables.inputs[tables.first_input[other[gate]] + slot]
        more = more - tables.inputs[tables.first_input[timer.cell[gate]] + slot]
        loads = more[:, 0] * self._by_load[node] + more[:, 1] * self._by_load[node + 1]
        costs += _sums(gate, loads, len(timer.gates))
        return costs


def _sums(places: Numbers, values: Values, count: int) -> Values:
    """The sum of the values at each of ``count`` places."""
    return np.bincount(places, values, count).astype(np.float64)
