"""The golden model of a network: every activation, layer by layer."""

from collections.abc import Callable, Mapping, Sequence

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements, check_elements
from support.checks import shown

from .network import INPUT, Layer, Network
from .parameters import Weights
from .plan import NetworkPlan

__all__ = ["activation", "activations", "check_weights"]


def check_weights(network: Network, weights: Mapping[str, Weights]) -> dict[str, Weights]:
    """``weights`` as elements, those of all layers that have some.

    Raises:
        KernelError: no :class:`Weights`, or weights that are missing, superfluous, of another
            shape or beyond 16 bits; the message names the layer.
    """
    CHECK.kind("weights", weights, Mapping)
    shapes = network.weights
    if missing := [name for name in shapes if name not in weights]:
        raise KernelError(f"{missing[0]}: weights are missing")
    if extra := [name for name in weights if name not in shapes]:
        raise KernelError(f"weights: no layer with weights has the name {shown(extra[0])}")
    for name in shapes:
        CHECK.kind(f"{name}: weights", weights[name], Weights)
    return {
        name: Weights(
            weights=check_elements(f"{name}: weights", weights[name].weights, shape),
            bias=check_elements(f"{name}: bias", weights[name].bias, shape[:1]),
        )
        for name, shape in shapes.items()
    }


def activations(
    plan: NetworkPlan,
    weights: Mapping[str, Weights],
    images: Elements,
    progress: Callable[[str], None] | None = None,
    further: Mapping[str, Elements] | None = None,
) -> dict[str, Elements]:
    """Outputs of all layers, bit-exact, with sums in the order of ``plan``.

    Parameters:
        plan: of a layout (:attr:`microkernels.networks.layout.NetworkLayout.plan`).
        weights: by layer.
        images: batch x height x width x channels elements.
        progress: called with the name of each layer before it is computed.
        further: values of :class:`microkernels.networks.network.Source` layers, by name.

    Returns:
        batch x height x width x channels elements of each layer that is computed.

    Raises:
        KernelError: arrays of another shape, or values beyond 16 bits.
    """
    network = plan.network
    maps = {INPUT: images, **(further or {})}
    computed = [layer for layer in network.layers if layer.computed]
    for layer in computed:
        if progress is not None:
            progress(layer.name)
        sources = [maps[source] for source in network.sources[layer.name]]
        maps[layer.name] = activation(plan, layer, weights.get(layer.name), sources)
    return {layer.name: maps[layer.name] for layer in computed}


def activation(
    plan: NetworkPlan, layer: Layer, weights: Weights | None, sources: Sequence[Elements]
) -> Elements:
    """Output of one layer for those of its sources; parameters and result as of
    :func:`activations`.

    Parameters:
        layer: of the plan's network, but for its fraction bits and constants, which may be others.
        weights: of the layer; None: it has none.
    """
    size = plan.network.sizes[layer.name]
    outputs = layer.integer(plan.layers[layer.name], sources, weights)
    return outputs.reshape(-1, size.height, size.width, size.channels)
