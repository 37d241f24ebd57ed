"""Networks: layers by name, each with the layers whose outputs it takes."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from microkernels.common.errors import CHECK, KernelError

from .dense import Dense
from .elements import ElementWise
from .layer import INPUT, Layer
from .maps import MapSize
from .rearrange import Rearrange, Source
from .recurrent import Recurrent
from .rows import Normalize, Product
from .windows import Conv, Depthwise, Pool

__all__ = [
    "INPUT",
    "KINDS",
    "Conv",
    "Dense",
    "Depthwise",
    "ElementWise",
    "Layer",
    "LayerInput",
    "MapSize",
    "Network",
    "Normalize",
    "Pool",
    "Product",
    "Rearrange",
    "Recurrent",
    "Source",
    "kind_named",
    "named",
]

#: The kinds of layers.
KINDS: tuple[type[Layer], ...] = (
    Conv,
    Depthwise,
    Pool,
    Dense,
    ElementWise,
    Normalize,
    Product,
    Source,
    Rearrange,
    Recurrent,
)


def kind_named(name: str) -> type[Layer]:
    """The kind of layer whose class has this name.

    Raises:
        KeyError: there is none.
    """
    return {kind.__name__: kind for kind in KINDS}[name]


@contextmanager
def named(layer: str) -> Iterator[None]:
    """Prefix error messages with the name of a layer."""
    try:
        yield
    except KernelError as error:
        raise KernelError(f"{layer}: {error}") from None


class LayerInput(NamedTuple):
    """An input of a layer: the layer's name and the input's number, from 0."""

    name: str
    number: int


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network of layers, each listed after those whose output it takes.

    Attributes:
        input: size of an image.
        layers: at least one.
        input_bits: of an image's numbers: 16, or 8.

    Raises:
        KernelError: two layers have the same name, a layer takes the output of a layer that is not
            before it, or a layer does not fit its inputs; the message names the layer.
    """

    input: MapSize
    layers: tuple[Layer, ...]
    input_bits: int = 16

    def __post_init__(self) -> None:
        CHECK.fields(self)
        CHECK.kind("layers", self.layers, tuple)
        for number, layer in enumerate(self.layers):
            CHECK.kind(f"layers[{number}]", layer, *KINDS)
        self.input.check("the input")
        if not self.layers:
            raise KernelError("a network must have at least one layer")
        _ = self.sizes
        self._check_bits()

    def _check_bits(self) -> None:
        for layer in self.layers:
            for source in self.sources[layer.name]:
                if self.bits[source] != layer.bits and layer.computed:
                    raise KernelError(
                        f"{layer.name} reads numbers of {layer.bits} bits, but {source} has "
                        f"{self.bits[source]}"
                    )

    @cached_property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """Name of each layer -> names of the layers whose output it takes, or :data:`INPUT`."""
        by_layer: dict[str, tuple[str, ...]] = {}
        before = INPUT
        for layer in self.layers:
            if layer.name in by_layer:
                raise KernelError(f"two layers have the name {layer.name!r}")
            sources = tuple(source or before for source in layer.sources)
            for source in sources:
                if source != INPUT and source not in by_layer:
                    raise KernelError(f"{layer.name}: no earlier layer has the name {source!r}")
            by_layer[layer.name] = sources
            before = layer.name
        return by_layer

    @cached_property
    def sizes(self) -> Mapping[str, MapSize]:
        """Name of each layer, and :data:`INPUT`, -> size of its output."""
        sizes = {INPUT: self.input}
        # Errors of the chain already name a layer.
        sources = self.sources
        for layer in self.layers:
            with named(layer.name):
                sizes[layer.name] = layer.output(
                    [(source, sizes[source]) for source in sources[layer.name]]
                )
        return sizes

    @cached_property
    def bits(self) -> Mapping[str, int]:
        """Name of each layer, and :data:`INPUT`, -> bits of the numbers in its map."""
        return {INPUT: self.input_bits} | {layer.name: layer.output_bits for layer in self.layers}

    @cached_property
    def equal_bits(self) -> Mapping[str, str]:
        """Name of each map -> a name shared by all maps whose numbers have the same bits."""
        group = {name: name for name in self.sizes}
        for layer in self.layers:
            if not layer.mixes_channels:
                same = {group[name] for name in (layer.name, *self.sources[layer.name])}
                group = {name: layer.name if of in same else of for name, of in group.items()}
        return group

    @cached_property
    def stored(self) -> Mapping[str, MapSize]:
        """Name of each layer, and :data:`INPUT`, -> size of its map in elements."""
        return {name: size.stored(self.bits[name]) for name, size in self.sizes.items()}

    def in_bytes(self, wide: Collection[str] = ()) -> "Network":
        """The network with maps of bytes wherever all of a map's writers and readers have them,
        except for those of layers that no layer reads.

        Parameters:
            wide: names of further maps that keep 16 bits.
        """
        of_elements = {*wide, *(name for name in self.sizes if not self.users(name))}
        for layer in self.layers:
            if not layer.reads_bytes:
                of_elements.update((layer.name, *self.sources[layer.name]))
        group = self.equal_bits
        elements = {group[name] for name in of_elements}
        bits = {name: 16 if of in elements else 8 for name, of in group.items()}
        layers = []
        for layer in self.layers:
            sources = self.sources[layer.name] or (layer.name,)
            layers.append(layer.of_bits(bits[sources[0]], bits[layer.name]))
        return replace(self, layers=tuple(layers), input_bits=bits[INPUT])

    @cached_property
    def _users(self) -> Mapping[str, tuple[LayerInput, ...]]:
        users: dict[str, tuple[LayerInput, ...]] = {}
        for layer in self.layers:
            for number, source in enumerate(self.sources[layer.name]):
                users[source] = (*users.get(source, ()), LayerInput(layer.name, number))
        return users

    @cached_property
    def last_reads(self) -> Mapping[str, set[str]]:
        """Name of each layer -> maps that it reads and no later one does."""
        last = {source: layer.name for layer in self.layers for source in self.sources[layer.name]}
        by_layer: dict[str, set[str]] = {layer.name: set() for layer in self.layers}
        for source, reader in last.items():
            by_layer[reader].add(source)
        return by_layer

    def users(self, name: str) -> tuple[LayerInput, ...]:
        """Layer inputs that take the output of ``name``, which may be :data:`INPUT`."""
        return self._users.get(name, ())

    @property
    def weights(self) -> Mapping[str, tuple[int, ...]]:
        """Name of each layer with weights -> their shape: filters x kernel (down) x kernel (across)
        x channels, channels x kernel (down) x kernel (across), or outputs x inputs."""
        return {
            layer.name: layer.weight_shape(self.sizes[self.sources[layer.name][0]])
            for layer in self.layers
            if layer.has_weights
        }
