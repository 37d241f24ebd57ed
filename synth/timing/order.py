"""Evaluation order of gates."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from synth.errors import SynthesisError
from synth.netlist import Gate

from .cell_library import CellLibrary

__all__ = ["driven", "ordered"]


def driven(gates: Sequence[Gate], library: CellLibrary) -> dict[int, int]:
    """Net -> place in ``gates`` of the one that drives it."""
    return {
        bits[0]: place
        for place, gate in enumerate(gates)
        for pin, bits in gate.pins.items()
        if bits and library.cells[gate.kind].pins[pin].direction == "output"
    }


def ordered(
    gates: Sequence[Gate], library: CellLibrary, driver: Mapping[int, int]
) -> tuple[int, ...]:
    """Places in ``gates``, each after those that it depends on.

    Parameters:
        gates: without state. driver: see :func:`driven`.

    Raises:
        SynthesisError: a loop of gates.
    """
    order: TopologicalSorter[int] = TopologicalSorter()
    for place, gate in enumerate(gates):
        order.add(
            place,
            *(
                driver[bits[0]]
                for pin, bits in gate.pins.items()
                if bits
                and bits[0] in driver
                and library.cells[gate.kind].pins[pin].direction == "input"
            ),
        )
    try:
        return tuple(order.static_order())
    except CycleError as error:
        names = ", ".join(gates[place].name for place in error.args[1][:3])
        raise SynthesisError(f"a loop of gates can't be evaluated: {names}") from None
