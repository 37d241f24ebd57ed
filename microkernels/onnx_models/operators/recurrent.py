"""LSTM and GRU, one time step at a time.

Input and state of a step form one vector, from which one fully connected layer computes the sums of
all gates. Each step has its own layers, and its own copy of the weights in memory.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from microkernels.networks.network import Activation, Dense, MapSize
from microkernels.networks.parameters import Reals, Weights
from microkernels.onnx_models.importer import Importer, Index, Value, index_of, rearranged
from microkernels.onnx_models.read import GraphNode, attribute
from support.errors import counted

from .elements import affine, combine

__all__ = ["gru", "lstm"]

#: Maximum steps of all sequences and directions, since each has its own copy of the weights.
_MOST_STEPS = 64
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


class _Cells:
    """Sequences of a node, and the layers of vectors that they become.

    Parameters:
        gates: of a cell. functions: that the node must have.

    Attributes:
        value: all inputs. index: numbers of its elements, from 1 on: steps x batch x inputs.
        cells: per direction. batch_first: the batch is the first axis of all tensors.
        reverse: by direction, whether it begins with the last step.
        weights, recurrent: directions x gates * cells x inputs, or cells.
        bias: directions x 2 * gates * cells, for the input and the state.
        steps, batch: steps per sequence, and sequences per image.
        states: by step, direction and sequence, once computed.

    Raises:
        ModelError: inputs or attributes don't fit each other, or are not supported.
    """

    def __init__(
        self, importer: Importer, node: GraphNode, gates: int, functions: Sequence[str]
    ) -> None:
        self.importer, self.node = importer, node
        self.value = importer.value(node)
        direction = str(attribute(node, "direction", "forward"))
        if direction not in _DIRECTIONS:
            raise node.refused(
                f"direction must be one of {', '.join(_DIRECTIONS)}, not {direction}"
            )
        self.reverse = _DIRECTIONS[direction]
        self.index = self._steps_first()
        self.steps, self.batch, inputs = self.index.shape
        self.weights, self.recurrent = importer.reals(node, 1), importer.reals(node, 2)
        self.cells = cells = self.recurrent.shape[-1]
        count = len(self.reverse)
        self.bias = np.zeros((count, 2 * gates * cells))
        if importer.constant(node, 3) is not None:
            self.bias = importer.reals(node, 3)
        for label, actual, expected in (
            ("W", self.weights, (count, gates * cells, inputs)),
            ("R", self.recurrent, (count, gates * cells, cells)),
            ("B", self.bias, (count, 2 * gates * cells)),
        ):
            if actual.shape != expected:
                raise node.refused(
                    f"{label} must have the shape {list(expected)}, not {list(actual.shape)}"
                )
        lengths = importer.constant(node, 4)
        if lengths is not None and (lengths != self.steps).any():
            raise node.refused("all sequences must be as long as its input: sequence_lens differ")
        if self.steps * self.batch * count > _MOST_STEPS:
            raise node.refused(
                f"{counted(self.steps, 'step')} of {counted(self.batch, 'sequence')} in "
                f"{counted(count, 'direction')} are more than {_MOST_STEPS} in all"
            )
        self._check_functions(functions)
        self.states: dict[tuple[int, int, int], Value] = {}

    def _steps_first(self) -> Index:
        index = index_of(self.importer, self.value)
        if index.ndim != 3:
            raise self.node.refused(
                f"its input must have 3 dimensions, not {len(self.value.shape)}"
            )
        self.batch_first = bool(attribute(self.node, "layout", 0))
        if self.batch_first:
            return index.swapaxes(0, 1)
        if self.importer.batch > 1:
            raise self.node.mixing(f"the batch of {self.importer.batch} is the time of its input")
        return index

    def _check_functions(self, supported: Sequence[str]) -> None:
        node, count = self.node, len(self.reverse)
        declared = attribute(node, "activations", None) or list(supported) * count
        names = [text.decode() if isinstance(text, bytes) else text for text in declared]
        if [name.lower() for name in names] != [name.lower() for name in supported] * count:
            raise node.refused(
                f"activations must be {', '.join(supported)}, not {', '.join(names)}"
            )
        for name in ("clip", "activation_alpha", "activation_beta"):
            if attribute(node, name, None):
                raise node.refused(f"{name} is not supported")

    def order(self, direction: int) -> range:
        """Steps in the order in which they are computed."""
        return range(self.steps)[:: -1 if self.reverse[direction] else 1]

    def input(self, step: int, sequence: int) -> Value:
        """The input of a step."""
        return self.part(self.value, self.index[step, sequence])

    def start(self, number: int, direction: int, sequence: int) -> Value | Reals | None:
        """The state before the first step, from input ``number``: a vector, constants, or None for
        zeros."""
        importer, node = self.importer, self.node
        if number >= len(node.inputs) or not node.inputs[number]:
            return None
        state: Value | Reals
        if importer.is_constant(node, number):
            state = importer.reals(node, number)
        else:
            state = importer.value(node, number)
        directions = len(self.reverse)
        expected = (directions, self.batch, self.cells)
        if self.batch_first:
            expected = (importer.batch * self.batch, directions, self.cells)
        if state.shape != expected:
            raise node.refused(
                f"input {number} must have the shape {list(expected)}, not {list(state.shape)}"
            )
        chosen = (sequence, direction) if self.batch_first else (direction, sequence)
        if not isinstance(state, Value):
            if importer.batch == 1 or (state == state[:1]).all():
                return state[chosen] if state[chosen].any() else None
            state = importer.constant_of(node, state)
        if state.size == MapSize(1, 1, self.cells):
            return replace(state, shape=self.shape(self.cells))
        return self.part(state, index_of(importer, state)[chosen])

    def name_outputs(self, *further: Sequence[Value]) -> None:
        """Name the node's outputs: all states, the last ones, and those in ``further`` by direction
        and sequence."""
        directions, sequences = range(len(self.reverse)), range(self.batch)
        every = [
            self.states[s, d, b] for s in range(self.steps) for d in directions for b in sequences
        ]
        ends = [self.states[self.order(d)[-1], d, b] for d in directions for b in sequences]
        shape = (self.steps, len(self.reverse), self.batch, self.cells)
        outputs = [(every, shape), *((list(last), shape[1:]) for last in (ends, *further))]
        for name, (values, sizes) in zip(self.node.outputs, outputs, strict=False):
            if not name:
                continue
            index = np.arange(1, len(values) * self.cells + 1).reshape(sizes)
            if self.batch_first:
                index = np.moveaxis(index, -2, 0)
            if len(values) == 1:
                output_shape = index.shape
                if self.importer.batched(output_shape):
                    output_shape = (self.importer.batch, *output_shape[1:])
                named = replace(values[0], shape=output_shape)
                self.importer.name_output(self.node, name, named)
                continue
            rearranged(self.importer, self.node, values, index, output=name)

    # Vectors.

    def shape(self, elements: int) -> tuple[int, ...]:
        return (self.importer.batch, elements)

    def part(self, value: Value, index: Index) -> Value:
        """The elements with these numbers, from 1 on."""
        return rearranged(self.importer, self.node, [value], index.reshape(1, -1))

    def joined(self, values: Sequence[Value]) -> Value:
        """Vectors one after the other."""
        count = sum(value.size.elements for value in values)
        index = np.arange(1, count + 1).reshape(1, count)
        return rearranged(self.importer, self.node, values, index)

    def gates(self, value: Value, weights: Reals, bias: Reals) -> list[Value]:
        """A fully connected layer, split into vectors of ``cells`` outputs."""
        outputs = len(weights)
        real = Weights(weights=weights, bias=bias)
        sums = self.importer.weigh(
            self.node,
            Dense,
            value,
            real,
            self.shape(outputs),
            size=MapSize(1, 1, outputs),
            last=False,
            outputs=outputs,
        )
        if outputs == self.cells:
            return [sums]
        index = np.arange(1, outputs + 1).reshape(-1, self.cells)
        return [self.part(sums, gate) for gate in index]

    def function(self, value: Value, name: str) -> Value:
        """``tanh`` or ``sigmoid``."""
        return self.importer.apply(
            self.node, Activation, value, last=False, function=name, fraction=0
        )

    def copy(self, value: Value) -> Value:
        """A copy, whose fraction may differ."""
        return affine(self.importer, self.node, value, 1.0, 0.0, last=False)

    def combined(self, kind: str, one: Value, other: Value) -> Value:
        """Two vectors, element by element: ``add``, ``subtract`` or ``multiply``."""
        return combine(self.importer, self.node, kind, one, other, last=False)

    def product(self, one: Value, other: Value) -> Value:
        return self.combined("multiply", one, other)

    def sum(self, one: Value, other: Value) -> Value:
        return self.combined("add", one, other)

    def constant(self, values: Reals, like: Value) -> Value:
        return self.importer.constant_map(self.node, values, like)


def lstm(importer: Importer, node: GraphNode) -> None:
    """LSTM with the usual functions, forward, reverse or both."""
    w = _Cells(importer, node, 4, ("Sigmoid", "Tanh", "Tanh"))
    if attribute(node, "input_forget", 0):
        raise node.refused("input_forget must be 0")
    peepholes = importer.reals(node, 7) if importer.constant(node, 7) is not None else None
    states: list[Value] = []
    for direction, sequence in np.ndindex(len(w.reverse), w.batch):
        bias = w.bias[direction].reshape(2, -1).sum(axis=0)
        y = w.start(5, direction, sequence)
        c = w.start(6, direction, sequence)
        looks = [None] * 3 if peepholes is None else list(peepholes[direction].reshape(3, -1))
        for step in w.order(direction):
            inputs, outputs, forgets, candidates = _sums(
                w, direction, w.input(step, sequence), y, bias
            )
            inputs = _looking(w, inputs, looks[0], c)
            forgets = _looking(w, forgets, looks[2], c)
            new = w.product(w.function(inputs, "sigmoid"), w.function(candidates, "tanh"))
            if isinstance(c, np.ndarray):
                c = w.constant(c, new)
            if c is not None:
                new = w.sum(w.product(w.function(forgets, "sigmoid"), c), new)
            c = new
            outputs = _looking(w, outputs, looks[1], c)
            # Cells can be larger than useful operands of tanh.
            y = w.product(w.function(outputs, "sigmoid"), w.function(w.copy(c), "tanh"))
            w.states[step, direction, sequence] = y
        assert isinstance(c, Value)
        states.append(c)
    w.name_outputs(states)


def _sums(w: _Cells, direction: int, x: Value, y: Value | Reals | None, bias: Reals) -> list[Value]:
    """Sums of all gates for an input and a state."""
    weights, recurrent = w.weights[direction], w.recurrent[direction]
    if isinstance(y, np.ndarray):
        bias = bias + recurrent @ y
    if isinstance(y, Value):
        # The state has its own fraction.
        x, weights = w.joined([w.copy(x), y]), np.concatenate([weights, recurrent], axis=1)
    return w.gates(x, weights, bias)


def _looking(w: _Cells, sums: Value, peephole: Reals | None, c: Value | Reals | None) -> Value:
    """``sums`` plus those of a peephole at the cells."""
    if peephole is None or c is None:
        return sums
    if isinstance(c, np.ndarray):
        c = w.constant(c, sums)
    return w.sum(sums, w.product(w.constant(peephole, sums), c))


def gru(importer: Importer, node: GraphNode) -> None:
    """GRU with the usual functions, forward, reverse or both."""
    w = _Cells(importer, node, 3, ("Sigmoid", "Tanh"))
    after = bool(attribute(node, "linear_before_reset", 0))
    cells, both = w.cells, 2 * w.cells
    for direction, sequence in np.ndindex(len(w.reverse), w.batch):
        weights, recurrent = w.weights[direction], w.recurrent[direction]
        forward, back = w.bias[direction].reshape(2, -1)
        y = w.start(5, direction, sequence)
        for step in w.order(direction):
            x = w.input(step, sequence)
            if isinstance(y, np.ndarray):
                y = w.constant(y, replace(x, size=MapSize(1, 1, cells), shape=w.shape(cells)))
            gate = w.joined([w.copy(x), y]) if y is not None else x
            gates = weights[:both]
            if y is not None:
                gates = np.concatenate([gates, recurrent[:both]], axis=1)
            update, reset = w.gates(gate, gates, (forward + back)[:both])
            (new,) = w.gates(x, weights[both:], forward[both:] + (0 if after else back[both:]))
            reset = w.function(reset, "sigmoid")
            if after:
                if y is None:
                    past = w.product(reset, w.constant(back[both:], reset))
                else:
                    (linear,) = w.gates(y, recurrent[both:], back[both:])
                    past = w.product(reset, linear)
                new = w.sum(new, past)
            elif y is not None:
                (linear,) = w.gates(w.product(reset, y), recurrent[both:], np.zeros(cells))
                new = w.sum(new, linear)
            new = w.function(new, "tanh")
            update = w.function(update, "sigmoid")
            if y is None:
                y = w.combined("subtract", new, w.product(update, new))
            else:
                y = w.sum(new, w.product(update, w.combined("subtract", y, new)))
            w.states[step, direction, sequence] = y
    w.name_outputs()
