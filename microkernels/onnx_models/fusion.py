"""Functions as curves (:mod:`microkernels.networks.curves`): those of units that engines lack, and
chains of element-wise layers.

A chain is a function of one map: its layers read that map or each other, and nothing else reads
what lies between. A chain with a curve is fitted as one curve, which needs one launch, and rounds
once.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from microkernels.networks.curves import ARGUMENT, STEPS, UNFITTED, Function
from microkernels.networks.network import Activation, Layer

from .model import MappedModel


class _Chain(NamedTuple):
    """Layers that end with one.

    Attributes:
        source: map of which they are a function. function: of it. before: the others' names.
    """

    source: str
    function: Function = ARGUMENT
    before: frozenset[str] = frozenset()


def in_curves(model: MappedModel, functions: Collection[str]) -> MappedModel:
    """The model with chains, and ``functions`` of the logistic unit, as curves.

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
            layer = Activation(name=name, source=source, function="curve", curve=UNFITTED)
        layers.append(layer.without(functions))
    return replace(
        model,
        network=replace(model.network, layers=tuple(reversed(layers))),
        curves=curves,
        affine={name: numbers for name, numbers in model.affine.items() if name not in gone},
        bounds={name: ends for name, ends in model.bounds.items() if name not in gone},
        inner=tuple(port for port in model.inner if port.layer not in gone),
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
        if len({each.source for each in inner}) == 1:
            arguments = [each.function for each in inner]
            chains[name] = _Chain(
                inner[0].source,
                formula if arguments == [ARGUMENT] else formula.after(arguments),
                frozenset().union(*(each.before for each in inner)),
            )
    return chains
