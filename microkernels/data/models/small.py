"""The architectures of MLPerf Tiny and MobileNet-v2 for small images, with seeded weights.

Sources: C. Banbury and others, MLPerf Tiny Benchmark, NeurIPS 2021; M. Sandler and others,
MobileNetV2, CVPR 2018.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .graphs import GraphWriter

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["SMALL"]

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
