"""Models as exporters write them: the graphs of torch.onnx, Paddle, Keras and scikit-learn, made by
hand with seeded weights, since the exporters need gigabytes.

``python -m tests.onnx_models.exported [--record] [NAME...]`` compiles them for the preset
``vault``, runs each on the timing model, where outputs must be the golden model's, and prints the
error beside onnxruntime, cycles, and how far the predicted ones are off. ``--record`` fits
predictions to them.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from scipy.optimize import nnls

import vip
from support.errors import VipError
from vip.models.layers import LayerFigures, _pace, likeness

PACE = Path(vip.__file__).parent / "models" / "pace.json"
#: Parts of a layer's effort that its cycles are fitted to; the first two alone where few layers of
#: a kind were measured.
_PARTS = (*("launches", "work", "memory", "computing", "pixels", "columns", "chain", "weights"),)
_MOVES = ("moves", "pieces", "elements", "descriptions", "longest")
_MANY = 14
#: Images for calibration.
_IMAGES = 8
_CLASSIC = frozenset(
    ("ArrayFeatureExtractor", "LinearClassifier", "LinearRegressor", "Normalizer", "Scaler")
)


class Exported(NamedTuple):
    """A model, calibration data by input, and the outputs to compile; none: all."""

    model: ModelProto
    data: dict[str, np.ndarray]
    outputs: tuple[str, ...] = ()


class _Graph:
    """Nodes, each with a name for its output, and weights."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def __call__(self, op: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        count = len(self.nodes)
        tensors = [
            f"{op}_{count}_{number}" if number else f"{op}_{count}" for number in range(outputs)
        ]
        domain = "ai.onnx.ml" if op in _CLASSIC else ""
        self.nodes.append(
            helper.make_node(op, names, tensors, name=f"/{op}_{count}", domain=domain, **attributes)
        )
        return tensors[0] if outputs == 1 else tensors

    def constant(self, values: Any) -> str:
        array = np.asarray(values)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, *shape: int) -> str:
        """Random ones of He et al., by which activations neither vanish nor grow."""
        return self.constant(self.random.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape))

    def vector(self, size: int) -> str:
        return self.constant(self.random.normal(0, 0.1, size))

    def conv(self, x: str, inputs: int, outputs: int, kernel: Any, **more: Any) -> str:
        """A convolution with a bias; pads keep the size at stride 1."""
        sizes = (kernel, kernel) if isinstance(kernel, int) else tuple(kernel)
        group = more.get("group", 1)
        if "pads" not in more:
            steps = more.get("dilations", [1] * len(sizes))
            wide = [(size - 1) * step for size, step in zip(sizes, steps, strict=True)]
            more["pads"] = [pixels // 2 for pixels in wide] * 2
        name = self.weights(outputs, inputs // group, *sizes)
        return self("Conv", x, name, self.vector(outputs), kernel_shape=list(sizes), **more)

    def norm(self, x: str, channels: int) -> str:
        """A batch normalisation that the exporter has left."""
        scale, variance = (self.random.uniform(0.5, 1.5, channels) for _ in range(2))
        return self("BatchNormalization", x, scale, self.vector(channels), self.vector(channels),
                    variance, epsilon=1e-5)  # fmt: skip

    def gemm(self, x: str, inputs: int, outputs: int) -> str:
        return self("Gemm", x, self.weights(outputs, inputs), self.vector(outputs), transB=1)

    def matmul(self, x: str, inputs: int, outputs: int) -> str:
        weights = self.random.normal(0, inputs**-0.5, (inputs, outputs))
        return self("Add", self("MatMul", x, weights), self.vector(outputs))

    def hard_swish(self, x: str) -> str:
        """As Paddle's exporter writes it."""
        limited = self("Clip", self("Add", x, 3.0), 0.0, 6.0)
        return self("Div", self("Mul", x, limited), 6.0)

    def squeezed(self, x: str, channels: int) -> str:
        gate = self("Relu", self.conv(self("GlobalAveragePool", x), channels, channels // 4, 1))
        gate = self.conv(gate, channels // 4, channels, 1)
        return self("Mul", x, self("HardSigmoid", gate, alpha=0.2, beta=0.5))

    def cells(self, op: str, x: str, inputs: int, cells: int, *, both: bool = False) -> Any:
        """A recurrent layer's outputs."""
        gates, ways = (4 if op == "LSTM" else 3) * cells, 1 + both
        small = [
            self.constant(self.random.uniform(-1, 1, (ways, gates, size)) * cells**-0.5)
            for size in (inputs, cells)
        ]
        bias = self.constant(self.random.uniform(-1, 1, (ways, 2 * gates)) * cells**-0.5)
        more = {"linear_before_reset": 1} if op == "GRU" else {}
        return self(op, x, *small, bias, hidden_size=cells, outputs=3 if op == "LSTM" else 2,
                    direction="bidirectional" if both else "forward", **more)  # fmt: skip

    def done(
        self,
        last: Sequence[str] | str,
        *shape: int | str,
        integers: int = 0,
        keep: Sequence[str] = (),
        opset: int = 17,
    ) -> Exported:
        """The model of an input x; ``integers``: it has those below this number."""
        outputs = [last] if isinstance(last, str) else list(last)
        kind = TensorProto.INT64 if integers else TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes,
            "main_graph",
            [helper.make_tensor_value_info("x", kind, shape)],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            self.constants,
        )
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        made = onnx.shape_inference.infer_shapes(made)
        for value in made.graph.output:
            if value.type.WhichOneof("value") is None:
                # Operators of scikit-learn have no inference of shapes.
                value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, None))
        sizes = (_IMAGES, *shape[1:])
        drawn = self.random.normal(0, 1, sizes).astype(np.float32)
        data = self.random.integers(0, integers, sizes) if integers else drawn
        return Exported(made, {"x": data}, tuple(keep))


def captcha(g: _Graph) -> Exported:
    """torch: blocks of convolution and pooling, a matrix of all characters."""
    x, before = "x", 1
    for channels in (16, 32, 32):
        x = g("Relu", g.conv(x, before, channels, 3))
        x = g("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        before = channels
    x = g.gemm(g("Flatten", x), 32 * 4 * 10, 144)
    return g.done(g("Reshape", x, [-1, 4, 36]), "batch", 1, 32, 80)


def _inverted(g: _Graph, x: str, inputs: int, outputs: int, stride: int) -> str:
    """MobileNet-v3's block of Paddle."""
    wide = 3 * inputs
    y = g.hard_swish(g.norm(g.conv(x, inputs, wide, 1), wide))
    y = g.norm(g.conv(y, wide, wide, 3, group=wide, strides=[stride] * 2), wide)
    y = g.norm(g.conv(g.squeezed(g.hard_swish(y), wide), wide, outputs, 1), outputs)
    return g("Add", x, y) if inputs == outputs and stride == 1 else y


def text_detector(g: _Graph) -> Exported:
    """PP-OCR: a pyramid of MobileNet-v3, transposed convolutions, a map of probabilities."""
    x = g.hard_swish(g.norm(g.conv("x", 3, 8, 3, strides=[2, 2]), 8))
    fine = _inverted(g, x, 8, 16, 2)
    coarse = _inverted(g, fine, 16, 24, 2)
    up = g("Resize", g.conv(coarse, 24, 16, 1), "", [1.0, 1.0, 2.0, 2.0], mode="nearest",
           coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    x = g("Relu", g.norm(g.conv(g("Add", up, g.conv(fine, 16, 16, 1)), 16, 8, 3), 8))
    for outputs in (8, 1):
        weights = g.constant(g.random.normal(0, 0.3, (8, outputs, 2, 2)))
        x = g("ConvTranspose", x, weights, g.vector(outputs), strides=[2, 2], kernel_shape=[2, 2])
        x = g("Relu", x) if outputs > 1 else x
    return g.done(g("Sigmoid", x), 1, 3, 64, 64)


def text_direction(g: _Graph) -> Exported:
    """PP-OCR's classifier."""
    x = g.hard_swish(g.norm(g.conv("x", 3, 8, 3, strides=[2, 2]), 8))
    for inputs, outputs, stride in ((8, 8, 1), (8, 16, 2), (16, 16, 1)):
        x = _inverted(g, x, inputs, outputs, stride)
    x = g("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g("Reshape", g("GlobalAveragePool", x), [-1, 16])
    return g.done(g("Softmax", g.matmul(x, 16, 2), axis=1), 1, 3, 24, 96)


def text_recogniser(g: _Graph) -> Exported:
    """PP-OCR: columns of a picture as the steps of LSTMs of both directions."""
    x = g.hard_swish(g.norm(g.conv("x", 3, 8, 3, strides=[2, 2]), 8))
    x = _inverted(g, x, 8, 16, 2)
    x = g("MaxPool", x, kernel_shape=[8, 1], strides=[8, 1])
    x = g("Transpose", g("Squeeze", x, [2]), perm=[2, 0, 1])
    y, _, _ = g.cells("LSTM", x, 16, 24, both=True)
    y = g("Reshape", g("Transpose", y, perm=[0, 2, 1, 3]), [0, 0, -1])
    y = g("Transpose", y, perm=[1, 0, 2])
    return g.done(g("Softmax", g.matmul(y, 48, 40), axis=2), 1, 3, 32, 64)


def voice_activity(g: _Graph) -> Exported:
    """A Fourier transform as a convolution, magnitudes, convolutions, an LSTM, a probability."""
    x = g("Unsqueeze", "x", [1])
    angles = 2 * np.pi * np.outer(np.arange(17), np.arange(32)) / 32
    basis = np.concatenate([np.cos(angles), -np.sin(angles)]) * np.hanning(32)
    x = g("Conv", x, basis[:, np.newaxis] / 4, strides=[16], kernel_shape=[32])
    real, imaginary = g("Split", x, [17, 17], axis=1, outputs=2)
    x = g("Sqrt", g("Add", g("Mul", real, real), g("Mul", imaginary, imaginary)))
    x = g("Relu", g.conv(x, 17, 32, (3,)))
    x = g("Relu", g.conv(x, 32, 32, (3,), strides=[2]))
    _, last, _ = g.cells("LSTM", g("Transpose", x, perm=[2, 0, 1]), 32, 32)
    x = g("Relu", g("Squeeze", last, [0]))
    return g.done(g("Sigmoid", g.gemm(x, 32, 1)), 1, 256)


def pitches(g: _Graph) -> Exported:
    """Keras: convolutions along frequency, channels last, three outputs."""
    x = g("Transpose", g("Unsqueeze", "x", [3]), perm=[0, 3, 1, 2])
    x = g("Relu", g.norm(g.conv(x, 1, 8, (3, 9)), 8))
    x = g("Relu", g.norm(g.conv(x, 8, 8, 5), 8))
    contour = g("Sigmoid", g.conv(x, 8, 1, (3, 3)))
    note = g("Relu", g.conv(contour, 1, 8, (7, 7), strides=[1, 3], pads=[3, 2, 3, 2]))
    note = g("Sigmoid", g.conv(note, 8, 1, (7, 3)))
    onset = g("Relu", g.conv(x, 8, 8, (5, 5), strides=[1, 3], pads=[2, 1, 2, 1]))
    onset = g("Sigmoid", g.conv(g("Concat", note, onset, axis=1), 9, 1, 3))
    ends = [g("Squeeze", g("Transpose", y, perm=[0, 2, 3, 1]), [3]) for y in (note, onset, contour)]
    return g.done(ends, 1, 12, 48)


def file_kinds(g: _Graph) -> Exported:
    """Keras: bytes of a file, one hot, along which convolutions run."""
    x = g("Cast", g("OneHot", "x", np.int64(64), np.float32([0, 1]), axis=-1), to=1)
    x = g.matmul(x, 64, 16)
    x = g("LayerNormalization", x, np.ones(16), np.zeros(16))
    x = g("Transpose", x, perm=[0, 2, 1])
    x = g("Relu", g.conv(x, 16, 32, (5,), pads=[0, 0]))
    x = g("ReduceMax", x, axes=[2], keepdims=0)
    x = g("Relu", g.matmul(x, 32, 16))
    return g.done(g("Softmax", g.matmul(x, 16, 12)), 1, 32, integers=64)


def segmentation(g: _Graph) -> Exported:
    """torch: a U-Net."""
    one = g("Relu", g.conv(g("Relu", g.conv("x", 1, 8, 3)), 8, 8, 3))
    two = g("MaxPool", one, kernel_shape=[2, 2], strides=[2, 2])
    two = g("Relu", g.conv(g("Relu", g.conv(two, 8, 16, 3)), 16, 16, 3))
    low = g("MaxPool", two, kernel_shape=[2, 2], strides=[2, 2])
    x = g("Relu", g.conv(low, 16, 32, 3))
    for inputs, outputs, skipped in ((32, 16, two), (16, 8, one)):
        weights = g.constant(g.random.normal(0, inputs**-0.5, (inputs, outputs, 2, 2)))
        x = g("ConvTranspose", x, weights, g.vector(outputs), strides=[2, 2], kernel_shape=[2, 2])
        x = g("Relu", g.conv(g("Concat", skipped, x, axis=1), inputs, outputs, 3))
    return g.done(g("Sigmoid", g.conv(x, 8, 1, 1)), "batch", 1, 32, 32)


def temporal(g: _Graph) -> Exported:
    """torch: dilated causal convolutions, cut and added."""
    x, before = "x", 4
    for dilation in (1, 2, 4):
        pads = [2 * dilation] * 2
        y = g.conv(x, before, 16, (3,), dilations=[dilation], pads=pads)
        y = g("Relu", g("Slice", y, [0], [-2 * dilation], [2], [1]))
        y = g.conv(y, 16, 16, (3,), dilations=[dilation], pads=pads)
        y = g("Relu", g("Slice", y, [0], [-2 * dilation], [2], [1]))
        x = g("Relu", g("Add", y, g.conv(x, before, 16, (1,)) if before != 16 else x))
        before = 16
    return g.done(g.gemm(g("Gather", x, -1, axis=2), 16, 5), "batch", 4, 32)


def _recurrent(op: str, *, both: bool = False) -> Callable[[_Graph], Exported]:
    def recipe(g: _Graph) -> Exported:
        """torch, with the batch first."""
        x = g("Transpose", "x", perm=[1, 0, 2])
        y = g.cells(op, x, 12, 32, both=both)[0]
        if both:
            y = g("Reshape", g("Transpose", y, perm=[0, 2, 1, 3]), [0, 0, -1])
        else:
            y = g("Squeeze", y, [1])
        y = g("Gather", g("Transpose", y, perm=[1, 0, 2]), -1, axis=1)
        return g.done(g.gemm(y, 64 if both else 32, 6), 1, 10, 12)

    return recipe


def multihead_attention(g: _Graph) -> Exported:
    """torch: ``nn.MultiheadAttention`` with the batch second."""
    x = g("Transpose", "x", perm=[1, 0, 2])
    joined = g("Reshape", g.matmul(x, 16, 48), [12, 1, 3, 16])
    joined = g("Squeeze", g("Transpose", g("Unsqueeze", joined, [0]), perm=[3, 1, 2, 0, 4]), [3])
    q, k, v = (g("Gather", joined, number, axis=0) for number in range(3))
    q, k, v = (g("Transpose", g("Reshape", y, [12, 4, 4]), perm=[1, 0, 2]) for y in (q, k, v))
    scores = g("MatMul", g("Mul", q, 0.5), g("Transpose", k, perm=[0, 2, 1]))
    mixed = g("MatMul", g("Softmax", scores, axis=-1), v)
    mixed = g("Reshape", g("Transpose", mixed, perm=[1, 0, 2]), [12, 16])
    y = g("Reshape", g.gemm(mixed, 16, 16), [12, 1, 16])
    return g.done(g("Transpose", y, perm=[1, 0, 2]), 1, 12, 16)


def transformer(g: _Graph) -> Exported:
    """torch: a layer of an encoder, with Gelu by Erf."""
    parts = g("Split", g.matmul("x", 16, 48), [16, 16, 16], axis=2, outputs=3)
    q, k, v = (g("Transpose", g("Reshape", y, [0, 0, 2, 8]), perm=[0, 2, 1, 3]) for y in parts)
    scores = g("Div", g("MatMul", q, g("Transpose", k, perm=[0, 1, 3, 2])), 8**0.5)
    mixed = g("Transpose", g("MatMul", g("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    x = g("Add", "x", g.matmul(g("Reshape", mixed, [0, 0, 16]), 16, 16))
    x = g("LayerNormalization", x, np.ones(16), np.zeros(16), axis=-1)
    y = g.matmul(x, 16, 32)
    y = g("Mul", g("Mul", y, g("Add", g("Erf", g("Div", y, 2**0.5)), 1.0)), 0.5)
    x = g("Add", x, g.matmul(y, 32, 16))
    return g.done(g("LayerNormalization", x, np.ones(16), np.zeros(16), axis=-1), "batch", 12, 16)


def _chosen(g: _Graph, scores: str) -> str:
    """Labels of scikit-learn's exporter."""
    index = g("ArgMax", scores, axis=1)
    label = g("Cast", g("ArrayFeatureExtractor", [0, 1, 2], index), to=TensorProto.INT64)
    return str(g("Reshape", label, [-1]))


def perceptron_classifier(g: _Graph) -> Exported:
    """scikit-learn: MLPClassifier, with its labels."""
    x = g("Cast", "x", to=TensorProto.FLOAT)
    x = g("Relu", g.matmul(x, 20, 32))
    x = g("Softmax", g.matmul(x, 32, 3))
    return g.done([_chosen(g, x), x], 1, 20)


def perceptron_regressor(g: _Graph) -> Exported:
    """scikit-learn: MLPRegressor."""
    x = g("Tanh", g.matmul(g("Cast", "x", to=TensorProto.FLOAT), 13, 24))
    x = g("Tanh", g.matmul(x, 24, 24))
    return g.done(g("Reshape", g.matmul(x, 24, 1), [-1, 1]), 1, 13)


def components(g: _Graph) -> Exported:
    """scikit-learn: PCA, then a logistic regression."""
    x = g("MatMul", g("Sub", "x", g.vector(30)), g.random.normal(0, 30**-0.5, (30, 6)))
    _, scores = g("LinearClassifier", x, outputs=2, multi_class=1, post_transform="SOFTMAX",
                  coefficients=g.random.normal(0, 1, 18), intercepts=g.random.normal(0, 0.1, 3),
                  classlabels_ints=[0, 1, 2])  # fmt: skip
    return g.done([g.nodes[-1].output[0], scores], 1, 30)


def scaled_classifier(g: _Graph) -> Exported:
    """scikit-learn: StandardScaler, then a logistic regression of labels that are text."""
    x = g("Scaler", "x", offset=g.random.normal(0, 1, 8), scale=g.random.uniform(0.5, 2, 8))
    label, scores = g("LinearClassifier", x, outputs=2, multi_class=1, post_transform="LOGISTIC",
                      coefficients=g.random.normal(0, 0.5, 24), intercepts=g.random.normal(0, 1, 3),
                      classlabels_strings=["a", "b", "c"])  # fmt: skip
    y = g("Normalizer", scores, norm="L1")
    return g.done([label, y], 1, 8, keep=[y])


def linear_regressor(g: _Graph) -> Exported:
    """scikit-learn: StandardScaler, then a linear regression."""
    x = g("Scaler", "x", offset=g.random.normal(0, 1, 10), scale=g.random.uniform(0.5, 2, 10))
    y = g("LinearRegressor", x, coefficients=g.random.normal(0, 0.5, 10), intercepts=[0.3])
    return g.done(y, 1, 10)


def flowers(g: _Graph) -> Exported:
    """Keras: the smallest perceptron."""
    x = g("Relu", g.matmul("x", 4, 8))
    return g.done(g("Softmax", g.matmul(x, 8, 3)), "batch", 4)


def autoencoder(g: _Graph) -> Exported:
    """torch: a vector through a narrow layer."""
    x, before = "x", 128
    for size in (48, 8, 48):
        x, before = g("Relu", g.gemm(x, before, size)), size
    return g.done(g.gemm(x, before, 128), "batch", 128)


def residual(g: _Graph) -> Exported:
    """torch: a small ResNet, whose normalisations are folded."""
    x = g("Relu", g.conv("x", 3, 16, 3))
    for inputs, outputs, stride in ((16, 16, 1), (16, 32, 2)):
        y = g("Relu", g.conv(x, inputs, outputs, 3, strides=[stride] * 2))
        y = g.conv(y, outputs, outputs, 3)
        x = x if stride == 1 else g.conv(x, inputs, outputs, 1, strides=[2, 2])
        x = g("Relu", g("Add", y, x))
    return g.done(g.gemm(g("Flatten", g("GlobalAveragePool", x)), 32, 10), "batch", 3, 24, 24)


def mobile(g: _Graph) -> Exported:
    """torch: MobileNet-v2's blocks."""
    x = g("Clip", g.conv("x", 3, 8, 3, strides=[2, 2]), 0.0, 6.0)
    for inputs, outputs, stride in ((8, 16, 2), (16, 16, 1)):
        wide = 4 * inputs
        y = g("Clip", g.conv(x, inputs, wide, 1), 0.0, 6.0)
        y = g("Clip", g.conv(y, wide, wide, 3, group=wide, strides=[stride] * 2), 0.0, 6.0)
        y = g.conv(y, wide, outputs, 1)
        x = g("Add", x, y) if inputs == outputs else y
    x = g("ReduceMean", g("Clip", g.conv(x, 16, 32, 1), 0.0, 6.0), axes=[2, 3], keepdims=0)
    return g.done(g.gemm(x, 32, 10), "batch", 3, 32, 32)


def keywords(g: _Graph) -> Exported:
    """torch: convolutions over a signal."""
    x, before = "x", 1
    for channels, kernel, stride in ((16, 16, 4), (32, 3, 1), (32, 3, 1)):
        x = g("Relu", g.conv(x, before, channels, (kernel,), strides=[stride], pads=[1, 1]))
        x = g("MaxPool", x, kernel_shape=[4], strides=[4])
        before = channels
    x = g("ReduceMean", x, axes=[2], keepdims=0)
    return g.done(g("LogSoftmax", g.gemm(x, 32, 10), axis=1), "batch", 1, 512)


def digits(g: _Graph) -> Exported:
    """Convolutions with a scaled tanh, as of LeCun et al. 1998."""
    x = "x"
    for inputs, outputs in ((1, 6), (6, 50)):
        x = g.conv(x, inputs, outputs, 5, strides=[2, 2], pads=[0] * 4)
        x = g("Mul", g("Tanh", g("Mul", x, 0.6667)), 1.7159)
    x = g.gemm(g("Flatten", x), 1250, 100)
    x = g("Mul", g("Tanh", g("Mul", x, 0.6667)), 1.7159)
    return g.done(g.gemm(x, 100, 10), "batch", 1, 29, 29)


RECIPES: dict[str, Callable[[_Graph], Exported]] = {
    each.__name__: each
    for each in (
        captcha, text_detector, text_direction, text_recogniser, voice_activity, pitches,
        file_kinds, segmentation, temporal, multihead_attention, transformer,
        perceptron_classifier, perceptron_regressor, components, scaled_classifier,
        linear_regressor, flowers, autoencoder, residual, mobile, keywords, digits,
    )
} | {
    "lstm": _recurrent("LSTM"),
    "gru": _recurrent("GRU"),
    "gru_both_ways": _recurrent("GRU", both=True),
}  # fmt: skip


class Measured(NamedTuple):
    """A model that ran on the timing model, with the error of its worst output."""

    run: vip.ModelRun
    error: float


def measured(name: str, folder: Path) -> Measured:
    """Compile and run a model, whose outputs must be the golden model's.

    Raises:
        VipError: it does not compile, or its outputs differ.
    """
    made = RECIPES[name](_Graph(sum(map(ord, name))))
    onnx.save(made.model, folder / f"{name}.onnx")
    compiled = vip.compile_model(
        folder / f"{name}.onnx", made.data, folder / name, outputs=made.outputs
    )
    one = {tensor: values[:1] for tensor, values in made.data.items()}
    run = vip.run_model(folder / name, one, on="model")
    return Measured(run, max(output.error for output in compiled.outputs))


def _fitted(items: Sequence[tuple[dict[str, float], int]], names: Sequence[str]) -> Any:
    """Cycles per part of the effort, none negative, with small relative errors; few large ones."""
    parts = np.array([[effort.get(name, 0.0) for name in names] for effort, _ in items])
    cycles = np.array([counted for _, counted in items], float)
    weights = np.ones(len(items))
    for _ in range(20):
        scale = weights / cycles
        found, _ = nnls(parts * scale[:, np.newaxis], cycles * scale)
        weights = 1 / np.sqrt(np.maximum(np.abs(parts @ found / cycles - 1), 0.05))
    each = zip(names, map(float, found), strict=True)
    return {name: round(value, 3) for name, value in each if value}


def _record(layers: Sequence[LayerFigures]) -> None:
    """Write what predictions need."""
    items: dict[str, list[tuple[dict[str, float], int]]] = {}
    vectors: dict[str, list[int]] = {}
    for layer in layers:
        for kind, counted, length in (
            (layer.kind, layer.cycles, layer.vectors),
            ("moves", layer.moves, 0),
        ):
            if counted:
                items.setdefault(kind, []).append((dict(layer.effort), counted))
                vectors.setdefault(kind, []).append(length)
    pace: dict[str, Any] = {}
    for kind, every in sorted(items.items()):
        names = _MOVES if kind == "moves" else _PARTS[: 8 if len(every) >= _MANY else 2]
        cycles = _fitted(every, names)
        worst: dict[tuple[float, ...], float] = {}
        for (effort, counted), length in zip(every, vectors[kind], strict=True):
            predicted = sum(each * effort.get(name, 0.0) for name, each in cycles.items())
            like = likeness(effort, predicted, length)
            # Up, so that none just beyond the largest error counts as known.
            off = ceil(1000 * abs(predicted / counted - 1)) / 1000
            worst[like] = max(worst.get(like, 0.0), off)
        pace[kind] = {"cycles": cycles, "measured": [[*like, off] for like, off in worst.items()]}
    lines = ",\n".join(
        f'"{kind}": {{"cycles": {json.dumps(one["cycles"])},\n"measured": [\n'
        + ",\n".join(map(json.dumps, one["measured"]))
        + "]}"
        for kind, one in pace.items()
    )
    PACE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def summary(layers: Sequence[LayerFigures]) -> str:
    """How far known predictions of layers are off."""
    off = [abs(layer.off) for layer in layers if layer.known]
    return (
        f"{len(off)} of {len(layers)} layers known, within {np.mean(off):.1%} in the mean, "
        f"{max(off):.0%} at worst"
    )


def _lines(names: Sequence[str], *, record: bool) -> Iterator[str]:
    layers: list[LayerFigures] = []
    with TemporaryDirectory() as scratch:
        for name in names:
            try:
                run, error = measured(name, Path(scratch))
            except VipError as refused:
                yield f"{name}: {refused}"
                continue
            own = [layer for layer in run.layers if layer.cycles + layer.moves]
            layers += own
            whole = sum(layer.predicted + layer.predicted_moves for layer in own)
            yield (
                f"{name}: error {error:.1e}, {run.cycles:,} cycles, predicted "
                f"{whole / run.cycles - 1:+.0%}; {summary(own)}"
            )
    if record:
        _record(layers)
        _pace.cache_clear()
    if layers:
        yield summary(layers)


if __name__ == "__main__":
    chosen = [name for name in sys.argv[1:] if name != "--record"] or list(RECIPES)
    for line in _lines(chosen, record="--record" in sys.argv):
        print(line, flush=True)
