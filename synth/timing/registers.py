"""A library's flip-flop for a plain register, with its other inputs tied to constants."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from .cell_library import Cell, CellLibrary, LibertyError
from .gate_function import MAX_INPUTS, FunctionError, substituted, truth_table


@dataclass(frozen=True)
class RegisterCell:
    """A flip-flop used as a register that stores one bit at each rising edge.

    Attributes:
        cell: of the library.
        clock, data, output: pins.
        tied: every other input -> the constant that makes it inactive.
        inverted: whether ``output`` is the inverse of the stored ``data``.
        plain: whether ``tied`` has only asynchronous inputs, as Yosys expects.
    """

    cell: Cell
    clock: str
    data: str
    output: str
    tied: Mapping[str, int]
    inverted: bool
    plain: bool


def port_register(library: CellLibrary) -> RegisterCell:
    """The register placed at ports: the smallest of those with the fewest tied inputs.

    Raises:
        LibertyError: the library has no suitable flip-flop.
    """
    fitting = [
        register
        for cell in library.cells.values()
        if cell.usable and cell.state is not None
        for register in _registers(cell)
    ]
    if not fitting:
        raise LibertyError(
            f"library {library.name} has no flip-flop that stores an input at the rising edge of "
            "its clock, with its other inputs constant"
        )
    # Ties prefer 0: an input that is stored only while another is 1 belongs to a scan chain.
    return min(
        fitting,
        key=lambda one: (len(one.tied), one.cell.area, one.cell.name, sum(one.tied.values())),
    )


def is_never(function: str, inputs: Iterable[str], constants: Mapping[str, int]) -> bool:
    """Whether a function is always 0.

    Parameters:
        inputs: names that it may use. constants: those of them that are constant -> 0 or 1.

    Raises:
        FunctionError: the function can't be read, uses other names, or has too many inputs.
    """
    free = tuple(name for name in inputs if name not in constants)
    return not truth_table(substituted(function, constants), free)


def _registers(cell: Cell) -> Iterator[RegisterCell]:
    """All ways to use a flip-flop as a register, if any."""
    state = cell.state
    assert state is not None
    clock = state.clock.strip("() ")
    output = _output(cell)
    inputs = [name for name in cell.inputs if name != clock]
    if clock not in cell.inputs or output is None or len(inputs) >= MAX_INPUTS:
        return
    name, opposite = output
    for data in inputs:
        rest = [pin for pin in inputs if pin != data]
        for values in product((0, 1), repeat=len(rest)):
            tied = dict(zip(rest, values, strict=True))
            stored = _stored(cell, data, tied)
            if stored is not None:
                yield RegisterCell(
                    cell=cell,
                    clock=clock,
                    data=data,
                    output=name,
                    tied=tied,
                    inverted=stored != opposite,
                    plain=substituted(state.next_state, tied) == state.next_state,
                )


def _stored(cell: Cell, data: str, tied: Mapping[str, int]) -> bool | None:
    """Whether the inverse of ``data`` is stored; None: neither is, or not at each edge alone."""
    state = cell.state
    assert state is not None
    names = tuple(filter(None, (data, state.name, state.inverse)))
    try:
        if not all(is_never(text, (*tied, data), tied) for text in (state.clear, state.preset)):
            return None
        table = truth_table(substituted(state.next_state, tied), names)
        plain, opposite = truth_table(data, names), truth_table(f"!{data}", names)
    except FunctionError:
        return None
    return {plain: False, opposite: True}.get(table)


def _output(cell: Cell) -> tuple[str, bool] | None:
    """The first output that is the state, or else its inverse, and whether it is the inverse."""
    state = cell.state
    assert state is not None
    for function, opposite in ((state.name, False), (state.inverse, True)):
        for name in cell.outputs:
            if function and cell.pins[name].function.strip("() ") == function:
                return name, opposite
    return None
