"""What a fraction for each filter's weights would gain.

``python -m tests.onnx_models.weight_fractions [NAME...]`` prints the error of the first output of
models (root of the mean squared error over that of the mean square) with all maps and biases
rounded as calibrated, and with weights that are rounded with one fraction a layer, with the most
bits that each filter allows, and not at all. Sums are exact, so that the engine's partial sums do
not count.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from microkernels.common.fixed_point import Reals, as_elements, real_of
from microkernels.data.models.collection import inputs_of, make
from microkernels.networks.jobs import NetworkLayout
from microkernels.networks.network import INPUT, Source
from microkernels.networks.parameters import Weights
from microkernels.networks.plan import plan_network
from microkernels.onnx_models.calibrate import Calibration, fraction_for
from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.model import real_layers
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import read_graph
from microkernels.runtime.ring import ChipEngines
from soc.generate.presets import design

WAYS = ("layer", "filter", "exact")
#: Images of the calibration, and of the error.
_CALIBRATED, _IMAGES = 16, 8


def _rounded(values: Reals, fraction: int) -> Reals:
    return real_of(as_elements(values, fraction), fraction)


def _weights(done: Calibration, name: str, way: str) -> Reals:
    held = done.model.real[name].weights
    whole = done.formats[name].weights
    if way == "exact":
        return held
    if way == "layer":
        return _rounded(held, whole)
    largest = np.abs(held).reshape(len(held), -1).max(axis=1)
    (bits,) = (layer.bits for layer in done.network.layers if layer.name == name)
    fractions = [max(whole, fraction_for(float(most), bits)) for most in largest]
    return np.stack([_rounded(row, each) for row, each in zip(held, fractions, strict=True)])


def _outputs(done: Calibration, given: Mapping[str, Reals], way: str) -> Reals:
    model = done.model
    maps = {name: one.output for name, one in done.formats.items()}
    real = {
        name: Weights(weights=_weights(done, name, way), bias=_rounded(own.bias, maps[name]))
        for name, own in model.real.items()
    }
    model = replace(model, real=real)
    network = model.network
    found = {name: _rounded(values, maps[name]) for name, values in given.items()}
    for layer in network.layers:
        if not isinstance(layer, Source):
            sources = [found[source] for source in network.sources[layer.name]]
            made = layer.real(sources, network.sizes[layer.name], model)
            found[layer.name] = _rounded(made, maps[layer.name])
    return found[model.outputs[0].layer]


def errors(name: str) -> dict[str, float]:
    """Error of a model's first output by way."""
    made = make(name)
    model = map_graph(read_graph(made, batch=1), OPERATORS).model
    assert model is not None
    (port,) = model.inputs

    def images(seed: int, count: int) -> Reals:
        (held,) = inputs_of(name, made, seed=seed).values()
        return port.maps(held[:count], count)

    engines = ChipEngines.of(design("vault"))
    layout = NetworkLayout(plan_network(model.network, batch=1, engines=engines))
    done = Calibration(model, layout, {INPUT: images(2, _CALIBRATED)})
    x = images(9, _IMAGES)
    given = {INPUT: x}
    for layer, values in model.constants.items():
        given[layer] = np.broadcast_to(values[:1], (len(x), *values.shape[1:]))
    output = done.model.outputs[0].layer
    exact = next(real for layer, real in real_layers(done.model, given) if layer.name == output)
    power = np.mean(np.square(exact))
    return {
        way: float(np.sqrt(np.mean(np.square(_outputs(done, given, way) - exact)) / power))
        for way in WAYS
    }


if __name__ == "__main__":
    for each in sys.argv[1:] or ("autoencoder", "dscnn", "resnet8", "mobilenet_v2", "encoder"):
        print(each, *(f"{way} {error:.2e}" for way, error in errors(each).items()))
