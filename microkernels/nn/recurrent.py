"""Recurrent cells: what each computes, written once for its golden model, for real numbers and for
its program.

A :class:`Cell` declares its *gates*, vectors with one element per cell. A step begins with the
parts of the gates that depend on the input; the products of the recurrent weights and the state are
added, in one phase or, where a cell multiplies what it has computed from the state, in two. After
each phase the cell combines its vectors by the operations of :class:`CellMath`, of which there are
three kinds: elements, real numbers, instructions.

Gates have ``gate`` fraction bits, states ``state``, weights and peepholes ``weights``. The sigmoid
and the hyperbolic tangent of the gates are those of the logistic unit, or one polynomial
(:func:`microkernels.nn.curves.polynomial`): ``sigmoid(x) = (tanh(x / 2) + 1) / 2``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isa.table import MAX_VL
from microkernels.common.feature_map import round_up
from microkernels.common.fixed_point import Elements, add, dot, multiply
from microkernels.common.logistic import sigmoid, tanh

from .curves import polynomial

_Array = NDArray[Any]

#: How products are shifted right (:meth:`RecurrentShape.shift`): of weights and states to gates, of
#: any vector and gates to the former's fraction, of two gates to a state.
_SUMS, _GATED, _STATES = "sums", "gated", "states"


class LstmMath(ABC):
    """Operations of LSTM cells on vectors with these names; results may replace operands."""

    @abstractmethod
    def add(self, into: str, first: str, second: str) -> None:
        """The sum."""

    @abstractmethod
    def multiply(self, into: str, first: str, second: str, scale: str) -> None:
        """The product, with one of the module's scales."""

    @abstractmethod
    def squash(self, first: str, sigmoids: int, tanhs: int) -> None:
        """Sigmoids of so many gates from ``first`` on, and hyperbolic tangents of those after."""

    @abstractmethod
    def tanh_of_state(self, into: str, name: str) -> None:
        """The hyperbolic tangent of a state."""


class CellMath(LstmMath):
    """Operations of all cells."""

    @abstractmethod
    def rest(self, into: str, first: str) -> None:
        """1 minus a gate."""

    @abstractmethod
    def as_state(self, name: str) -> None:
        """A gate with a state's fraction."""

    @abstractmethod
    def relu(self, name: str) -> None:
        """0 instead of negative elements."""


class Cell(NamedTuple):
    """A kind of cell.

    Attributes:
        gates: in order. inputs: those with a part of the input; others begin with their bias.
        products: by phase, consecutive gates to which products are added.
        combine: by phase, what follows.
        results: by phase, the vector that the next phase or step multiplies; the last is the
            output.
        kept: vector that stays in its engine from step to step; "": none.
        peepholes: vectors of weights.
        operations: per cell and step, besides products of matrices.
        limited: functions limit all gates, so that larger sums than 8 make no difference.
    """

    gates: tuple[str, ...]
    inputs: tuple[str, ...]
    products: tuple[tuple[str, ...], ...]
    combine: tuple[Callable[[CellMath], None], ...]
    results: tuple[str, ...]
    kept: str = ""
    peepholes: tuple[str, ...] = ()
    operations: int = 0
    limited: bool = True

    @property
    def rows(self) -> int:
        """Gates with recurrent weights."""
        return sum(map(len, self.products))


def _renew(m: LstmMath) -> None:
    """An LSTM's new cells."""
    m.multiply("c", "f", "c", _GATED)
    m.multiply("i", "i", "g", _STATES)
    m.add("c", "c", "i")


def _show(m: LstmMath) -> None:
    """An LSTM's output."""
    m.tanh_of_state("u", "c")
    m.multiply("o", "u", "o", _GATED)


def _lstm(m: LstmMath) -> None:
    m.squash("o", 3, 1)
    _renew(m)
    _show(m)


def lstm_with_peepholes(m: LstmMath) -> None:
    """An LSTM with peepholes: what follows the sums of its gates."""
    for gate in ("f", "i"):
        m.multiply("u", "c", f"{gate}c", _SUMS)
        m.add(gate, gate, "u")
    m.squash("i", 2, 1)
    _renew(m)
    m.multiply("u", "c", "oc", _SUMS)
    m.add("o", "o", "u")
    m.squash("o", 1, 0)
    _show(m)


def _reset(m: CellMath) -> None:
    """A GRU's gates, and what it multiplies in its second phase."""
    m.squash("z", 2, 0)
    m.multiply("u", "h", "r", _GATED)


def _update(m: CellMath) -> None:
    """A GRU's new state."""
    m.squash("n", 0, 1)
    m.rest("r", "z")
    m.multiply("n", "n", "r", _STATES)
    m.multiply("h", "h", "z", _GATED)
    m.add("h", "h", "n")


def _gru_of_products(m: CellMath) -> None:
    m.squash("z", 2, 0)
    m.multiply("l", "l", "r", _GATED)
    m.add("n", "n", "l")
    _update(m)


def _rnn(m: CellMath) -> None:
    m.squash("n", 0, 1)
    m.as_state("n")


def _rnn_relu(m: CellMath) -> None:
    m.relu("n")
    m.as_state("n")


_OIFG = ("o", "i", "f", "g")
#: Name -> cell. ``gru`` multiplies the state by the reset gate before the matrix, ``gru_after``
#: after it.
CELLS: Mapping[str, Cell] = {
    "lstm": Cell(_OIFG, _OIFG, (_OIFG,), (_lstm,), ("o",), "c", operations=9),
    "lstm_peepholes": Cell(
        _OIFG, _OIFG, (_OIFG,), (lstm_with_peepholes,), ("o",), "c", ("ic", "oc", "fc"), 15
    ),
    "gru": Cell(
        ("z", "r", "n"), ("z", "r", "n"), (("z", "r"), ("n",)), (_reset, _update), ("u", "h"), "h",
        operations=8,
    ),
    "gru_after": Cell(
        ("z", "r", "l", "n"), ("z", "r", "n"), (("z", "r", "l"),), (_gru_of_products,), ("h",), "h",
        operations=9, limited=False,
    ),
    "rnn": Cell(("n",), ("n",), (("n",),), (_rnn,), ("n",), operations=1),
    "rnn_relu": Cell(("n",), ("n",), (("n",),), (_rnn_relu,), ("n",), operations=1, limited=False),
}  # fmt: skip


class RecurrentShape(NamedTuple):
    """A recurrent layer.

    Attributes:
        kind: name of the cell. cells: number.
        gate, state, weights: fraction bits, see the module's text.
        unit: the logistic unit computes the functions.
    """

    kind: str
    cells: int
    gate: int
    state: int
    weights: int
    unit: bool

    @property
    def cell(self) -> Cell:
        """The kind of cell."""
        return CELLS[self.kind]

    def shift(self, scale: str) -> int:
        """Bits by which products are shifted right."""
        gate = self.gate
        sums = self.weights + self.state - gate
        return {_SUMS: sums, _GATED: gate, _STATES: 2 * gate - self.state}[scale]

    @property
    def one(self) -> int:
        """1 as a gate."""
        return 1 << self.gate

    @property
    def chunks(self) -> int:
        """Parts of a state, each of which is multiplied in one sum."""
        return -(-self.cells // MAX_VL)

    @property
    def chunk(self) -> int:
        """Elements of a part, whole beats."""
        return round_up(-(-self.cells // self.chunks), 8)


class _Numbers(CellMath):
    """Operations on arrays: sequences x cells.

    Attributes:
        values: the vectors, by name.
    """

    def __init__(self) -> None:
        self.values: dict[str, _Array] = {}

    def relu(self, name: str) -> None:
        self.values[name] = np.maximum(self.values[name], self.values[name].dtype.type(0))


class _Real(_Numbers):
    def add(self, into: str, first: str, second: str) -> None:
        self.values[into] = self.values[first] + self.values[second]

    def multiply(self, into: str, first: str, second: str, scale: str) -> None:
        self.values[into] = self.values[first] * self.values[second]

    def rest(self, into: str, first: str) -> None:
        self.values[into] = 1.0 - self.values[first]

    def as_state(self, name: str) -> None:
        """It is."""

    def squash(self, first: str, sigmoids: int, tanhs: int) -> None:
        names = list(self.values)
        at = names.index(first)
        for name in names[at : at + sigmoids]:
            self.values[name] = (np.tanh(self.values[name] / 2) + 1) / 2
        for name in names[at + sigmoids : at + sigmoids + tanhs]:
            self.tanh_of_state(name, name)

    def tanh_of_state(self, into: str, name: str) -> None:
        self.values[into] = np.tanh(self.values[name])


class FixedMath(_Numbers):
    """Operations on elements of a layer of ``shape``, bit-exact: the golden model."""

    def __init__(self, shape: RecurrentShape) -> None:
        super().__init__()
        self.shape = shape

    def add(self, into: str, first: str, second: str) -> None:
        self.values[into] = add(self.values[first], self.values[second])

    def multiply(self, into: str, first: str, second: str, scale: str) -> None:
        shift = self.shape.shift(scale)
        self.values[into] = multiply(self.values[first], self.values[second], shift)

    def _times(self, values: Elements, factor: int, shift: int) -> Elements:
        return multiply(values, np.array(factor, np.int16), shift)

    def _plus(self, values: Elements, number: int) -> Elements:
        return add(values, np.array(number, np.int16))

    def rest(self, into: str, first: str) -> None:
        self.values[into] = self._plus(self._times(self.values[first], -1, 0), self.shape.one)

    def as_state(self, name: str) -> None:
        shift = self.shape.shift(_STATES)
        self.values[name] = self._times(self.values[name], self.shape.one, shift)

    def squash(self, first: str, sigmoids: int, tanhs: int) -> None:
        gates, bits = self.shape.cell.gates, self.shape.gate
        at = gates.index(first)
        for name in gates[at : at + sigmoids]:
            values = self.values[name]
            if self.shape.unit:
                self.values[name] = sigmoid(values, bits)
                continue
            half = polynomial("tanh", self._times(values, 1, 1), bits)
            self.values[name] = self._times(self._plus(half, self.shape.one), 1, 1)
        for name in gates[at + sigmoids : at + sigmoids + tanhs]:
            self._tanh(name, name, bits)

    def tanh_of_state(self, into: str, name: str) -> None:
        self._tanh(into, name, self.shape.state)

    def _tanh(self, into: str, name: str, bits: int) -> None:
        values = self.values[name]
        self.values[into] = (
            tanh(values, bits) if self.shape.unit else polynomial("tanh", values, bits)
        )


def _run(
    math: _Numbers,
    cell: Cell,
    x: _Array,
    start: tuple[_Array, _Array],
    matrix: _Array,
    biases: _Array,
    sums: Callable[[_Array, _Array, _Array], _Array],
) -> tuple[_Array, list[_Array], list[_Array]]:
    """States after each step, sums of gates, and the kept vectors before and after each step.

    Parameters:
        x, start, matrix, biases: as for :func:`run_elements`.
        sums: gates plus products of a state and their rows.
    """
    hidden, kept = start
    states, cells = [kept], x.shape[-1]
    rows, peepholes = np.split(matrix, [cell.rows * cells])
    weights = rows.reshape(cell.rows, cells, cells)
    of_gates = biases[: len(rows)].reshape(-1, cells)
    order = [gate for phase in cell.products for gate in phase]
    results, every = [], []
    for inputs in x:
        of_input = dict(zip(cell.inputs, np.moveaxis(inputs, -2, 0), strict=True))
        math.values = {
            gate: of_input[gate]
            if gate in of_input
            else np.broadcast_to(of_gates[order.index(gate)], hidden.shape)
            for gate in cell.gates
        }
        math.values |= dict(zip(cell.peepholes, peepholes, strict=True))
        if cell.kept:
            math.values[cell.kept] = kept
        done = 0
        for gates, combine, result in zip(cell.products, cell.combine, cell.results, strict=True):
            before = np.stack([math.values[gate] for gate in gates], axis=1)
            after = sums(before, hidden, weights[done : done + len(gates)])
            done += len(gates)
            math.values |= dict(zip(gates, np.moveaxis(after, 1, 0), strict=True))
            every.append(after)
            if not cell.limited:
                every += [math.values[gate] for gate in cell.gates]
            combine(math)
            hidden = math.values[result]
        if cell.kept:
            kept = math.values[cell.kept]
        states.append(kept)
        results.append(hidden)
    return np.stack(results), every, states


def run_elements(
    shape: RecurrentShape, x: Elements, start: tuple[Elements, Elements], matrix: Elements,
    biases: Elements,
) -> tuple[Elements, Elements]:  # fmt: skip
    """Golden model: states after each step, steps x sequences x cells, and the last kept vector.

    Parameters:
        x: steps x sequences x gates with inputs x cells, in the order of computation.
        start: states before, sequences x cells: those multiplied, and those of the cells.
        matrix: recurrent weights by gate and cell, then peepholes: rows x cells.
        biases: of gates without a part of the input, by row.
    """
    shift = shape.shift(_SUMS)

    def sums(before: Elements, hidden: Elements, rows: Elements) -> Elements:
        total = before
        for first in range(0, shape.cells, shape.chunk):
            chunk = slice(first, first + shape.chunk)
            products = dot(rows[..., chunk], hidden[:, chunk].T, shift)
            total = add(total, products.transpose(2, 0, 1))
        return total

    results, _, states = _run(FixedMath(shape), shape.cell, x, start, matrix, biases, sums)
    return results, states[-1]


def run_reals(
    cell: Cell, x: _Array, start: tuple[_Array, _Array], matrix: _Array, biases: _Array
) -> tuple[_Array, _Array, float, float]:
    """Like :func:`run_elements` in real numbers; also the largest sum of a gate, and
    element of a kept vector."""

    def sums(before: _Array, hidden: _Array, rows: _Array) -> _Array:
        return np.asarray(before + np.einsum("gij,sj->sgi", rows, hidden))

    results, every, states = _run(_Real(), cell, x, start, matrix, biases, sums)
    largest, kept = (max(float(np.abs(values).max()) for values in of) for of in (every, states))
    return results, states[-1], largest, kept
