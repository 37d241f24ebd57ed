"""Logistic functions: operands, of which large ones are as good as the limit, and curves."""

from collections.abc import Collection
from dataclasses import replace

from microkernels.networks.network import (
    INPUT,
    Activation,
    Conv,
    Dense,
    Depthwise,
    Layer,
    Network,
    Rearrange,
)

from .curves import UNFITTED, Function
from .model import Model

__all__ = ["LOGISTIC", "LOGISTIC_LIMIT", "by_curves", "harmless", "logistic_operands"]

#: Functions of the logistic unit.
LOGISTIC = ("tanh", "sigmoid")
#: Operands beyond this are as good as this: a sigmoid is 3e-4 from its end, about a step of the 12
#: fraction bits that are left.
LOGISTIC_LIMIT = 7.99


def logistic_operands(network: Network) -> set[str]:
    """Maps that nothing reads but logistic functions, at once or after moves."""
    layers = {layer.name: layer for layer in network.layers}
    found: set[str] = set()
    for name in reversed([INPUT, *layers]):
        users = [layers[use.name] for use in network.users(name)]
        if users and all(
            (isinstance(user, Activation) and user.function in LOGISTIC)
            or (isinstance(user, Rearrange) and user.name in found)
            for user in users
        ):
            found.add(name)
    return found


def harmless(layer: Layer, operands: Collection[str]) -> bool:
    """Whether values that the layer limits change nothing; of layers with weights partial sums are
    limited, too.

    Parameters:
        operands: of :func:`logistic_operands`.
    """
    return layer.name in operands and not isinstance(layer, Conv | Dense | Depthwise)


def by_curves(model: Model, functions: Collection[str]) -> Model:
    """The model with functions of the logistic unit as curves, for engines without it.

    Parameters:
        functions: of :data:`LOGISTIC`.
    """
    layers: list[Layer] = []
    curves = dict(model.curves)
    for layer in model.network.layers:
        if isinstance(layer, Activation) and layer.function in functions:
            curves[layer.name] = Function(layer.function)
            layer = replace(layer, function="curve", fraction=None, curve=UNFITTED)
        layers.append(layer)
    return replace(model, network=replace(model.network, layers=tuple(layers)), curves=curves)
