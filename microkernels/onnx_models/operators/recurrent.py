"""LSTM and GRU, a time step at a time.

Input and state of a step are one vector, of which one fully connected layer computes the sums of
all gates. Each step has layers, and weights in memory, of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from microkernels.networks.network import Activation, Dense, MapSize
from microkernels.networks.parameters import Reals, Weights
from microkernels.onnx_models.importer import Importer, Index, Value, index_of, rearranged
from microkernels.onnx_models.read import GraphNode, attribute

from .elements import affine, combine

__all__ = ["gru", "lstm"]

#: Steps of all sequences and directions, as each has its own copy of the weights.
_MOST_STEPS = 64
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True, kw_only=True)
class _Sequence:
    """Sequences of a node.

    Attributes:
        value: of all inputs. index: of its elements, from 1 on: steps x batch x inputs.
        cells: of a direction. batch_first: the batch is the first axis of all tensors.
        reverse: of each direction, whether it begins with the last step.
        weights, recurrent: directions x gates * cells x inputs, or cells.
        bias: directions x 2 * gates * cells, of the input and of the state.
    """

    value: Value
    index: Index
    cells: int
    batch_first: bool
    reverse: tuple[bool, ...]
    weights: Reals
    recurrent: Reals
    bias: Reals

    @property
    def steps(self) -> int:
        return len(self.index)

    @property
    def batch(self) -> int:
        """Sequences of an image."""
        return int(self.index.shape[1])


class _Writer:
    """Layers of vectors."""

    def __init__(self, importer: Importer, node: GraphNode, cells: int) -> None:
        self.importer, self.node, self.cells = importer, node, cells

    def shape(self, elements: int) -> tuple[int, ...]:
        return (self.importer.batch, elements)

    def part(self, value: Value, index: Index) -> Value:
        """Elements of these numbers, from 1 on."""
        return rearranged(self.importer, self.node, [value], index.reshape(1, -1))

    def joined(self, values: Sequence[Value]) -> Value:
        """Vectors one after the other."""
        count = sum(value.size.elements for value in values)
        index = np.arange(1, count + 1).reshape(1, count)
        return rearranged(self.importer, self.node, values, index)

    def gates(self, value: Value, weights: Reals, bias: Reals) -> list[Value]:
        """A fully connected layer, in vectors of ``cells`` outputs."""
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
        """A map whose fraction may be another."""
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


def _activations(node: GraphNode, supported: Sequence[str], directions: int) -> None:
    declared = attribute(node, "activations", None) or list(supported) * directions
    names = [text.decode() if isinstance(text, bytes) else text for text in declared]
    if [name.lower() for name in names] != [name.lower() for name in supported] * directions:
        raise node.refused(f"activations must be {', '.join(supported)}, not {', '.join(names)}")
    for name in ("clip", "activation_alpha", "activation_beta"):
        if attribute(node, name, None):
            raise node.refused(f"{name} is not supported")


def _sequence(importer: Importer, node: GraphNode, gates: int) -> _Sequence:
    value = importer.value(node)
    direction = str(attribute(node, "direction", "forward"))
    if direction not in _DIRECTIONS:
        raise node.refused(f"direction must be one of {', '.join(_DIRECTIONS)}, not {direction}")
    reverse = _DIRECTIONS[direction]
    index = index_of(importer, value)
    if index.ndim != 3:
        raise node.refused(f"its input must have 3 dimensions, not {len(value.shape)}")
    batch_first = bool(attribute(node, "layout", 0))
    if batch_first:
        index = index.swapaxes(0, 1)
    elif importer.batch > 1:
        raise node.mixing(f"the batch of {importer.batch} is the time of its input")
    weights, recurrent = importer.reals(node, 1), importer.reals(node, 2)
    cells = recurrent.shape[-1]
    count, inputs = len(reverse), index.shape[2]
    bias = np.zeros((count, 2 * gates * cells))
    if importer.constant(node, 3) is not None:
        bias = importer.reals(node, 3)
    for label, actual, expected in (
        ("W", weights, (count, gates * cells, inputs)),
        ("R", recurrent, (count, gates * cells, cells)),
        ("B", bias, (count, 2 * gates * cells)),
    ):
        if actual.shape != expected:
            raise node.refused(
                f"{label} must have the shape {list(expected)}, not {list(actual.shape)}"
            )
    lengths = importer.constant(node, 4)
    if lengths is not None and (lengths != len(index)).any():
        raise node.refused("all sequences must be as long as its input: sequence_lens differ")
    if len(index) * index.shape[1] * count > _MOST_STEPS:
        raise node.refused(
            f"{len(index)} steps of {index.shape[1]} sequence(s) in {count} direction(s) are more "
            f"than {_MOST_STEPS} in all"
        )
    return _Sequence(
        value=value,
        index=index,
        cells=cells,
        batch_first=batch_first,
        reverse=reverse,
        weights=weights,
        recurrent=recurrent,
        bias=bias,
    )


def _state(
    importer: Importer, writer: _Writer, number: int, of: _Sequence, direction: int, sequence: int
) -> Value | Reals | None:
    """The state before the first step: a vector, constants, or None for zeros."""
    node = writer.node
    if number >= len(node.inputs) or not node.inputs[number]:
        return None
    state: Value | Reals
    if importer.is_constant(node, number):
        state = importer.reals(node, number)
    else:
        state = importer.value(node, number)
    directions = len(of.reverse)
    expected = (directions, of.batch, of.cells)
    if of.batch_first:
        expected = (importer.batch * of.batch, directions, of.cells)
    if state.shape != expected:
        raise node.refused(
            f"input {number} must have the shape {list(expected)}, not {list(state.shape)}"
        )
    chosen = (sequence, direction) if of.batch_first else (direction, sequence)
    if not isinstance(state, Value):
        if importer.batch == 1 or (state == state[:1]).all():
            return state[chosen] if state[chosen].any() else None
        state = importer.constant_of(node, state)
    if state.size == MapSize(1, 1, of.cells):
        return replace(state, shape=writer.shape(of.cells))
    return writer.part(state, index_of(importer, state)[chosen])


def _name_outputs(
    importer: Importer,
    node: GraphNode,
    of: _Sequence,
    steps: Sequence[Value],
    last: Sequence[Sequence[Value]],
) -> None:
    """Name the outputs of a node.

    Parameters:
        steps: of each step, direction and sequence, in this order.
        last: of each further output, that of each direction and sequence.
    """
    shape = (of.steps, len(of.reverse), of.batch, of.cells)
    every = [(list(steps), shape), *((list(values), shape[1:]) for values in last)]
    for name, (values, sizes) in zip(node.outputs, every, strict=False):
        if not name:
            continue
        index = np.arange(1, len(values) * of.cells + 1).reshape(sizes)
        if of.batch_first:
            index = np.moveaxis(index, -2, 0)
        if len(values) == 1:
            output_shape = index.shape
            if importer.batched(output_shape):
                output_shape = (importer.batch, *output_shape[1:])
            importer.name_output(node, name, replace(values[0], shape=output_shape))
            continue
        rearranged(importer, node, values, index, output=name)


def lstm(importer: Importer, node: GraphNode) -> None:
    """LSTM with the usual functions, forward, reverse or both."""
    of = _sequence(importer, node, 4)
    _activations(node, ("Sigmoid", "Tanh", "Tanh"), len(of.reverse))
    if attribute(node, "input_forget", 0):
        raise node.refused("input_forget must be 0")
    peepholes = importer.reals(node, 7) if importer.constant(node, 7) is not None else None
    w = _Writer(importer, node, of.cells)
    done: dict[tuple[int, int, int], Value] = {}
    states: list[Value] = []
    for direction, reverse in enumerate(of.reverse):
        bias = of.bias[direction].reshape(2, -1).sum(axis=0)
        for sequence in range(of.batch):
            y = _state(importer, w, 5, of, direction, sequence)
            c = _state(importer, w, 6, of, direction, sequence)
            looks = [None] * 3 if peepholes is None else list(peepholes[direction].reshape(3, -1))
            for step in range(of.steps)[:: -1 if reverse else 1]:
                inputs, outputs, forgets, candidates = _sums(
                    w, of, direction, w.part(of.value, of.index[step, sequence]), y, bias
                )
                inputs, forgets = (
                    _looking(w, inputs, looks[0], c),
                    _looking(w, forgets, looks[2], c),
                )
                new = w.product(w.function(inputs, "sigmoid"), w.function(candidates, "tanh"))
                if isinstance(c, np.ndarray):
                    c = w.constant(c, new)
                if c is not None:
                    new = w.sum(w.product(w.function(forgets, "sigmoid"), c), new)
                c = new
                outputs = _looking(w, outputs, looks[1], c)
                # Cells are larger than the operands of a tangent.
                y = w.product(w.function(outputs, "sigmoid"), w.function(w.copy(c), "tanh"))
                done[step, direction, sequence] = y
            assert isinstance(c, Value)
            states.append(c)
    _finish(importer, node, of, done, [states])


def _sums(
    w: _Writer,
    of: _Sequence,
    direction: int,
    x: Value,
    y: Value | Reals | None,
    bias: Reals,
) -> list[Value]:
    """Sums of all gates for an input and a state."""
    weights, recurrent = of.weights[direction], of.recurrent[direction]
    if isinstance(y, np.ndarray):
        bias = bias + recurrent @ y
    if isinstance(y, Value):
        # The state has a fraction of its own.
        x, weights = w.joined([w.copy(x), y]), np.concatenate([weights, recurrent], axis=1)
    return w.gates(x, weights, bias)


def _looking(w: _Writer, sums: Value, peephole: Reals | None, c: Value | Reals | None) -> Value:
    """Sums with those of a peephole at the cells."""
    if peephole is None or c is None:
        return sums
    if isinstance(c, np.ndarray):
        c = w.constant(c, sums)
    return w.sum(sums, w.product(w.constant(peephole, sums), c))


def _finish(
    importer: Importer,
    node: GraphNode,
    of: _Sequence,
    states: dict[tuple[int, int, int], Value],
    further: Sequence[Sequence[Value]],
) -> None:
    directions, sequences = range(len(of.reverse)), range(of.batch)
    every = [states[s, d, b] for s in range(of.steps) for d in directions for b in sequences]
    ends = [
        states[0 if of.reverse[d] else of.steps - 1, d, b] for d in directions for b in sequences
    ]
    _name_outputs(importer, node, of, every, [ends, *further])


def gru(importer: Importer, node: GraphNode) -> None:
    """GRU with the usual functions, forward, reverse or both."""
    of = _sequence(importer, node, 3)
    _activations(node, ("Sigmoid", "Tanh"), len(of.reverse))
    after = bool(attribute(node, "linear_before_reset", 0))
    cells = of.cells
    w = _Writer(importer, node, cells)
    states: dict[tuple[int, int, int], Value] = {}
    for direction, reverse in enumerate(of.reverse):
        weights, recurrent = of.weights[direction], of.recurrent[direction]
        forward, back = of.bias[direction].reshape(2, -1)
        both = 2 * cells
        for sequence in range(of.batch):
            y = _state(importer, w, 5, of, direction, sequence)
            for step in range(of.steps)[:: -1 if reverse else 1]:
                x = w.part(of.value, of.index[step, sequence])
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
                states[step, direction, sequence] = y
    _finish(importer, node, of, states, [])
