"""Energy of one standard cell for its activity, from the tables of its library."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.timing.cell_library import Cell, PowerArc
from synth.timing.gate_function import FunctionError, truth_table
from synth.timing.sta import CLOCK_SLEW_NS, NetState

from .gate_sim import CellActivity

__all__ = ["CellEnergy", "cell_energy", "clocked_cycles"]

_Array = npt.NDArray[Any]


@dataclass(frozen=True)
class CellEnergy:
    """Energy of a cell.

    It is that at edges of its outputs and data inputs, and at those of its clock, in fJ; its mean
    leakage is in nW.
    """

    internal: float
    clock: float
    leakage: float


@dataclass(frozen=True)
class _Condition:
    """A condition of a cell as a mask over the values of its inputs, while its clock is high and
    while it is low."""

    high: _Array
    low: _Array


@lru_cache(maxsize=65536)
def _condition(cell: Cell, inputs: tuple[str, ...], when: str) -> _Condition | None:
    """``when`` over ``inputs``, in which outputs are expressed; None if that is not possible."""
    text = when or "1"
    for pin in cell.outputs:
        function = cell.pins[pin].function
        if cell.state is not None and cell.state.inverse:
            inverse = rf"\b{re.escape(cell.state.inverse)}\b"
            function = re.sub(inverse, f"(!{cell.state.name})", function)
        text = re.sub(rf"\b{re.escape(pin)}\b", f"({function})" if function else pin, text)
    masks = []
    for level in "10":
        rest = text
        for pin in cell.inputs:
            if cell.pins[pin].clock:
                rest = re.sub(rf"\b{re.escape(pin)}\b", level, rest)
        try:
            table = truth_table(rest, inputs)
        except FunctionError:
            return None
        rows = 1 << len(inputs)
        masks.append(np.array([table >> row & 1 for row in range(rows)], dtype=float))
    return _Condition(*masks)


def _edge(
    cell: Cell, activity: CellActivity, arcs: Sequence[PowerArc], slew: float, load: float
) -> float:
    """fJ of one edge, the mean of rise and fall.

    It is weighted by the conditions that held while the clock was high: data are assumed to settle
    then.
    """
    weights, energies = [], []
    for arc in arcs:
        condition = _condition(cell, activity.inputs, arc.when)
        weights.append(0.0 if condition is None else float(activity.states @ condition.high))
        energies.append((arc.rise.at(slew, load) + arc.fall.at(slew, load)) / 2)
    if not energies:
        return 0.0
    if not sum(weights):
        return float(np.mean(energies))
    return float(np.average(energies, weights=weights))


def clocked_cycles(activity: CellActivity) -> int:
    """Cycles in which a clock gate whose only input is its enable passed the clock."""
    return int(activity.states[1])


def cell_energy(
    cell: Cell,
    activity: CellActivity,
    inputs: Sequence[tuple[float, NetState]],
    outputs: Sequence[NetState | None],
    clocked: int,
) -> CellEnergy:
    """Energy of a cell in the cycles counted.

    Parameters:
        activity: of the cell.
        inputs: for each pin in ``activity.inputs`` (except a flip-flop's state) its number of edges
            and its net.
        outputs: net at each of ``cell.outputs``, None for an unconnected one.
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
                clock += 2 * clocked_cycles(activity) * edge
    for pin in cell.inputs:
        input_arcs = [arc for arc in cell.pins[pin].power if not arc.related]
        if cell.pins[pin].clock:
            clock += 2 * clocked * _edge(cell, activity, input_arcs, CLOCK_SLEW_NS, 0.0)
        elif input_arcs and pin in pins:
            edges, state = pins[pin]
            internal += edges * _edge(cell, activity, input_arcs, state.slew, 0.0)
    return CellEnergy(internal, clock, _leakage(cell, activity))


def _related(cell: Cell, arc: PowerArc, name: str) -> bool:
    related = arc.related.split()
    if cell.state is not None and name == cell.state.name:
        return any(cell.pins[pin].clock for pin in related if pin in cell.pins)
    return name in related


def _leakage(cell: Cell, activity: CellActivity) -> float:
    """Mean over the states that occurred, half of the time with the clock high."""
    total = float(activity.states.sum())
    seen = power = 0.0
    for when, leakage in cell.leakages:
        condition = _condition(cell, activity.inputs, when)
        if condition is None:
            return cell.leakage
        share = float(activity.states @ (condition.high + condition.low)) / 2
        seen += share
        power += leakage * share
    # For states that the file leaves out, its mean counts.
    return (power + (total - seen) * cell.leakage) / total
