"""Weights and images for complete networks: seeded weights of typical size, and a photograph."""

from importlib.resources import as_file, files

import numpy as np

from microkernels.common.fixed_point import Elements, to_fixed
from microkernels.networks.families import WeightLayer
from microkernels.networks.network import MapSize, Network
from microkernels.networks.parameters import Weights

from .pictures import need_photographs, read_samples

__all__ = ["photographs", "usual_network_weights"]

#: Fraction bits of images and activations.
_FRACTION = 8
_BIAS = 0.05


def usual_network_weights(network: Network, seed: int = 1) -> dict[str, Weights]:
    """Random weights, scaled so that activations neither vanish nor grow from layer to layer: their
    variance is 2 divided by the number of inputs per output (He et al. 2015, equation 10)."""
    random = np.random.default_rng(seed)
    by_layer = {}
    for layer in network.layers:
        if not isinstance(layer, WeightLayer):
            continue
        shape = network.weights[layer.name]
        scale = np.sqrt(2 / np.prod(shape[1:]))
        by_layer[layer.name] = Weights(
            weights=to_fixed(random.normal(0, scale, shape), layer.fraction),
            bias=to_fixed(random.normal(0, _BIAS, shape[0]), _FRACTION),
        )
    return by_layer


def photographs(size: MapSize, batch: int = 1) -> Elements:
    """``batch`` images of three channels: a scikit-image photograph, rotated by another 90 degrees
    for each image. Each channel has mean 0 and standard deviation 1, with 8 fraction bits.

    Parameters:
        size: width and height of an image. batch: at least 1.

    Returns:
        batch x height x width x 3 elements.

    Raises:
        MissingExtraError: scikit-image or Pillow is not installed.
    """
    need_photographs()
    from PIL import Image

    layers = []
    with as_file(files("skimage") / "data" / "astronaut.png") as path:
        image = Image.fromarray(read_samples(path).values)
    scaled = np.asarray(image.resize((size.width, size.height)), np.float64)
    for number in range(batch):
        turned = np.rot90(scaled, number)
        normal = (turned - turned.mean((0, 1))) / turned.std((0, 1))
        layers.append(to_fixed(normal, _FRACTION))
    return np.stack(layers)
