"""Models whose attributes or sizes would take memory or time before they are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, helper

import vip
from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import read_graph
from support.errors import VipError
from tests.onnx_models.graphs import model as model_of

HUGE = 1 << 40
WEIGHTS = {"w": np.ones((3, 2, 3, 3)), "v": np.ones((2, 3, 2, 2))}


def model(node: NodeProto, shape: tuple[int, ...], constants: dict[str, Any]) -> ModelProto:
    """The sizes of the output are open, so that nothing is refused by them."""
    made = model_of([node], shape, constants, opset=18)
    output = helper.make_tensor_value_info(
        "y", 1, ["n", *(f"d{axis}" for axis in range(1, len(shape)))]
    )
    made.graph.output[0].CopyFrom(output)
    return made


def _node(op: str, *others: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, ["x", *others], ["y"], **attributes)


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (_node("LpPool", kernel_shape=[2, 2], pads=[HUGE] * 4), "pads must be 4 numbers from 0"),
        (_node("AveragePool", kernel_shape=[2, 2], pads=[HUGE] * 4), "pads must be 4 numbers"),
        (_node("AveragePool", kernel_shape=[2, 2], pads=[65536] * 4), "windows; at most 16,777"),
        (_node("MaxPool", kernel_shape=[2, 2], strides=[HUGE] * 2), "strides must be 2 numbers"),
        (_node("ConvTranspose", "w", strides=[HUGE] * 2), "strides must be 2 numbers"),
        (_node("ConvTranspose", "w", dilations=[60000] * 2), "elements in all are allowed"),
        (_node("ConvTranspose", "w", output_padding=[0, 1]), "output_padding [0, 1] must be less"),
        (
            _node("Conv", "v", dilations=[30000] * 2, strides=[30000] * 2, pads=[30000] * 4),
            "with its padding the map has 10,802,160,096 elements",
        ),
        (_node("Clip", "none"), "min must be one number, not 0"),
        (_node("Hardmax", axis=5), "axis must be from -4 to 3, not 5"),
        (_node("Flatten", axis=5), "axis 5 can't be applied to [1, 3, 8, 4]"),
        (_node("Squeeze", "second"), "axes [1] can't be applied to [1, 3, 8, 4]"),
        (_node("Reshape", "second"), "[1, 3, 8, 4] can't be reshaped to [1]"),
    ],
)
def test_attributes_are_limited(node: NodeProto, why: str) -> None:
    made = model(node, (1, 3, 8, 4), WEIGHTS | {"none": np.zeros(0), "second": np.ones(1, int)})
    coverage = map_graph(read_graph(made), OPERATORS)
    assert coverage.model is None
    assert why in coverage.refused[0].why


@pytest.mark.parametrize(
    ("node", "shape", "why"),
    [
        (_node("LRN", size=3), (1, 60000, 1, 1), "60,000 channels; at most 4,096 are supported"),
        (_node("ReduceL2"), (1, 1 << 20, 16, 16), "an image of 268,435,456 elements can't be"),
    ],
)
def test_sizes_are_limited(node: NodeProto, shape: tuple[int, ...], why: str) -> None:
    coverage = map_graph(read_graph(model(node, shape, {})), OPERATORS)
    assert coverage.model is None
    assert why in coverage.refused[0].why


def test_numbers_without_a_scale_are_refused(tmp_path: Path) -> None:
    onnx.save(model(_node("Exp"), (1, 4), {}), tmp_path / "m.onnx")
    x = np.full((2, 4), 700, np.float32)
    with pytest.raises(
        VipError, match=r"node .*: numbers on the calibration data reach 1\.01e\+304"
    ):
        vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "out")
    assert not (tmp_path / "out").exists()
