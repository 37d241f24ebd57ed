"""Functions of elements as curves: their errors, and nodes beside onnxruntime."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper

import vip
from microkernels.common.fixed_point import count_saturation
from microkernels.networks.curves import Function, evaluated, fitted
from microkernels.networks.network import ElementWise
from microkernels.nn.curves import MOST_PIECES, curve
from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import read_graph
from microkernels.onnx_models.rewrite import in_curves
from support.errors import VipError
from tests.onnx_models.graphs import model
from tests.onnx_models.test_mapping import SEVERAL, check
from tests.onnx_models.test_rows import typed

RANDOM = np.random.default_rng(17)
#: Function, ends of the argument, most pieces, and the largest error, of the largest result.
RANGES = [
    (Function("exp"), -3, 3, 3, 1e-4),
    (Function("exp"), -12, 0, 3, 1e-4),
    (Function("exp"), 2, 2, 1, 1e-4),
    (Function("sqrt"), 0, 900, 6, 1e-4),
    (Function("log"), 0.01, 5, 6, 1e-4),
    (Function("reciprocal"), 0.02, 4, 6, 1e-4),
    (Function("reciprocal"), -9, -0.5, 4, 1e-4),
    (Function("power", (-0.75,)), 1, 3, 2, 1e-4),
    (Function("softplus"), -20, 20, 4, 1e-4),
    (Function("mish"), -6, 6, 4, 1e-4),
    (Function("sin"), -3.2, 3.2, 4, 2e-4),
    (Function("arctan"), -40, 40, 8, 1e-4),
    (Function("elu", (1.0, 1.0, 1.0)), -4, 4, 3, 1e-4),
    (Function("tanh"), -4, 4, 5, 1e-4),
]


@pytest.mark.parametrize(("function", "least", "most", "pieces", "bound"), RANGES)
def test_curves_are_close(
    function: Function, least: float, most: float, pieces: int, bound: float
) -> None:
    x = np.linspace(least, most, 3001)
    wanted = evaluated(function, x)
    bits = [int(np.floor(np.log2(32767.5 / np.abs(each).max()))) for each in (x, wanted)]
    found = fitted(function, least, most, *bits)
    assert len(found.pieces) <= pieces <= MOST_PIECES
    elements = np.clip(np.floor(np.ldexp(x, bits[0]) + 0.5), -32768, 32767).astype(np.int16)
    real = np.clip(np.ldexp(elements.astype(float), -bits[0]), least, most)
    error = np.ldexp(curve(found, elements).astype(float), -bits[1]) - evaluated(function, real)
    assert np.abs(error).max() <= bound * np.abs(wanted).max()
    # Beyond the ends, the values at the ends.
    ends = np.floor(np.ldexp(least, bits[0])), np.ceil(np.ldexp(most, bits[0]))
    beyond = curve(found, np.clip([-32768, *ends, 32767], -32768, 32767).astype(np.int16))
    assert beyond[0] == beyond[1]
    assert beyond[2] == beyond[3]


def _node(op: str, *inputs: str, output: str = "y", **attributes: object) -> NodeProto:
    return helper.make_node(op, list(inputs), [output], name=f"{op}_{output}", **attributes)


#: Operators of one input: attributes, and the range of the input.
UNARY = {
    "Exp": ({}, -2, 2), "Log": ({}, 0.1, 4), "Sqrt": ({}, 0.1, 9), "Reciprocal": ({}, 0.5, 3),
    "Softplus": ({}, -5, 5), "Softsign": ({}, -5, 5), "Elu": ({"alpha": 0.7}, -3, 3),
    "Selu": ({}, -3, 3), "Celu": ({"alpha": 2.0}, -3, 3), "Sin": ({}, -3, 3), "Cos": ({}, -3, 3),
    "Atan": ({}, -3, 3), "Asin": ({}, -0.9, 0.9), "Cosh": ({}, -2, 2), "Asinh": ({}, -5, 5),
    "LRN": ({"size": 3, "alpha": 0.5, "bias": 1.5}, -2, 2), "LogSoftmax": ({"axis": 1}, -4, 4),
    "LpNormalization": ({"axis": 2}, -2, 2), "ReduceL2": ({}, -2, 2),
}  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Sum", "SumSquare"],
)
def test_reductions_of_no_axes_are_of_each_element(kind: str) -> None:
    node = _node(f"Reduce{kind}", "x", noop_with_empty_axes=1)
    least = 0.2 if kind == "LogSum" else -2
    check(model([node], (2, 3, 4), opset=18), RANDOM.uniform(least, 3, (2, 3, 4)))


@pytest.mark.parametrize("op", UNARY)
def test_operators_of_one_input(op: str) -> None:
    attributes, least, most = UNARY[op]
    given = ["x", "axes"] if op == "ReduceL2" else ["x"]
    made = model([_node(op, *given, **attributes)], (1, 3, 4, 5), {"axes": np.array([3])}, opset=18)
    x = RANDOM.uniform(least, most, (1, 3, 4, 5)).astype(np.float32)
    check(made, x, engines=SEVERAL if op == "Exp" else None)


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ({"kernel_shape": [2, 3], "strides": [1, 2], "pads": [1, 0, 0, 1]}, (1, 3, 5, 7)),
        ({"kernel_shape": [3], "p": 3}, (2, 3, 9)),
        ({"kernel_shape": [2, 2], "p": 4}, (1, 2, 9, 9)),
        ({"kernel_shape": [2, 2], "p": 1, "dilations": [1, 2]}, (1, 2, 5, 6)),
    ],
)
def test_pooling_by_norms(attributes: dict[str, object], shape: tuple[int, ...]) -> None:
    made = model([_node("LpPool", "x", **attributes)], shape, opset=18)
    # Half the windows have small numbers alone.
    small = np.where(np.arange(shape[-1]) < shape[-1] // 2, 0.02, 1.0)
    check(made, (small * RANDOM.normal(size=shape)).astype(np.float32), bound=1 / 512)


def test_a_norm_of_power_0_is_refused() -> None:
    made = model([_node("LpPool", "x", kernel_shape=[2], p=0)], (1, 3, 4), opset=18)
    coverage = map_graph(read_graph(typed(made, (1, 3, 3))), OPERATORS)
    assert coverage.refused[0].why == "p must be at least 1, not 0"


def test_quotients_and_powers() -> None:
    nodes = [
        _node("Exp", "x", output="e"),
        _node("Div", "x", "e", output="d"),
        _node("Pow", "e", "p", output="q"),
        _node("Div", "c", "e", output="r"),
        _node("Add", "d", "q", output="s"),
        _node("Mul", "s", "r"),
    ]
    constants = {"p": np.array(-0.3), "c": RANDOM.normal(size=(3, 1, 5))}
    x = RANDOM.uniform(-1, 1, (1, 3, 4, 5)).astype(np.float32)
    done = check(model(nodes, x.shape, constants), x)
    functions = [each.function for each in done.network.layers if isinstance(each, ElementWise)]
    assert functions.count("curve") >= 3


def test_a_network_with_curves_is_kept_in_a_folder(tmp_path: Path) -> None:
    nodes = [_node("Conv", "x", "w", output="c"), _node("Softplus", "c")]
    x = RANDOM.normal(size=(4, 3, 5, 5)).astype(np.float32)
    made = model(nodes, ("n", 3, 5, 5), {"w": RANDOM.normal(size=(8, 3, 3, 3))})
    onnx.save(made, tmp_path / "m.onnx")
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "out")
    run = vip.run_model(tmp_path / "out", {"x": x[:1]}, on="model")
    exact = vip.run_model(tmp_path / "out", {"x": x[:1]}, on="golden")
    np.testing.assert_array_equal(run.outputs["y"], exact.outputs["y"])
    assert vip.evaluate_model(tmp_path / "out", {"x": x}).error < 1e-3


@pytest.mark.parametrize("op", ["Reciprocal", "Tan"])
def test_a_pole_within_the_data_is_refused(op: str, tmp_path: Path) -> None:
    onnx.save(model([_node(op, "x")], (1, 3)), tmp_path / "m.onnx")
    x = np.array([[-2.0, 0.5, 2.0]], np.float32)
    with pytest.raises(VipError, match=f"node {op}_y: .* has a pole within the range of"):
        vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "out")
    assert vip.compile_model(
        tmp_path / "m.onnx", {"x": x / 2 + 1.1 + 2 * (op == "Tan")}, tmp_path / "out"
    )


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([_node("Log", "x")], "node Log_y: log is undefined for some of the calibration"),
        ([_node("Div", "k", "x")], "node Div_y: reciprocal is undefined for some of"),
        ([_node("Pow", "x", "k")], r"node Pow_y \(Pow\): the exponent must be one number"),
        ([_node("LRN", "x", size=0)], r"node LRN_y \(LRN\): size must be at least 1, not 0"),
        ([_node("Celu", "x", alpha=0.0)], r"node Celu_y \(Celu\): alpha must not be 0"),
        ([_node("LpNormalization", "x", p=3)], "p must be 1 or 2, not 3"),
    ],
)
def test_what_has_no_value_is_refused(nodes: list[NodeProto], message: str, tmp_path: Path) -> None:
    made = model(nodes, (1, 2, 3, 4), {"k": np.ones((2, 3, 4))}, opset=18)
    onnx.save(made, tmp_path / "m.onnx")
    x = np.zeros((1, 2, 3, 4), np.float32)
    with pytest.raises(VipError, match=message):
        vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_reduction_to_the_batch_alone_keeps_its_shape() -> None:
    node = _node("ReduceLogSum", "x", "axes", keepdims=0)
    made = model([node], (3, 4, 5), {"axes": np.array([2, 1])}, opset=18)
    check(made, RANDOM.uniform(0.1, 1, (3, 4, 5)).astype(np.float32))


@pytest.mark.parametrize("op", ["Sigmoid", "Tanh"])
def test_logistic_functions_without_their_unit(op: str, tmp_path: Path) -> None:
    nodes = [_node("Conv", "x", "w", output="c"), _node(op, "c")]
    x = RANDOM.normal(size=(4, 3, 5, 5)).astype(np.float32)
    made = model(nodes, ("n", 3, 5, 5), {"w": RANDOM.normal(size=(8, 3, 3, 3))})
    onnx.save(made, tmp_path / "m.onnx")
    for preset, function in (("vault", "curve"), ("vault-logistic", op.lower())):
        assert vip.check_model(tmp_path / "m.onnx", preset=preset).supported
        out = tmp_path / preset
        vip.compile_model(tmp_path / "m.onnx", {"x": x}, out, preset=preset)
        layers = json.loads((out / "manifest.json").read_text())["network"]["layers"]
        assert layers[-1]["function"] == function
        assert vip.evaluate_model(out, {"x": x}).error < 1e-3
        # It refuses outputs that are not the golden model's.
        vip.run_model(out, {"x": x[:1]}, on="iss")


def test_ends_of_pieces_are_not_counted_as_saturated() -> None:
    several = fitted(Function("tanh"), -8, 8, 11, 14)
    odd = fitted(Function("tanh"), -2, 4, 12, 14)
    assert len(several.pieces) > 1
    for function in (several, odd):
        with count_saturation() as count:
            curve(function, np.arange(-32768, 32768).astype(np.int16))
        assert count() == 0


@pytest.mark.parametrize(("name", "middle"), [("tanh", 0.0), ("sigmoid", 0.5)])
def test_an_odd_function_has_few_operations(name: str, middle: float) -> None:
    found = fitted(Function(name), -1, 3, 13, 14)
    assert found.operations <= 27
    assert (found.low, found.high) == (-3 << 13, 3 << 13)
    both = curve(found, np.array([-20000, 20000, 0], np.int16)).astype(int)
    assert abs(both[0] + both[1] - 2 * both[2]) <= 2
    assert both[2] == middle * 2**14


#: Scaled SiLU of a convolution.
CHAIN = [
    _node("Conv", "x", "w", output="c"),
    _node("Sigmoid", "c", output="g"),
    _node("Mul", "c", "g", output="s"),
    _node("Mul", "s", "k", output="m"),
    _node("Add", "m", "k"),
]


def test_a_chain_of_elements_is_one_curve(tmp_path: Path) -> None:
    x = RANDOM.normal(size=(4, 3, 5, 5)).astype(np.float32)
    constants = {"w": RANDOM.normal(size=(8, 3, 3, 3)), "k": np.array(1.7)}
    onnx.save(model(CHAIN, ("n", 3, 5, 5), constants), tmp_path / "m.onnx")
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "out")
    layers = json.loads((tmp_path / "out" / "manifest.json").read_text())["network"]["layers"]
    assert [layer.get("function") for layer in layers] == [None, "curve"]
    assert vip.evaluate_model(tmp_path / "out", {"x": x}).error < 1e-3
    vip.run_model(tmp_path / "out", {"x": x[:1]}, on="iss")


@pytest.mark.parametrize("reader", [_node("Relu", "g", output="r"), _node("Identity", "g")])
def test_a_chain_ends_at_what_others_read(reader: NodeProto) -> None:
    """Another layer, or the model's user."""
    constants = {"w": RANDOM.normal(size=(8, 3, 3, 3)), "k": np.array(1.7)}
    tail = [reader, _node("Add", "m", "r", output="y")] if reader.output[0] == "r" else [reader]
    made = model([*CHAIN[:4], *tail], (1, 3, 5, 5), constants)
    mapped = map_graph(read_graph(made), OPERATORS).model
    assert mapped is not None
    layers = in_curves(mapped, ["sigmoid"]).network.layers
    functions = [each.function for each in layers if isinstance(each, ElementWise)]
    assert "curve" in functions
    assert len(layers) == len(mapped.network.layers)


#: Hard-swish of a convolution "c", as exporters write it.
HARD_SWISHES = {
    "node": [_node("HardSwish", "c", output="h")],
    "hard sigmoid": [
        _node("HardSigmoid", "c", output="s", alpha=1 / 6),
        _node("Mul", "s", "c", output="h"),
    ],
    "parts": [
        _node("Add", "c", "three", output="a"),
        _node("Clip", "a", "zero", "six", output="b"),
        _node("Mul", "c", "b", output="m"),
        _node("Div", "m", "six", output="h"),
    ],
    "divided first": [
        _node("Add", "c", "three", output="a"),
        _node("Clip", "a", "zero", "six", output="b"),
        _node("Div", "b", "six", output="d"),
        _node("Mul", "d", "c", output="h"),
    ],
}
LIMITS = {"zero": np.array(0.0), "three": np.array(3.0), "six": np.array(6.0)}


@pytest.mark.parametrize("preset", ["vault", "vault-int8"])
@pytest.mark.parametrize("form", HARD_SWISHES)
def test_a_hard_swish_is_one_layer(form: str, preset: str, tmp_path: Path) -> None:
    random = np.random.default_rng(41)
    x = random.normal(size=(4, 3, 6, 5)).astype(np.float32)
    constants = {
        "w": random.normal(size=(8, 3, 3, 3)),
        "v": random.normal(size=(5, 8, 1, 1)) / 3,
        **LIMITS,
    }
    nodes = [_node("Conv", "x", "w", output="c"), *HARD_SWISHES[form], _node("Conv", "h", "v")]
    onnx.save(model(nodes, ("n", 3, 6, 5), constants), tmp_path / "m.onnx")
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "out", preset=preset)
    layers = json.loads((tmp_path / "out" / "manifest.json").read_text())["network"]["layers"]
    assert [layer.get("function") for layer in layers] == [None, "gate", None]
    assert vip.evaluate_model(tmp_path / "out", {"x": x}).error < (
        3e-3 if preset == "vault" else 0.1
    )
    vip.run_model(tmp_path / "out", {"x": x[:1]}, on="iss")


@pytest.mark.parametrize(("factor", "high"), [(-1.0, 6.0), (1.0, 30.0)])
def test_what_is_not_a_gate_keeps_its_layers(factor: float, high: float) -> None:
    """A falling factor, and numbers that a gate's fraction bits do not hold."""
    constants = {"w": RANDOM.normal(size=(8, 3, 3, 3)), "f": np.array(factor), **LIMITS}
    constants["high"] = np.array(high)
    nodes = [
        _node("Conv", "x", "w", output="c"),
        _node("Clip", "c", "zero", "high", output="b"),
        _node("Mul", "c", "b", output="m"),
        _node("Mul", "m", "f"),
    ]
    mapped = map_graph(read_graph(model(nodes, (1, 3, 5, 5), constants)), OPERATORS).model
    assert mapped is not None
    layers = in_curves(mapped, []).network.layers
    assert len(layers) == len(mapped.network.layers)


@pytest.mark.parametrize("preset", ["vault", "vault-int8"])
def test_a_scaled_function_before_a_convolution_is_a_curve(preset: str, tmp_path: Path) -> None:
    random = np.random.default_rng(42)
    x = random.normal(size=(4, 3, 6, 5)).astype(np.float32)
    nodes = [
        _node("Conv", "x", "w", output="c"),
        _node("Tanh", "c", output="t"),
        _node("Mul", "t", "f", output="s"),
        _node("Conv", "s", "v"),
    ]
    constants = {"w": random.normal(size=(8, 3, 3, 3)) / 3, "f": np.array(1.7159)}
    constants["v"] = random.normal(size=(5, 8, 1, 1)) / 3
    onnx.save(model(nodes, ("n", 3, 6, 5), constants), tmp_path / "m.onnx")
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "out", preset=preset)
    layers = json.loads((tmp_path / "out" / "manifest.json").read_text())["network"]["layers"]
    assert [layer.get("function") for layer in layers] == [None, "curve", None]
    vip.run_model(tmp_path / "out", {"x": x[:1]}, on="iss")


@pytest.mark.parametrize("offset", [0.0, 0.3])
@pytest.mark.parametrize("dense", [False, True])
def test_factors_after_functions_are_in_the_next_weights(
    dense: bool, offset: float, tmp_path: Path
) -> None:
    random = np.random.default_rng(43)
    shape = (6,) if dense else (6, 4, 5)
    weights = random.normal(size=(3, 6) if dense else (3, 6, 2, 2)) / 2
    reader = _node("Gemm", "a", "w", transB=1) if dense else _node("Conv", "a", "w", pads=[1] * 4)
    nodes = [
        _node("Tanh", "x", output="t"),
        _node("Mul", "t", "f", output="s"),
        _node("Add", "s", "o", output="a"),
        reader,
    ]
    constants = {"w": weights, "f": np.array(1.7159), "o": np.array(offset)}
    x = random.normal(size=(8, *shape)).astype(np.float32)
    onnx.save(model(nodes, ("n", *shape), constants), tmp_path / "m.onnx")
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "out", preset="vault-logistic")
    layers = json.loads((tmp_path / "out" / "manifest.json").read_text())["network"]["layers"]
    # Zeros around a map have no offset.
    folded = dense or not offset
    assert [layer.get("function") for layer in layers] == (
        ["tanh", None] if folded else ["tanh", "affine", "affine", None]
    )
    assert vip.evaluate_model(tmp_path / "out", {"x": x}).error < 1e-3
    vip.run_model(tmp_path / "out", {"x": x[:1]}, on="iss")
