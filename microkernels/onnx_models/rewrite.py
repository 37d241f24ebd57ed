"""A mapped model as a machine computes it: with functions as curves
(:mod:`microkernels.networks.curves`), those of units that engines lack and chains of element-wise
layers; with chains as gates; and with maps in the own integers of models that are quantised to
signed bytes.

A chain is a function of one map: its layers read that map or each other, and nothing else reads
what lies between. A chain with a curve is fitted as one curve, which needs one launch, and rounds
once. A chain without one is a launch, too, if it is a gate: its argument times a limited affine
function of it, such as a hard-swish. Factors and offsets of a map that only layers with weights
read are in these weights.

A map that the model rounds to steps of a signed byte around 0 is counted in these steps, so that
its bytes are the model's: limiting to bytes, which the kernels do, is the model's limit. Weights
are multiplied by the step of their source and divided by that of their output. They stay the
model's integers if this factor is a power of two, and are rounded to bytes again otherwise. Maps
that have the same fraction (:func:`groups`) have one step, the largest. Other zero points do not
keep integers: a map's step is then the smallest with which bytes have the model's range, and a
range that begins at 0 is a ReLU.

Whatever engines have, weights of two layers are balanced by a power of two for each channel between
them (:func:`balanced`).
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.networks.curves import ARGUMENT, STEPS, UNFITTED, Function
from microkernels.networks.elements import LOGISTIC
from microkernels.networks.maps import BYTE_BITS
from microkernels.networks.network import INPUT, ElementWise, Layer, Network, Pool, Rearrange
from microkernels.networks.parameters import Fractions, Weights

from .model import MappedModel, real_layers

#: Fraction bits by layer; for :data:`microkernels.networks.network.INPUT` those of the map alone.
Formats = Mapping[str, Fractions]
#: Key of the instruction that multiplies pairs of bytes.
_PAIRS = "m.v.dot.add[16]"


class _Chain(NamedTuple):
    """Layers that end with one.

    Attributes:
        source: map of which they are a function. function: of it. before: the others' names.
    """

    source: str
    function: Function = ARGUMENT
    before: frozenset[str] = frozenset()


class _Gate(NamedTuple):
    """A limited affine function: ``factor`` times the argument plus ``offset``, within bounds."""

    factor: float
    offset: float
    low: float = -inf
    high: float = inf

    @property
    def fits(self) -> bool:
        """Whether its fraction bits hold its numbers."""
        return max(map(abs, self[1:])) < _GATE_LIMIT

    def times(self, scale: float) -> "_Gate":
        """The function times a positive number."""
        return _Gate(*(scale * number for number in self))


#: A gate whose constants calibration chooses.
_GATE = ElementWise(name="gate", function="gate", factor=0, fraction=0, offset=0, low=0, high=0)
#: Numbers that a gate's fraction bits hold are below this.
_GATE_LIMIT = 2


def _limited(function: Function) -> _Gate | None:
    """A function as an affine one with limits; None: it is none."""
    if function == ARGUMENT:
        return _Gate(1.0, 0.0)
    inner = _limited(function.of[0] if function.of else ARGUMENT)
    if inner is None or function.name not in ("affine", "clip"):
        return None
    if function.name == "clip":
        low, high = function.parameters
        return inner._replace(low=max(low, inner.low), high=min(high, inner.high))
    scale, offset = function.parameters
    return (
        _Gate(scale * inner.factor, *(scale * end + offset for end in inner[1:]))
        if scale > 0
        else None
    )


def _gate_of(function: Function) -> _Gate | None:
    """What a function multiplies its argument by, if that is a gate; otherwise None."""
    if function.name == "affine" and function.of:
        scale, offset = function.parameters
        gate = _gate_of(function.of[0])
        return gate.times(scale) if gate and scale > 0 and not offset else None
    if function.name != "multiply" or len(function.of) != 2:
        return None
    parts = [part for part in map(_limited, function.of) if part is not None]
    plain = [part for part in parts if part == _Gate(part.factor, 0.0)]
    gates = [part for part in parts if isfinite(part.high - part.low)]
    if len(plain) != 1 or len(gates) != 1:
        return None
    return gates[0].times(plain[0].factor)


def groups(network: Network) -> Mapping[str, str]:
    """Name of each map -> a name shared by all maps that must have the same fraction: those of
    layers that only select, add or limit elements."""
    group = {name: name for name in network.sizes}
    for layer in network.layers:
        tied = layer.tied(network.sources[layer.name])
        if tied:
            same = {group[source] for source in tied}
            same.add(group[layer.name])
            into = group[layer.name]
            group = {name: into if of in same else of for name, of in group.items()}
    return group


def in_curves(model: MappedModel, functions: Collection[str]) -> MappedModel:
    """The model with chains as curves or gates, and ``functions`` of the logistic unit as curves.

    Parameters:
        functions: from :data:`microkernels.networks.elements.LOGISTIC`.
    """
    lacking = {
        layer.name: Function(layer.logistic)
        for layer in model.network.layers
        if layer.logistic in functions
    }
    model = replace(model, curves={**model.curves, **lacking})
    chains = _chains(model)
    curves: dict[str, Function] = {}
    gates: dict[str, _Gate] = {}
    gone: set[str] = set()
    layers: list[Layer] = []
    for layer in reversed(model.network.layers):
        name = layer.name
        if name in gone:
            continue
        chain = chains.get(name, _Chain(""))
        if not model.curves.keys().isdisjoint((name, *chain.before)):
            source, curves[name], before = chain
            gone |= before
            layer = ElementWise(name=name, source=source, function="curve", curve=UNFITTED)
        elif not model.steps and (gate := _gate_of(chain.function)) and gate.fits:
            source, _, before = chain
            gone |= before
            gates[name] = gate
            layer = replace(_GATE, name=name, source=source)
        layers.append(layer.without(functions))
    fused = replace(
        model,
        network=replace(model.network, layers=tuple(reversed(layers))),
        curves=curves,
        affine={
            **{name: value for name, value in model.affine.items() if name not in {*gone, *curves}},
            **{name: (gate.factor, gate.offset) for name, gate in gates.items()},
        },
        bounds={
            **{name: value for name, value in model.bounds.items() if name not in {*gone, *curves}},
            **{name: (gate.low, gate.high) for name, gate in gates.items()},
        },
        inner=tuple(port for port in model.inner if port.layer not in gone),
    )
    return _in_weights(fused)


def _in_weights(model: MappedModel) -> MappedModel:
    """The model without affine layers that only layers with weights read."""
    network = model.network
    if model.steps or model.integers:
        return model
    outputs = {port.layer for port in model.outputs} | model.rounded | model.norms.keys()
    outputs |= model.exact.keys()
    sums = {layer.name for layer in network.layers if layer.mixes_channels}
    readers = {name: {user.name for user in network.users(name)} for name in network.sizes}
    real = dict(model.real)
    names: dict[str, str] = {}
    for layer in reversed(network.layers):
        name, sources = layer.name, network.sources[layer.name]
        # A copy of an input has a purpose.
        numbers = model.affine.get(name, ())
        plain = layer.formula(model) == Function("affine", numbers)
        if not plain or name in outputs or sources == (INPUT,):
            continue
        factor, offset = model.affine[name]
        users = readers[name]
        # Zeros around a map have no offset.
        flat = not offset or all(real[user].weights.ndim == 2 for user in users & sums)
        if not users or users - sums or not flat:
            continue
        for user in users:
            weights, bias = real[user].weights, real[user].bias
            if offset:
                bias = bias + offset * weights.sum(axis=1)
            real[user] = Weights(weights=factor * weights, bias=bias)
        (source,) = sources
        readers[source] = readers[source] - {name} | users
        names = {
            **{old: source if new == name else new for old, new in names.items()},
            name: source,
        }
    layers = [reading(layer, names) for layer in network.layers if layer.name not in names]
    return replace(
        model,
        network=replace(network, layers=tuple(layers)),
        real=real,
        affine={name: numbers for name, numbers in model.affine.items() if name not in names},
        inner=tuple(port for port in model.inner if port.layer not in names),
    )


def _chains(model: MappedModel) -> dict[str, _Chain]:
    """The longest chain that ends with each layer; none: the layer is not a function of one map."""
    network = model.network
    # Layers that are not functions of real numbers, or change with the data; layers that are read.
    apart = {*model.integers, *model.rounded, *model.steps, *model.norms}
    apart |= {norm.above for norm in model.norms.values()}
    # A step lies between two elements of its own argument.
    apart |= {name for name, function in model.curves.items() if function.name in STEPS}
    read = apart | {port.layer for port in model.outputs}
    chains: dict[str, _Chain] = {}
    for layer in network.layers:
        name, sources = layer.name, network.sources[layer.name]
        formula = model.curves.get(name) or layer.formula(model)
        if formula is None or (layer.transcendental and name not in model.curves):
            continue
        inner = [_Chain(source) for source in sources]
        for number, source in enumerate(sources):
            users = {user.name for user in network.users(source)}
            if source in chains and source not in read and name not in apart and users == {name}:
                inner[number] = chains[source]._replace(before=chains[source].before | {source})
        if len({chain.source for chain in inner}) == 1:
            arguments = [chain.function for chain in inner]
            chains[name] = _Chain(
                inner[0].source,
                formula if arguments == [ARGUMENT] else formula.after(arguments),
                frozenset().union(*(chain.before for chain in inner)),
            )
    return chains


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


def _weighted_pairs(model: MappedModel) -> list[tuple[str, str]]:
    """Pairs of a layer with weights and the only reader of its outputs, which also has weights."""
    network = model.network
    layers = {layer.name: layer for layer in network.layers}
    outputs = {port.layer for port in model.outputs}
    pairs = []
    for layer in network.layers:
        users = network.users(layer.name)
        if not layer.mixes_channels or len(users) != 1 or layer.name in outputs | model.rounded:
            continue
        if not layers[users[0].name].mixes_channels:
            continue
        weights = model.real[users[0].name].weights
        if weights.ndim == 2 or weights.shape[-1] == network.sizes[layer.name].channels:
            pairs.append((layer.name, users[0].name))
    return pairs


def _by_channel(network: Network, name: str, weights: Reals) -> Reals:
    """Weights of a layer as outputs x pixels x channels of its source."""
    (source,) = network.sources[name]
    size = network.sizes[source]
    if weights.ndim == 2:
        # Flattened channel by channel.
        return weights.reshape(len(weights), size.channels, -1).swapaxes(1, 2)
    return weights.reshape(len(weights), -1, size.channels)


def balanced(model: MappedModel, inputs: Mapping[str, Reals]) -> MappedModel:
    """The model with balanced weights.

    A channel is scaled up only while neither its elements on the data nor its weights exceed those
    of the layer's other channels, and only while this reduces the largest weight of the second
    layer.

    Parameters:
        inputs: images x height x width x channels real numbers of each input and constant, by
            layer.
    """
    pairs = _weighted_pairs(model)
    if not pairs:
        return model
    largest = {
        layer.name: np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
        for layer, values in real_layers(model, inputs)
    }
    real = dict(model.real)
    for first, second in pairs:
        writer, reader = real[first], real[second]
        rows = np.abs(writer.weights).reshape(len(writer.bias), -1).max(axis=1)
        elements = np.maximum(largest[first], np.abs(writer.bias))
        by_channel = _by_channel(model.network, second, reader.weights)
        columns = np.abs(by_channel).max(axis=(0, 1))
        with np.errstate(divide="ignore"):
            room = np.minimum(
                np.log2(np.maximum(elements.max(), 1e-30) / np.maximum(elements, 1e-30)),
                np.log2(np.maximum(rows.max(), 1e-30) / np.maximum(rows, 1e-30)),
            )
            room = np.floor(room)
            # The largest weight that must remain, and the factor that brings each channel below it.
            least = (columns * np.exp2(-room)).max()
            if least <= 0:
                continue
            exponents = np.ceil(np.log2(np.maximum(columns, 1e-30) / least))
        factors = np.exp2(np.clip(exponents, 0, room))
        real[first] = Weights(
            weights=writer.weights * factors.reshape(-1, *(1,) * (writer.weights.ndim - 1)),
            bias=writer.bias * factors,
        )
        scaled = by_channel / factors
        if reader.weights.ndim == 2:
            scaled = scaled.swapaxes(1, 2)
        real[second] = Weights(weights=scaled.reshape(reader.weights.shape), bias=reader.bias)
        largest[first] = largest[first] * factors
    return replace(model, real=real)


def for_engines(
    model: MappedModel, instructions: Collection[str], wide: Collection[str] = ()
) -> MappedModel:
    """The model as engines with these instructions (keys) can run it: with functions as curves,
    logistic ones where the unit is lacking, and with maps and weights of bytes, but for integers
    and the maps ``wide``, where engines multiply bytes and layers have them."""
    model = in_curves(model, [name for name in LOGISTIC if f"v.{name}[16]" not in instructions])
    if _PAIRS not in instructions:
        return model
    wide = {*model.integers, *model.rounded, *wide}
    model = in_steps(model, model.network.in_bytes(wide).bits)
    return replace(model, network=model.network.in_bytes(wide))
