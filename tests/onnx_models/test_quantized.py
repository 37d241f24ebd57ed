"""Models with QuantizeLinear and DequantizeLinear around their layers."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, load, numpy_helper

import vip
from microkernels.apps.digits import load_digits, trained
from microkernels.apps.digits_onnx import digits_model
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


def steps_of_two(zero: int = 0, between: float = 0.25) -> ModelProto:
    """Convolutions of bytes with a sum of two maps, a pool and a matrix.

    Parameters:
        zero: point of the first map. between: scale of the map after the first convolution.
    """
    nodes = [
        *around("x", 0, "zero"),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["weights"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bias"], axis=0),
        helper.make_node(
            "Conv", ["x_r", "weights", "bias"], ["a"], pads=[1, 1, 1, 1], name="first"
        ),
        *around("a", 1, "none"),
        helper.make_node("Relu", ["a_r"], ["r"]),
        *around("r", 1, "none"),
        helper.make_node("DequantizeLinear", ["v", "vs", "none"], ["weights_2"]),
        helper.make_node("DequantizeLinear", ["e", "es", "bz"], ["bias_2"], axis=0),
        helper.make_node("Conv", ["r_r", "weights_2", "bias_2"], ["c"], name="second"),
        *around("c", 1, "none"),
        helper.make_node("Add", ["r_r", "c_r"], ["d"]),
        *around("d", 1, "none"),
        helper.make_node("MaxPool", ["d_r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"]),
    ]
    random = np.random.default_rng(3)
    scales = np.array([2.0**-6, 2.0**-7, 2.0**-5, 2.0**-6])
    constants = {
        "s0": 0.125, "s1": between, "zero": np.int8(zero), "none": np.int8(0),
        # Sums are odd, so that none lies in the middle between two bytes.
        "w": (2 * random.integers(-15, 16, (4, 2, 3, 3))).astype(np.int8), "ws": scales,
        "wz": np.zeros(4, np.int8), "b": np.array([1, -301, 77, 35], np.int32),
        "bs": 0.125 * scales, "bz": np.zeros(4, np.int32),
        "v": np.stack([126 * np.eye(4, dtype=np.int8)[0], *(4 * random.integers(-15, 16, (3, 4)))])
        .reshape(4, 4, 1, 1).astype(np.int8), "vs": 2.0**-7,
        "e": np.array([1, 3, -505, 7], np.int32), "es": np.full(4, between * 2.0**-7),
        "m": np.sign(random.normal(size=(4 * 2 * 3, 3))),
    }  # fmt: skip
    return model(nodes, (1, 2, 5, 6), constants)


def in_bytes(made: ModelProto, x: Any, folder: Path) -> Any:
    """A model on engines that multiply bytes, calibrated on these images."""
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    return vip.compile_model(folder / "m.onnx", {"x": x}, folder / "m", preset="vault-int8")


def test_bytes_of_a_model_are_the_engines(tmp_path: Path) -> None:
    """Where all scales are powers of two, with a scale for each filter."""
    x = RANDOM.normal(size=(8, 2, 5, 6)).astype(np.float32) * 6
    report = in_bytes(steps_of_two(), x, tmp_path)
    assert report.requantised == ()
    assert {map_.layer for map_ in report.model.maps if map_.error == 0} >= {"first", "second", "d"}
    assert report.outputs[0].largest == 0
    assert np.abs(x).max() > 127 * 0.125, "limited"
    run = vip.run_model(tmp_path / "m", {"x": x[:1]}, on="model")
    (wanted,) = reference(steps_of_two(), x[:1])
    np.testing.assert_array_equal(run.outputs["y"], wanted)


@pytest.mark.parametrize(
    ("zero", "between", "line"),
    [
        (3, 0.25, "node x_q: its zero point is +3 from the middle of its integers; only 0 of int8"),
        (0, 0.3, "node first: its weights are rounded to bytes again"),
    ],
)
def test_what_is_quantised_again_is_named(
    tmp_path: Path, zero: int, between: float, line: str
) -> None:
    x = RANDOM.normal(size=(8, 2, 5, 6)).astype(np.float32) * 6
    report = in_bytes(steps_of_two(zero, between), x, tmp_path)
    assert any(line in found for found in report.requantised)
    assert 0 < report.outputs[0].error < 0.05


def test_a_budget_keeps_the_limits_of_what_becomes_wide(tmp_path: Path) -> None:
    """With 16 bits everywhere the error is as on engines without bytes, 1.22 %."""
    x = np.random.default_rng(13).normal(size=(8, 2, 5, 6)).astype(np.float32) * 6
    (tmp_path / "m.onnx").write_bytes(steps_of_two(between=0.3).SerializeToString())
    compiled = partial(vip.compile_model, tmp_path / "m.onnx", {"x": x})
    plain = compiled(tmp_path / "plain", preset="vault").outputs[0].error
    with pytest.raises(VipError, match=f"the error is {100 * plain:.2f} % with 16 bits"):
        compiled(tmp_path / "m", preset="vault-int8", budget=0.1)


def test_layers_of_onnxruntime(tmp_path: Path) -> None:
    """A sum, a matrix, and a pool between integers."""
    random = np.random.default_rng(13)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s0", "z"], ["xq"]),
        helper.make_node("MaxPool", ["xq"], ["p"], kernel_shape=[2, 2]),
        helper.make_node("QLinearConv", ["p", "s0", "z", "w", "ws", "wz", "s1", "z"], ["aq"]),
        helper.make_node(
            "QLinearAdd", ["aq", "s1", "z", "p", "s0", "z", "s2", "z"], ["bq"],
            domain="com.microsoft",
        ),
        helper.make_node("Flatten", ["bq"], ["f"]),
        helper.make_node(
            "QGemm", ["f", "s2", "z", "m", "ms", "mz", "c", "s3", "z"], ["yq"],
            domain="com.microsoft", transB=1,
        ),
        helper.make_node("DequantizeLinear", ["yq", "s3", "z"], ["y"]),
    ]  # fmt: skip
    constants = {
        "s0": 0.05, "s1": 0.06, "s2": 0.1, "s3": 0.4, "ws": 0.01, "ms": 0.02, "z": np.uint8(128),
        "wz": np.int8(0), "mz": np.int8(0),
        "w": random.integers(-60, 60, (2, 2, 1, 1)).astype(np.int8),
        "m": random.integers(-30, 31, (3, 2 * 4 * 5)).astype(np.int8),
        "c": random.integers(-1000, 1000, 3).astype(np.int32),
    }  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 2, 5, 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 3))],
        [
            numpy_helper.from_array(
                np.float32(values) if isinstance(values, float) else np.asarray(values), name
            )
            for name, values in constants.items()
        ],
    )
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(graph, opset_imports=domains, ir_version=8)
    # Steps that are small beside the data, as ONNX rounds each map and the machine keeps sums.
    x = 2.5 * random.normal(size=(8, 2, 5, 6)).astype(np.float32)
    report = in_bytes(made, x, tmp_path)
    assert report.outputs[0].error < 0.05
    assert any("that of a map to which its map is added" in line for line in report.requantised)
    (found,) = VipBackend.prepare(made).run([x[:1]])
    (wanted,) = reference(made, x[:1])
    assert np.abs(wanted).max() > 2
    np.testing.assert_allclose(found, wanted, atol=0.5)


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_model_of_onnxruntimes_quantiser(tmp_path: Path, symmetric: bool) -> None:
    """As accurate as in onnxruntime, and without a pass for each quantisation."""
    from onnxruntime.quantization import QuantType, quantize_static

    (train, _), (test, labels) = load_digits()
    images = train[:64].transpose(0, 3, 1, 2).astype(np.float32)
    (tmp_path / "cnn.onnx").write_bytes(digits_model(trained("CNN")).SerializeToString())

    feeds = ({"x": image[np.newaxis]} for image in images)
    reader: Any = SimpleNamespace(get_next=partial(next, feeds, None))
    kind = QuantType.QInt8 if symmetric else QuantType.QUInt8
    quantize_static(
        str(tmp_path / "cnn.onnx"), str(tmp_path / "quantized.onnx"), reader,
        activation_type=kind, weight_type=QuantType.QInt8,
        extra_options={"ActivationSymmetric": symmetric, "WeightSymmetric": True},
    )  # fmt: skip
    report = in_bytes(load(tmp_path / "quantized.onnx"), images, tmp_path)
    assert len(report.model.launches) == (6 if symmetric else 7)
    test = test.transpose(0, 3, 1, 2).astype(np.float32)
    found = vip.evaluate_model(tmp_path / "m", {"x": test, "y": labels})
    assert found.accuracy is not None
    assert found.float_accuracy is not None
    assert found.accuracy >= found.float_accuracy - 0.005
    assert found.error < 0.025
    run = vip.run_model(tmp_path / "m", {"x": test[:1]}, on="iss")
    exact = vip.run_model(tmp_path / "m", {"x": test[:1]}, on="golden")
    np.testing.assert_array_equal(run.outputs["scores"], exact.outputs["scores"])


@pytest.mark.parametrize("highest", [4.0, 0.05])
def test_a_range_that_bytes_of_a_step_exceed_limits_by_itself(
    tmp_path: Path, highest: float
) -> None:
    """Also where calibration reaches neither end."""
    nodes = [
        *around("x", 0, "none"),
        helper.make_node("Conv", ["x_r", "w"], ["n"], name="n"),
        *around("n", 1),
        helper.make_node("Conv", ["n_r", "w"], ["y"], name="y"),
    ]
    constants = {"s0": 1 / 16, "s1": 0.02, "none": np.int8(0), "zero": np.uint8(3),
                 "w": -np.eye(2).reshape(2, 2, 1, 1)}  # fmt: skip
    made = model(nodes, (1, 2, 3, 4), constants)
    x = np.linspace(-4, highest, 96, dtype=np.float32).reshape(4, 2, 3, 4)
    in_bytes(made, x, tmp_path)
    far = np.linspace(-5, 5, 24, dtype=np.float32).reshape(1, 2, 3, 4)
    (wanted,) = reference(made, far)
    found = vip.run_model(tmp_path / "m", {"x": far}, on="iss").outputs["y"]
    assert np.abs(found - wanted).max() < 0.1
