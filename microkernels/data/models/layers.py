"""Models of one convolution each, of the kinds that exporters write, and a CNN for MNIST; weights
are seeded.

Source of the CNN: P. Simard and others, Best Practices for Convolutional Neural Networks Applied to
Visual Document Analysis, ICDAR 2003.
"""

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .graphs import GraphWriter

if TYPE_CHECKING:
    from onnx import ModelProto


class Convolution(NamedTuple):
    """A convolution that keeps the size of its map.

    Attributes:
        size: of the map, in pixels along each axis.
        channels, filters: of the map and of the output.
        kernel: pixels along each axis. dilation, groups: as in ONNX.
    """

    size: tuple[int, ...]
    channels: int
    filters: int
    kernel: tuple[int, ...]
    dilation: int = 1
    groups: int = 1

    @property
    def products(self) -> int:
        """Multiplications that the layer needs per image."""
        return prod(self.size) * self.filters * self.channels // self.groups * prod(self.kernel)

    def model(self) -> "ModelProto":
        """The model, with ReLU.

        Raises:
            MissingExtraError: onnx is not installed.
        """
        w = GraphWriter(31)
        inner = self.channels // self.groups
        random = np.random.default_rng(31)
        deviation = np.sqrt(2 / (inner * prod(self.kernel)))
        weights = random.normal(0, deviation, (self.filters, inner, *self.kernel))
        bias = random.normal(0, 0.05, self.filters)
        extents = [(kernel - 1) * self.dilation for kernel in self.kernel]
        output = w.node(
            "Conv",
            ["x", w.constant("weights", weights), w.constant("bias", bias)],
            "sums",
            group=self.groups,
            dilations=[self.dilation] * len(self.kernel),
            pads=[*(each // 2 for each in extents), *(each - each // 2 for each in extents)],
        )
        return w.model((self.channels, *self.size), w.relu(output))


#: Name -> convolution.
CONVOLUTIONS: Mapping[str, Convolution] = {
    "pixels_of_8": Convolution((64, 64), 8, 8, (1, 1)),
    "dilation_2": Convolution((32, 32), 32, 32, (3, 3), dilation=2),
    "dilation_4": Convolution((32, 32), 32, 32, (3, 3), dilation=4),
    "dilation_4_line": Convolution((512,), 32, 32, (3,), dilation=4),
    "groups_4": Convolution((32, 32), 64, 64, (3, 3), groups=4),
    "groups_of_4": Convolution((32, 32), 64, 64, (3, 3), groups=16),
    "depthwise_9": Convolution((32, 32), 32, 32, (9, 9), groups=32),
    "depthwise_20": Convolution((32, 32), 32, 32, (20, 20), groups=32),
    "depthwise_20_line": Convolution((512,), 64, 64, (20,), groups=64),
}


def mnist() -> "ModelProto":
    """Two convolutions of 5 x 5 pixels with stride 2 to 6 and 50 maps, fully connected layers of
    100 and 10, with scaled tanh between; input ``x`` of 1 x 29 x 29.

    Raises:
        MissingExtraError: onnx is not installed.
    """
    w = GraphWriter(32)
    random = np.random.default_rng(32)
    inner, outer = w.constant("inner", np.array(2 / 3)), w.constant("outer", np.array(1.7159))

    def scaled_tanh(x: str) -> str:
        bent = w.node("Tanh", [w.node("Mul", [x, inner], f"{x}.in")], f"{x}.tanh")
        return w.node("Mul", [bent, outer], f"{x}.out")

    x, channels = "x", 1
    for number, filters in enumerate((6, 50), 1):
        name = f"conv{number}"
        weights = random.normal(0, np.sqrt(1 / (25 * channels)), (filters, channels, 5, 5))
        constants = {"w": weights, "b": random.normal(0, 0.05, filters)}
        inputs = [w.constant(f"{name}.{key}", values) for key, values in constants.items()]
        x = scaled_tanh(w.node("Conv", [x, *inputs], name, strides=[2, 2]))
        channels = filters
    x = w.node("Flatten", [x], "features")
    x = scaled_tanh(w.dense(x, "dense1", inputs=1250, outputs=100, gain=0.7))
    return w.model((1, 29, 29), w.dense(x, "dense2", inputs=100, outputs=10, gain=0.7))
