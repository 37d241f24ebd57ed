"""The verb ``evaluate`` of models."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.onnx_models.read import load_proto
from support.extras import need
from vip.progress import Progress, silent

from .compile import images_of, input_arrays, spread
from .folder import load_folder
from .labels import checked_labels, chosen_labels, score_threshold
from .machine import model_machine
from .reference import onnx_outputs, output_error
from .run import golden_outputs

__all__ = ["Evaluation", "evaluate_model"]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A compiled model beside onnxruntime's floating point, on the golden model.

    Attributes:
        images: evaluated.
        error: of the first output, root of the mean squared error over that of the mean square.
        largest: difference of the first output's elements.
        threshold: the first output above which an image has label 1, else 0, if the output is a
            single score (:func:`vip.models.labels.score_threshold`); None: the label is the number
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
    folder: Path,
    data: Path | Mapping[str, NDArray[Any]],
    *,
    progress: Progress = silent,
) -> Evaluation:
    """Compare a compiled model with onnxruntime's floating point.

    Parameters:
        folder: of :func:`vip.models.compile.compile_model`.
        data: images of each input by its name, and labels as ``y``, or a file (``.npz``) of them.
            Labels are whole numbers from 0, less than the first output's elements, or 0 and 1 if it
            has one.
        progress: called with the images so far.

    Raises:
        VipError: no compiled model, data that do not fit it, or onnxruntime is not installed.
        OSError: a file can't be read.
    """
    need("onnxruntime", "comparisons with floating point")
    compiled = load_folder(folder)
    arrays = input_arrays(data) if isinstance(data, Path) else dict(data)
    label = str(data) if isinstance(data, Path) else "the data"
    carried = compiled.carry.values()
    inputs = images_of(compiled, arrays, label, carried)
    images = len(next(iter(inputs.values())))
    port = compiled.outputs[0]
    scores = port.size.elements
    labels = None
    if "y" in arrays and "y" not in inputs:
        labels = checked_labels(arrays["y"], images, scores, label)
    threshold = score_threshold(load_proto(compiled.model), port.tensor) if scores == 1 else None
    machine = model_machine(compiled.preset)
    maps = spread(compiled, arrays, label, carried)
    outputs, saturated, beyond = golden_outputs(compiled, machine, maps, progress)
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
    chosen, reference = (chosen_labels(one, threshold) for one in (values, exact))
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
