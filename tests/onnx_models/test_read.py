"""Broken, hostile and unsupported models: refused with one line, before memory is taken."""

import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from microkernels.onnx_models.errors import ModelError
from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import load_proto, read_graph
from support.errors import VipError
from tests.onnx_models.graphs import model, reference


def relu() -> ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"])], ("n", 2, 3))


def _claims_elements(made: ModelProto) -> None:
    tensor = made.graph.initializer.add()
    tensor.name, tensor.data_type, tensor.raw_data = "w", 1, b"1234"
    tensor.dims.extend([1 << 14, 1 << 14])


def _overflows(made: ModelProto) -> None:
    _claims_elements(made)
    made.graph.initializer[0].dims.extend([1 << 40, 1 << 40])


def _cycle(made: ModelProto) -> None:
    made.graph.node[0].input[0] = "z"
    made.graph.node.append(helper.make_node("Relu", ["y"], ["z"]))


def _fills(made: ModelProto) -> None:
    shape = numpy_helper.from_array(np.array([1 << 20, 1 << 20]), "shape")
    made.graph.initializer.append(shape)
    made.graph.node.append(helper.make_node("ConstantOfShape", ["shape"], ["huge"]))


def _loop(made: ModelProto) -> None:
    made.graph.node[0].attribute.append(helper.make_attribute("body", made.graph))


def _open(made: ModelProto) -> None:
    made.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "width"


def _complex(made: ModelProto) -> None:
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = TensorProto.COMPLEX64


def _elsewhere(made: ModelProto) -> None:
    tensor = made.graph.initializer.add()
    tensor.name, tensor.data_type, tensor.data_location = "w", 1, 1
    tensor.dims.append(4)
    tensor.external_data.add(key="location", value="/etc/passwd")


def _opset(made: ModelProto) -> None:
    made.opset_import[0].version = 5


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_claims_elements, r"tensor w of shape \[16384, 16384\] needs 1,073,741,824 bytes"),
        (_overflows, "tensor w of shape .* has more than 1,073,741,824 elements"),
        (_cycle, "the model is not valid: "),
        (_fills, r"node huge \(ConstantOfShape\): it makes a constant of 1,099,511,627,776 "),
        (_loop, "operators with graphs within"),
        (_open, "input x leaves dimension 2 open as 'width'; only the first, the batch, may be"),
        (_complex, "input x must be of a floating-point or an integer type, or of truth values"),
        (_elsewhere, "tensor w is stored in another file"),
        (_opset, "the model must use an opset of ONNX from 6 to"),
    ],
)
def test_hostile_models_are_refused(spoil: Callable[[ModelProto], None], message: str) -> None:
    made = relu()
    spoil(made)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=message) as refused:
            read_graph(made)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 32 << 20
    assert "\n" not in str(refused.value)


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    content = relu().SerializeToString()
    path = tmp_path / "m.onnx"
    for size in range(0, len(content) - 1, 3):
        path.write_bytes(content[:size])
        with pytest.raises(VipError) as refused:
            read_graph(load_proto(path))
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("size", [0, -1])
def test_sizes_of_0_and_minus_1_are_open(size: int) -> None:
    made = relu()
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = size
    assert read_graph(made).shapes["y"] == (1, 2, 3)
    assert read_graph(made, batch=4).shapes["y"] == (4, 2, 3)
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_value = size
    with pytest.raises(ModelError, match="input x leaves dimension 1 open; only the first"):
        read_graph(made)
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -2
    with pytest.raises(ModelError, match=r"tensor x has a negative size: \[.*, -2, 3\]"):
        read_graph(made)


def test_an_output_may_lack_its_shape() -> None:
    made = relu()
    made.graph.output[0].type.tensor_type.ClearField("shape")
    assert read_graph(made).shapes["y"] == (1, 2, 3)


@pytest.mark.parametrize(
    ("node", "constants", "why"),
    [
        (("Ceil", ["x"], {}), {}, "the operator is not supported"),
        (("Conv", ["x", "w"], {"group": 3}), {"w": np.ones((3, 1, 3, 3))},
         r"group=3 does not fit 2 channels"),
        (("Conv", ["x", "w"], {}), {"w": np.ones((2, 2, 9, 9))}, "a window of 9 pixels does not"),
        (("Div", ["x", "w"], {}), {"w": np.zeros(1)}, "division by 0"),
        (("LeakyRelu", ["x"], {"alpha": 2.0}), {}, "alpha must be from -1 to below 1, not 2.0"),
        (("Cast", ["x"], {"to": 6}), {}, "only casts to real numbers"),
    ],
)  # fmt: skip
def test_unsupported_nodes_are_refused_by_name(
    node: tuple[str, list[str], dict[str, object]], constants: dict[str, object], why: str
) -> None:
    op, inputs, attributes = node
    made = model([helper.make_node("Relu", ["x"], ["y"])], (1, 2, 5, 5), constants)
    del made.graph.node[:]
    made.graph.node.append(helper.make_node(op, inputs, ["y"], name="that one", **attributes))
    coverage = map_graph(read_graph(made), OPERATORS)
    assert coverage.model is None
    (refused,) = coverage.refused
    assert refused.node == "that one"
    assert refused.op == op
    assert re.search(why, refused.why), refused.why


def test_constants_are_folded_as_onnxruntime_does() -> None:
    """ONNX limits the start of a slice in reverse to the first element; its reference does not."""
    numbers = {"s": [-9], "e": [-9], "a": [0], "t": [-1]}
    made = model(
        [
            helper.make_node("Slice", ["c", *numbers], ["k"]),
            helper.make_node("Mul", ["x", "k"], ["y"]),
        ],
        (1, 4),
        {"c": np.arange(3.0, 6.0), **{name: np.array(held) for name, held in numbers.items()}},
    )
    assert read_graph(made).constants["k"].tolist() == [3.0]
    np.testing.assert_array_equal(reference(made, np.ones((1, 4)))[0], [[3.0] * 4])


def test_the_value_of_an_old_pad_is_not_taken_for_zero() -> None:
    node = helper.make_node("Pad", ["x"], ["y"], pads=[0, 0, 1, 1], value=3.5)
    coverage = map_graph(read_graph(model([node], (2, 3), opset=10)), OPERATORS)
    (refused,) = coverage.refused
    assert refused.why == "the padding value must be 0"
