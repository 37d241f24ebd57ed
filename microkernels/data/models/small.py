"""The architectures of MLPerf Tiny and MobileNet-v2 for small images, and the encoder of a
transformer, with seeded weights.

Sources: C. Banbury and others, MLPerf Tiny Benchmark, NeurIPS 2021; M. Sandler and others,
MobileNetV2, CVPR 2018.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from support.extras import need

from .graphs import GraphWriter, Reals, model_of

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

#: Filters of the convolutions that follow depthwise ones, and strides of these, of MobileNet-v1
#: with a quarter of the channels.
_MOBILE_V1 = (
    (16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *((128, 1),) * 5, (256, 2), (256, 1),
)  # fmt: skip
#: Factor, filters, blocks and stride of the first of each stage of MobileNet-v2, with 0.35 of the
#: channels, rounded to 8.
_MOBILE_V2 = (
    (1, 8, 1, 1), (6, 8, 2, 2), (6, 16, 3, 2), (6, 24, 4, 2), (6, 32, 3, 1), (6, 56, 3, 2),
    (6, 112, 1, 1),
)  # fmt: skip


def _resnet8() -> "ModelProto":
    w = GraphWriter(21)
    x = w.relu(w.conv("x", "first", channels=3, filters=16))
    channels = 16
    for number, filters in enumerate((16, 32, 64), 1):
        name, stride = f"block{number}", 1 if filters == channels else 2
        inner = w.conv(x, f"{name}.one", channels=channels, filters=filters, stride=stride)
        outer = w.conv(w.relu(inner), f"{name}.two", channels=filters, filters=filters)
        if stride > 1:
            x = w.conv(
                x,
                f"{name}.short",
                channels=channels,
                filters=filters,
                kernel=(1, 1),
                stride=stride,
            )
        x, channels = w.relu(w.add(outer, x, name)), filters
    scores = w.dense(w.pooled(x, "features"), "scores", inputs=64, outputs=10, gain=0.25)
    return w.model((3, 32, 32), w.node("Softmax", [scores], "y"))


def _separable(w: GraphWriter, x: str, name: str, channels: int, filters: int, stride: int) -> str:
    """A depthwise convolution and one of single pixels."""
    unchanged = w.conv(
        x, f"{name}.each", channels=channels, filters=channels, stride=stride, depthwise=True
    )
    return w.relu(
        w.conv(w.relu(unchanged), f"{name}.all", channels=channels, filters=filters, kernel=(1, 1))
    )


def _dscnn() -> "ModelProto":
    w = GraphWriter(22)
    x = w.relu(w.conv("x", "first", channels=1, filters=64, kernel=(10, 4), stride=2))
    for number in range(1, 5):
        x = _separable(w, x, f"block{number}", 64, 64, 1)
    scores = w.dense(w.pooled(x, "features"), "scores", inputs=64, outputs=12, gain=0.25)
    return w.model((1, 49, 10), w.node("Softmax", [scores], "y"))


def _mobilenet_v1() -> "ModelProto":
    w = GraphWriter(23)
    x, channels = w.relu(w.conv("x", "first", channels=3, filters=8, stride=2)), 8
    for number, (filters, stride) in enumerate(_MOBILE_V1, 1):
        x, channels = _separable(w, x, f"block{number}", channels, filters, stride), filters
    scores = w.dense(w.pooled(x, "features"), "scores", inputs=channels, outputs=2, gain=0.02)
    return w.model((3, 96, 96), w.node("Softmax", [scores], "y"))


def _autoencoder() -> "ModelProto":
    w = GraphWriter(24)
    x, inputs = "x", 640
    for number, outputs in enumerate((128, 128, 128, 128, 8, 128, 128, 128, 128), 1):
        product = w.dense(x, f"layer{number}.product", inputs=inputs, outputs=outputs)
        x, inputs = w.relu(w.normal(product, f"layer{number}", outputs)), outputs
    return w.model((640,), w.dense(x, "y", inputs=inputs, outputs=640))


def _mobilenet_v2() -> "ModelProto":
    w = GraphWriter(25)
    x, channels = w.relu(w.conv("x", "first", channels=3, filters=16, stride=2), 6.0), 16
    number = 0
    for factor, filters, blocks, first in _MOBILE_V2:
        for block in range(blocks):
            number += 1
            name, stride = f"block{number}", first if block == 0 else 1
            wide, inner = factor * channels, x
            if factor > 1:
                inner = w.conv(x, f"{name}.wide", channels=channels, filters=wide, kernel=(1, 1))
                inner = w.relu(inner, 6.0)
            inner = w.conv(
                inner, f"{name}.each", channels=wide, filters=wide, stride=stride, depthwise=True
            )
            narrow = w.conv(
                w.relu(inner, 6.0), f"{name}.all", channels=wide, filters=filters, kernel=(1, 1)
            )
            same = stride == 1 and filters == channels
            x, channels = w.add(x, narrow, name) if same else narrow, filters
    x = w.relu(w.conv(x, "last", channels=channels, filters=1280, kernel=(1, 1)), 6.0)
    return w.model((3, 96, 96), w.dense(w.pooled(x, "features"), "y", inputs=1280, outputs=100))


#: Name -> function that makes the model.
SMALL: "Mapping[str, Callable[[], ModelProto]]" = {
    "resnet8": _resnet8,
    "dscnn": _dscnn,
    "mobilenet_v1": _mobilenet_v1,
    "autoencoder": _autoencoder,
    "mobilenet_v2": _mobilenet_v2,
}


def encoder(
    *, length: int = 16, features: int = 32, heads: int = 2, wide: int = 64, layers: int = 1
) -> "ModelProto":
    """Layers of attention and of two products with Gelu between, each after a normalisation and
    with a residual connection; input ``x`` and output ``y`` of 1 x length x features.

    Parameters:
        heads: divide ``features``. wide: features between the two products.

    Raises:
        MissingExtraError: onnx is not installed.
    """
    need("onnx", "models")
    from onnx import helper

    random = np.random.default_rng(11)
    nodes: list[NodeProto] = []
    constants: dict[str, Reals | NDArray[np.int64]] = {"root": np.array(np.sqrt(features / heads))}
    constants["split"] = np.array([1, length, heads, features // heads])
    constants["join"] = np.array([1, length, features])

    def add(op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def linear(x: str, name: str, inputs: int, outputs: int) -> str:
        constants[f"{name}.w"] = random.normal(size=(inputs, outputs)) / np.sqrt(inputs)
        constants[f"{name}.b"] = random.normal(size=outputs) * 0.1
        return add("Add", [add("MatMul", [x, f"{name}.w"], f"{name}.product"), f"{name}.b"], name)

    def normal(x: str, name: str) -> str:
        constants[f"{name}.scale"] = random.uniform(0.5, 1.5, features)
        constants[f"{name}.shift"] = random.normal(size=features) * 0.1
        return add("LayerNormalization", [x, f"{name}.scale", f"{name}.shift"], name)

    def split(x: str, name: str, order: list[int]) -> str:
        return add("Transpose", [add("Reshape", [x, "split"], f"{name}.split")], name, perm=order)

    x = "x"
    for number in range(layers):
        at = f"layer{number}"
        seen = normal(x, f"{at}.norm1")
        q, k, v = (linear(seen, f"{at}.{name}", features, features) for name in "qkv")
        one = split(q, f"{at}.queries", [0, 2, 1, 3])
        other = split(k, f"{at}.keys", [0, 2, 3, 1])
        scores = add("MatMul", [one, other], f"{at}.scores")
        scaled = add("Div", [scores, "root"], f"{at}.scaled")
        attention = add("Softmax", [scaled], f"{at}.attention", axis=-1)
        values = split(v, f"{at}.values", [0, 2, 1, 3])
        mixed = add("MatMul", [attention, values], f"{at}.mixed")
        back = add("Transpose", [mixed], f"{at}.back", perm=[0, 2, 1, 3])
        joined = add("Reshape", [back, "join"], f"{at}.joined")
        x = add("Add", [x, linear(joined, f"{at}.out", features, features)], f"{at}.sum1")
        inner = linear(normal(x, f"{at}.norm2"), f"{at}.wide", features, wide)
        active = add("Gelu", [inner], f"{at}.gelu")
        last = number + 1 == layers
        name = "y" if last else f"{at}.sum2"
        x = add("Add", [x, linear(active, f"{at}.narrow", wide, features)], name)
    return model_of(nodes, (1, length, features), constants, opset=20)


def sequences(count: int, *, length: int = 16, features: int = 32, seed: int = 1) -> Reals:
    """Generated inputs: count x length x features."""
    random = np.random.default_rng(seed)
    return random.normal(size=(count, length, features)).astype(np.float32)
