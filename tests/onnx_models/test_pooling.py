"""Pooling along three axes, with gaps, and its reverse."""

import numpy as np
import pytest
from onnx import helper

from support.errors import VipError
from tests.onnx_models.graphs import model
from tests.onnx_models.test_mapping import SEVERAL, check
from vip.models.backend import VipBackend

RANDOM = np.random.default_rng(17)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("MaxPool", {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2], "pads": [0, 1, 1, 1, 1, 0]}),
        ("MaxPool", {"kernel_shape": [2, 2, 2], "dilations": [1, 2, 3]}),
        ("AveragePool", {"kernel_shape": [2, 1, 3], "pads": [1, 0, 1, 0, 0, 1]}),
        (
            "AveragePool",
            {
                "kernel_shape": [2, 2, 3],
                "strides": [2, 1, 2],
                "pads": [1, 0, 0, 0, 1, 1],
                "count_include_pad": 1,
                "ceil_mode": 1,
            },
        ),
    ],
)
def test_pooling_along_three_axes(op: str, attributes: dict[str, object]) -> None:
    made = model([helper.make_node(op, ["x"], ["y"], **attributes)], (1, 3, 4, 5, 6))
    check(made, RANDOM.normal(size=(1, 3, 4, 5, 6)), engines=SEVERAL)


@pytest.mark.parametrize(
    ("op", "attributes", "shape", "bound"),
    [
        ("GlobalAveragePool", {}, (1, 2, 300), 0.02),
        ("MaxPool", {"kernel_shape": [120], "strides": [50]}, (1, 3, 400), 2e-3),
        ("ReduceMax", {"axes": [2], "keepdims": 0}, (1, 2, 700), 2e-3),
        ("LogSoftmax", {}, (1, 128), 2e-3),
        ("LpNormalization", {}, (1, 128), 0.01),
    ],
)
def test_windows_of_more_columns_than_a_program_or_the_scratchpad_holds(
    op: str, attributes: dict[str, object], shape: tuple[int, ...], bound: float
) -> None:
    made = model([helper.make_node(op, ["x"], ["y"], **attributes)], shape, opset=13)
    check(made, RANDOM.normal(1, 1, size=shape), bound=bound)


def test_elements_go_back_to_the_places_of_their_indices() -> None:
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node(
            "MaxUnpool", ["a", "places"], ["y"], kernel_shape=[2, 2], strides=[2, 2], name="back"
        ),
    ]
    rows, columns = (2 * np.arange(size)[:, np.newaxis] for size in (2, 3))
    offsets = RANDOM.integers(0, 2, (2, 2, 3))
    places = np.stack([24 * channel + 6 * rows + columns.T for channel in range(2)])
    places = (places + offsets)[np.newaxis]
    made = model(nodes, (1, 2, 2, 3), {"places": places}, opset=11)
    check(made, RANDOM.normal(size=(1, 2, 2, 3)))
    spoiled = model(nodes, (1, 2, 2, 3), {"places": places + 24}, opset=11)
    with pytest.raises(VipError, match=r"node back .MaxUnpool.: its indices are not within"):
        VipBackend.prepare(spoiled).run([np.ones((1, 2, 2, 3), np.float32)])
