"""Functions as curves (:mod:`microkernels.networks.curves`): those of units that engines lack, and
chains of element-wise layers; and chains as gates.

A chain is a function of one map: its layers read that map or each other, and nothing else reads
what lies between. A chain with a curve is fitted as one curve, which needs one launch, and rounds
once. A chain without one is a launch, too, if it is a gate: its argument times a limited affine
function of it, such as a hard-swish. Factors and offsets of a map that only layers with weights
read are in these weights.
"""

from collections.abc import Collection
from dataclasses import replace
from math import inf, isfinite
from typing import NamedTuple

from microkernels.networks.curves import ARGUMENT, STEPS, UNFITTED, Function
from microkernels.networks.network import INPUT, ElementWise, Layer
from microkernels.networks.parameters import Weights

from .model import MappedModel
from .steps import reading


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
