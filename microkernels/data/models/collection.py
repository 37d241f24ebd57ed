"""All models by name, inputs for them, and the light graphs of the ``onnx`` package.

The light graphs have weights that are constants of a node, all alike; here they are random, of the
usual size.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from support.extras import need

from .graphs import Reals
from .small import SMALL, encoder

if TYPE_CHECKING:
    from onnx import ModelProto

_ENCODER = "encoder"
#: Images for calibration of small models; vectors, of which each shows less of the maps' range.
_IMAGES, _VECTORS = 64, 512


def names() -> list[str]:
    """Names of the models, small ones first.

    Raises:
        MissingExtraError: onnx is not installed.
    """
    return [*SMALL, _ENCODER, *light_names()]


def make(name: str) -> "ModelProto":
    """The model of a name.

    Raises:
        MissingExtraError: onnx is not installed.
        KeyError: no such model.
    """
    if name in SMALL:
        return SMALL[name]()
    if name == _ENCODER:
        return encoder()
    if name not in light_names():
        raise KeyError(name)
    return light_model(name)


def inputs_of(name: str, model: "ModelProto", *, seed: int = 2) -> dict[str, Reals]:
    """Random inputs with mean 0 and deviation 1, by tensor: one image of a light graph, 64 of
    another model, 512 if they are vectors."""
    constants = {value.name for value in model.graph.initializer}
    (source,) = (value for value in model.graph.input if value.name not in constants)
    shape = [dim.dim_value for dim in source.type.tensor_type.shape.dim]
    images = _VECTORS if len(shape) == 2 else _IMAGES
    if name in light_names():
        images = 1
    random = np.random.default_rng(seed)
    return {source.name: random.normal(0, 1, (images, *shape[1:])).astype(np.float32)}


def _folder() -> Path:
    need("onnx", "models")
    import onnx

    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def light_names() -> list[str]:
    """The graphs' names, sorted.

    Raises:
        MissingExtraError: onnx is not installed.
    """
    return sorted(path.stem.removeprefix("light_") for path in _folder().glob("*.onnx"))


def _values(random: np.random.Generator, op: str, number: int, shape: list[int]) -> Reals:
    """Weights of the input ``number`` of an operator."""
    if op == "BatchNormalization":
        mean = 1.0 if number in (1, 4) else 0.0
        return np.abs(random.normal(mean, 0.1, shape)) if mean else random.normal(0, 0.1, shape)
    if op in ("Conv", "Gemm") and number == 1:
        inputs = np.prod(shape[1:])
        return random.normal(0, np.sqrt(2 / inputs), shape)
    if op == "Mul":
        return np.abs(random.normal(1, 0.1, shape))
    return random.normal(0, 0.05, shape)


def light_model(name: str) -> "ModelProto":
    """A light graph with seeded weights.

    Parameters:
        name: one of :func:`light_names`.

    Raises:
        MissingExtraError: onnx is not installed.
    """
    folder = _folder()
    import onnx
    from onnx import numpy_helper

    model = onnx.load(folder / f"light_{name}.onnx")
    graph = model.graph
    random = np.random.default_rng(1)
    shapes = {value.name: numpy_helper.to_array(value) for value in graph.initializer}
    users = {name: (node.op_type, n) for node in graph.node for n, name in enumerate(node.input)}
    nodes = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            nodes.append(node)
            continue
        result = node.output[0]
        values = _values(random, *users[result], shapes[node.input[0]].tolist())
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), result))
    model.ir_version = 8
    del graph.node[:]
    graph.node.extend(nodes)
    return model
