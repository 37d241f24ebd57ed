"""Models with QuantizeLinear and DequantizeLinear around their layers."""

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper

from support.errors import VipError
from tests.onnx_models.graphs import model, reference
from vip.models.backend import VipBackend

RANDOM = np.random.default_rng(13)
#: Steps of the input, of the map between, and of the output.
STEPS = (0.02, 0.03, 0.05)


def around(name: str, number: int, zero: str = "zero") -> list[NodeProto]:
    """Quantisation of a tensor, and back."""
    return [
        helper.make_node("QuantizeLinear", [name, f"s{number}", zero], [f"{name}_q"]),
        helper.make_node("DequantizeLinear", [f"{name}_q", f"s{number}", zero], [f"{name}_r"]),
    ]


def quantized() -> ModelProto:
    """A convolution of integer weights, with a scale for each filter, and a matrix."""
    nodes = [
        *around("x", 0),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["weights"], axis=0),
        helper.make_node("Conv", ["x_r", "weights"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        *around("b", 1, "low"),
        helper.make_node("Flatten", ["b_r"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["c"], name="matrix"),
        *around("c", 2),
        helper.make_node("Identity", ["c_r"], ["y"]),
    ]
    constants = {
        **{f"s{number}": step for number, step in enumerate(STEPS)},
        "zero": np.int8(3),
        "low": np.uint8(0),
        "w": RANDOM.integers(-127, 128, (4, 2, 3, 3)).astype(np.int8),
        "ws": RANDOM.uniform(0.001, 0.004, 4),
        "wz": np.zeros(4, np.int8),
        "v": RANDOM.normal(size=(4 * 5 * 6, 3)) * 0.1,
    }
    return model(nodes, (2, 2, 5, 6), constants)


def test_a_quantised_model_keeps_the_limits_and_not_the_steps() -> None:
    made = quantized()
    # Beyond the range of the input's integers, which ends at 2.48.
    x = (2 * RANDOM.normal(size=(2, 2, 5, 6))).astype(np.float32)
    assert np.abs(x).max() > 3
    (found,) = VipBackend.prepare(made).run([x])
    (wanted,) = reference(made, x)
    # The steps of the integers on the way, which are rounded to there and not here.
    np.testing.assert_allclose(found, wanted, atol=0.1)
    assert np.abs(wanted).max() > 1


def test_another_scale_on_the_way_back_is_refused() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "t", "z"], ["y"], name="back"),
    ]
    made = model(nodes, (2, 3), {"s": 0.1, "t": 0.2, "z": np.int8(0)})
    with pytest.raises(VipError, match="scale and zero point must be those of QuantizeLinear"):
        VipBackend.prepare(made).run([np.ones((2, 3), np.float32)])


def test_other_integers_are_refused() -> None:
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["q"])
    back = helper.make_node("DequantizeLinear", ["q", "s"], ["y"])
    made = model([node, back], (2, 3), {"s": np.array([0.1, 0.2, 0.3])})
    with pytest.raises(VipError, match="the scale must be one positive number"):
        VipBackend.prepare(made).run([np.ones((2, 3), np.float32)])


def test_layers_of_integers() -> None:
    """QLinearConv with a scale for each filter, and a matrix, whose input is reshaped before."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s0", "low"], ["xq"]),
        helper.make_node(
            "QLinearConv",
            ["xq", "s0", "low", "w", "ws", "wz", "s1", "zero8", "b"],
            ["aq"],
            pads=[1, 1, 1, 1],
        ),
        helper.make_node(
            "QLinearConv", ["aq", "s1", "zero8", "v", "vs", "vz", "s2", "zero8"], ["bq"]
        ),
        helper.make_node("DequantizeLinear", ["bq", "s2", "zero8"], ["b_r"]),
        helper.make_node("Flatten", ["b_r"], ["f"]),
        helper.make_node("QuantizeLinear", ["f", "s2", "zero8"], ["fq"]),
        helper.make_node(
            "QLinearMatMul", ["fq", "s2", "zero8", "m", "ms", "mz", "s3", "zero8"], ["cq"]
        ),
        helper.make_node("DequantizeLinear", ["cq", "s3", "zero8"], ["y"]),
    ]
    constants = {
        **{f"s{number}": step for number, step in enumerate((0.03, 0.02, 0.03, 0.1))},
        "low": np.uint8(128), "zero8": np.uint8(120), "wz": np.zeros(4, np.int8),
        "vz": np.int8(0), "mz": np.uint8(5), "vs": 0.01, "ms": 0.05,
        "w": RANDOM.integers(-127, 128, (4, 2, 3, 3)).astype(np.int8),
        "ws": RANDOM.uniform(0.001, 0.004, 4),
        "b": RANDOM.integers(-3000, 3000, 4).astype(np.int32),
        "v": RANDOM.integers(-127, 128, (3, 4, 1, 1)).astype(np.int8),
        "m": RANDOM.integers(0, 11, (3 * 5 * 6, 3)).astype(np.uint8),
    }  # fmt: skip
    made = model(nodes, (2, 2, 5, 6), constants)
    x = RANDOM.normal(size=(2, 2, 5, 6)).astype(np.float32)
    (found,) = VipBackend.prepare(made).run([x])
    (wanted,) = reference(made, x)
    assert np.abs(wanted).max() > 1
    np.testing.assert_allclose(found, wanted, atol=0.2)


def test_scales_that_do_not_fit_are_refused() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("QLinearMatMul", ["xq", "s", "z", "m", "t", "z", "s", "z"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "s", "z"], ["y"]),
    ]
    constants = {"s": 0.1, "z": np.int8(0), "m": np.ones((3, 4), np.int8), "t": np.ones(3)}
    made = model(nodes, (2, 3), constants)
    with pytest.raises(VipError, match="input 4, a scale, must have 1 or 4 elements, not 3"):
        VipBackend.prepare(made).run([np.ones((2, 3), np.float32)])
