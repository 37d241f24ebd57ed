"""Look-ups, interpolation and scikit-learn's operators beside onnxruntime, exact on the
simulator."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import vip
from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import read_graph
from support.errors import VipError
from tests.onnx_models.graphs import model, reference
from tests.onnx_models.test_integers import check as check_integers
from tests.onnx_models.test_integers import model as of_integers
from tests.onnx_models.test_mapping import check
from vip.models.backend import VipBackend

RANDOM = np.random.default_rng(89)


def _node(op: str, *inputs: str, output: str = "y", **attributes: Any) -> NodeProto:
    return helper.make_node(op, list(inputs), [output], **attributes)


def test_an_embedding_is_a_row_of_its_table() -> None:
    table = RANDOM.normal(size=(20, 6)).astype(np.float32)
    made = of_integers(
        [_node("Gather", "t", "x", output="e"), _node("Relu", "e")],
        ("INT64", (1, 7)),
        ("FLOAT", (1, 7, 6)),
        {"t": table},
    )
    x = RANDOM.integers(0, 20, (1, 7))
    (rows,) = VipBackend.prepare(made).run([x])
    np.testing.assert_allclose(rows, np.maximum(table[x], 0), atol=2e-4)


def test_one_hot_vectors_are_exact() -> None:
    constants = {"d": np.int64(9), "v": np.array([-3, 40])}
    node = _node("OneHot", "x", "d", "v", axis=1)
    made = of_integers([node, _node("Mul", "z", "k")], ("INT64", (4, 5)), ("INT64", (4, 9, 5)),
                       constants | {"k": RANDOM.integers(1, 9, 5)})  # fmt: skip
    made.graph.node[0].output[0] = "z"
    check_integers(made, RANDOM.integers(0, 9, (4, 5)))


SIZES = {"sizes": np.array([1, 3, 9, 11]), "scales": np.float32([1, 1, 1.6, 2])}


@pytest.mark.parametrize(
    ("mode", "kind", "where"),
    [
        ("linear", "sizes", "half_pixel"),
        ("linear", "scales", "align_corners"),
        ("linear", "scales", "asymmetric"),
        ("cubic", "sizes", "half_pixel"),
    ],
)
def test_resizing(mode: str, kind: str, where: str) -> None:
    inputs = ("x", "", "sizes") if kind == "scales" else ("x", "", "", "sizes")
    node = _node("Resize", *inputs, mode=mode, coordinate_transformation_mode=where)
    made = model([node], (1, 3, 6, 5), {"sizes": SIZES[kind]}, opset=18)
    check(made, RANDOM.normal(size=(1, 3, 6, 5)).astype(np.float32))


@pytest.mark.parametrize("attributes", [{}, {"reverse": 1}, {"exclusive": 1}])
def test_sums_from_one_end_on(attributes: dict[str, int]) -> None:
    made = model([_node("CumSum", "x", "a", **attributes)], (1, 3, 4, 5), {"a": np.array(2)})
    check(made, RANDOM.normal(size=(1, 3, 4, 5)).astype(np.float32))


@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
def test_elements_are_replaced_by_those_of_another_tensor(op: str) -> None:
    places = {"ScatterND": np.array([[0, 2], [0, 0]]), "ScatterElements": np.array([[[1] * 3] * 2])}
    nodes = [
        _node("Slice", "x", "zero", "two", "axis", output="s"),
        _node("Neg", "s", output="u"),
        _node(op, "x", "i", "u", **({"axis": 1} if op == "ScatterElements" else {})),
    ]
    constants = {"zero": np.array([0]), "two": np.array([2]), "axis": np.array([1])}
    made = model(nodes, (1, 4, 3), constants | {"i": places[op]}, opset=18)
    if op == "ScatterElements":
        made.graph.initializer[-1].CopyFrom(
            numpy_helper.from_array(np.array([[[2, 0, 1], [3, 3, 3]]]), "i")
        )
    else:
        made.graph.node[1].input[0] = "r"
        made.graph.node.insert(1, _node("Squeeze", "s", "none", output="r"))
        made.graph.initializer.append(numpy_helper.from_array(np.array([0]), "none"))
    check(made, RANDOM.normal(size=(1, 4, 3)).astype(np.float32))


def _classic(nodes: list[NodeProto], outputs: list[tuple[str, int, tuple[int, ...]]]) -> ModelProto:
    """A model of scikit-learn's operators with five features, as exporters write it."""
    for node in nodes:
        node.domain = "ai.onnx.ml" if node.op_type in _CLASSIC else ""
    graph = helper.make_graph(
        nodes,
        "classic",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 5))],
        [helper.make_tensor_value_info(*output) for output in outputs],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


_CLASSIC = frozenset(
    ("Binarizer", "LinearClassifier", "LinearRegressor", "Normalizer", "Scaler", "ZipMap")
)
_TABLE = helper.make_sequence_type_proto(
    helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    )
)
WEIGHTS = {"coefficients": RANDOM.normal(size=15).tolist(), "intercepts": [0.1, -0.2, 0.3]}
SCALED = _node("Scaler", "x", output="s", offset=[0.1, 0, -1, 0.3, 0], scale=[1.0, 2, 0.5, 1, 3])


@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_scaler_regressor_and_normalizer(norm: str) -> None:
    nodes = [
        SCALED,
        _node("LinearRegressor", "s", output="r", targets=3, **WEIGHTS),
        _node("Normalizer", "r", norm=norm),
    ]
    made = _classic(nodes, [("y", TensorProto.FLOAT, (1, 3))])
    check(made, RANDOM.normal(size=(1, 5)).astype(np.float32))


@pytest.mark.parametrize("labels", [[0, 1, 2], [4, -7, 11]])
def test_labels_and_scores_of_a_classifier(labels: list[int]) -> None:
    node = helper.make_node(
        "LinearClassifier",
        ["s"],
        ["label", "scores"],
        classlabels_ints=labels,
        post_transform="SOFTMAX",
        **WEIGHTS,
    )
    outputs = [("label", TensorProto.INT64, (1,)), ("scores", TensorProto.FLOAT, (1, 3))]
    check(_classic([SCALED, node], outputs), RANDOM.normal(size=(1, 5)).astype(np.float32))


def test_the_label_is_of_the_sums_before_scores_are_rounded() -> None:
    node = helper.make_node(
        "LinearClassifier", ["s"], ["label", "scores"], classlabels_ints=[0, 1, 2],
        post_transform="LOGISTIC", coefficients=[0.0] * 15, intercepts=[10.4, 14.0, 18.0],
    )  # fmt: skip
    outputs = [("label", TensorProto.INT64, (1,)), ("scores", TensorProto.FLOAT, (1, 3))]
    check(_classic([SCALED, node], outputs), RANDOM.normal(size=(1, 5)).astype(np.float32))


def test_the_default_axis_of_an_early_hardmax_is_refused() -> None:
    made = model([_node("Hardmax", "x")], (1, 3, 4), opset=11)
    (refused,) = map_graph(read_graph(made), OPERATORS).refused
    assert refused.why == "axis must be the last one before opset 13"


def test_labels_of_text_name_what_would_run() -> None:
    node = helper.make_node(
        "LinearClassifier", ["s"], ["label", "scores"], classlabels_strings=["a", "b", "c"],
        **WEIGHTS,
    )  # fmt: skip
    outputs = [("label", TensorProto.STRING, (1,)), ("scores", TensorProto.FLOAT, (1, 3))]
    coverage = map_graph(read_graph(_classic([SCALED, node], outputs)), OPERATORS)
    assert "--outputs scores compiles the scores alone" in coverage.refused[0].why


def test_scores_are_compiled_without_labels_of_text(tmp_path: Path) -> None:
    """As scikit-learn's classifiers are exported, with a table of probabilities."""
    node = helper.make_node(
        "LinearClassifier", ["s"], ["label", "scores"], classlabels_strings=["a", "b", "c"],
        post_transform="SOFTMAX", **WEIGHTS,
    )  # fmt: skip
    table = _node("ZipMap", "scores", output="table", classlabels_strings=["a", "b", "c"])
    outputs = [("label", TensorProto.STRING, (1,)), ("scores", TensorProto.FLOAT, (1, 3))]
    made = _classic([SCALED, node, table], outputs)
    made.graph.output[1].name = "table"
    made.graph.output[1].type.CopyFrom(_TABLE)
    onnx.save(made, tmp_path / "m.onnx")
    x = RANDOM.normal(size=(8, 5)).astype(np.float32)
    with pytest.raises(VipError, match="--outputs scores compiles"):
        vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "n")
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "m", outputs=["scores"])
    found = vip.run_model(tmp_path / "m", {"x": x[:1]}, on="iss").outputs
    assert list(found) == ["scores"]
    session = onnxruntime.InferenceSession(made.SerializeToString())
    ((wanted,),) = session.run(["table"], {"x": x[:1]})
    assert [wanted[name] for name in "abc"] == pytest.approx(found["scores"].ravel(), abs=3e-3)


def test_open_sizes_are_given(tmp_path: Path) -> None:
    constants = {"w": RANDOM.normal(0, 0.3, (4, 3, 3, 3))}
    made = model([_node("Conv", "x", "w")], ("n", 3, "h", "w2"), constants)
    onnx.save(made, tmp_path / "m.onnx")
    x = RANDOM.normal(size=(1, 3, 8, 11)).astype(np.float32)
    for shape, message in (
        ({"z": (1, 3, 8, 11)}, "unknown input 'z'"),
        ({"x": (3, 8, 11)}, "input x has 4 dimensions; the shape 3x8x11 has 3"),
        ({"x": (1, 4, 8, 11)}, "input x has the size 3 along dimension 1"),
    ):
        with pytest.raises(VipError, match=message):
            vip.check_model(tmp_path / "m.onnx", shapes=shape)
    with pytest.raises(VipError, match="unknown output 'z'"):
        vip.check_model(tmp_path / "m.onnx", outputs=["z"])
    with pytest.raises(VipError, match=r"output x is an input of the model, .*, such as y$"):
        vip.check_model(tmp_path / "m.onnx", outputs=["x"])
    shapes = {"x": (1, 3, 8, 11)}
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "m", shapes=shapes)
    output = vip.run_model(tmp_path / "m", {"x": x}, on="iss").outputs["y"]
    (wanted,) = reference(made, x)
    np.testing.assert_allclose(output.reshape(wanted.shape), wanted, atol=3e-3)


def test_labels_that_a_model_chooses_are_evaluated(tmp_path: Path) -> None:
    made = model([_node("ArgMax", "x", axis=1, keepdims=0)], (1, 6), {})
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    onnx.save(made, tmp_path / "m.onnx")
    x = RANDOM.normal(size=(20, 6)).astype(np.float32)
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "m")
    labels = x.argmax(axis=1)
    labels[:5] = (labels[:5] + 1) % 6
    result = vip.evaluate_model(tmp_path / "m", {"x": x, "y": labels})
    assert (result.accuracy, result.float_accuracy, result.agreement) == (0.75, 0.75, 1.0)
    assert result.threshold is None


@pytest.mark.parametrize("op", ["ArrayFeatureExtractor", "Gather"])
def test_labels_of_a_table_may_be_negative(tmp_path: Path, op: str) -> None:
    """As scikit-learn's exporter writes a support vector machine's labels, -1 and 1."""
    random = np.random.default_rng(17)
    nodes = [
        _node("MatMul", "x", "w", output="s"),
        _node("ArgMax", "s", output="i", axis=1, keepdims=0),
        _node(op, "classes", "i", output="l"),
        _node("Cast", "l", to=TensorProto.INT64),
    ]
    nodes[2].domain = "ai.onnx.ml" if op == "ArrayFeatureExtractor" else ""
    weights = random.normal(size=(5, 2)).astype(np.float32)
    shape = (1, 1) if op == "ArrayFeatureExtractor" else (1,)
    graph = helper.make_graph(
        nodes,
        "labels",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 5))],
        [helper.make_tensor_value_info("y", TensorProto.INT64, shape)],
        [
            numpy_helper.from_array(weights, "w"),
            numpy_helper.from_array(np.array([-1, 1]), "classes"),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")
    x = random.normal(size=(40, 5)).astype(np.float32)
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "m")
    labels = 2 * (x @ weights).argmax(axis=1) - 1
    labels[:10] *= -1
    result = vip.evaluate_model(tmp_path / "m", {"x": x, "y": labels})
    assert (result.accuracy, result.agreement, result.threshold) == (0.75, 1.0, None)
    with pytest.raises(VipError, match="from -32768 to 32767, as the model's own labels"):
        vip.evaluate_model(tmp_path / "m", {"x": x, "y": labels * 40000})
