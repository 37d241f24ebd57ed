"""Mapped models are compared with onnxruntime before anything is step of them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

import vip
from microkernels.networks.parameters import Weights
from microkernels.onnx_models.importer import Operator
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.node import GraphNode
from microkernels.onnx_models.operators.arrange import index_of, rearranged, straight
from microkernels.onnx_models.operators.table import OPERATORS
from support.errors import VipError
from tests.onnx_models.graphs import model
from vip.cli.app import main

RANDOM = np.random.default_rng(43)


def node(op: str, *inputs: str, output: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op, list(inputs), [output], name=f"{op}_{output}", **attributes)


def network() -> ModelProto:
    """A convolution, and a transposed matrix, whose outputs are one each."""
    nodes = [
        node("Conv", "x", "w", output="a", pads=[1, 1, 1, 1]),
        node("Relu", "a", output="b"),
        node("Neg", "b", output="c"),
        node("Transpose", "c", output="d", perm=[0, 1, 3, 2]),
        node("GlobalAveragePool", "d", output="e"),
        node("Flatten", "e", output="f"),
        node("Gemm", "f", "v"),
    ]
    constants = {"w": RANDOM.normal(size=(4, 2, 3, 3)), "v": RANDOM.normal(size=(4, 3))}
    return model(nodes, ("n", 2, 6, 6), constants, outputs=("y", "d"))


def _scaled(step: GraphNode) -> Value | None:
    """Weights of one filter are 1 % larger."""
    result, real = OPERATORS["Conv"].maps(step), step.importer.real
    name, before = next(iter(real.items()))
    weights = before.weights.copy()
    weights[1] *= 1.01
    real[name] = Weights(weights=weights, bias=before.bias)
    return result


def _swapped(step: GraphNode) -> Value:
    """Two elements change places."""
    value = straight(step, step.value())
    index = index_of(step, value).swapaxes(2, 3).copy()
    index[0, 0, 0, 0], index[0, 0, 0, 1] = index[0, 0, 0, 1], index[0, 0, 0, 0]
    return rearranged(step, [value], index)


@pytest.mark.parametrize(
    ("op", "wrong", "first"),
    [
        ("Neg", OPERATORS["Identity"], "Neg_c (Neg): its output c"),
        ("Neg", OPERATORS["Abs"], "Neg_c (Neg): its output c"),
        ("Transpose", OPERATORS["Identity"], "Transpose_d (Transpose): its output d"),
        ("Transpose", Operator(_swapped), "Transpose_d (Transpose): its output d"),
        ("Conv", Operator(_scaled), "Relu_b (Relu): its output b"),
        ("GlobalAveragePool", OPERATORS["GlobalMaxPool"], "Flatten_f (Flatten): its output f"),
    ],
)
def test_wrong_mappings_are_refused_by_the_first_tensor(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    op: str,
    wrong: Operator,
    first: str,
) -> None:
    monkeypatch.setattr("vip.models.reference.OPERATORS", {**OPERATORS, op: wrong})
    onnx.save(network(), tmp_path / "m.onnx")
    x = RANDOM.uniform(-1, 1, (3, 2, 6, 6)).astype(np.float32)
    message = (
        f"node {re.escape(first)}.* differs by .* between the mapped layers and onnxruntime, where "
        "it reaches"
    )
    with pytest.raises(VipError, match=message):
        vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "m")
    with pytest.raises(VipError, match=message):
        vip.check_model(tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", x)
    command = ["nn", "compile", tmp_path / "m.onnx", "--calibrate", tmp_path / "x.npy", "-o"]
    monkeypatch.setattr("sys.argv", ["vip", *map(str, [*command, tmp_path / "m"])])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "x.npy"]


def test_a_right_mapping_passes(tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "m.onnx")
    assert vip.check_model(tmp_path / "m.onnx").supported


WEIGHTS = {"w": RANDOM.normal(size=(1, 8, 4)), "r": RANDOM.normal(size=(1, 8, 2))}
#: Name -> the node that mixes images, or "", and nodes and constants of a model of n x 4 numbers.
OPEN: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "reversed": ("Slice_b", [node("Relu", "x", output="p"), node("Slice", "p", *"seat", output="b"),
                             node("Neg", "b")], {"s": [-1], "e": [-9], "a": [0], "t": [-1]}),
    "mean of all": ("ReduceMean_m", [node("ReduceMean", "x", output="m"), node("Sub", "x", "m")],
                    {}),
    "softmax of images": ("Softmax_y", [node("Softmax", "x", axis=0)], {}),
    "time": ("LSTM_h", [node("Unsqueeze", "x", "one", output="u"),
                        node("LSTM", "u", "w", "r", output="h", hidden_size=2),
                        node("Squeeze", "h", "two")], {"one": [1], "two": [1, 2], **WEIGHTS}),
    "apart": ("", [node("Relu", "x")], {}),
    "rows of all images": ("", [node("Reshape", "x", "s", output="a"),
                                node("MatMul", "a", "w", output="b"), node("Reshape", "b", "t")],
                           {"s": [-1, 2], "t": [-1, 4], "w": RANDOM.normal(size=(2, 2))}),
    "images last": ("", [node("Transpose", "x", output="a"), node("Relu", "a", output="b"),
                         node("Transpose", "b")], {}),
    "one image by a shape": ("", [node("Reshape", "x", "s", output="a"), node("Softmax", "a")],
                             {"s": [1, -1]}),
    "one image by a constant": ("", [node("Reshape", "x", "s", output="a"), node("Relu", "a")],
                                {"s": [2, 2]}),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_images_of_an_open_number_must_stay_apart(tmp_path: Path, name: str) -> None:
    mixing, nodes, constants = OPEN[name]
    arrays = {key: np.asarray(values) for key, values in constants.items()}
    onnx.save(model(nodes, ("n", 4), arrays), tmp_path / "m.onnx")
    report = vip.check_model(tmp_path / "m.onnx")
    x = RANDOM.normal(size=(3, 4)).astype(np.float32)

    def compiled(folder: str, **more: Any) -> Any:
        return vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / folder, **more)

    if not mixing:
        assert report.supported
        compiled("m")
        return
    (refused,) = report.refused
    assert refused.node == mixing
    assert refused.why.endswith("--batch 1 takes one image at a time")
    with pytest.raises(VipError, match=f"node {mixing} .* of two images its output"):
        compiled("m")
    compiled("one", batch=1)
    ran = vip.run_model(tmp_path / "one", {"x": x}, on="golden")
    exact = ReferenceEvaluator(str(tmp_path / "m.onnx"))
    expected = np.concatenate([exact.run(None, {"x": image[np.newaxis]})[0] for image in x])
    np.testing.assert_allclose(ran.outputs["y"].ravel(), expected.ravel(), atol=3e-3)


@pytest.mark.parametrize("preset", ["vault", "vault-int8"])
def test_coarse_steps_of_a_model_are_its_own(tmp_path: Path, preset: str) -> None:
    """Steps of a tenth of the largest number, thrice: the machine differs, but no layer is wrong;
    a layer that is wrong by more than steps is refused all the same."""
    random = np.random.default_rng(23)
    constants = {"w": random.normal(0, 0.5, (8, 8)), "s": np.float32(0.3), "z": np.int8(0)}
    nodes, last = [], "x"
    for number in range(3):
        product, quantised = f"g{number}", f"q{number}"
        nodes += [
            node("QuantizeLinear", last, "s", "z", output=quantised),
            node("DequantizeLinear", quantised, "s", "z", output=f"d{number}"),
            node("Gemm", f"d{number}", "w", output=product),
        ]
        last = product
    onnx.save(model([*nodes, node("Neg", last)], ("n", 8), constants), tmp_path / "m.onnx")
    x = random.normal(size=(32, 8)).astype(np.float32)
    report = vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "m", preset=preset)
    assert 0.01 < report.outputs[0].error < 0.3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vip.models.reference.OPERATORS", {**OPERATORS, "Neg": OPERATORS["Identity"]})
        with pytest.raises(VipError, match="one of both is wrong"):
            vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "n", preset=preset)
