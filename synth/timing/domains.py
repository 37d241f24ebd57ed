"""Static timing of a netlist with several clocks: the longest path within each clock domain, and
the paths that cross between domains.

A crossing path has no timing constraint. It must begin in a unit designed for crossings, whose
registers change one bit at a time, or not at all while they are read (such as a word in the memory
of :class:`hdl.crossing.StreamCrossing`, which may be read from outside). The caller names these
units; a crossing path that begins elsewhere is refused.
"""

from collections.abc import Callable, Collection, Mapping
from itertools import product

from synth.errors import SynthesisError
from synth.netlist import CLOCK, Gate, Netlist
from synth.sram import SramTimes

from .cell_library import CellLibrary
from .sta import Path, longest_paths

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

    Parameters:
        netlist, library, macros: see :func:`synth.timing.sta.longest_paths`.
        clock_of_port: name of an input or output -> clock of its register.
        crossings: units in which a path from one clock to another may begin.

    Raises:
        SynthesisError: as :func:`synth.timing.sta.longest_paths`; a register's clock is not a port;
            a path from one clock to another begins outside ``crossings``.
    """
    trees = {
        bit: name for name, bits in netlist.trees.items() if name.startswith(CLOCK) for bit in bits
    }
    clocks = dict(trees)
    # A gated clock is that of its gate.
    for gate in netlist.gates:
        cell = library.cells.get(gate.kind)
        if cell is not None and cell.gates_clock:
            (before,) = (gate.pins[pin][0] for pin in cell.inputs if cell.pins[pin].clock)
            bits = [bit for pin in cell.outputs for bit in gate.pins.get(pin, ())]
            clocks |= dict.fromkeys(bits, trees.get(before, ""))

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
