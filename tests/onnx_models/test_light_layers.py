"""Layers of the light graphs: of each kind and window one, on every machine.

A layer has its sizes, random weights and random inputs. On the Verilog its map is cut to a tile of
few pixels.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from microkernels.data.models.collection import light_names, make
from microkernels.networks.curves import Function, fitted
from microkernels.networks.jobs import NetworkJob, network_job
from microkernels.networks.network import (
    INPUT,
    Conv,
    Dense,
    Depthwise,
    ElementWise,
    Layer,
    MapSize,
    Network,
    Normalize,
    Pool,
    Rearrange,
    Source,
)
from microkernels.networks.parameters import Weights
from microkernels.networks.plan import plan_network
from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import read_graph
from microkernels.runtime.job import execute
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import design

ENGINES = ChipEngines.of(design("vault"))
#: Pixels of a tile's side on the Verilog, and predicted cycles of a layer, at most.
_SIDE, _MOST = 13, 1e7
#: What layers of random elements need in place of what calibration finds.
_SET = {
    "multiply": {"fraction": 13},
    "affine": {"factor": 9000, "fraction": 13, "offset": -40},
    "clip": {"low": -900, "high": 3000},
    "curve": {"curve": fitted(Function("power", (-0.75,)), 0.5, 7.9, 12, 12)},
}


def _set(layer: Layer) -> Layer:
    """The layer with fraction bits and constants."""
    if isinstance(layer, ElementWise):
        return replace(layer, **_SET.get(layer.function, {}))
    if isinstance(layer, Conv | Dense | Depthwise):
        return replace(layer, fraction=13)
    if isinstance(layer, Normalize):
        return replace(layer, source_fraction=11, factor=14)
    return layer


def _key(layer: Layer) -> tuple[object, ...]:
    """What layers have in common of which one is enough."""
    kind = layer.kind
    if isinstance(layer, Conv):
        return (kind, layer.kernel, layer.stride)
    if isinstance(layer, Pool):
        return (kind, layer.window, layer.stride, layer.mean)
    if isinstance(layer, Depthwise):
        return (kind, layer.stride)
    return (kind, getattr(layer, "function", getattr(layer, "operation", "")))


@cache
def samples() -> dict[tuple[object, ...], Network]:
    """Of all light graphs the layer of each kind that is predicted to be the fastest, alone."""
    best: dict[tuple[object, ...], float] = {}
    found: dict[tuple[object, ...], Network] = {}
    for name in light_names():
        model = map_graph(read_graph(make(name)), OPERATORS).model
        assert model is not None
        network = model.network
        plan = plan_network(network, engines=ENGINES)
        for layer in network.layers:
            if isinstance(layer, Source):
                continue
            # A map that is only moved has no predicted computation.
            cycles = plan.layers[layer.name].cycles if layer.name in plan.layers else 0.0
            cycles = cycles or float(network.sizes[layer.name].elements)
            if cycles < best.get(_key(layer), np.inf):
                best[_key(layer)] = cycles
                found[_key(layer)] = _alone(network, layer)
    return {key: network for key, network in found.items() if best[key] <= _MOST}


def _alone(network: Network, layer: Layer) -> Network:
    sizes = [network.sizes[source] for source in network.sources[layer.name]]
    further = [Source(name=f"given{n}", size=size) for n, size in enumerate(sizes[1:])]
    names = [INPUT, *(each.name for each in further)]
    made = _set(layer)
    if isinstance(made, Rearrange | Dense):
        # These do not take the network's input.
        copies = [Source(name="given", size=sizes[0]), *further]
        inputs = tuple(each.name for each in copies)
        chosen = {"inputs": inputs} if isinstance(made, Rearrange) else {"source": "given"}
        return Network(input=MapSize(1, 1, 1), layers=(*copies, replace(made, **chosen)))
    made = replace(made, source=INPUT)
    if isinstance(made, ElementWise) and made.other:
        made = replace(made, other=names[-1])
    return Network(input=sizes[0], layers=(*further, made))


def _job(network: Network) -> NetworkJob:
    random = np.random.default_rng(3)

    def drawn(size: MapSize) -> np.ndarray:
        return random.integers(-4000, 4000, (1, size.height, size.width, size.channels))

    weights = {}
    for name, shape in network.weights.items():
        most = max(int(30000 / np.sqrt(np.prod(shape[1:]))), 1)
        weights[name] = Weights(
            weights=random.integers(-most, most, shape), bias=random.integers(-400, 400, shape[0])
        )
    further = {
        layer.name: drawn(layer.size) for layer in network.layers if isinstance(layer, Source)
    }
    return network_job(network, weights, drawn(network.input), engines=ENGINES, further=further)


def _tile(network: Network) -> Network:
    """The network with maps of few pixels, but for layers that fix the size."""
    (layer,) = (each for each in network.layers if not isinstance(each, Source))
    if isinstance(layer, Rearrange | Dense):
        return network

    def cut(size: MapSize) -> MapSize:
        return size._replace(width=min(size.width, _SIDE), height=min(size.height, _SIDE))

    others = [
        replace(each, size=cut(each.size)) for each in network.layers if isinstance(each, Source)
    ]
    return Network(input=cut(network.input), layers=(*others, layer))


@pytest.mark.slow
def test_sampled_layers_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})

    def cycles(job: NetworkJob, on: str) -> dict[str, int]:
        ran = run_on(job, design("vault"), on=on)  # type: ignore[arg-type]
        assert ran.match, job.name
        return {name: run.cycles for name, run in ran.results.items()}

    for key, network in samples().items():
        whole, tile = _job(network), _job(_tile(network))
        assert execute(whole, instructions=design("vault").pe.instructions).match, key
        assert cycles(whole, "model")
        assert cycles(tile, "rtl") == cycles(tile, "model"), key
    kinds = {key[0] for key in samples()}
    assert kinds == {
        "Activation", "Add", "Conv", "Dense", "Depthwise", "Multiply", "Normalize", "Pool",
        "Rearrange",
    }  # fmt: skip
