"""Models whose inputs or outputs are integers."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import vip
from support.errors import VipError
from vip.models.backend import VipBackend

RANDOM = np.random.default_rng(31)


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timing model waits on all processors that it may use."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})


def model(
    nodes: list[Any],
    given: tuple[str, tuple[int, ...]],
    made: tuple[str, tuple[int, ...]],
    constants: dict[str, Any],
) -> ModelProto:
    """A model with an input x and an output y of these types and shapes."""
    types = TensorProto.DataType
    graph = helper.make_graph(
        nodes,
        "integers",
        [helper.make_tensor_value_info("x", types.Value(given[0]), given[1])],
        [helper.make_tensor_value_info("y", types.Value(made[0]), made[1])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(made: ModelProto, x: Any, *, steps: int = 0) -> None:
    """The outputs are the reference's integers, or differ by so many of them, seldom."""
    (wanted,) = ReferenceEvaluator(made).run(None, {"x": x})
    (found,) = VipBackend.prepare(made).run([x])
    assert found.dtype == wanted.dtype
    difference = np.abs(found.astype(int) - wanted.astype(int))
    assert len(np.unique(wanted)) > 5
    assert difference.max() <= steps
    assert (difference > 0).mean() <= 0.02 * (steps > 0)


def test_convolutions_of_integers_are_exact() -> None:
    """With a zero point of the input, which is what lies around it, and one for each filter."""
    constants = {
        "w": RANDOM.integers(0, 9, (6, 5, 3, 3)).astype(np.uint8),
        "zx": np.uint8(12),
        "zw": RANDOM.integers(0, 9, 6).astype(np.uint8),
    }
    node = helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], pads=[1, 1, 1, 1])
    made = model([node], ("UINT8", (1, 5, 6, 7)), ("INT32", (1, 6, 6, 7)), constants)
    check(made, RANDOM.integers(0, 60, (1, 5, 6, 7)).astype(np.uint8))


def test_products_and_what_follows_them_are_exact() -> None:
    nodes = [
        helper.make_node("MatMulInteger", ["x", "w", "zx", "zw"], ["a"]),
        helper.make_node("Mul", ["a", "three"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[0, 2, 1]),
        helper.make_node("Sub", ["c", "row"], ["d"]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    constants = {
        "w": RANDOM.integers(-40, 40, (9, 4)).astype(np.int8),
        "zx": np.int8(-3),
        "zw": RANDOM.integers(-5, 5, 4).astype(np.int8),
        "three": np.int32(3),
        "row": RANDOM.integers(-500, 500, 3).astype(np.int32),
    }
    made = model(nodes, ("INT8", (1, 3, 9)), ("INT32", (1, 4, 3)), constants)
    check(made, RANDOM.integers(-90, 90, (1, 3, 9)).astype(np.int8))


def quantized() -> tuple[ModelProto, Any]:
    """A convolution and a matrix of integers, with pooling of integers between."""
    nodes = [
        helper.make_node(
            "QLinearConv",
            ["x", "sx", "zx", "w", "sw", "zw", "sa", "za", "bias"],
            ["a"],
            pads=[1, 1, 1, 1],
        ),
        helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["b"], ["c"]),
        helper.make_node("QLinearMatMul", ["c", "sa", "za", "m", "sm", "zm", "sy", "zy"], ["y"]),
    ]
    constants = {
        "sx": np.float32(0.02), "zx": np.uint8(128), "zw": np.zeros(4, np.int8),
        "w": RANDOM.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
        "sw": RANDOM.uniform(0.001, 0.004, 4).astype(np.float32),
        "bias": RANDOM.integers(-3000, 3000, 4).astype(np.int32),
        "sa": np.float32(0.037), "za": np.uint8(118), "zm": np.int8(1), "zy": np.uint8(133),
        "m": RANDOM.integers(-127, 128, (36, 10)).astype(np.int8),
        "sm": np.float32(0.003), "sy": np.float32(0.043),
    }  # fmt: skip
    made = model(nodes, ("UINT8", (1, 3, 6, 6)), ("UINT8", (1, 10)), constants)
    return made, RANDOM.integers(0, 256, (8, 3, 6, 6)).astype(np.uint8)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A folder with the compiled network of integers, and its images."""
    folder = tmp_path_factory.mktemp("integers")
    made, x = quantized()
    onnx.save(made, folder / "m.onnx")
    vip.compile_model(folder / "m.onnx", {"x": x}, folder / "m")
    return folder / "m", x


@pytest.mark.parametrize("on", ["iss", "model", pytest.param("rtl", marks=pytest.mark.slow)])
def test_a_network_of_integers_runs_on_every_machine(compiled: tuple[Path, Any], on: str) -> None:
    folder, x = compiled
    ran = vip.run_model(folder, {"x": x[:1]}, on=on)  # type: ignore[arg-type]
    exact = vip.run_model(folder, {"x": x[:1]}, on="golden")
    np.testing.assert_array_equal(ran.outputs["y"], exact.outputs["y"])
    if on == "rtl":
        assert ran.launches == vip.run_model(folder, {"x": x[:1]}, on="model").launches


def test_a_network_of_integers_is_as_that_of_onnxruntime(compiled: tuple[Path, Any]) -> None:
    folder, x = compiled
    found = vip.evaluate_model(folder, {"x": x})
    # Steps of the integers: seldom one is rounded otherwise.
    assert found.largest <= 1
    assert found.error <= 0.02
    with pytest.raises(VipError, match="the inputs: input x needs integers"):
        vip.run_model(folder, {"x": x[:1] + 0.5}, on="golden")


def test_integers_of_a_quantisation_are_rounded() -> None:
    constants = {"s": np.float32(0.03), "z": np.int8(-7)}
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    made = model([node], ("FLOAT", (1, 200)), ("INT8", (1, 200)), constants)
    # Some beyond the integers.
    check(made, (3 * RANDOM.normal(size=(1, 200))).astype(np.float32), steps=1)


def test_integers_become_real_numbers() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=1),
        helper.make_node("Div", ["a", "most"], ["b"]),
        helper.make_node("Sigmoid", ["b"], ["y"]),
    ]
    made = model(nodes, ("UINT8", (1, 20)), ("FLOAT", (1, 20)), {"most": np.float32(40)})
    x = RANDOM.integers(0, 256, (1, 20)).astype(np.uint8)
    (found,) = VipBackend.prepare(made).run([x])
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-x.astype(float) / 40)), atol=1e-3)


@pytest.mark.parametrize(
    ("op", "attributes", "second", "most", "why"),
    [
        ("Sigmoid", {}, None, 9, "its input x has integers; convert them to real numbers by Cast"),
        ("Cast", {"to": 3}, None, 9, "only casts to real numbers, and to wider integers"),
        ("Mul", {}, np.int32(300), 200, "tensor y: .* need .*; elements hold up to 32,767"),
        ("Add", {}, np.int32(1), 40000, r"tensor x: .* need .*; elements hold up to 32,767"),
    ],
)
def test_what_elements_do_not_hold_is_refused(
    op: str, attributes: dict[str, int], second: Any, most: int, why: str
) -> None:
    names = ["x"] if second is None else ["x", "c"]
    kind = {"Sigmoid": "FLOAT", "Cast": "INT8"}.get(op, "INT32")
    made = model(
        [helper.make_node(op, names, ["y"], **attributes)],
        ("INT32", (1, 4)),
        (kind, (1, 4)),
        {} if second is None else {"c": second},
    )
    with pytest.raises(VipError, match=why) as refused:
        VipBackend.prepare(made).run([np.array([[0, 1, 2, most]], np.int32)])
    assert "\n" not in str(refused.value)


def test_integers_beyond_their_type_are_refused() -> None:
    node = helper.make_node("Add", ["x", "c"], ["y"])
    made = model([node], ("UINT8", (1, 2)), ("UINT8", (1, 2)), {"c": np.uint8(200)})
    with pytest.raises(VipError, match="from 201 to 300, which does not fit uint8"):
        VipBackend.prepare(made).run([np.array([[1, 100]], np.uint8)])


def test_partial_sums_beyond_elements_are_refused() -> None:
    """Sums of the two halves of the channels cancel each other."""
    weights = np.full((1, 128, 3, 3), 100, np.int8)
    weights[:, 64:] = -100
    node = helper.make_node("ConvInteger", ["x", "w"], ["y"])
    made = model([node], ("UINT8", (1, 128, 3, 3)), ("INT32", (1, 1, 1, 1)), {"w": weights})
    with pytest.raises(VipError, match="partial sums of its integers need more than the 16 bits"):
        VipBackend.prepare(made).run([np.full((1, 128, 3, 3), 100, np.uint8)])


def test_pads_that_depend_on_inputs_are_refused() -> None:
    node = helper.make_node("Pad", ["c", "x"], ["y"], name="around")
    constants = {"c": np.ones((1, 4), np.float32)}
    made = model([node], ("INT64", (4,)), ("FLOAT", (1, 6)), constants)
    with pytest.raises(VipError, match=r"node around \(Pad\): input 1 must be constant"):
        VipBackend.prepare(made).run([np.array([0, 1, 0, 1])])
