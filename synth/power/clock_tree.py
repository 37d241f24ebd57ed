"""Energy of a clock tree before layout: buffers in levels down to the flip-flops."""

from dataclasses import dataclass

from synth.errors import SynthesisError
from synth.timing.cell_library import Cell, CellLibrary
from synth.timing.gate_function import FunctionError, truth_table
from synth.timing.sta import CLOCK_SLEW_NS

__all__ = ["ClockTree", "clock_tree"]

#: Pins that a buffer of the tree drives.
FANOUT = 16


@dataclass(frozen=True)
class ClockTree:
    """A tree: its buffers, fJ of one clock cycle in wires and buffers, and nW of leakage.

    The pins and the inside of the flip-flops are not included.
    """

    buffers: int
    fj: float
    leakage: float


def _buffer(library: CellLibrary, load: float) -> Cell:
    """The smallest buffer that drives ``load`` fF."""
    found = []
    for cell in library.cells.values():
        if cell.sequential or len(cell.inputs) != 1 or len(cell.outputs) != 1 or not cell.area:
            continue
        pin = cell.pins[cell.outputs[0]]
        try:
            buffers = truth_table(pin.function, cell.inputs) == 0b10
        except FunctionError:
            continue
        if buffers and (not pin.max_load or pin.max_load >= load):
            found.append(cell)
    if not found:
        raise SynthesisError(f"library {library.name} has no buffer that drives {load:.0f} fF")
    return min(found, key=lambda cell: (cell.area, cell.name))


def clock_tree(library: CellLibrary, sinks: int, pin_ff: float) -> ClockTree:
    """The tree to ``sinks`` pins of ``pin_ff`` fF each, :data:`FANOUT` to a buffer.

    Raises:
        SynthesisError: the library has no buffer that is strong enough.
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
        # In a cycle each net rises and falls once, which takes its whole charge once.
        energy += number * ((wire + pin_ff) * library.volts**2 + inside)
        leakage += number * cell.leakage
        buffers += number
        sinks = number
    return ClockTree(buffers, energy, leakage)
