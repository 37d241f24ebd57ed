"""The golden model of a network: every activation, layer by layer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import LOWEST, Elements, check_elements
from microkernels.nn.conv_shape import convolve
from microkernels.nn.dense_plan import DensePlan, DenseShape, dense, partial_sums
from microkernels.nn.depthwise import depthwise
from microkernels.nn.element_shape import element
from microkernels.nn.pool_shape import pool
from microkernels.nn.product import product
from microkernels.nn.rows_shape import normalize
from support.checks import shown

from .network import (
    INPUT,
    Conv,
    Depthwise,
    ElementWise,
    Layer,
    Network,
    Normalize,
    Pool,
    Product,
    Rearrange,
    Source,
)
from .pairs import Pads, pads
from .plan import NetworkPlan
from .rearrange import gather

__all__ = ["Weights", "activation", "activations", "check_weights"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """Weights of a layer.

    Attributes:
        weights: in the shape of :attr:`microkernels.networks.network.Network.weights`.
        bias: an element for each filter or output.
    """

    weights: Elements
    bias: Elements


def check_weights(network: Network, weights: Mapping[str, Weights]) -> dict[str, Weights]:
    """``weights`` as elements, those of all layers that have some.

    Raises:
        KernelError: no :class:`Weights`, or weights that are missing, superfluous, of another
            shape or beyond 16 bits; the message names the layer.
    """
    CHECK.kind("weights", weights, Mapping)
    wanted = network.weights
    if missing := [name for name in wanted if name not in weights]:
        raise KernelError(f"{missing[0]}: weights are missing")
    if extra := [name for name in weights if name not in wanted]:
        raise KernelError(f"weights: no layer with weights has the name {shown(extra[0])}")
    for name in wanted:
        CHECK.kind(f"{name}: weights", weights[name], Weights)
    return {
        name: Weights(
            weights=check_elements(f"{name}: weights", weights[name].weights, shape),
            bias=check_elements(f"{name}: bias", weights[name].bias, shape[:1]),
        )
        for name, shape in wanted.items()
    }


def activations(
    plan: NetworkPlan,
    dense_layers: Mapping[str, tuple[NDArray[np.int64], DensePlan]],
    weights: Mapping[str, Weights],
    images: Elements,
    progress: Callable[[str], None] | None = None,
    further: Mapping[str, Elements] | None = None,
) -> dict[str, Elements]:
    """Outputs of all layers, bit-exact, with sums in the order of ``plan``.

    Parameters:
        dense_layers: of each fully connected layer the order of its inputs
            (:func:`microkernels.networks.moves.flat_order`) and the plan of a vault's part.
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
    given = {INPUT: images, **(further or {})}
    found = dict(given)
    for layer in network.layers:
        if isinstance(layer, Source):
            continue
        if progress is not None:
            progress(layer.name)
        sources = [found[source] for source in network.sources[layer.name]]
        outputs = activation(plan, layer, dense_layers, weights, sources)
        found[layer.name] = outputs
    return {name: values for name, values in found.items() if name not in given}


def activation(
    plan: NetworkPlan,
    layer: Layer,
    dense_layers: Mapping[str, tuple[NDArray[np.int64], DensePlan]],
    weights: Mapping[str, Weights],
    sources: Sequence[Elements],
) -> Elements:
    """Output of one layer for those of its sources; parameters and result as of
    :func:`activations`.

    Parameters:
        layer: of the plan's network, but for its fraction bits and constants, which may be others.
    """
    size = plan.network.sizes[layer.name]
    outputs = _outputs(plan, layer, dense_layers, weights, sources)
    return outputs.reshape(-1, size.height, size.width, size.channels)


def _outputs(
    plan: NetworkPlan,
    layer: Layer,
    dense_layers: Mapping[str, tuple[NDArray[np.int64], DensePlan]],
    weights: Mapping[str, Weights],
    sources: Sequence[Elements],
) -> Elements:
    assert not isinstance(layer, Source)
    if isinstance(layer, Rearrange):
        return gather(layer.index, sources)
    size = plan.layers[layer.name].input
    if isinstance(layer, ElementWise):
        return np.stack([element(layer.shape(size), *maps) for maps in zip(*sources, strict=True)])
    if isinstance(layer, Product):
        other = plan.network.sizes[plan.network.sources[layer.name][1]]
        shape = layer.shape(size, other)
        return np.stack([product(shape, *maps) for maps in zip(*sources, strict=True)])
    (source,) = sources
    if isinstance(layer, Normalize):
        return np.stack([normalize(layer.shape(size), image) for image in source])
    if isinstance(layer, Pool):
        around = 0 if layer.mean else LOWEST
        source = _surrounded(source, layer.padding, around)
        return np.stack([pool(layer.shape(size), image[np.newaxis]) for image in source])
    own = weights[layer.name]
    if isinstance(layer, Depthwise):
        taps = layer.shape(size)
        source = _surrounded(source, layer.padding, 0)
        return np.stack([depthwise(taps, image, own.weights, own.bias) for image in source])
    if isinstance(layer, Conv):
        part = plan.layers[layer.name].conv
        assert part is not None
        source = _surrounded(source, layer.padding, 0)
        return np.stack(
            [
                convolve(
                    layer.shape(size),
                    part.order,
                    image,
                    own.weights,
                    own.bias,
                    fraction=layer.fraction,
                    relu=layer.relu,
                )
                for image in source
            ]
        )
    order, split = dense_layers[layer.name]
    flat = source.transpose(0, 3, 1, 2).reshape(len(source), -1)
    inputs = np.where(order < 0, 0, flat[:, order])
    held = np.where(order < 0, 0, own.weights[:, order])
    vectors = DenseShape(inputs=len(order), outputs=layer.outputs, batch=len(source))
    sums = partial_sums(vectors, split.chunk, inputs, held, fraction=layer.fraction)
    return dense(sums[np.newaxis], own.bias, relu=layer.relu)


def _surrounded(images: Elements, padding: int | Pads, around: int) -> Elements:
    """``images`` with the pixels around them."""
    sides = pads(padding)
    widths = ((0, 0), (sides.top, sides.bottom), (sides.left, sides.right), (0, 0))
    return np.pad(images, widths, constant_values=around)
