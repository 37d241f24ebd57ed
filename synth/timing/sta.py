"""Static timing of a mapped netlist: the longest path of each unit and of the whole design.

Delays and slews come from the library's tables; rising and falling edges are tracked separately.
There is no layout, so loads are those of the pins, plus a statistical wire load if there is one.
The clock is ideal. Units are timed as if their ports were registered: inputs come from flip-flops
clocked at time 0 and outputs end in flip-flops. Memories have the times of :mod:`synth.sram`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from synth.errors import SynthesisError
from synth.netlist import CLOCK, Gate, Netlist
from synth.sram import SramTimes

from .cell_library import CellLibrary, Parasitics, WireLoad
from .timer import Timer, gated_clocks


@dataclass(frozen=True)
class Path:
    """A path from register to register: its length in ns, and its cells, each with the time in ns
    at its output (of the last cell: at its input, plus its setup or less its hold time)."""

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


class NetState(NamedTuple):
    """A net: the load of the pins that it drives and of its wire, in fF, and its slew in ns, both
    the mean of the two edges."""

    load: float
    slew: float


def longest_paths(
    netlist: Netlist,
    library: CellLibrary,
    macros: SramTimes,
    wires: WireLoad | Parasitics | None = None,
    *,
    begins: Callable[[Gate], bool] | None = None,
    ends: Callable[[Gate], bool] | None = None,
) -> Mapping[str, Path]:
    """Longest path that ends in each unit.

    Parameters:
        netlist: mapped to ``library``; cells of other types must be memory macros.
        library: with delay tables. macros: times of memories.
        wires: loads of wires, by default none; those of a layout also delay edges, and have the
            times of clocks.
        begins, ends: whether paths begin or end at a register, memory or port (a gate of the unit
            ``input`` or ``output``); by default at all.

    Returns:
        By unit; ``output`` for paths that end at an output. Units without a path are absent.

    Raises:
        SynthesisError: a cell is neither a memory nor in the library, or gates form a loop.
    """
    timer = Timer(netlist, library, macros, wires, begins)
    longest: dict[str, int] = {}
    for end in np.argsort(-timer.end_ns, kind="stable").tolist():
        gate = timer.gates[timer.end_gate[end]]
        if np.isneginf(timer.end_ns[end]):
            break
        if gate.unit not in longest and (ends is None or ends(gate)):
            longest[gate.unit] = end
    return {unit: _path(timer, end) for unit, end in sorted(longest.items())}


def _path(timer: Timer, end: int) -> Path:
    ns = round(float(timer.end_ns[end]), 4)
    steps = [(timer.gates[timer.end_gate[end]], ns)]
    back = list(timer.back(int(timer.end_node[end])))
    # Times begin with the clock at the first register.
    start = float(timer.clock_ns[back[-1][0]]) if back else 0.0
    for gate, node in back:
        steps.append((timer.gates[gate], round(float(timer.arrival[node]) - start, 4)))
    return Path(ns, tuple(reversed(steps)))


def longest_path(
    netlist: Netlist,
    library: CellLibrary,
    macros: SramTimes | None = None,
    wires: WireLoad | Parasitics | None = None,
) -> Path:
    """The longest of :func:`longest_paths`, or one of 0 ns if there is none; memories are at the
    library's node by default."""
    paths = longest_paths(netlist, library, macros or SramTimes(library.node_nm), wires)
    return max(paths.values(), key=lambda path: path.ns, default=Path(0.0, ()))


def shortest_path(
    netlist: Netlist,
    library: CellLibrary,
    macros: SramTimes,
    wires: WireLoad | Parasitics | None = None,
) -> Path:
    """The path that leaves the least after the hold time of its end, which is its ``ns``: clocks
    may be skewed by so much. Inputs of memories are assumed to need no hold; 0 ns without a path.

    Parameters and errors: see :func:`longest_paths`.
    """
    timer = Timer(netlist, library, macros, wires, earliest=True)
    if not np.isfinite(timer.end_ns).any():
        return Path(0.0, ())
    return _path(timer, int(timer.end_ns.argmin()))


def net_states(
    netlist: Netlist, library: CellLibrary, macros: SramTimes, wires: WireLoad
) -> Mapping[int, NetState]:
    """State of each net; parameters and errors as for :func:`longest_paths`."""
    timer = Timer(netlist, library, macros, wires)
    loads, slews = (
        np.reshape(of[: timer.clock], (-1, 2)).mean(1) for of in (timer.load, timer.slew)
    )
    states = list(map(NetState, loads.tolist(), slews.tolist()))
    return {bit: states[place] for bit, place in timer.nets.items()}


#: From one clock, to another -> units in which such paths end, and the longest path; its length
#: bounds the skew between bits.
Crossings = Mapping[tuple[str, str], tuple[tuple[str, ...], Path]]


def domain_paths(
    netlist: Netlist,
    library: CellLibrary,
    macros: SramTimes,
    *,
    clock_of_port: Callable[[str], str],
    crossings: Collection[str],
) -> tuple[Mapping[str, Path], Crossings]:
    """Longest path within each clock domain, by its clock, and the paths between them.

    A crossing path has no timing constraint. It must begin in a unit designed for crossings, whose
    registers change one bit at a time, or not at all while they are read (such as a word in the
    memory of :class:`hdl.crossing.StreamCrossing`, which may be read from outside).

    Parameters:
        netlist, library, macros: see :func:`longest_paths`.
        clock_of_port: name of an input or output -> clock of its register.
        crossings: units in which a path from one clock to another may begin.

    Raises:
        SynthesisError: as :func:`longest_paths`; a register's clock is not a port;
            a path from one clock to another begins outside ``crossings``.
    """
    trees = {
        bit: name for name, bits in netlist.trees.items() if name.startswith(CLOCK) for bit in bits
    }
    clocks = dict(trees)
    # A gated clock is that of its gate.
    for bit, number in gated_clocks(netlist, library).items():
        gate = netlist.gates[number]
        pins = library.cells[gate.kind].pins
        (before,) = (gate.pins[pin][0] for pin in pins if pins[pin].clock)
        clocks[bit] = trees.get(before, "")

    def clock(gate: Gate) -> str:
        if gate.unit in ("input", "output"):
            return clock_of_port(gate.name)
        cell = library.cells.get(gate.kind)
        pins = [CLOCK] if cell is None else [n for n, pin in cell.pins.items() if pin.clock]
        for pin in pins:
            for bit in gate.pins.get(pin, ()):
                if bit in clocks:
                    return clocks[bit]
        raise SynthesisError(f"the clock of {gate.name} is not one of {', '.join(trees.values())}")

    def within(name: str) -> Callable[[Gate], bool]:
        return lambda gate: clock(gate) == name

    def outside(name: str) -> Callable[[Gate], bool]:
        return lambda gate: gate.unit not in crossings and clock(gate) == name

    def paths(begins: Callable[[Gate], bool], ends: Callable[[Gate], bool]) -> list[Path]:
        longest = longest_paths(netlist, library, macros, begins=begins, ends=ends)
        return sorted(longest.values(), key=lambda path: path.ns)

    longest: dict[str, Path] = {}
    crossed: dict[tuple[str, str], tuple[tuple[str, ...], Path]] = {}
    for source, target in product(trees.values(), repeat=2):
        result = paths(within(source), within(target))
        if source == target:
            if result:
                longest[source] = result[-1]
        elif result:
            for stray in paths(outside(source), within(target)):
                (first, _), (last, _) = stray.steps[0], stray.steps[-1]
                raise SynthesisError(
                    f"a path from {source} to {target} must begin in {' or '.join(crossings)}, not"
                    f" in {first.unit}: from {first.name} to {last.name}"
                )
            units = tuple(sorted(path.steps[-1][0].unit for path in result))
            crossed[source, target] = units, result[-1]
    return longest, crossed
