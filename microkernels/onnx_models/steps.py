"""Models that are quantised to signed bytes, for engines that multiply bytes: their maps keep the
model's own integers.

A map that the model rounds to steps of a signed byte around 0 is counted in these steps, so that
its bytes are the model's: limiting to bytes, which the kernels do, is the model's limit. Weights
are multiplied by the step of their source and divided by that of their output. They stay the
model's integers if this factor is a power of two, and are rounded to bytes again otherwise. Maps
that have the same fraction (:func:`microkernels.onnx_models.magnitudes.groups`) have one step, the
largest. Other zero points do not keep integers: a map's step is then the smallest with which bytes
have the model's range, and a range that begins at 0 is a ReLU.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from microkernels.networks.maps import BYTE_BITS
from microkernels.networks.network import ElementWise, Layer, Network, Pool, Rearrange
from microkernels.networks.parameters import Weights

from .magnitudes import Formats, groups
from .model import MappedModel

#: Maximum difference of weights from integers, in steps: scales of a model are 32-bit numbers.
_EXACT = 1e-3
_BYTES = np.iinfo(np.int8)


def reading(layer: Layer, names: Mapping[str, str]) -> Layer:
    """The layer with sources of these new names."""
    attributes = vars(layer)
    changes: dict[str, Any] = {
        name: names.get(attributes[name], attributes[name])
        for name in ("source", "other")
        if name in attributes
    }
    if "inputs" in attributes:
        changes["inputs"] = tuple(names.get(name, name) for name in attributes["inputs"])
    return replace(layer, **changes)


def _step(model: MappedModel, name: str) -> float:
    """Step of the signed bytes that have the range of a layer's integers."""
    step, middle = model.steps[name]
    low, high = model.bounds[name]
    return max(-low / -_BYTES.min, high / _BYTES.max) if middle else step


def _units(model: MappedModel, bits: Mapping[str, int]) -> tuple[dict[str, float], dict[str, bool]]:
    """Step of each group of maps that are counted in steps, and whether these are the model's."""
    network, group = model.network, groups(model.network)
    fixed = {
        group[name]
        for layer in network.layers
        if layer.scales and not layer.has_weights and layer.name not in model.affine
        for name in (layer.name, *network.sources[layer.name])
    }
    steps: dict[str, set[tuple[float, float]]] = {}
    for name, (_, middle) in model.steps.items():
        if bits[name] == BYTE_BITS and group[name] not in fixed:
            steps.setdefault(group[name], set()).add((_step(model, name), middle))
    units = {name: max(several)[0] for name, several in steps.items()}
    own = {
        name: len(several) == 1 and not any(middle for _, middle in several)
        for name, several in steps.items()
    }
    return units, own


def _of_bytes(model: MappedModel, name: str, unit: float) -> bool:
    """Whether a layer limits to the range of bytes of this step, or to what is positive in it."""
    low, high = (end / unit for end in model.bounds[name])
    ends = _BYTES.min if low < 0 else 0, _BYTES.max
    return bool(np.allclose((low, high), ends, atol=_EXACT))


def _without_limits(model: MappedModel, units: Mapping[str, float]) -> tuple[Network, set[str]]:
    """The network without the limits to bytes of these groups, and with ReLUs merged into the
    layers before; and the maps that the model rounds."""
    network, group = model.network, groups(model.network)
    outputs = {port.layer for port in model.outputs}
    layers: dict[str, Layer] = {}
    names: dict[str, str] = {}
    rounded: set[str] = set()
    positive: set[str] = set()
    for layer in network.layers:
        sources = network.sources[layer.name]
        kept = group[layer.name] in units and layer.name not in outputs
        alone = kept and len(sources) == 1 and len(network.users(sources[0])) == 1
        read = [names.get(source, source) for source in sources]
        before = read[0] if read else ""
        if (
            alone
            and layer.name in model.steps
            and _of_bytes(model, layer.name, units[group[layer.name]])
        ):
            if model.bounds[layer.name][0] < 0 or before in positive:
                names[layer.name] = before
                rounded.add(before)
                continue
            layer = ElementWise(name=layer.name, source=layer.source, function="relu")
        relu = isinstance(layer, ElementWise) and layer.function == "relu" and before in layers
        merged = layers[before].with_relu() if alone and relu else None
        if merged is None:
            layers[layer.name] = reading(layer, names)
        else:
            layers[before], names[layer.name] = merged, before
        name = names.get(layer.name, layer.name)
        passed = isinstance(layer, Pool | Rearrange) and positive.issuperset(read)
        if relu or passed or getattr(layers[name], "relu", False):
            positive.add(name)
    return replace(network, layers=tuple(layers.values())), rounded


def in_steps(model: MappedModel, bits: Mapping[str, int]) -> MappedModel:
    """The model with maps counted in its own steps, where it has some and maps are bytes.

    Parameters:
        bits: of the numbers in each map.
    """
    units, own = _units(model, bits)
    if not units:
        return model
    group = groups(model.network)
    network, rounded = _without_limits(model, units)
    unit = {name: units.get(group[name], 1.0) for name in model.network.sizes}
    sources = {name: unit[before[0]] for name, before in model.network.sources.items() if before}
    left = {layer.name for layer in network.layers}
    return replace(
        model,
        network=network,
        real={
            name: Weights(
                weights=real.weights * (sources[name] / unit[name]), bias=real.bias / unit[name]
            )
            for name, real in model.real.items()
        },
        affine={
            name: (factor * sources[name] / unit[name], offset / unit[name])
            for name, (factor, offset) in model.affine.items()
        },
        bounds={
            name: (low / unit[name], high / unit[name])
            for name, (low, high) in model.bounds.items()
            if name in left
        },
        constants={name: values / unit[name] for name, values in model.constants.items()},
        inputs=tuple(replace(port, step=unit[port.layer]) for port in model.inputs),
        inner=tuple(
            replace(port, step=unit[port.layer]) for port in model.inner if port.layer in left
        ),
        steps={
            name: (step / unit[name], middle)
            for name, (step, middle) in model.steps.items()
            if name in left
        },
        rounded=model.rounded | {name for name in rounded if own[group[name]]},
    )


def requantised(before: MappedModel, after: MappedModel, formats: Formats) -> tuple[str, ...]:
    """What of a model's own bytes is quantised again, a line each.

    Parameters:
        before: the model as mapped. after: in bytes, with its ``formats``.
    """
    bits = before.network.in_bytes({*before.integers, *before.rounded}).bits
    units, own = _units(before, bits)
    group = groups(before.network)
    lines = []
    for name, (step, middle) in before.steps.items():
        node = f"node {before.origins[name]}"
        if middle:
            lines.append(
                f"{node}: its zero point is {middle:+g} from the middle of its integers; only 0 of "
                "int8 and 128 of uint8 keep them as bytes"
            )
        elif group[name] in units and not own[group[name]]:
            lines.append(
                f"{node}: its scale {step:.4g} becomes {units[group[name]]:.4g}, that of a map to "
                "which its map is added or compared"
            )
    counted = after.rounded - before.rounded
    network = after.network
    for name, real in after.real.items():
        if network.sources[name][0] not in counted or name not in counted:
            continue
        scaled = np.ldexp(real.weights, formats[name].weights)
        if np.abs(scaled - np.rint(scaled)).max(initial=0.0) > _EXACT:
            lines.append(
                f"node {before.origins[name]}: its weights are rounded to bytes again, as "
                "their scale times the input's is not the output's times a power of two"
            )
    return tuple(lines)
