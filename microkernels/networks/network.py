"""Networks: layers by name, each with the layers whose output it takes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from microkernels.common.errors import CHECK, KernelError

from .layers import (
    INPUT,
    Activation,
    Add,
    Combine,
    Conv,
    Dense,
    Depthwise,
    ElementWise,
    MapSize,
    Multiply,
    Pool,
    Rearrange,
    Source,
)
from .pairs import pair
from .row_layers import Normalize, Product

__all__ = [
    "INPUT",
    "Activation",
    "Add",
    "Combine",
    "Conv",
    "Dense",
    "Depthwise",
    "ElementWise",
    "Layer",
    "MapSize",
    "Multiply",
    "Network",
    "Normalize",
    "Pool",
    "Product",
    "Rearrange",
    "Source",
    "Use",
    "named",
]


Layer = (
    Conv
    | Depthwise
    | Pool
    | Dense
    | Add
    | Multiply
    | Combine
    | Activation
    | Normalize
    | Product
    | Source
    | Rearrange
)


@contextmanager
def named(layer: str) -> Iterator[None]:
    """Put the name of a layer before the messages of errors."""
    try:
        yield
    except KernelError as error:
        raise KernelError(f"{layer}: {error}") from None


class Use(NamedTuple):
    """An input of a layer: the layer's name, and the number of the input, from 0 on."""

    name: str
    number: int


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network of layers, each after those whose output it takes.

    Attributes:
        input: size of an image.
        layers: at least one.

    Raises:
        KernelError: two layers have one name, a layer takes the output of none before it, or a
            layer does not fit its inputs; the message names the layer.
    """

    input: MapSize
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        CHECK.fields(self)
        CHECK.kind("layers", self.layers, tuple)
        for number, layer in enumerate(self.layers):
            CHECK.kind(
                f"layers[{number}]",
                layer,
                Conv,
                Depthwise,
                Pool,
                Dense,
                ElementWise,
                Normalize,
                Product,
                Source,
                Rearrange,
            )
        maps = {"the input": self.input}
        maps |= {
            layer.name: layer.size for layer in self.layers if isinstance(layer, Source | Rearrange)
        }
        for name, size in maps.items():
            for what, value in zip(MapSize._fields, size, strict=True):
                CHECK.at_least(f"{what} of {name}", value, 1)
        if not self.layers:
            raise KernelError("a network has at least one layer")
        _ = self.sizes

    @cached_property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """Name of each layer -> names of the layers whose output it takes, or :data:`INPUT`."""
        found: dict[str, tuple[str, ...]] = {}
        before = INPUT
        for layer in self.layers:
            if layer.name in found:
                raise KernelError(f"two layers have the name {layer.name!r}")
            sources = tuple(source or before for source in layer.sources)
            for source in sources:
                if source != INPUT and source not in found:
                    raise KernelError(f"{layer.name}: no layer before it has the name {source!r}")
            found[layer.name] = sources
            before = layer.name
        return found

    @cached_property
    def sizes(self) -> Mapping[str, MapSize]:
        """Name of each layer, and :data:`INPUT`, -> size of its output."""
        found = {INPUT: self.input}
        # Errors of the chain name a layer of their own.
        sources = self.sources
        for layer in self.layers:
            with named(layer.name):
                if isinstance(layer, Rearrange):
                    layer.check([found[name] for name in sources[layer.name]])
                if isinstance(layer, Product):
                    shape = layer.shape(*(found[name] for name in sources[layer.name]))
                    found[layer.name] = MapSize(shape.groups, shape.rows, shape.columns)
                    continue
                found[layer.name] = _output(layer, {n: found[n] for n in sources[layer.name]})
        return found

    @cached_property
    def _users(self) -> Mapping[str, tuple[Use, ...]]:
        found: dict[str, tuple[Use, ...]] = {}
        for layer in self.layers:
            for number, source in enumerate(self.sources[layer.name]):
                found[source] = (*found.get(source, ()), Use(layer.name, number))
        return found

    def users(self, name: str) -> tuple[Use, ...]:
        """Inputs of layers that are the output of ``name``, which may be :data:`INPUT`."""
        return self._users.get(name, ())

    @property
    def weights(self) -> Mapping[str, tuple[int, ...]]:
        """Name of each layer with weights -> their shape: filters x kernel (down) x kernel (across)
        x channels, channels x kernel (down) x kernel (across), or outputs x inputs."""
        found: dict[str, tuple[int, ...]] = {}
        for layer in self.layers:
            if not isinstance(layer, Conv | Dense | Depthwise):
                continue
            size = self.sizes[self.sources[layer.name][0]]
            if isinstance(layer, Conv):
                across, down = pair(layer.kernel)
                found[layer.name] = (layer.filters, down, across, size.channels)
            elif isinstance(layer, Depthwise):
                across, down = pair(layer.kernel)
                found[layer.name] = (size.channels, down, across)
            else:
                found[layer.name] = (layer.outputs, size.elements)
        return found


def _output(layer: Layer, sources: Mapping[str, MapSize]) -> MapSize:
    """Size of a layer's output; ``sources`` are the sizes of its inputs, by their layer's name."""
    if isinstance(layer, Source | Rearrange):
        return layer.size
    assert not isinstance(layer, Product)
    (first, size), *others = sources.items()
    for name, other in others:
        if other != size:
            raise KernelError(
                f"the maps must have one size, but {first} has {size} (width, height, channels), "
                f"{name} {other}"
            )
    if isinstance(layer, Dense):
        return MapSize(1, 1, layer.outputs)
    if isinstance(layer, ElementWise | Normalize):
        return size
    shape = layer.shape(size)
    channels = layer.filters if isinstance(layer, Conv) else size.channels
    return MapSize(shape.out_width, shape.out_height, channels)
