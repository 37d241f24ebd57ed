"""Weights and images for complete networks: seeded weights of typical size, and a photograph."""

from dataclasses import replace
from importlib.resources import as_file, files

import numpy as np

from microkernels.common.fixed_point import NUMBERS, Elements, to_fixed
from microkernels.networks.network import MapSize, Network
from microkernels.networks.parameters import Fractions, RealParameters, Weights

from .pictures import need_photographs, read_samples

#: Fraction bits of images and activations, by the bits of their numbers, and most of weights.
_FRACTIONS = {16: 8, 8: 4}
_WEIGHT_FRACTION = 12
_BIAS = 0.05


def _usual(network: Network, seed: int = 1) -> dict[str, Weights]:
    """Random real weights, scaled so that activations neither vanish nor grow from layer to layer:
    their variance is 2 divided by the number of inputs per output (He et al. 2015, equation
    10)."""
    random = np.random.default_rng(seed)
    real = {}
    for layer in network.layers:
        if layer.has_weights:
            shape = network.weights[layer.name]
            scale = np.sqrt(2 / np.prod(shape[1:]))
            real[layer.name] = Weights(
                weights=random.normal(0, scale, shape), bias=random.normal(0, _BIAS, shape[0])
            )
    return real


def usual_network_weights(network: Network, seed: int = 1) -> dict[str, Weights]:
    """Random weights of usual size, for a network of 16 bits and its shifts."""
    real = _usual(network, seed)
    return {
        layer.name: Weights(
            weights=to_fixed(real[layer.name].weights, vars(layer)["fraction"]),
            bias=to_fixed(real[layer.name].bias, _FRACTIONS[16]),
        )
        for layer in network.layers
        if layer.has_weights
    }


def in_usual_bytes(network: Network) -> tuple[Network, dict[str, Weights]]:
    """A network in bytes, with shifts for random weights of usual size, and those weights."""
    network = network.in_bytes()
    real = _usual(network)
    parameters = RealParameters(real=real, bounds={}, affine={}, curves={}, epsilons={})
    layers, weights = [], {}
    for layer in network.layers:
        if layer.name in real:
            room = np.iinfo(NUMBERS[layer.bits]).max / np.abs(real[layer.name].weights).max()
            fractions = Fractions(
                sources=(_FRACTIONS[layer.bits],),
                output=_FRACTIONS[layer.output_bits],
                weights=min(_WEIGHT_FRACTION, int(np.log2(room))),
                ends=(0.0, 0.0),
            )
            layer, elements = layer.scaled(fractions, parameters)
            assert elements is not None
            weights[layer.name] = elements
        layers.append(layer)
    return replace(network, layers=tuple(layers)), weights


def photographs(size: MapSize, batch: int = 1, bits: int = 16) -> Elements:
    """``batch`` images of three channels: a scikit-image photograph, rotated by another 90 degrees
    for each image. Each channel has mean 0 and standard deviation 1.

    Parameters:
        size: width and height of an image. batch: at least 1.
        bits: of a number: 16, of which 8 are fraction bits, or 8, of which 4 are.

    Returns:
        batch x height x width x 3 elements.

    Raises:
        MissingExtraError: scikit-image or Pillow is not installed.
    """
    need_photographs()
    from PIL import Image

    layers = []
    with as_file(files("skimage") / "data" / "astronaut.png") as path:
        image = Image.fromarray(read_samples(path)[0])
    scaled = np.asarray(image.resize((size.width, size.height)), np.float64)
    for number in range(batch):
        turned = np.rot90(scaled, number)
        normal = (turned - turned.mean((0, 1))) / turned.std((0, 1))
        layers.append(to_fixed(normal, _FRACTIONS[bits]))
    return np.stack(layers)
