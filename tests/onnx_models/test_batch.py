"""First axes that hold images, and those that do not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

import vip
from microkernels.onnx_models.importer import Importer
from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import read_graph
from support.errors import VipError
from tests.onnx_models.graphs import model, reference

RANDOM = np.random.default_rng(41)


def node(op: str, *inputs: str, output: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op, list(inputs), [output], **attributes)


def drawn(*shape: int) -> np.ndarray:
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


def coverage(proto: ModelProto, batch: int | None = None) -> Importer:
    return map_graph(read_graph(proto, batch=batch), OPERATORS)


def batch_of(proto: ModelProto, batch: int | None = None) -> int:
    """Images of the mapped model."""
    result = coverage(proto, batch)
    assert result.model is not None, result.refused
    return result.model.batch


FIRST = {"start": [-1], "end": [-(2**62)], "axis": [0], "step": [-1]}
REVERSED = {name: np.array(values) for name, values in FIRST.items()}
REVERSE = node("Slice", "x", *REVERSED, output="r")
K, N = np.mgrid[:8, :8]
COSINES = np.cos(np.pi * (2 * N + 1) * K / 16) / 2 * np.where(K == 0, 0.5**0.5, 1)
#: Name -> nodes, shape and constants of a graph whose first axis is not a batch.
ALONE = {
    "reversed channels": ([REVERSE, node("Relu", "r")], (3, 4, 4), REVERSED),
    "reversed channels by a factor each": (
        [REVERSE, node("Mul", "r", "k")],
        (3, 4, 4),
        {**REVERSED, "k": np.array([1.0, 10.0, 100.0]).reshape(3, 1, 1)},
    ),
    "triangle": ([node("Trilu", "x", upper=0)], (4, 4), {}),
    "cosine transform": (
        [node("MatMul", "d", "x", output="h"), node("MatMul", "h", "t")],
        (8, 8),
        {"d": COSINES, "t": COSINES.T},
    ),
    "Gemm of a constant and the input": ([node("Gemm", "d", "x")], (8, 8), {"d": COSINES}),
    "Gemm by the transposed input": (
        [node("Gemm", "x", "x", transB=1)],
        (5, 5),
        {},
    ),
    "graph network": (
        [
            node("MatMul", "a", "x", output="h"),
            node("MatMul", "h", "w", output="g"),
            node("Relu", "g"),
        ],
        (6, 6),
        {"a": drawn(6, 6), "w": drawn(6, 6)},
    ),
    "graph network of 64 nodes": (
        [node("MatMul", "a", "x", output="h"), node("Add", "h", "b")],
        (64, 64),
        {"a": drawn(64, 64), "b": drawn(64)},
    ),
    "gathered": (
        [node("Gather", "x", "i", axis=0)],
        (4, 3),
        {"i": np.array([2, 0, 1, 3])},
    ),
    "gathered by elements": (
        [node("GatherElements", "x", "i", axis=1)],
        (2, 3),
        {"i": np.array([[0, 1, 2], [2, 1, 0]])},
    ),
    "softmax along the first axis": ([node("Softmax", "x", axis=0)], (4, 6), {}),
    "spread along the first axis": (
        [node("ReduceMean", "x", output="m", axes=[0], keepdims=0), node("Sub", "x", "m")],
        (4, 4),
        {},
    ),
    "turned and back": (
        [
            node("Transpose", "x", output="t"),
            node("Mul", "t", "c", output="m"),
            node("Transpose", "m"),
        ],
        (4, 4),
        {"c": np.arange(4.0)},
    ),
    "turned": ([node("Transpose", "x", output="t"), node("Sub", "x", "t")], (5, 5), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_a_first_axis_whose_slices_are_mixed_is_no_batch(tmp_path: Path, name: str) -> None:
    nodes, shape, constants = ALONE[name]
    proto = model(nodes, shape, constants)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    data = drawn(5, *shape)
    vip.compile_model(tmp_path / "m.onnx", {"x": data}, tmp_path / "m")
    # One image of such a model has the shape of the model's input.
    ran = vip.run_model(tmp_path / "m", {"x": data[2]}, on="iss")
    (expected,) = reference(proto, data[2])
    np.testing.assert_allclose(ran.outputs["y"][0], expected, atol=3e-3 * np.abs(expected).max())


def test_products_of_two_square_inputs() -> None:
    proto = model([node("MatMul", "a", "b")], (8, 8), inputs=("a", "b"))
    assert batch_of(proto) == 1


@pytest.mark.parametrize(
    ("nodes", "shape", "constants"),
    [
        ([node("Conv", "x", "w", output="c"), node("Relu", "c")], (2, 3, 4, 5),
         {"w": drawn(4, 3, 1, 1)}),
        ([node("Gemm", "x", "w", "b")], (4, 4), {"w": drawn(4, 4), "b": drawn(4)}),
        ([node("MatMul", "x", "w")], (8, 8), {"w": drawn(8, 8)}),
        ([node("MatMul", "w", "x")], (3, 4, 4), {"w": drawn(4, 4)}),
        ([node("MatMul", "w", "x")], (3, 4, 4), {"w": drawn(3, 4, 4)}),
        ([node("MatMul", "x", "x")], (3, 4, 4), {}),
        ([node("Flatten", "x", output="f"), node("Softmax", "f", axis=1)], (3, 4, 4), {}),
        ([node("Transpose", "x", perm=[0, 2, 1])], (3, 4, 4), {}),
        ([node("ReduceSum", "x", "a")], (3, 4), {"a": np.array([1])}),
    ],
)  # fmt: skip
def test_a_first_axis_whose_slices_stay_apart_is_a_batch(nodes, shape, constants) -> None:
    assert batch_of(model(nodes, shape, constants)) == shape[0]


@pytest.mark.parametrize(
    ("nodes", "constants", "why"),
    [
        ([REVERSE, node("Relu", "r")], REVERSED, "it moves elements between the 4 images"),
        ([node("MatMul", "w", "x")], {"w": drawn(4, 4)}, "its sums are over the batch of 4"),
        ([node("MatMul", "x", "w")], {"w": drawn(2, 4, 3)}, "the batch of 4 is not the first axis"),
        ([node("Gemm", "x", "w", transA=1)], {"w": drawn(4, 4)}, "transA moves the batch of 4"),
        ([node("Softmax", "x", axis=0)], {}, "its rows lie along the batch of 4"),
        ([node("ReduceMax", "x", axes=[0])], {}, "the batch of 4 can't be reduced"),
        ([node("Transpose", "x", output="t"), node("Relu", "t")], {}, "it moves elements between"),
        ([node("Reshape", "x", "s")], {"s": np.array([2, 8])}, "must keep the batch of 4 first"),
        ([node("Add", "x", "c")], {"c": drawn(2, 4, 4)}, "the batch of 4 along a different axis"),
        ([node("GatherElements", "x", "i")], {"i": np.arange(16).reshape(4, 4) % 4},
         "it moves elements between the 4 images"),
    ],
)  # fmt: skip
def test_nodes_that_mix_images_of_a_declared_batch_are_refused(nodes, constants, why: str) -> None:
    (refused,) = coverage(model(nodes, (4, 4), constants), 4).refused
    assert refused.node == nodes[0].output[0]
    assert why in refused.why
    (refused,) = coverage(model(nodes, ("n", 4), constants), 4).refused
    assert why in refused.why


def test_a_batch_that_the_model_does_not_have_is_refused() -> None:
    proto = model([node("Relu", "x")], (4, 3))
    with pytest.raises(VipError, match=r"input x of shape \[4, 3\] must have the batch of 2"):
        read_graph(proto, batch=2)
    assert batch_of(proto, 4) == 4


def test_operators_of_images_tell_why_there_is_no_batch() -> None:
    """A convolution takes the first axis for images, which were mixed before."""
    nodes = [REVERSE, node("Conv", "r", "w")]
    (refused,) = coverage(model(nodes, (4, 3, 5, 5), {**REVERSED, "w": drawn(2, 3, 3, 3)})).refused
    assert refused.why == (
        "its input of shape [4, 3, 5, 5] has several images, but the model has no batch: node r "
        "(Slice): it moves elements between the 4 images of the batch"
    )


def test_a_batch_of_numbers() -> None:
    proto = model([node("Mul", "x", "two", output="m"), node("Abs", "m")], ("n",), {"two": 2.0})
    assert batch_of(proto, 4) == 4


@pytest.mark.parametrize(
    ("shape", "nodes", "constants", "why"),
    [
        ((5, 1, 4), [node("LSTM", "x", "w", "r", output="h", hidden_size=6),
                     node("Round", "h")], {},
         "the operator is not supported"),
        ((5, 1, 4), [node("LSTM", "x", "w", "r", "", "long", hidden_size=6)],
         {"long": np.array([3], np.int32)}, "all sequences must be as long as its input"),
    ],
)  # fmt: skip
def test_models_with_the_time_first_are_refused_for_what_they_lack(
    shape: tuple[int, ...], nodes: list[Any], constants: dict[str, Any], why: str
) -> None:
    weights = {"w": drawn(1, 24, 4), "r": drawn(1, 24, 6)}
    (refused,) = coverage(model(nodes, shape, {**weights, **constants})).refused
    assert refused.node == nodes[-1].output[0]
    assert why in refused.why


def run(folder: Path, proto: ModelProto, images: int, x: np.ndarray) -> np.ndarray:
    """The output for x of a model compiled with so many images, on the simulator."""
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    more = drawn(images - len(x), *x.shape[1:])
    vip.compile_model(folder / "m.onnx", {"x": np.concatenate([x, more])}, folder / "m")
    return vip.run_model(folder / "m", {"x": x}, on="iss").outputs["y"]


@pytest.mark.parametrize(
    ("nodes", "shape", "constants"),
    [
        ([node("Add", "x", "c")], (2, 4), {"c": drawn(2, 4)}),
        ([node("Mul", "c", "x", output="m"), node("Max", "m", "c")], (2, 3, 2, 2),
         {"c": drawn(2, 1, 1, 1)}),
        ([node("Relu", "x", output="r"), node("MatMul", "r", "c")], (2, 3, 4),
         {"c": drawn(2, 4, 5)}),
        ([node("Concat", "c", "x", axis=1)], (2, 2, 3), {"c": drawn(2, 1, 3)}),
        ([node("Gemm", "x", "w", "c")], (2, 4), {"w": drawn(4, 3), "c": drawn(2, 3)}),
        ([node("PRelu", "x", "c")], (2, 4), {"c": drawn(2, 1)}),
        ([node("GRU", "x", "w", "r", "", "", "c", layout=1, hidden_size=2, output="h"),
          node("Squeeze", "h", "axis")], (2, 1, 3),
         {"w": drawn(1, 6, 3), "r": drawn(1, 6, 2), "c": drawn(2, 1, 2), "axis": np.array([1])}),
        ([node("LSTM", "x", "w", "r", "", "", "c", "c", layout=1, hidden_size=2, output="h"),
          node("Squeeze", "h", "axis")], (2, 1, 3),
         {"w": drawn(1, 8, 3), "r": drawn(1, 8, 2), "c": drawn(2, 1, 2), "axis": np.array([1])}),
    ],
    ids=["Add", "Mul", "MatMul", "Concat", "Gemm", "PRelu", "GRU", "LSTM"],
)  # fmt: skip
def test_constants_that_differ_by_image(tmp_path: Path, nodes, shape, constants) -> None:
    """On the simulator, whose outputs the golden model has, too."""
    proto = model(nodes, shape, constants)
    assert batch_of(proto) == 2
    x = drawn(*shape)
    output = run(tmp_path, proto, 5, x)
    if nodes[0].op_type in ("GRU", "LSTM"):
        # onnxruntime has no kernel with the batch first.
        (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
    else:
        (expected,) = reference(proto, x)
    np.testing.assert_allclose(output, expected, atol=2e-3)


def test_a_constant_before_the_input_of_a_model_without_a_batch(tmp_path: Path) -> None:
    """The class token of a transformer of images."""
    proto = model(
        [node("Concat", "c", "x", output="t", axis=1), node("MatMul", "t", "w")],
        (1, 4, 6),
        {"c": drawn(1, 1, 6), "w": drawn(6, 3)},
    )
    x = drawn(1, 4, 6)
    output = run(tmp_path, proto, 8, x)
    np.testing.assert_allclose(output, reference(proto, x)[0], atol=2e-3)


def test_a_first_fully_connected_layer_takes_all_images_together(tmp_path: Path) -> None:
    weights = {"w": drawn(784, 384), "c": drawn(384)}
    proto = model([node("Gemm", "x", "w", "c")], ("n", 784), weights)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    x = drawn(16, 784)
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "m", batch=16)
    ran = vip.run_model(tmp_path / "m", {"x": x}, on="model")
    np.testing.assert_array_equal(
        ran.outputs["y"], vip.run_model(tmp_path / "m", {"x": x}, on="golden").outputs["y"]
    )
    (cycles,) = ran.launches.values()
    # Four engines multiply four elements per cycle.
    assert x.size * 384 / 16 > 0.8 * cycles
