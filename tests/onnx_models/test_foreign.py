"""Small models as other programs write them, compiled, beside onnxruntime."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper

import vip
from tests.onnx_models.graphs import model, reference

RANDOM = np.random.default_rng(47)


class Case(NamedTuple):
    """Nodes, shape of the input x, constants, and the batch with which the model is compiled."""

    nodes: list[NodeProto]
    shape: tuple[int | str, ...]
    constants: dict[str, Any]
    batch: int | None = None
    opset: int = 17


class Graph:
    """Nodes, each with a name for its output, and weights."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Any] = {}

    def __call__(self, op: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; inputs that are no names are constants."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        tensors = [f"t{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(op, names, tensors, **attributes))
        return tensors[0] if outputs == 1 else tensors

    def constant(self, values: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(values)
        return name

    def weights(self, *shape: int) -> str:
        """Random ones, by which variances stay."""
        return self.constant(RANDOM.normal(0, np.prod(shape[1:]) ** -0.5, shape))

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        weights = self.constant(RANDOM.normal(0, inputs**-0.5, (inputs, outputs)))
        return self(
            "Add", self("MatMul", x, weights), self.constant(RANDOM.normal(0, 0.1, outputs))
        )

    def done(self, last: str, *shape: int | str, **more: Any) -> Case:
        self("Identity", last)
        self.nodes[-1].output[0] = "y"
        return Case(self.nodes, shape, self.constants, **more)


def graph_network() -> Case:
    g = Graph()
    near = RANDOM.random((6, 6)) < 0.4
    x = g("MatMul", (near / 3).astype(float), "x")
    x = g("Relu", g.linear(x, 6, 6))
    return g.done(g.linear(g("MatMul", (near / 3).astype(float), x), 6, 6), 6, 6)


def graph_attention() -> Case:
    """Scores of pairs of nodes, masked, with as many nodes as features."""
    g = Graph()
    h = g.linear("x", 5, 5)
    first, second = g.linear(h, 5, 1), g.linear(h, 5, 1)
    scores = g("LeakyRelu", g("Add", first, g("Transpose", second)), alpha=0.2)
    mask = np.where(RANDOM.random((5, 5)) < 0.5, 0.0, -4.0)
    return g.done(g("MatMul", g("Softmax", g("Add", scores, mask), axis=1), h), 5, 5)


def cosine_transform() -> Case:
    g = Graph()
    k, n = np.mgrid[:8, :8]
    d = np.cos(np.pi * (2 * n + 1) * k / 16) / 2
    return g.done(g("MatMul", g("MatMul", d, "x"), d.T), 8, 8)


def gram_matrix() -> Case:
    g = Graph()
    return g.done(g("MatMul", "x", g("Transpose", "x")), 4, 4)


def channels_last() -> Case:
    """Exported by TensorFlow: transposes around each convolution."""
    g = Graph()
    x = g("Transpose", "x", perm=[0, 3, 1, 2])
    x = g("Conv", x, g.weights(4, 3, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    x = g("Transpose", x, perm=[0, 2, 3, 1])
    x = g("Relu", g("Add", x, [0.1, -0.2, 0.3, 0.0]))
    return g.done(g("ReduceMean", x, axes=[1, 2], keepdims=0), "n", 8, 8, 3)


def reversed_colours() -> Case:
    g = Graph()
    x = g("Slice", "x", [-1], [-9], [0], [-1])
    x = g("Mul", g("Sub", x, [[[0.4]], [[0.5]], [[0.6]]]), [[[4.0]], [[5.0]], [[6.0]]])
    return g.done(x, 3, 5, 5)


def gathered_colours() -> Case:
    g = Graph()
    x = g("Gather", "x", [2, 1, 0], axis=1)
    x = g("Conv", x, g.weights(4, 3, 3, 3))
    return g.done(g("Flatten", g("GlobalMaxPool", x)), "n", 3, 6, 6)


def rolled() -> Case:
    """Windows that are moved, as of a shifted-window transformer."""
    g = Graph()
    first, last = g("Slice", "x", [0], [2], [1]), g("Slice", "x", [2], [9], [1])
    return g.done(g("Concat", last, first, axis=1), "n", 6, 4)


def time_first(op: str) -> Callable[[], Case]:
    def case() -> Case:
        g = Graph()
        gates = 4 if op == "LSTM" else 3
        w, r = g.weights(1, gates * 6, 4), g.weights(1, gates * 6, 6)
        b = g.constant(RANDOM.normal(0, 0.1, (1, 2 * gates * 6)))
        sequence, _ = g(op, "x", w, r, b, hidden_size=6, outputs=2)
        last = g("Gather", g("Squeeze", sequence, [1]), -1)
        return g.done(g.linear(last, 6, 3), 3, 1, 4)

    return case


def batch_first_by_transposes() -> Case:
    """A recurrent layer of PyTorch with the batch first."""
    g = Graph()
    x = g("Transpose", "x", perm=[1, 0, 2])
    w, r = g.weights(1, 24, 4), g.weights(1, 24, 6)
    _, last = g("LSTM", x, w, r, hidden_size=6, outputs=2)
    return g.done(g.linear(g("Squeeze", last, [0]), 6, 3), 1, 3, 4)


def class_token() -> Case:
    g = Graph()
    patches = g("Conv", "x", g.weights(6, 3, 4, 4), strides=[4, 4])
    patches = g("Transpose", g("Reshape", patches, [0, 6, -1]), perm=[0, 2, 1])
    x = g("Concat", g.constant(RANDOM.normal(size=(1, 1, 6))), patches, axis=1)
    x = g("Add", x, g.constant(RANDOM.normal(0, 0.2, (1, 5, 6))))
    x = g("LayerNormalization", x, np.ones(6), np.zeros(6))
    return g.done(g.linear(g("Gather", x, 0, axis=1), 6, 3), 1, 3, 8, 8)


def attention() -> Case:
    """Two heads, without Einsum."""
    g = Graph()
    parts = g("Split", g.linear("x", 8, 24), [8, 8, 8], axis=2, outputs=3)
    q, k, v = (g("Transpose", g("Reshape", p, [0, 5, 2, 4]), perm=[0, 2, 1, 3]) for p in parts)
    scores = g("Mul", g("MatMul", q, g("Transpose", k, perm=[0, 1, 3, 2])), 0.5)
    mixed = g("MatMul", g("Softmax", scores, axis=-1), v)
    x = g("Reshape", g("Transpose", mixed, perm=[0, 2, 1, 3]), [0, 5, 8])
    return g.done(g("Add", g.linear(x, 8, 8), "x"), "n", 5, 8)


def normalization_by_parts() -> Case:
    """LayerNormalization and Gelu as older opsets have them."""
    g = Graph()
    centred = g("Sub", "x", g("ReduceMean", "x", axes=[-1]))
    variance = g("ReduceMean", g("Pow", centred, 2.0), axes=[-1])
    x = g("Div", centred, g("Sqrt", g("Add", variance, 1e-3)))
    x = g.linear(x, 8, 8)
    half = g("Add", g("Erf", g("Div", x, 2**0.5)), 1.0)
    return g.done(g("Mul", g("Mul", x, half), 0.5), "n", 4, 8)


def mixer() -> Case:
    """Layers along positions and along channels."""
    g = Graph()
    x = g("Transpose", "x", perm=[0, 2, 1])
    x = g("Transpose", g("Relu", g.linear(x, 4, 4)), perm=[0, 2, 1])
    return g.done(g.linear(g("Add", x, "x"), 6, 6), "n", 4, 6)


def rows_of_all_images() -> Case:
    """A fully connected layer of PyTorch on three axes."""
    g = Graph()
    x = g("Gemm", g("Reshape", "x", [-1, 6]), g.weights(5, 6), g.constant(np.ones(5)), transB=1)
    return g.done(g("Reshape", x, [-1, 4, 5]), "n", 4, 6)


def filter_bank() -> Case:
    """Of signals of one channel, in long steps, and convolutions over time after it."""
    g = Graph()
    x = g("Conv", "x", g.weights(5, 1, 1, 16), strides=[1, 16], pads=[0, 0, 0, 16])
    x = g("Softmax", g("Conv", x, g.weights(3, 5, 1, 2)), axis=1)
    return g.done(g("ReduceSum", x, [2], keepdims=0), "n", 1, 1, 64)


def depthwise_in_time() -> Case:
    """A network for EEG: filters in time, then across electrodes."""
    g = Graph()
    x = g("Conv", "x", g.weights(4, 1, 1, 8), pads=[0, 4, 0, 3])
    x = g("Elu", g("Conv", x, g.weights(8, 1, 6, 1), group=4))
    x = g("AveragePool", x, kernel_shape=[1, 4], strides=[1, 4])
    return g.done(g.linear(g("Flatten", x), 32, 3), "n", 1, 6, 16)


def causal_convolutions() -> Case:
    g = Graph()
    x = g("Conv", "x", g.weights(4, 3, 3), pads=[4, 4], dilations=[2])
    x = g("Pad", x, [0, 0, 0, 0, 0, -4])
    return g.done(g("Tanh", g("Slice", x, [-4], [99], [2])), "n", 3, 12)


def squeeze_and_excite() -> Case:
    g = Graph()
    x = g("Conv", "x", g.weights(8, 3, 3, 3), pads=[1, 1, 1, 1])
    gate = g("Relu", g("Conv", g("GlobalAveragePool", x), g.weights(2, 8, 1, 1)))
    gate = g("HardSigmoid", g("Conv", gate, g.weights(8, 2, 1, 1)), alpha=1 / 6)
    return g.done(g("Mul", x, gate), "n", 3, 6, 6)


def shuffled_channels() -> Case:
    g = Graph()
    x = g("Conv", "x", g.weights(6, 1, 3, 3), group=3, pads=[1, 1, 1, 1])
    x = g("Transpose", g("Reshape", x, [0, 3, 2, 4, 4]), perm=[0, 2, 1, 3, 4])
    return g.done(g("Reshape", x, [0, 6, 4, 4]), "n", 3, 4, 4)


def upsampled_and_joined() -> Case:
    g = Graph()
    down = g("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2])
    up = g("Resize", g("Conv", down, g.weights(3, 2, 1, 1)), "", [1.0, 1.0, 2.0, 2.0],
           coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    up = g("Conv", g("Concat", up, "x", axis=1), g.weights(8, 5, 3, 3), pads=[1, 1, 1, 1])
    return g.done(g("DepthToSpace", up, blocksize=2, mode="CRD"), "n", 2, 6, 6)


def windows() -> Case:
    """Parts of a map, each of which is mixed."""
    g = Graph()
    x = g("Transpose", g("Reshape", "x", [0, 2, 2, 2, 2, 3]), perm=[0, 1, 3, 2, 4, 5])
    x = g.linear(g("Reshape", x, [-1, 4, 3]), 3, 3)
    x = g("MatMul", g("Softmax", g("MatMul", x, g("Transpose", x, perm=[0, 2, 1]))), x)
    return g.done(g("Reshape", x, [-1, 4, 4, 3]), 1, 4, 4, 3)


def gated() -> Case:
    g = Graph()
    one, other = g("Split", g.linear("x", 6, 12), [6, 6], axis=-1, outputs=2)
    return g.done(g("ReduceL2", g("Mul", one, g("Sigmoid", other)), axes=[-1]), "n", 3, 6)


def constants_by_image() -> Case:
    g = Graph()
    x = g("Mul", "x", g.constant(RANDOM.normal(size=(3, 1, 4))))
    x = g("MatMul", x, g.constant(RANDOM.normal(size=(3, 4, 4))))
    x = g("Concat", x, g.constant(RANDOM.normal(size=(3, 1, 4))), axis=1)
    return g.done(g("Add", x, g.constant(RANDOM.normal(size=(3, 1, 1)))), 3, 2, 4)


def declared_batch() -> Case:
    g = Graph()
    x = g("Relu", g.linear("x", 4, 4))
    return g.done(g("Softmax", g.linear(x, 4, 4)), 4, 4, batch=4)


def one_axis() -> Case:
    """A score of each image, without an axis of its own."""
    g = Graph()
    return g.done(g("Squeeze", g("Sigmoid", g.linear("x", 6, 1)), [1]), "n", 6, batch=3)


def spread_constants() -> Case:
    """Anchors of a detector: constants of more positions than the input has."""
    g = Graph()
    anchors = g.constant(RANDOM.uniform(0.5, 2, (1, 6, 1)))
    x = g("Mul", g("Reshape", "x", [1, 1, 4]), anchors)
    return g.done(g("Clip", g("Add", x, anchors), -1.0, 2.0), 1, 4)


CASES: dict[str, Callable[[], Case]] = {
    each.__name__.replace("_", " "): each
    for each in (
        graph_network, graph_attention, cosine_transform, gram_matrix, channels_last,
        reversed_colours, gathered_colours, rolled, batch_first_by_transposes, class_token,
        attention, normalization_by_parts, mixer, rows_of_all_images, filter_bank,
        depthwise_in_time, causal_convolutions, squeeze_and_excite, shuffled_channels,
        upsampled_and_joined, windows, gated, constants_by_image, declared_batch, one_axis,
        spread_constants,
    )
} | {f"{op} with the time first": time_first(op) for op in ("LSTM", "GRU")}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_compiled_models_do_what_onnxruntime_does(tmp_path: Path, name: str) -> None:
    case = CASES[name]()
    proto = model(case.nodes, case.shape, case.constants, opset=case.opset)
    onnx.save(proto, tmp_path / "m.onnx")
    count = case.batch or (1 if case.shape[0] == "n" else case.shape[0])
    shape = (count, *case.shape[1:])
    runs = RANDOM.uniform(-1, 1, (6, *shape)).astype(np.float32)
    batched = case.shape[0] in ("n", 1) or case.batch or name == "constants by image"
    data = runs.reshape(-1, *shape[1:]) if batched else runs
    vip.compile_model(tmp_path / "m.onnx", {"x": data}, tmp_path / "m", batch=case.batch)
    output = vip.run_model(tmp_path / "m", {"x": data}, on="golden").outputs["y"]
    expected = np.stack([reference(proto, x)[0] for x in runs])
    # A first axis of one image is that of the images.
    joined = batched or expected.shape[1] == 1
    assert output.shape == (expected.reshape(-1, *expected.shape[2:]) if joined else expected).shape
    largest = np.abs(expected).max()
    np.testing.assert_allclose(output.reshape(expected.shape), expected, atol=4e-3 * largest)
