"""Compiled models beside onnxruntime: labels, shapes, and the errors of a compilation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import vip
from support.errors import VipError
from tests.onnx_models.graphs import model, reference
from vip.models.evaluate import score_threshold

node = helper.make_node
RANDOM = np.random.default_rng(4)
WEIGHTS = RANDOM.normal(0, 1, (6, 1)).astype(np.float32)
IMAGES = RANDOM.normal(0, 1, (24, 6)).astype(np.float32)


def compiled(folder: Path, made: ModelProto, data: Mapping[str, Any]) -> vip.CompileReport:
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    return vip.compile_model(folder / "m.onnx", data, folder / "m")


def scored(*after: Any) -> ModelProto:
    """A model of a score, and nodes after it."""
    constants = {"w": WEIGHTS, "axis": np.array([1])}
    return model([node("Gemm", ["x", "w"], ["s"]), *after], ("n", 6), constants, opset=17)


@pytest.mark.parametrize(
    "made",
    [scored(node("Sigmoid", ["s"], ["y"])), scored(node("Identity", ["s"], ["y"]))],
    ids=["probability", "score"],
)
def test_one_score_is_compared_with_the_threshold_of_its_operator(
    made: ModelProto, tmp_path: Path
) -> None:
    compiled(tmp_path, made, {"x": IMAGES})
    labels = (IMAGES @ WEIGHTS)[:, 0] > 0
    evaluation = vip.evaluate_model(tmp_path / "m", {"x": IMAGES, "y": labels})
    assert (evaluation.accuracy, evaluation.float_accuracy, evaluation.agreement) == (1, 1, 1)
    wrong = labels.astype(int)
    wrong[:6] = 1 - wrong[:6]
    evaluation = vip.evaluate_model(tmp_path / "m", {"x": IMAGES, "y": wrong})
    assert (evaluation.accuracy, evaluation.float_accuracy) == (0.75, 0.75)


QUANTISED = {"scale": np.float32(1 / 256), "zero": np.uint8(10), "low": np.float32(0)} | {
    "high": np.float32(1), "six": np.float32(6), "axis": np.array([1])
}  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "threshold"),
    [
        ([node("Relu", ["x"], ["y"])], 0),
        ([node("Tanh", ["x"], ["y"])], 0),
        ([node("HardSigmoid", ["x"], ["y"])], 0.5),
        ([node("Sigmoid", ["x"], ["s"]), node("Squeeze", ["s", "axis"], ["y"])], 0.5),
        ([node("Sigmoid", ["x"], ["s"]), node("Neg", ["s"], ["y"])], 0),
        ([node("Clip", ["x", "low", "high"], ["y"])], 0.5),
        ([node("Clip", ["x", "low", "six"], ["y"])], 0),
        ([node("Clip", ["x"], ["y"], min=0.0, max=1.0)], 0.5),
        ([node("QuantizeLinear", ["x", "scale", "zero"], ["y"])], 10),
        (
            [
                node("Sigmoid", ["x"], ["s"]),
                node("QuantizeLinear", ["s", "scale", "zero"], ["y"]),
            ],
            138,
        ),
        (
            [
                node("Sigmoid", ["x"], ["s"]),
                node("QuantizeLinear", ["s", "scale", "zero"], ["q"]),
                node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
            ],
            0.5,
        ),
        (
            [node("Relu", ["x"], ["q"]), node("DequantizeLinear", ["q", "scale", "zero"], ["y"])],
            0,
        ),
    ],
)
def test_the_threshold_is_that_of_the_last_operator(nodes: list[Any], threshold: float) -> None:
    made = helper.make_model(
        helper.make_graph(
            nodes,
            "m",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(np.asarray(v), name) for name, v in QUANTISED.items()],
        )
    )
    assert score_threshold(made, "y") == threshold


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of four scores."""
    folder = tmp_path_factory.mktemp("four")
    weights = RANDOM.normal(0, 1, (6, 4)).astype(np.float32)
    made = model([node("Gemm", ["x", "w"], ["y"])], ("n", 6), {"w": weights})
    compiled(folder, made, {"x": IMAGES})
    return folder / "m"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array(["1"] * 24), "integers, booleans or whole numbers in .*, not of type <U1"),
        (np.array([b"1"] * 24), r"not of type \|S1"),
        (np.array([1j] * 24), "not of type complex128"),
        (np.arange(24), "from 0 to 3, as the model has 4 score.*; there is 4$"),
        (np.arange(24) % 4 - 1, "there is -1$"),
        (np.full(24, 0.5), "there is 0.5$"),
        (np.full(24, np.nan), "there is nan$"),
        (np.zeros((24, 1), int), r"y needs 24 labels, not the shape \(24, 1\)"),
    ],
)
def test_other_labels_are_refused(four: Path, labels: np.ndarray, message: str) -> None:
    with pytest.raises(VipError, match=message):
        vip.evaluate_model(four, {"x": IMAGES, "y": labels})


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32])
def test_labels_may_have_any_type_of_numbers(four: Path, kind: type) -> None:
    exact = vip.run_model(four, {"x": IMAGES}, on="golden").outputs["y"].argmax(1)
    evaluation = vip.evaluate_model(four, {"x": IMAGES, "y": exact.astype(kind)})
    assert evaluation.accuracy == 1


def test_labels_of_one_score_are_0_and_1(tmp_path: Path) -> None:
    compiled(tmp_path, scored(node("Sigmoid", ["s"], ["y"])), {"x": IMAGES})
    with pytest.raises(VipError, match=r"from 0 to 1, as the model has 1 score.*; there is -1.0$"):
        vip.evaluate_model(tmp_path / "m", {"x": IMAGES, "y": np.sign(IMAGES[:, 0])})


def test_outputs_of_one_axis(tmp_path: Path) -> None:
    """A score without its axis, as of ``squeeze``."""
    made = scored(node("Sigmoid", ["s"], ["p"]), node("Squeeze", ["p", "axis"], ["y"]))
    compiled(tmp_path, made, {"x": IMAGES})
    evaluation = vip.evaluate_model(tmp_path / "m", {"x": IMAGES})
    assert evaluation.images == 24
    assert evaluation.error < 1e-3
    run = vip.run_model(tmp_path / "m", {"x": IMAGES}, on="golden")
    np.testing.assert_allclose(run.outputs["y"].ravel(), reference(made, IMAGES)[0], atol=1e-3)
    run = vip.run_model(tmp_path / "m", {"x": IMAGES[:1]}, on="iss")
    assert run.outputs["y"].shape == (1,)


def test_a_vector_without_a_batch_may_be_one_image_or_several(tmp_path: Path) -> None:
    made = model([node("Tanh", ["x"], ["y"])], (10,))
    x = RANDOM.uniform(-1, 1, (8, 10)).astype(np.float32)
    compiled(tmp_path, made, {"x": x})
    assert vip.evaluate_model(tmp_path / "m", {"x": x}).error < 1e-3
    one = vip.evaluate_model(tmp_path / "m", {"x": x[0]})
    assert one.images == 1
    assert one.error < 1e-3
    run = vip.run_model(tmp_path / "m", {"x": x}, on="golden")
    exact = np.stack([reference(made, image)[0] for image in x])
    np.testing.assert_allclose(run.outputs["y"], exact, atol=1e-3)


def test_a_model_without_a_batch_gets_an_image_at_a_time(tmp_path: Path) -> None:
    """Time comes first, so that onnxruntime must not get images there."""
    weights = {"W": RANDOM.normal(0, 0.5, (1, 8, 3)), "R": RANDOM.normal(0, 0.5, (1, 8, 2))}
    constants = {name: values.astype(np.float32) for name, values in weights.items()}
    last = node("LSTM", ["x", "W", "R"], ["", "y"], hidden_size=2)
    made = model([last], (2, 1, 3), constants)
    x = RANDOM.normal(0, 1, (5, 2, 1, 3)).astype(np.float32)
    report = compiled(tmp_path, made, {"x": x})
    evaluation = vip.evaluate_model(tmp_path / "m", {"x": x})
    assert evaluation.images == 5
    assert evaluation.error < 2e-3
    assert report.outputs[0].error == evaluation.error


def test_a_batch_that_the_model_fixes_is_filled_by_the_last_image(tmp_path: Path) -> None:
    made = model([node("Tanh", ["x"], ["y"])], (4, 10))
    x = RANDOM.uniform(-1, 1, (6, 10)).astype(np.float32)
    compiled(tmp_path, made, {"x": x})
    evaluation = vip.evaluate_model(tmp_path / "m", {"x": x})
    assert evaluation.images == 6
    assert evaluation.error < 1e-3


def test_a_compilation_reports_the_error_beside_the_model(tmp_path: Path) -> None:
    """The approximation by tanh is computed without it, which no comparison with the mapped layer
    shows."""
    made = model([node("Gelu", ["x"], ["y"], approximate="tanh")], ("n", 16), opset=20)
    x = RANDOM.normal(0, 2, (12, 16)).astype(np.float32)
    report = compiled(tmp_path, made, {"x": x})
    (output,) = report.outputs
    evaluation = vip.evaluate_model(tmp_path / "m", {"x": x})
    assert (output.images, output.error, output.largest) == (
        12,
        evaluation.error,
        evaluation.largest,
    )
    assert output.error > 1.5 * report.model.maps[-1].error


def test_a_model_that_onnxruntime_does_not_take_is_compared_with_the_reference(
    tmp_path: Path,
) -> None:
    """It has no function of 16-bit numbers, which have 8 bits here."""
    made = model([node("Tanh", ["x"], ["y"])], ("n", 10))
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = TensorProto.BFLOAT16
    x = RANDOM.uniform(-1, 1, (6, 10))
    report = compiled(tmp_path, made, {"x": x})
    assert report.outputs[0].error < 1 / 256
    assert vip.evaluate_model(tmp_path / "m", {"x": x}).error == report.outputs[0].error
