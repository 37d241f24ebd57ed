"""Slices of the maps of a network.

A tensor that convolutions read has the slices that suit them, and the output of a fully connected
layer is one slice in each vault. Where layers that read a tensor need thinner slices, it has these.
Pooling, depthwise and element-wise layers leave slices as they are. Layers that work on rows need
one slice. So the maps of a layer always have the slices of its sources', and are moved as they lie
in memory.
"""

from collections.abc import Mapping, Sequence

from isa.table import MAX_VL
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, round_up
from microkernels.common.fixed_point import ELEMENT_BYTES
from microkernels.nn.conv_plan import best_depth, plan_conv
from microkernels.nn.depthwise import best_pixels
from microkernels.nn.pool import window_fits

from .engines import ChipEngines
from .network import (
    INPUT,
    Conv,
    Dense,
    Depthwise,
    ElementWise,
    MapSize,
    Network,
    Normalize,
    Pool,
    Product,
    named,
)
from .pairs import pair

__all__ = ["slice_depths"]

#: Channels in a slice of a map that no convolution reads.
_DEPTH = 16


def _groups(network: Network) -> Mapping[str, str]:
    """Name of each tensor -> the same name for all that have the same slices."""
    group = {INPUT: INPUT}
    for layer in network.layers:
        group[layer.name] = layer.name
        if isinstance(layer, Pool | Depthwise | ElementWise | Normalize):
            same = {group[source] for source in network.sources[layer.name]}
            group = {name: layer.name if held in same else held for name, held in group.items()}
    return group


def _can_read(
    reader: Conv | Depthwise | Pool, size: MapSize, depth: int, scratchpad_bytes: int
) -> bool:
    """Whether an engine can read slices of ``depth`` channels of a map of ``size``."""
    if isinstance(reader, Pool):
        return window_fits(reader.shape(size), depth, scratchpad_bytes=scratchpad_bytes)
    try:
        if isinstance(reader, Depthwise):
            best_pixels(reader.shape(size), depth, scratchpad_bytes=scratchpad_bytes)
            return True
        plan_conv(reader.shape(size), depth=depth, out_depth=1, scratchpad_bytes=scratchpad_bytes)
    except KernelError:
        return False
    return True


def _readable(
    wanted: int,
    step: int,
    readers: Sequence[tuple[Conv | Depthwise | Pool, MapSize]],
    scratchpad_bytes: int,
) -> int:
    """Channels of a slice that all readers can read: ``wanted``, or the first that fits of its
    half, its third and so on, each rounded up to a multiple of ``step``.

    Parameters:
        readers: with the sizes of their maps.

    Raises:
        KernelError: there is none; the message names a reader.
    """

    def unfit(depth: int) -> str:
        """Name and window of the first layer that can't read these slices; "": all can."""
        for reader, size in readers:
            if not _can_read(reader, size, depth, scratchpad_bytes):
                window = pair(reader.window if isinstance(reader, Pool) else reader.kernel)
                return f"{reader.name}: a window of {window.across} x {window.down} pixels"
        return ""

    if not unfit(wanted):
        return wanted
    # No reader takes more than a vector's elements.
    for pieces in range(max(2, -(-wanted // MAX_VL)), wanted + 1):
        depth = round_up(-(-wanted // pieces), step)
        if not unfit(depth):
            return depth
        if depth == step:
            break
    where = ", the fewest of a fully connected layer's output," if step > 1 else ""
    raise KernelError(
        f"{unfit(step)} of {step} channel(s){where} does not fit an engine with vectors of "
        f"{MAX_VL} elements and a scratchpad of {scratchpad_bytes} bytes"
    )


def slice_depths(network: Network, engines: ChipEngines) -> Mapping[str, int]:
    """Channels in a slice of each tensor, such that all layers that read it can.

    Raises:
        KernelError: a layer that can read no slices; the message names it.
    """
    group = _groups(network)
    wanted = {group[name]: min(_DEPTH, size.channels) for name, size in network.sizes.items()}
    best: dict[str, int] = {}
    readers: dict[str, list[tuple[Conv | Depthwise | Pool, MapSize]]] = {
        name: [] for name in wanted
    }
    for layer in network.layers:
        if not isinstance(layer, Conv | Depthwise | Pool):
            continue
        (source,) = network.sources[layer.name]
        name, size = group[source], network.sizes[source]
        readers[name].append((layer, size))
        if isinstance(layer, Conv):
            with named(layer.name):
                depth = best_depth(
                    layer.shape(size),
                    out_depth=min(layer.filters, _DEPTH),
                    scratchpad_bytes=engines.scratchpad_bytes,
                )
            # Where convolutions of one tensor want different slices, the thinnest suit all.
            best[name] = min(depth, best.get(name, depth))
    steps = dict.fromkeys(wanted, 1)
    wanted |= best
    for layer in network.layers:
        if isinstance(layer, Normalize | Product):
            for name in (layer.name, *network.sources[layer.name]):
                wanted[group[name]] = network.sizes[name].channels
    for layer in network.layers:
        if isinstance(layer, Dense):
            # A vault writes its outputs as one vector: one slice, or slices without gaps.
            wanted[group[layer.name]] = -(-layer.outputs // engines.ring.vaults)
            steps[group[layer.name]] = COLUMN_BYTES // ELEMENT_BYTES
    found = {
        name: _readable(depth, steps[name], readers[name], engines.scratchpad_bytes)
        for name, depth in wanted.items()
    }
    for layer in network.layers:
        if isinstance(layer, Normalize | Product):
            for name in (layer.name, *network.sources[layer.name]):
                channels = network.sizes[name].channels
                if found[group[name]] != channels:
                    raise KernelError(
                        f"{layer.name}: {name} must be one slice of {channels} channels, but what "
                        f"makes or reads it needs slices of {found[group[name]]}"
                    )
    return {name: found[group[name]] for name in network.sizes}
