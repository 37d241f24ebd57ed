"""Depthwise convolutions of ONNX models, as in MobileNet and DS-CNN."""

import numpy as np
import pytest
from onnx import NodeProto, helper

from microkernels.networks.network import Conv, Depthwise
from tests.onnx_models.graphs import model
from tests.onnx_models.test_mapping import SEVERAL, check

RANDOM = np.random.default_rng(11)


def block(
    name: str, x: str, channels: int, filters: int, stride: int
) -> tuple[list[NodeProto], dict[str, np.ndarray]]:
    """A depthwise convolution of 3 x 3 with normalisation, and a pointwise one, with ReLU."""
    numbers = {f"{name}{part}": RANDOM.uniform(0.5, 1.5, channels) for part in "smv"}
    constants = numbers | {
        f"{name}d": RANDOM.normal(size=(channels, 1, 3, 3)) * 0.5,
        f"{name}o": RANDOM.normal(size=channels) * 0.1,
        f"{name}p": RANDOM.normal(size=(filters, channels, 1, 1)) / np.sqrt(channels),
    }
    steps = [
        helper.make_node(
            "Conv",
            [x, f"{name}d"],
            [f"{name}1"],
            group=channels,
            strides=[stride, stride],
            pads=[1, 1, 1, 1],
            name=f"{name}_depthwise",
        ),
        helper.make_node(
            "BatchNormalization",
            [f"{name}1", f"{name}s", f"{name}o", f"{name}m", f"{name}v"],
            [f"{name}2"],
        ),
        helper.make_node("Relu", [f"{name}2"], [f"{name}3"]),
        helper.make_node("Conv", [f"{name}3", f"{name}p"], [f"{name}4"], name=f"{name}_point"),
        helper.make_node("Relu", [f"{name}4"], [name]),
    ]
    return steps, constants


@pytest.mark.parametrize("several", [False, True])
def test_a_network_of_depthwise_and_pointwise_layers(several: bool) -> None:
    first, one = block("a", "x", 6, 20, 1)
    second, other = block("b", "a", 20, 8, 2)
    nodes = [
        *first,
        *second,
        helper.make_node("GlobalAveragePool", ["b"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"], transB=1),
    ]
    made = model(nodes, (2, 6, 11, 10), {**one, **other, "w": RANDOM.normal(size=(4, 8))})
    x = RANDOM.normal(size=(2, 6, 11, 10)).astype(np.float32)
    done = check(made, x, engines=SEVERAL if several else None)
    layers = {layer.name: layer for layer in done.network.layers}
    for name in ("a_depthwise", "b_depthwise"):
        # With normalisation and ReLU.
        layer = layers[name]
        assert isinstance(layer, Depthwise)
        assert layer.relu
    assert isinstance(layers["a_point"], Conv)


def test_two_filters_of_a_channel_are_a_dense_convolution() -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=3, name="conv")
    made = model([node], (1, 3, 5, 6), {"w": RANDOM.normal(size=(6, 1, 2, 3))})
    done = check(made, RANDOM.normal(size=(1, 3, 5, 6)).astype(np.float32))
    assert isinstance(done.network.layers[-1], Conv)


@pytest.mark.parametrize(
    ("size", "kernel", "pads", "strides", "dilations"),
    [
        ((40,), (20,), (9, 10), (1,), (1,)),
        ((17, 13), (9, 9), (4, 4, 4, 4), (1, 1), (1, 1)),
        ((17, 19), (5, 11), (0, 3, 2, 5), (2, 1), (1, 1)),
        ((11, 60), (1, 45), (0, 0, 0, 9), (1, 2), (1, 1)),
        ((15, 14), (3, 2), (2, 1, 2, 0), (1, 1), (2, 3)),
    ],
)
def test_any_window_is_depthwise(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    pads: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> None:
    random = np.random.default_rng(31)
    more = {"pads": pads, "strides": strides, "dilations": dilations}
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], group=6, name="conv", **more)
    constants = {
        "w": random.normal(size=(6, 1, *kernel)) / np.prod(kernel) ** 0.5,
        "b": random.normal(size=6) * 0.1,
    }
    x = random.normal(size=(1, 6, *size)).astype(np.float32)
    done = check(model([node], (1, 6, *size), constants), x)
    windows = [layer for layer in done.network.layers if isinstance(layer, Depthwise)]
    assert not any(isinstance(layer, Conv) for layer in done.network.layers)
    assert sum(layer.taps.width * layer.taps.height for layer in windows) == np.prod(kernel)
