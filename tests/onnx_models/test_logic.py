"""Comparisons, truth values and choices beside onnxruntime, and exact on the simulator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import vip
from microkernels.networks.curves import Function, fitted
from microkernels.nn.curves import curve
from tests.onnx_models.graphs import model
from tests.onnx_models.test_mapping import SEVERAL, check

RANDOM = np.random.default_rng(83)
SHAPE = (1, 3, 4, 5)
X = RANDOM.normal(size=SHAPE).astype(np.float32)
#: Numbers of a few values, so that some are equal.
FEW = RANDOM.integers(-2, 3, SHAPE).astype(np.float32)


def _node(op: str, *inputs: str, output: str = "y", **attributes: Any) -> NodeProto:
    return helper.make_node(op, list(inputs), [output], **attributes)


def _real(*nodes: NodeProto, output: str) -> list[NodeProto]:
    """The nodes, and the truth values of the last as real numbers."""
    return [*nodes, _node("Cast", output, to=TensorProto.FLOAT)]


@pytest.mark.parametrize("op", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
@pytest.mark.parametrize("first", [True, False])
def test_comparisons(op: str, first: bool) -> None:
    inputs = ("x", "c") if first else ("c", "x")
    made = model([_node(op, *inputs)], SHAPE, {"c": np.float32([0, 1, -1, 2, 0.5])})
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.BOOL
    check(made, FEW, bound=0)


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_truth_values(op: str) -> None:
    nodes = _real(
        _node("Greater", "x", "c", output="a"),
        _node("Less", "x", "d", output="b"),
        _node("Not", "b", output="n"),
        _node(op, "a", "n", output="t"),
        _node(op, "t", "m", output="z"),
        output="z",
    )
    mask = RANDOM.random(SHAPE[2:]) < 0.5
    made = model(nodes, SHAPE, {"c": np.float32(0.2), "d": np.float32(0.6), "m": mask})
    check(made, X, bound=0, engines=SEVERAL if op == "Xor" else None)


NINE = RANDOM.normal(size=(3, 1, 5)).astype(np.float32)
CHOICES: dict[str, tuple[list[NodeProto], dict[str, Any]]] = {
    "of two tensors": ([_node("Where", "g", "x", "s")], {}),
    "of a tensor and constants": ([_node("Where", "g", "k", "x")], {"k": NINE}),
    "of constants": ([_node("Where", "g", "k", "l")], {"k": NINE, "l": np.float32(-0.5)}),
    "by a constant": ([_node("Where", "m", "x", "s")], {"m": NINE > 0}),
    "by a constant, of constants": ([_node("Where", "m", "x", "k")], {"m": NINE > 0, "k": NINE}),
    "by a constant, all of one": (
        [_node("Where", "m", "x", "s")],
        {"m": np.array([[True]])},
    ),
}


@pytest.mark.parametrize("kind", CHOICES)
def test_choices(kind: str) -> None:
    nodes, constants = CHOICES[kind]
    before = [_node("Greater", "x", "c", output="g"), _node("Mul", "x", "x", output="s")]
    check(model([*before, *nodes], SHAPE, {"c": np.float32(0), **constants}), X)


def test_a_quotient_is_0_where_its_divisor_is() -> None:
    """As Keras's ``div_no_nan`` is exported."""
    nodes = [
        _node("Relu", "x", output="d"),
        _node("Div", "k", "d", output="q"),
        _node("Equal", "d", "zero", output="e"),
        _node("Where", "e", "none", "q"),
    ]
    constants = {"k": np.float32(3), "zero": np.float32(0), "none": np.zeros(SHAPE, np.float32)}
    with np.errstate(divide="ignore"):
        check(model(nodes, SHAPE, constants), FEW)


@pytest.mark.parametrize("division", ["Div", "Reciprocal"])
def test_a_quotient_is_0_where_a_divisor_of_either_sign_is(division: str) -> None:
    operands = ("x", "d") if division == "Div" else ("d",)
    nodes = [
        _node("Clip", "x", "low", "high", output="d"),
        _node(division, *operands, output="q"),
        _node("Equal", "d", "zero", output="e"),
        _node("Where", "e", "none", "q"),
    ]
    constants = {"low": np.float32(-2), "high": np.float32(1), "zero": np.float32(0)}
    made = model(nodes, SHAPE, constants | {"none": np.zeros(SHAPE, np.float32)})
    with np.errstate(divide="ignore", invalid="ignore"):
        check(made, FEW)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("attributes", [{"axis": 1}, {"axis": -1, "select_last_index": 1}])
def test_arguments(op: str, attributes: dict[str, int]) -> None:
    for x in (X, FEW):
        made = model([_node(op, "x", keepdims=0, **attributes)], SHAPE, {})
        made.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
        check(made, x, bound=0)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("Sign", {}), ("Shrink", {"lambd": 0.4, "bias": 0.1}), ("ThresholdedRelu", {"alpha": 0.3})],
)
def test_steps(op: str, attributes: dict[str, float]) -> None:
    check(model([_node(op, "x", **attributes)], SHAPE, {}), X)


@pytest.mark.parametrize("ends", [(-3.0, 3.0), (0.0, 3.0), (-3.0, 0.0), (0.5, 3.0), (0.0, 0.0)])
def test_a_step_lies_between_two_adjacent_elements(ends: tuple[float, float]) -> None:
    elements = np.arange(int(ends[0] * 1024), int(ends[1] * 1024) + 1).astype(np.int16)
    # Results that are all 0 have the most fraction bits.
    for fraction, height in ((14, 1 << 14), (15, (1 << 15) - 1)):
        found = fitted(Function("positive"), *ends, 10, fraction)
        assert (curve(found, elements) == np.where(elements > 0, height, 0)).all()


def _attention(heads: int, width: int) -> tuple[list[NodeProto], dict[str, Any]]:
    """Attention as ONNX has it, on a projected input."""
    weights = {f"w{k}": RANDOM.normal(0, width**-0.5, (width, width)) for k in "qkv"}
    nodes = [_node("MatMul", "x", f"w{k}", output=k) for k in "qkv"]
    nodes.append(_node("Attention", *"qkv", q_num_heads=heads, kv_num_heads=heads))
    return nodes, weights


def _rows_normalised(*outputs: str) -> list[NodeProto]:
    node = helper.make_node("LayerNormalization", ["x", "c", "d"], ["n", *outputs], axis=-1)
    return [node, _node("Add", "n", outputs[-1])]


EXPANDED: dict[str, Callable[[], tuple[list[NodeProto], dict[str, Any]]]] = {
    "attention": lambda: _attention(2, 8),
    "mean of a normalisation": lambda: (
        _rows_normalised("mean", "deviation"),
        {"c": RANDOM.normal(size=8), "d": RANDOM.normal(size=8)},
    ),
    "normalisation": lambda: ([_node("MeanVarianceNormalization", "x", axes=[0, 2])], {}),
}


@pytest.mark.parametrize("kind", EXPANDED)
def test_operators_that_onnx_defines_by_others(kind: str) -> None:
    nodes, constants = EXPANDED[kind]()
    constants = {name: np.float32(values) for name, values in constants.items()}
    made = model(nodes, (1, 6, 8), constants, opset=23)
    check(made, RANDOM.normal(size=(1, 6, 8)).astype(np.float32), bound=4e-3)


def test_outputs_may_be_constants(tmp_path: Path) -> None:
    """The shape of an input, and a table that depends on no input."""
    made = helper.make_model(
        helper.make_graph(
            [_node("Shape", "x", output="s"), _node("Relu", "x"), _node("Sin", "c", output="t")],
            "constants",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 2, 3))],
            [
                helper.make_tensor_value_info("s", TensorProto.INT64, (3,)),
                helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 2, 3)),
                helper.make_tensor_value_info("t", TensorProto.FLOAT, (4,)),
            ],
            [numpy_helper.from_array(np.float32([0, 1, 2, 3]), "c")],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(made, tmp_path / "m.onnx")
    x = RANDOM.normal(size=(1, 2, 3)).astype(np.float32)
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "m", batch=1)
    outputs = vip.run_model(tmp_path / "m", {"x": x}, on="iss").outputs
    np.testing.assert_array_equal(outputs["s"].ravel(), [1, 2, 3])
    np.testing.assert_allclose(outputs["t"].ravel(), np.sin([0, 1, 2, 3]), atol=1e-3)


def test_steps_stay_exact_among_other_functions(tmp_path: Path) -> None:
    nodes = [
        _node("Mul", "x", "two", output="a"),
        _node("Exp", "a", output="e"),
        _node("Greater", "e", "c", output="g"),
        _node("Cast", "g", output="f", to=TensorProto.FLOAT),
        _node("Mul", "f", "two", output="b"),
        _node("Add", "b", "c"),
    ]
    constants = {"two": np.float32(2), "c": np.float32(1.5)}
    onnx.save(model(nodes, SHAPE, constants), tmp_path / "m.onnx")
    vip.compile_model(tmp_path / "m.onnx", {"x": X}, tmp_path / "m")
    y = vip.run_model(tmp_path / "m", {"x": X}, on="iss").outputs["y"]
    np.testing.assert_allclose(y.reshape(SHAPE), np.where(np.exp(2 * X) > 1.5, 3.5, 1.5), atol=1e-3)
