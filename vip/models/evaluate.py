"""The verb ``evaluate`` of models."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microkernels.common.fixed_point import HIGHEST, LOWEST, Reals
from microkernels.onnx_models.errors import ModelError
from microkernels.onnx_models.model import images_of, spread
from microkernels.onnx_models.read import load_proto
from support.errors import Shown, counted
from support.extras import need
from vip.progress import Progress, silent

from .compile import Images, input_arrays
from .folder import load_folder
from .reference import onnx_outputs, output_error
from .run import golden_outputs

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

#: Operators whose first output has elements of their first input.
_MOVES = frozenset(
    {"Cast", "Dropout", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze"}
    | {"Transpose", "Unsqueeze"}
)
#: Operators that take elements of a tensor, or of a table, by an index.
_TABLES = frozenset({"ArrayFeatureExtractor", "Gather"})
#: Operators whose first output is a label.
_LABELS = frozenset({"ArgMax", "ArgMin", "LinearClassifier"})
#: Operators whose results are probabilities.
_PROBABILITIES = frozenset({"HardSigmoid", "Sigmoid", "Softmax"})


def checked_labels(
    labels: NDArray[Any], images: int, scores: int | None, label: str
) -> NDArray[np.int64]:
    """The label of each image.

    Parameters:
        labels: as the data have them. images: of the data.
        scores: of an image; labels are from 0 to ``scores`` - 1, of a single score 0 or 1. None:
            the model's output is a label, any number of 16 bits.
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
    if scores is None:
        first, last, why = LOWEST, HIGHEST, "the model's own labels have 16 bits"
    else:
        first, last, why = 0, max(scores - 1, 1), f"the model has {counted(scores, 'score')}"
    wrong = labels[~((labels >= first) & (labels <= last) & (labels == np.rint(labels)))]
    if wrong.size:
        raise ModelError(
            f"{label}: labels y must be whole numbers from {first} to {last}, as {why}; there is "
            f"{wrong[0]}"
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


def is_label(model: "ModelProto", tensor: str) -> bool:
    """Whether an output is the label that the model chooses, not a score."""
    makers = {name: node for node in model.graph.node for name in node.output}
    constants = _constants(model)
    while (node := makers.get(tensor)) is not None and node.op_type in (*_MOVES, *_TABLES):
        # Labels in a constant table are chosen by its index.
        tensor = node.input[node.op_type in _TABLES and node.input[0] in constants]
    return node is not None and node.op_type in _LABELS and tensor == node.output[0]


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


@dataclass(frozen=True, kw_only=True)
class Evaluation(Shown):
    """A compiled model beside onnxruntime's floating point, on the golden model.

    Attributes:
        images: evaluated.
        error: of the first output, root of the mean squared error over that of the mean square.
        largest: difference of the first output's elements.
        threshold: the first output above which an image has label 1, else 0, if the output is a
            single score (:func:`score_threshold`); None: the label is the number
            of the highest output.
        agreement: share of the images to which both give the same label.
        accuracy, float_accuracy: share of the images whose label is right, of the compiled model
            and of onnxruntime; None: there are no labels.
        saturated, beyond: as of :class:`vip.models.run.ModelRun`.
    """

    images: int
    error: float
    largest: float
    threshold: float | None
    agreement: float
    accuracy: float | None
    float_accuracy: float | None
    saturated: Mapping[str, int]
    beyond: Mapping[str, int]

    def to_json(self) -> dict[str, object]:
        """Plain JSON data."""
        return asdict(self)


def evaluate_model(
    folder: Path | str,
    data: Images,
    *,
    progress: Progress = silent,
) -> Evaluation:
    """Compare a compiled model with onnxruntime's floating point.

    Parameters:
        folder: of :func:`vip.models.compile.compile_model`.
        data: images of each input by its name, and labels as ``y``, or a file (``.npz``) of them.
            Labels are whole numbers from 0, less than the first output's elements, or 0 and 1 if it
            has one; of a model whose output is a label, any that it may have.
        progress: called with the images so far.

    Raises:
        VipError: no compiled model, data that do not fit it, or onnxruntime is not installed.
        OSError: a file can't be read.
    """
    need("onnxruntime", "comparisons with floating point")
    compiled = load_folder(Path(folder))
    arrays, label = input_arrays(data, "the data")
    carried = compiled.carry.values()
    inputs = images_of(compiled, arrays, label, carried)
    images = len(next(iter(inputs.values())))
    port = compiled.outputs[0]
    scores = port.size.elements
    chooses = scores == 1 and is_label(load_proto(compiled.model), port.tensor)
    labels = None
    if "y" in arrays and "y" not in inputs:
        labels = checked_labels(arrays["y"], images, None if chooses else scores, label)
    threshold = None
    if scores == 1 and not chooses:
        threshold = score_threshold(load_proto(compiled.model), port.tensor)
    maps = spread(compiled, arrays, label, carried)
    outputs, saturated, beyond = golden_outputs(compiled, maps, progress)
    values = outputs[port.tensor].reshape(images, scores)
    exact = onnx_outputs(
        compiled.model,
        inputs,
        inputs=compiled.inputs,
        outputs=[port],
        batch=compiled.batch,
        carry=compiled.carry,
        progress=progress,
    )[port.tensor]
    chosen, reference = (
        np.rint(one[:, 0]).astype(np.int64) if chooses else chosen_labels(one, threshold)
        for one in (values, exact)
    )
    difference = output_error(port.tensor, values, exact)
    return Evaluation(
        images=images,
        error=difference.error,
        largest=difference.largest,
        threshold=threshold,
        agreement=float(np.mean(chosen == reference)),
        accuracy=None if labels is None else float(np.mean(chosen == labels)),
        float_accuracy=None if labels is None else float(np.mean(reference == labels)),
        saturated=saturated,
        beyond=beyond,
    )
