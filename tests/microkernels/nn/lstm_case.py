"""Layers of LSTM with drawn elements."""

from collections.abc import Callable

from microkernels.common.fixed_point import Elements
from microkernels.nn.lstm_shape import LstmShape, LstmState, LstmWeights, usual_weights


def lstm_case(
    shape: LstmShape, values: Callable[..., Elements], *, steps: int = 1
) -> tuple[LstmWeights, Elements, LstmState]:
    """Weights, inputs of the steps, and the state before; ``values`` draws elements of a size."""
    c, y = values(shape.batch, shape.cells), values(shape.batch, shape.outputs)
    weights = usual_weights(shape, lambda _, *size: values(*size))
    return weights, values(steps, shape.batch, shape.inputs), LstmState(c=c, y=y)
