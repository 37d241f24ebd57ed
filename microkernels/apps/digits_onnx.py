"""The networks for digits as ONNX models with real weights, and their data.

``python -m microkernels.apps.digits_onnx FOLDER`` writes ``digits_cnn.onnx``, ``digits_mlp.onnx``,
``digits_train.npz`` and ``digits_test.npz`` (images ``x``, labels ``y``), for ``vip nn``.
"""

import argparse
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from microkernels.common.fixed_point import Elements
from support.command import run_command
from support.extras import need
from support.files import write_file

from .digits import CLASSES, NETWORKS, SIDE, DigitNetwork, load_digits, trained

if TYPE_CHECKING:
    from onnx import ModelProto

_OPSET = 17
_IR_VERSION = 8


def digits_model(network: DigitNetwork) -> "ModelProto":
    """The ONNX model of a network for digits: input ``x`` (batch x 1 x 8 x 8), output ``scores``.

    Raises:
        MissingExtraError: onnx is not installed.
    """
    need("onnx", "models")
    from onnx import TensorProto, helper, numpy_helper

    nodes = []
    constants = []

    def constant(name: str, values: Elements) -> str:
        constants.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    last = "x"
    side = SIDE
    for number, layer in enumerate(network.convolutions, 1):
        weights = constant(f"conv{number}_w", layer.weights.transpose(0, 3, 1, 2))
        bias = constant(f"conv{number}_b", layer.bias)
        nodes += [
            helper.make_node("Conv", [last, weights, bias], [f"conv{number}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"conv{number}"], [f"relu{number}"]),
            helper.make_node(
                "MaxPool", [f"relu{number}"], [f"pool{number}"], kernel_shape=[2, 2], strides=[2, 2]
            ),
        ]
        last, side = f"pool{number}", side // 2
    nodes.append(helper.make_node("Flatten", [last], ["flat"]))
    last = "flat"
    for number, layer in enumerate(network.connected, 1):
        weights_of = layer.weights
        if number == 1 and network.convolutions:
            # The networks flatten pixel by pixel, ONNX channel by channel.
            weights_of = weights_of.reshape(len(layer.bias), side, side, -1)
            weights_of = weights_of.transpose(0, 3, 1, 2).reshape(len(layer.bias), -1)
        final = number == len(network.connected)
        output = "scores" if final else f"fc{number}"
        inputs = [
            last,
            constant(f"fc{number}_w", weights_of),
            constant(f"fc{number}_b", layer.bias),
        ]
        nodes.append(helper.make_node("Gemm", inputs, [output], transB=1))
        last = output
        if not final:
            nodes.append(helper.make_node("Relu", [output], [f"relu_{output}"]))
            last = f"relu_{output}"
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 1, SIDE, SIDE])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", CLASSES])],
        constants,
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION
    )


def write_digits(folder: Path) -> None:
    """Write the models and data into ``folder``, which is created if missing.

    Raises:
        MissingExtraError: onnx or scikit-learn is not installed.
        OSError: a file can't be written.
    """
    digits = load_digits()
    folder.mkdir(parents=True, exist_ok=True)
    for name in NETWORKS:
        model = digits_model(trained(name))
        write_file(folder / f"digits_{name.lower()}.onnx", model.SerializeToString())
    for name, (images, labels) in zip(("train", "test"), digits, strict=True):
        channels_first = images.transpose(0, 3, 1, 2).astype(np.float32)
        data = io.BytesIO()
        np.savez(data, x=channels_first, y=labels)
        write_file(folder / f"digits_{name}.npz", data.getvalue())


def main() -> None:
    """The command ``python -m microkernels.apps.digits_onnx FOLDER``."""
    parser = argparse.ArgumentParser(
        prog="python -m microkernels.apps.digits_onnx",
        description="Write networks for handwritten digits as ONNX models, and their data.",
    )
    parser.add_argument("folder", type=Path, help="output folder; created if missing")
    write_digits(parser.parse_args().folder)


if __name__ == "__main__":
    run_command(main)
