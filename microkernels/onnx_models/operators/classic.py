"""Operators of the domain ``ai.onnx.ml``, as scikit-learn's models are exported."""

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.onnx_models.importer import Importer
from microkernels.onnx_models.read import GraphNode, attribute, refused

from .parts import Parts

#: What follows a linear model -> the operators that do it.
_AFTER = {"NONE": "Identity", "LOGISTIC": "Sigmoid", "SOFTMAX": "Softmax"}


def scaler(importer: Importer, node: GraphNode) -> None:
    """Scaler: elements minus an offset, times a factor."""
    parts = Parts(importer, node)
    offset, scale = (
        np.asarray(attribute(node, name, [default]), np.float64)
        for name, default in (("offset", 0.0), ("scale", 1.0))
    )
    parts("Mul", parts("Sub", node.input[0], offset), scale, last=True)


def binarizer(importer: Importer, node: GraphNode) -> None:
    """Binarizer: 1 for elements above a threshold, else 0."""
    parts = Parts(importer, node)
    threshold = float(attribute(node, "threshold", 0.0))
    parts("Step", parts("Sub", node.input[0], threshold), last=True)


def normalizer(importer: Importer, node: GraphNode) -> None:
    """Normalizer: rows divided by their L1 or L2 norm; rows of zeros stay."""
    parts = Parts(importer, node)
    (x,) = node.input
    norm = attribute(node, "norm", "MAX")
    if norm not in ("L1", "L2"):
        raise refused(node, f"norm must be L1 or L2, not {norm}")
    total = parts(f"Reduce{norm}", x, axes=[-1])
    parts("Mul", x, parts("Inverse", total), last=True)


def _scores(importer: Importer, node: GraphNode, parts: Parts, outputs: int, output: str) -> str:
    """A linear model and what follows it."""
    weights = np.asarray(attribute(node, "coefficients", []), np.float64)
    if not weights.size or weights.size % outputs:
        raise refused(node, f"{weights.size} coefficients do not fit {outputs} outputs")
    after = attribute(node, "post_transform", "NONE")
    if after not in _AFTER:
        raise refused(node, f"post_transform must be one of {', '.join(_AFTER)}, not {after}")
    bias = np.asarray(attribute(node, "intercepts", [0.0] * outputs), np.float64)
    product = parts("MatMul", node.input[0], weights.reshape(outputs, -1).T)
    sums = parts("Add", product, bias)
    if importer.used(output):
        parts(_AFTER[after], sums, output=output)
    return sums


def regressor(importer: Importer, node: GraphNode) -> None:
    """LinearRegressor."""
    outputs = int(attribute(node, "targets", 1))
    _scores(importer, node, Parts(importer, node), outputs, node.output[0])


def _labels(importer: Importer, node: GraphNode) -> Reals | None:
    """Labels of integers; None: nothing uses them."""
    if not importer.used(node.output[0]):
        return None
    labels = np.asarray(attribute(node, "classlabels_ints", []), np.float64)
    if not labels.size:
        scores = node.output[1] if len(node.output) > 1 else ""
        raise refused(
            node,
            f"its labels {node.output[0]} are text; vip nn compile --outputs {scores} compiles "
            "the scores alone",
        )
    return labels


def classifier(importer: Importer, node: GraphNode) -> None:
    """LinearClassifier with a score for each label."""
    labels = _labels(importer, node)
    names = attribute(node, "classlabels_ints", []) or attribute(node, "classlabels_strings", [])
    parts = Parts(importer, node)
    output = node.output[1] if len(node.output) > 1 else ""
    sums = _scores(importer, node, parts, len(names), output)
    if labels is None:
        return
    # Scores that are rounded to the same element are no longer the largest alone.
    best = parts("ArgMax", sums, axis=-1, keepdims=0)
    if (labels == np.arange(len(labels))).all():
        parts("Identity", best, last=True)
    else:
        parts("Gather", labels, best, last=True)
