"""All models by name, and inputs for them."""

from typing import TYPE_CHECKING

import numpy as np

from .encoder import encoder
from .graphs import Reals
from .light import light_model, light_names
from .small import SMALL

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["inputs_of", "make", "names"]

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
