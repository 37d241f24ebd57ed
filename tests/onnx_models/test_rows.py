"""Matrix products, softmax and normalisations of ONNX models, and a transformer's encoder."""

import numpy as np
import pytest
from onnx import ModelProto, helper

from microkernels.data.models.small import encoder, sequences
from microkernels.networks.network import Product
from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import read_graph
from tests.onnx_models.graphs import model
from tests.onnx_models.test_mapping import SEVERAL, check

RANDOM = np.random.default_rng(5)


def drawn(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "weights"), [((1, 6, 8), (8, 5)), ((2, 3, 4, 8), (8, 6)), ((1, 2, 6, 8), (2, 8, 3))]
)
def test_products_with_constants(shape: tuple[int, ...], weights: tuple[int, ...]) -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    check(model([node], shape, {"w": drawn(*weights)}), drawn(*shape))


def test_the_product_of_two_vectors_is_a_scalar() -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    check(model([node], (3,), {"w": drawn(3)}), drawn(3))


@pytest.mark.parametrize("several", [False, True])
def test_products_of_two_inputs(several: bool) -> None:
    """The second factor is the first one's transpose, then single elements would move."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["x", "t"], ["s"]),
        helper.make_node("MatMul", ["s", "x"], ["y"]),
    ]
    done = check(
        model(nodes, (1, 2, 6, 8)), drawn(1, 2, 6, 8), engines=SEVERAL if several else None
    )
    layers = done.network.layers
    # One more product is the transpose.
    assert sum(isinstance(layer, Product) for layer in layers) == 3


@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 10), -1), ((1, 3, 4, 5), -1), ((1, 3, 4, 5), 1), ((1, 3, 4, 5), 2)]
)
def test_softmax_along_any_axis(shape: tuple[int, ...], axis: int) -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=axis)
    check(model([node], shape), 3 * drawn(*shape))


def test_softmax_of_old_models_is_of_all_axes_from_one_on() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    check(model([node], (2, 3, 4), opset=11), drawn(2, 3, 4))


def typed(made: ModelProto, shape: tuple[int, ...]) -> ModelProto:
    """The model with the shape of its output, which ONNX does not infer for these groups."""
    del made.graph.output[:]
    made.graph.output.append(helper.make_tensor_value_info("y", 1, shape))
    return made


def test_groups_that_do_not_divide_the_channels_are_refused() -> None:
    node = helper.make_node("GroupNormalization", ["x", "w", "w"], ["y"], num_groups=2)
    made = typed(model([node], (1, 3, 4), {"w": np.ones(3)}, opset=21), (1, 3, 4))
    coverage = map_graph(read_graph(made), OPERATORS)
    assert coverage.refused[0].why == "num_groups must divide the 3 channels, not be 2"


@pytest.mark.parametrize("op", ["GroupNormalization", "InstanceNormalization"])
def test_normalization_of_groups_of_channels(op: str) -> None:
    attributes = {"num_groups": 3} if op.startswith("Group") else {}
    node = helper.make_node(op, ["x", "s", "b"], ["y"], epsilon=1e-3, **attributes)
    made = model([node], (2, 6, 9, 11), {"s": drawn(6), "b": drawn(6)}, opset=21)
    check(typed(made, (2, 6, 9, 11)), drawn(2, 6, 9, 11) * 3 + 1)


def test_products_of_rows_longer_than_a_vector() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
    ]
    done = check(model(nodes, (1, 5, 600)), drawn(1, 5, 600))
    assert sum(isinstance(layer, Product) for layer in done.network.layers) >= 3


@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_normalization(axis: int) -> None:
    node = helper.make_node("LayerNormalization", ["x", "w", "b"], ["y"], axis=axis)
    constants = {"w": drawn(6, 8)[0] if axis < 0 else drawn(6, 8), "b": drawn(8)}
    check(model([node], (2, 6, 8), constants), 2 * drawn(2, 6, 8) + 1)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("op", ["Softmax", "LayerNormalization", "RMSNormalization"])
def test_rows_longer_than_a_vector(op: str, several: bool) -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["g"]),
        helper.make_node(op, ["g", "s"] if op != "Softmax" else ["g"], ["n"]),
        helper.make_node("Gemm", ["n", "v"], ["y"]),
    ]
    constants = {"w": drawn(7, 1000), "s": drawn(1000), "v": drawn(1000, 3)}
    made = model(nodes, (2, 7), constants, opset=23)
    check(made, drawn(2, 7), bound=5e-3, engines=SEVERAL if several else None)


@pytest.mark.parametrize("op", ["Softmax", "LayerNormalization"])
def test_long_rows_of_the_model_s_input(op: str) -> None:
    node = helper.make_node(op, ["x", "s"] if op != "Softmax" else ["x"], ["y"])
    check(model([node], (2, 3, 257), {"s": drawn(257)}, opset=21), drawn(2, 3, 257), bound=5e-3)


@pytest.mark.parametrize(
    ("node", "shape", "constants", "why"),
    [
        (helper.make_node("Softmax", ["x"], ["y"]), (1, 3000), {}, "at most 2048"),
        (
            helper.make_node("MatMul", ["x", "w"], ["y"]),
            (1, 3, 2100),
            {"w": np.ones((1, 2100, 2))},
            "at most 2048",
        ),
        (
            helper.make_node("InstanceNormalization", ["x", "w", "w"], ["y"]),
            (1, 3, 50, 50),
            {"w": np.ones(3)},
            "its groups have 2500 elements; at most 2048",
        ),
        (
            helper.make_node("LayerNormalization", ["x", "w"], ["y"], epsilon=2.0),
            (1, 2, 3),
            {"w": np.ones(3)},
            "epsilon must be from 0 to 1",
        ),
    ],
)
def test_unsupported_nodes_are_refused(node, shape, constants, why: str) -> None:
    coverage = map_graph(read_graph(model([node], shape, constants, opset=21)), OPERATORS)
    assert coverage.model is None
    assert why in coverage.refused[0].why


@pytest.mark.parametrize("several", [False, True])
def test_an_encoder_of_a_transformer(several: bool) -> None:
    x = sequences(1, length=10, features=16)
    made = encoder(length=10, features=16, wide=24)
    done = check(made, x, engines=SEVERAL if several else None)
    kinds = [type(layer).__name__ for layer in done.network.layers]
    # Two normalisations and softmax; scores, mixed values, and values as columns.
    assert (kinds.count("Normalize"), kinds.count("Product")) == (3, 3)


@pytest.mark.parametrize("operator", ["Gelu", "Erf"])
def test_functions_that_are_polynomials(operator: str) -> None:
    node = helper.make_node(operator, ["x"], ["y"])
    check(model([node], (2, 5, 7), opset=20), 3 * drawn(2, 5, 7))


def test_gemm_of_two_matrices() -> None:
    """Without a batch, and with both factors transposed."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Gemm", ["x", "r", "c"], ["y"], alpha=0.5, beta=2.0, transA=1),
    ]
    check(model(nodes, (6, 5), {"c": drawn(5)}), drawn(6, 5))
