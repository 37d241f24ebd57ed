"""The encoder of a transformer with seeded weights, as an ONNX model."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from support.extras import need

from .graphs import Reals, model_of

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

__all__ = ["encoder", "sequences"]


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
