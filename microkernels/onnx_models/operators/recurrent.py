"""LSTM, GRU and RNN.

The parts of the gates that depend on the input are computed for all steps and sequences together,
by a convolution with single pixels. A recurrent layer per direction then computes the states.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from microkernels.networks.network import Dense, MapSize, Recurrent
from microkernels.networks.parameters import Weights
from microkernels.nn.recurrent import CELLS
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.node import GraphNode

from .arrange import Index, index_of, rearranged, straight
from .linear import pixel_conv

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
#: Number of ONNX's inputs and outputs.
_BIAS, _LENGTHS, _HIDDEN, _CELLS, _PEEPHOLES = 3, 4, 5, 6, 7


class _Kind(NamedTuple):
    """An operator.

    Attributes:
        gates: of a cell, in ONNX's order, as :data:`microkernels.nn.recurrent.CELLS` names them.
        functions: of a direction, each choice.
    """

    gates: str
    functions: Sequence[Sequence[str]]


_KINDS: Mapping[str, _Kind] = {
    "LSTM": _Kind("iofg", [("Sigmoid", "Tanh", "Tanh")]),
    "GRU": _Kind("zrn", [("Sigmoid", "Tanh")]),
    "RNN": _Kind("n", [("Tanh",), ("Relu",)]),
}


class _Sequences:
    """Sequences of a node.

    Attributes:
        steps, sequences: of each image. cells: per direction. batch_first: the batch is the first
            axis of all tensors.
        reverse: by direction, whether it begins with the last step.
        kind: of the node. functions: the first one of each direction, in lower case.
        weights, recurrent: directions x gates x cells x inputs, or cells.
        bias: directions x 2 (of the input and of the state) x gates x cells.
        peepholes: directions x weights; None: there are none.

    Raises:
        ModelError: inputs or attributes don't fit each other, or are not supported.
    """

    def __init__(self, node: GraphNode) -> None:
        self.node = node
        self.kind = _KINDS[node.op]
        direction = str(node.attribute("direction", "forward"))
        if direction not in _DIRECTIONS:
            raise node.refused(
                f"direction must be one of {', '.join(_DIRECTIONS)}, not {direction}"
            )
        self.reverse = _DIRECTIONS[direction]
        self.input = self._input()
        self._check(len(self.kind.gates))
        for name in ("clip", "activation_alpha", "activation_beta"):
            if node.attribute(name, None):
                raise node.refused(f"{name} is not supported")
        self.functions = self._functions(self.kind.functions)
        if node.attribute("input_forget", 0):
            raise node.refused("input_forget must be 0")
        constant = node.constant(_PEEPHOLES)
        self.peepholes = None if constant is None else node.reals(_PEEPHOLES)

    def _input(self) -> Value:
        """The input in a map whose columns are steps x sequences."""
        node = self.node
        value = node.value()
        if len(value.shape) != 3:
            raise node.refused(f"its input must have 3 dimensions, not {len(value.shape)}")
        self.batch_first = bool(node.attribute("layout", 0))
        if node.batch > 1 and not self.batch_first:
            raise node.mixing(f"the batch of {node.batch} is the time of its input")
        index = index_of(node, value)
        index = index.swapaxes(0, 1) if self.batch_first else index
        self.steps, self.sequences, inputs = index.shape
        pixels = self.steps * self.sequences
        ordered = not self.batch_first or self.sequences == 1
        if value.size == MapSize(1, 1, inputs) or (
            ordered and value.turned and value.size.width * value.size.height == pixels
        ):
            return value
        return rearranged(node, [value], self.of_image(index), turned=True)

    def shape(self, *sizes: int) -> tuple[int, ...]:
        """``sizes`` after a first axis of images if there is a batch."""
        return (self.node.batch, *sizes) if self.node.batch > 1 else sizes

    def of_image(self, index: Index) -> Index:
        """``index`` with a first axis of images if there is a batch."""
        return index[np.newaxis] if self.node.batch > 1 else index

    def _check(self, gates: int) -> None:
        node, count = self.node, len(self.reverse)
        weights, recurrent = node.reals(1), node.reals(2)
        self.cells = cells = recurrent.shape[-1]
        bias = np.zeros((count, 2 * gates * cells))
        if node.constant(_BIAS) is not None:
            bias = node.reals(_BIAS)
        inputs = self.input.shape[-1]
        for label, actual, expected in (
            ("W", weights, (count, gates * cells, inputs)),
            ("R", recurrent, (count, gates * cells, cells)),
            ("B", bias, (count, 2 * gates * cells)),
        ):
            if actual.shape != expected:
                raise node.refused(
                    f"{label} must have the shape {list(expected)}, not {list(actual.shape)}"
                )
        self.weights = weights.reshape(count, gates, cells, inputs)
        self.recurrent = recurrent.reshape(count, gates, cells, cells)
        self.bias = bias.reshape(count, 2, gates, cells)
        lengths = node.constant(_LENGTHS)
        if lengths is not None and (lengths != self.steps).any():
            raise node.refused("all sequences must be as long as its input: sequence_lens differ")

    def _functions(self, supported: Sequence[Sequence[str]]) -> list[str]:
        """The first function of each direction, in lower case."""
        node, count = self.node, len(self.reverse)
        declared = node.attribute("activations", None) or list(supported[0]) * count
        names = [text.decode() if isinstance(text, bytes) else text for text in declared]
        lower = [name.lower() for name in names]
        each = len(supported[0])
        parts = [lower[at : at + each] for at in range(0, len(lower), each)]
        choices = [[name.lower() for name in choice] for choice in supported]
        if len(parts) != count or any(part not in choices for part in parts):
            allowed = " or ".join(", ".join(choice) for choice in supported)
            raise node.refused(f"activations must be {allowed}, not {', '.join(names)}")
        return [part[0] for part in parts]

    def _start(self, number: int, direction: int) -> str:
        """Name of the layer with the state before the first step, from input ``number``; "": it is
        0."""
        node = self.node
        if not node.has_input(number):
            return ""
        constant = node.is_constant(number)
        state = node.reals(number) if constant else straight(node, node.value(number))
        directions = len(self.reverse)
        expected = (directions, self.sequences, self.cells)
        if self.batch_first:
            expected = (node.batch * self.sequences, directions, self.cells)
        if state.shape != expected:
            raise node.refused(
                f"input {number} must have the shape {list(expected)}, not {list(state.shape)}"
            )
        if isinstance(state, Value):
            index = index_of(node, state)
            index = index[:, direction] if self.batch_first else index[direction]
            return rearranged(node, [state], self.of_image(index), turned=True).layer
        values = state[:, direction] if self.batch_first else state[direction]
        if not values.any():
            return ""
        images = values[:, np.newaxis] if node.batch > 1 else values
        return node.constant_of(images, turned=True).layer

    def _cell(self, direction: int) -> str:
        """Name of the cells of a direction."""
        match self.node.op:
            case "LSTM":
                return "lstm" if self.peepholes is None else "lstm_peepholes"
            case "GRU":
                return "gru_after" if self.node.attribute("linear_before_reset", 0) else "gru"
        return "rnn" if self.functions[direction] == "tanh" else "rnn_relu"

    def layer(self, direction: int) -> Value:
        """The layers of a direction: a map of steps x sequences x cells."""
        node, cells, name = self.node, self.cells, self._cell(direction)
        order = [self.kind.gates.index(gate) for gate in CELLS[name].inputs]
        final = node.importer.used(dict(enumerate(node.outputs)).get(2, ""))
        hidden = self._start(_HIDDEN, direction)
        kept = hidden if node.op == "GRU" else self._start(_CELLS, direction)
        rows = self.recurrent[direction, order].reshape(-1, cells)
        if self.peepholes is not None:
            rows = np.concatenate([rows, self.peepholes[direction].reshape(-1, cells)])
        of_gates, own = self.bias[direction].sum(axis=0), np.zeros(len(rows))
        if name == "gru_after":
            # The reset gate multiplies the last gate's bias of the state, too.
            of_gates[-1], last = self.bias[direction, :, -1]
            own[-cells:] = last
        weights = self.weights[direction, order].reshape(-1, self.weights.shape[-1])
        bias = of_gates[order].ravel()
        shape = self.shape(self.steps, self.sequences, len(bias))
        if self.steps == self.sequences == 1:
            of_input = node.weigh(
                Dense,
                self.input,
                Weights(weights=weights, bias=bias),
                shape,
                size=MapSize(1, 1, len(bias)),
                turned=True,
                outputs=len(bias),
            )
        else:
            of_input = pixel_conv(node, self.input, weights, bias, shape, turned=True)
        states = (self.steps + final, self.sequences, cells)
        result = node.apply(
            Recurrent,
            of_input,
            size=MapSize(*states),
            shape=self.shape(*states),
            cell=name,
            cells=cells,
            steps=self.steps,
            reverse=self.reverse[direction],
            hidden=hidden,
            kept=kept,
            final=final,
        )
        node.importer.real[result.layer] = Weights(weights=rows, bias=own)
        return result

    def name_outputs(self, values: Sequence[Value]) -> None:
        """Name the node's outputs.

        Parameters:
            values: maps of each direction.
        """
        node = self.node
        first, numbers = 1, []
        for value in values:
            shape = value.shape[1:] if node.batch > 1 else value.shape
            count = int(np.prod(shape))
            numbers.append(np.arange(first, first + count).reshape(shape))
            first += count
        every = np.stack([index[: self.steps] for index in numbers], axis=1)
        ends = [0 if reverse else self.steps - 1 for reverse in self.reverse]
        last = np.stack([index[end] for index, end in zip(numbers, ends, strict=True)])
        cells = np.stack([index[-1] for index in numbers])
        for name, index in zip(node.outputs, (every, last, cells), strict=False):
            if not node.importer.used(name):
                continue
            # Directions x sequences x cells, after steps for the first output.
            ordered = np.moveaxis(index, -2, 0) if self.batch_first else index
            shape = ordered.shape
            if node.batch > 1:
                shape = (node.batch, *shape[1:])
            (value, *more) = values
            whole = value.size.elements == index.size and not more
            if whole and (ordered.ravel() == index.ravel()).all():
                result = replace(value, shape=shape)
            else:
                result = rearranged(node, values, ordered, turned=index is every)
            node.name_output(name, result)


def recurrent(node: GraphNode) -> None:
    """LSTM, GRU or RNN with the usual functions, forward, reverse or both."""
    sequences = _Sequences(node)
    sequences.name_outputs(list(map(sequences.layer, range(len(sequences.reverse)))))
