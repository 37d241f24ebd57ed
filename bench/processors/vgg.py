"""A network in float32 by onnxruntime, on the processor of this machine."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench.measurement import BenchError
from microkernels.networks.families import WeightLayer, WindowLayer
from microkernels.networks.layer import Layer
from microkernels.networks.network import Conv, Dense, Network, Pool
from microkernels.networks.parameters import Weights
from support.extras import need

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["onnx_model", "seconds_an_image", "session"]

_OPSET, _IR_VERSION = 17, 8
_OPERATORS: Mapping[type[Layer], str] = {Conv: "Conv", Pool: "MaxPool", Dense: "Gemm"}
#: Fraction bits of biases.
_FRACTION = 8


def _floats(values: NDArray[np.integer[Any]], fraction: int) -> NDArray[np.float32]:
    return (values / (1 << fraction)).astype(np.float32)


def onnx_model(network: Network, weights: Mapping[str, Weights]) -> "ModelProto":
    """``network`` in float32, with the values that ``weights`` stand for.

    Its input ``image`` is 1 x channels x height x width; its output ``result`` 1 x outputs, in the
    order of the network's activations.

    Parameters:
        network: convolutions, pooling and fully connected layers, one after the other.

    Raises:
        BenchError: another layer.
    """
    need("onnx", "networks on a processor")
    from onnx import TensorProto, helper, numpy_helper

    nodes, tensors = [], []
    at, flat = "image", False
    for layer in network.layers:
        name, kind = layer.name, _OPERATORS.get(type(layer))
        if isinstance(layer, WeightLayer):
            # Filters x rows x columns x channels, or outputs x inputs.
            kernel = _floats(weights[name].weights, layer.fraction)
            if kind == "Conv":
                kernel = kernel.transpose(0, 3, 1, 2)
            parts = {f"{name}.w": kernel, f"{name}.b": _floats(weights[name].bias, _FRACTION)}
            tensors += [
                numpy_helper.from_array(np.ascontiguousarray(value), key)
                for key, value in parts.items()
            ]
        if kind == "Conv":
            assert isinstance(layer, WindowLayer)
            pads = list(layer.sides)
            nodes.append(helper.make_node("Conv", [at, *parts], [name], pads=pads))
        elif kind == "MaxPool":
            node = helper.make_node("MaxPool", [at], [name], kernel_shape=[2, 2], strides=[2, 2])
            nodes.append(node)
        elif kind == "Gemm":
            if not flat:
                # Activations have their channels last.
                nodes.append(helper.make_node("Transpose", [at], ["last"], perm=[0, 2, 3, 1]))
                nodes.append(helper.make_node("Flatten", ["last"], ["flat"]))
                at, flat = "flat", True
            nodes.append(helper.make_node("Gemm", [at, *parts], [name], transB=1))
        else:
            raise BenchError(f"{name}: no such layer on a processor")
        at = name
        if isinstance(layer, WeightLayer) and layer.relu:
            at = f"{name}.relu"
            nodes.append(helper.make_node("Relu", [name], [at]))
    nodes.append(helper.make_node("Identity", [at], ["result"]))
    size = network.input
    image = helper.make_tensor_value_info(
        "image", TensorProto.FLOAT, [1, size.channels, size.height, size.width]
    )
    result = helper.make_tensor_value_info("result", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "network", [image], [result], tensors)
    return helper.make_model(
        graph, ir_version=_IR_VERSION, opset_imports=[helper.make_opsetid("", _OPSET)]
    )


def session(model: "ModelProto", threads: int) -> Any:
    """onnxruntime's session of ``model`` on ``threads`` processors."""
    need("onnxruntime", "networks on a processor")
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Threads that wait would count as work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def seconds_an_image(
    model: "ModelProto", image: NDArray[np.float32], *, threads: int, runs: int
) -> float:
    """Processor seconds of an image, over ``threads``; the least of ``runs``."""
    running = session(model, threads)
    running.run(None, {"image": image})
    found = []
    for _ in range(runs):
        start = time.process_time()
        running.run(None, {"image": image})
        found.append(time.process_time() - start)
    return min(found) / threads
