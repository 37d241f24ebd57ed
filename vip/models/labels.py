"""Labels of images, and those that the scores of a model stand for."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microkernels.networks.parameters import Reals
from microkernels.onnx_models.errors import ModelError

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

__all__ = ["checked_labels", "chosen_labels", "score_threshold"]

#: Operators whose first output has elements of their first input.
_MOVES = frozenset(
    {"Cast", "Dropout", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze"}
    | {"Transpose", "Unsqueeze"}
)
#: Operators whose results are probabilities.
_PROBABILITIES = frozenset({"HardSigmoid", "Sigmoid", "Softmax"})


def checked_labels(labels: NDArray[Any], images: int, scores: int, label: str) -> NDArray[np.int64]:
    """The label of each image.

    Parameters:
        labels: as the data have them. images: of the data.
        scores: of an image; labels are from 0 to ``scores`` - 1, of a single score 0 or 1.
        label: the data are, for messages.

    Raises:
        ModelError: not one label for each image, no whole numbers, or labels outside their range.
    """
    if labels.dtype.kind not in "biuf":
        raise ModelError(
            f"{label}: labels y must be integers, booleans or whole numbers in floating point, not "
            f"of type {labels.dtype}"
        )
    if labels.shape != (images,):
        raise ModelError(f"{label}: y needs {images} labels, not the shape {labels.shape}")
    last = max(scores - 1, 1)
    wrong = labels[~((labels >= 0) & (labels <= last) & (labels == np.rint(labels)))]
    if wrong.size:
        raise ModelError(
            f"{label}: labels y must be whole numbers from 0 to {last}, as the model has {scores} "
            f"score(s); there is {wrong[0]}"
        )
    return labels.astype(np.int64)


def score_threshold(model: "ModelProto", tensor: str) -> float:
    """The score above which a model with a single score chooses label 1: 0.5 if the score is a
    probability, else 0.

    It is a probability if it comes from ``Sigmoid``, ``HardSigmoid``, ``Softmax`` or ``Clip`` to 0
    and 1, whose results only operators move that change no element. Of a score that was quantised
    the threshold is quantised likewise.

    Parameters:
        tensor: output of the model.
    """
    makers = {name: node for node in model.graph.node for name in node.output}
    constants = _constants(model)
    # A number x of the tensor is scale * x + zero in the output, and a score of 0 is centre.
    scale, zero, centre = 1.0, 0.0, 0.0
    while (node := makers.get(tensor)) is not None and node.op_type in (
        *_MOVES,
        "DequantizeLinear",
        "QuantizeLinear",
    ):
        if node.op_type not in _MOVES:
            step, offset = (
                float(constants[name].ravel()[0]) if name in constants else default
                for name, default in zip([*node.input[1:], ""], (1.0, 0.0), strict=False)
            )
            if node.op_type == "DequantizeLinear":
                centre = zero
                scale, zero = scale * step, zero - scale * step * offset
            else:
                scale, zero = scale / step, zero + scale * offset
                centre = zero
        tensor = node.input[0]
    probability = node is not None and (
        node.op_type in _PROBABILITIES
        or (node.op_type == "Clip" and _bounds(node, constants) == (0.0, 1.0))
    )
    return scale * 0.5 + zero if probability else centre


def _constants(model: "ModelProto") -> dict[str, NDArray[Any]]:
    from onnx import numpy_helper

    constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                constants[node.output[0]] = numpy_helper.to_array(attribute.t)
    return constants


def _bounds(node: "NodeProto", constants: dict[str, NDArray[Any]]) -> tuple[float, float]:
    bounds = {"min": -np.inf, "max": np.inf}
    bounds |= {attribute.name: attribute.f for attribute in node.attribute}
    for side, name in zip(("min", "max"), node.input[1:], strict=False):
        if name in constants:
            bounds[side] = float(constants[name].ravel()[0])
    return bounds["min"], bounds["max"]


def chosen_labels(scores: Reals, threshold: float | None) -> NDArray[np.int64]:
    """The label of each image: that of the highest score, or, with a threshold, 1 for scores above
    it and 0 for others.

    Parameters:
        scores: images x scores; a single one if there is a threshold.
    """
    if threshold is None:
        return np.asarray(np.argmax(scores, axis=1), np.int64)
    return np.asarray(scores[:, 0] > threshold, np.int64)
