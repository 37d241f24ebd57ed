"""Plans of networks: how the vaults of a chip share each layer.

Slices of the maps are those of :mod:`microkernels.networks.slices`. The cuts are chosen by
predicted cycles: of the layers, and of the moves between them.
"""

from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import ELEMENT_BYTES, LOWEST
from microkernels.nn.conv_layout import predict_conv
from microkernels.nn.conv_plan import ConvPlan, plan_conv
from microkernels.nn.depthwise import predict_depthwise
from microkernels.nn.product import plan_product
from microkernels.nn.rows import predict_rows
from microkernels.runtime.ring import VaultRing

from .cut import Cut, cuts
from .engines import ChipEngines
from .network import (
    INPUT,
    Conv,
    Dense,
    Depthwise,
    ElementWise,
    Layer,
    MapSize,
    Network,
    Normalize,
    Pool,
    Product,
    Rearrange,
    Source,
    Use,
)
from .pairs import Pair, pads, pair
from .slices import slice_depths
from .stored import Tiles, Windows, inside

__all__ = ["LayerPlan", "NetworkPlan", "plan_network"]

#: For estimates alone: bytes that a vault moves in a cycle; cycles of a launch, and, on an engine,
#: of an output of pooling and of a column of a window; bytes that the vault's memory moves in a
#: cycle.
_MOVED_BYTES = 3.0
_LAUNCH = 4000
_POOLED, _POOLED_COLUMN = 60, 22
_MEMORY_BYTES = 8
#: How much longer an element takes that moves alone.
_SCATTERED = 8
#: Products of an engine in a cycle.
_LANES = 4


@dataclass(frozen=True, kw_only=True)
class LayerPlan:
    """How the vaults share a layer.

    Attributes:
        layer: of the network.
        input, output: sizes of its maps. second: of the second input of a product.
        cut: of the output.
        depth, out_depth: channels in a slice of the input and of the output.
        conv: partition of a tile, of a convolution.
        strips: the input lies in strips, of a convolution of the network's input.
        cycles: predicted for the whole batch, without moves.
    """

    layer: Layer
    input: MapSize
    output: MapSize
    cut: Cut
    depth: int
    out_depth: int
    conv: ConvPlan | None = None
    strips: bool = False
    cycles: float = 0.0
    second: MapSize | None = None

    @cached_property
    def windows(self) -> Windows:
        """Which pixels of its input the layer reads."""
        layer = self.layer
        if isinstance(layer, Conv | Depthwise):
            around = pads(layer.padding)
            return Windows(
                kernel=pair(layer.kernel),
                stride=pair(layer.stride),
                left=around.left,
                top=around.top,
                parted=isinstance(layer, Depthwise),
            )
        if isinstance(layer, Pool):
            around = pads(layer.padding)
            return Windows(
                kernel=pair(layer.window),
                stride=pair(layer.stride),
                left=around.left,
                top=around.top,
                around=0 if layer.mean else LOWEST,
                parted=True,
            )
        if isinstance(layer, ElementWise | Normalize):
            return Windows(kernel=Pair(1, 1), stride=Pair(1, 1), parted=True)
        if isinstance(layer, Product):
            across = int(self.input.width == self.output.width)
            return Windows(kernel=Pair(1, 1), stride=Pair(across, 1))
        raise KernelError(f"{layer.name} has no windows")

    @property
    def second_windows(self) -> Windows:
        """Likewise of the second input of a product, in whole columns."""
        size = self.second or self.input
        across = int(size.width == self.output.width)
        return Windows(kernel=Pair(1, size.height), stride=Pair(across, 0))

    def rounds(self, batch: int) -> int:
        """Rounds in which the vaults go through a batch."""
        return -(-batch // self.cut.images)


@dataclass(frozen=True, kw_only=True)
class NetworkPlan:
    """A plan of a network.

    Attributes:
        network: that is planned. batch: images.
        engines: of the chip.
        layers: by name.
        moved: predicted cycles of the moves between vaults.
    """

    network: Network
    batch: int
    engines: ChipEngines
    layers: Mapping[str, LayerPlan]
    moved: float = 0.0

    @property
    def ring(self) -> VaultRing:
        """The vaults."""
        return self.engines.ring

    @cached_property
    def shared(self) -> frozenset[Use]:
        """Inputs that layers read where their sources wrote them."""
        return frozenset(
            use
            for name, plan in self.layers.items()
            for use in self.network.users(name)
            if _same_tiles(plan, self.layers[use.name])
        )

    @cached_property
    def within(self) -> Mapping[str, Use]:
        """Name of each layer that writes its output into the input of another layer -> that input.
        It is the only input with this output that is not :attr:`shared`."""
        found = {}
        for name, plan in self.layers.items():
            if isinstance(plan.layer, Source | Rearrange):
                continue
            own = [use for use in self.network.users(name) if use not in self.shared]
            if len(own) == 1 and _inside(plan, self.layers[own[0].name], self.ring.vaults):
                found[name] = own[0]
        return found


def _same_tiles(plan: LayerPlan, user: LayerPlan) -> bool:
    """Whether each vault reads for the next layer exactly the tile that it has written."""
    if isinstance(user.layer, Product):
        # A vault has whole images.
        return user.cut.sharers == 1 and plan.cut == user.cut
    return isinstance(user.layer, ElementWise | Normalize) and plan.cut == user.cut


def _inside(plan: LayerPlan, user: LayerPlan, vaults: int) -> bool:
    """Whether each vault's tile lies in the region that it reads for the next layer."""
    if isinstance(user.layer, Dense | Rearrange | Product) or isinstance(plan.layer, Dense):
        return False
    if plan.cut.images != user.cut.images or plan.out_depth != user.depth:
        return False
    tiles = Tiles(plan.cut, plan.output, plan.out_depth)
    read = Tiles(user.cut, user.output, user.out_depth)
    return inside(tiles, read, user.windows, user.input.channels, vaults)


class _Planner:
    def __init__(self, network: Network, batch: int, engines: ChipEngines, *, reuse: bool) -> None:
        self.reuse = reuse
        self.network = network
        self.batch = batch
        self.vaults = engines.ring.vaults
        self.pes = engines.pes
        self.scratchpad_bytes = engines.scratchpad_bytes
        self.depths = slice_depths(network, engines)

    def options(self, layer: Layer) -> list[LayerPlan]:
        """Plans of a layer, the fastest first."""
        source = next(iter(self.network.sources[layer.name]), layer.name)
        size, output = self.network.sizes[source], self.network.sizes[layer.name]
        bare = LayerPlan(
            layer=layer,
            input=size,
            output=output,
            cut=Cut(),
            depth=self.depths[source],
            out_depth=self.depths[layer.name],
        )
        if isinstance(layer, Dense):
            # A vault has whole slices, about as many as another.
            slices = -(-output.channels // bare.out_depth)
            each = -(-slices // self.vaults)
            parts = -(-slices // each)
            weights = size.elements * -(-output.channels // parts)
            products = weights * self.batch / (_LANES * self.pes)
            cycles = max(weights * ELEMENT_BYTES / _MEMORY_BYTES, products) + _LAUNCH
            return [replace(bare, cut=Cut(parts=parts), cycles=cycles)]
        every = cuts(output, bare.out_depth, self.vaults, self.batch)
        kinds = (False, True) if isinstance(layer, Conv) and source == INPUT else (False,)
        kept = list(product(every, kinds))
        least = [self._least(bare, cut) for cut, _ in kept]
        found: list[tuple[float, int, LayerPlan]] = []
        failed = ""
        for number in sorted(range(len(kept)), key=least.__getitem__):
            if len(found) >= _OPTIONS and least[number] > found[_OPTIONS - 1][0]:
                # This one and all others take longer than those that are looked at.
                break
            try:
                cut, strips = kept[number]
                made = self._planned(replace(bare, cut=cut), strips)
                insort(found, (made.cycles, number, made))
            except KernelError as error:
                failed = str(error)
        if not found:
            raise KernelError(f"{layer.name}: no cut over {self.vaults} vault(s): {failed}")
        return [made for _, _, made in found]

    def _least(self, plan: LayerPlan, cut: Cut) -> float:
        """Cycles that a plan takes at least with another cut."""
        if not isinstance(plan.layer, Conv):
            return 0.0
        kernel = pair(plan.layer.kernel)
        products = kernel.across * kernel.down * plan.input.channels
        products *= cut.tile_size(plan.output, plan.out_depth).elements
        return -(-self.batch // cut.images) * (products / (_LANES * self.pes) + _LAUNCH)

    def _planned(self, plan: LayerPlan, strips: bool) -> LayerPlan:
        """A plan with its predicted cycles."""
        match plan.layer:
            case Conv():
                return self._conv(plan, plan.layer, strips)
            case Pool():
                return self._pool(plan, plan.layer)
            case Depthwise():
                return self._depthwise(plan, plan.layer)
            case ElementWise():
                return self._element(plan, plan.layer)
            case Normalize() | Product():
                return self._rows(plan, plan.layer)
        return plan

    def _conv(self, plan: LayerPlan, layer: Conv, strips: bool) -> LayerPlan:
        tile = plan.cut.tile_size(plan.output, plan.out_depth)
        kernel, stride = pair(layer.kernel), pair(layer.stride)
        shape = replace(
            layer.shape(plan.input),
            width=(tile.width - 1) * stride.across + kernel.across,
            height=(tile.height - 1) * stride.down + kernel.down,
            filters=tile.channels,
        )
        conv = plan_conv(
            shape,
            depth=plan.depth,
            out_depth=plan.out_depth,
            strips=strips,
            reuse=self.reuse,
            scratchpad_bytes=self.scratchpad_bytes,
        )
        cycles = predict_conv(conv, self.pes)
        return replace(
            plan, conv=conv, strips=strips, cycles=plan.rounds(self.batch) * (cycles + _LAUNCH)
        )

    def _pool(self, plan: LayerPlan, layer: Pool) -> LayerPlan:
        tile = plan.cut.tile_size(plan.output, plan.out_depth)
        slices = -(-tile.channels // plan.out_depth)
        lines = -(-tile.height * slices // self.pes)
        across, down = pair(layer.window)
        read = across * down * plan.depth * ELEMENT_BYTES / 8 * self.pes
        cycles = lines * tile.width * max(_POOLED, read, across * _POOLED_COLUMN)
        return replace(plan, cycles=plan.rounds(self.batch) * (cycles + _LAUNCH))

    def _depthwise(self, plan: LayerPlan, layer: Depthwise) -> LayerPlan:
        tile = plan.cut.tile_size(plan.output, plan.out_depth)
        kernel, stride = pair(layer.kernel), pair(layer.stride)
        shape = replace(
            layer.shape(plan.input),
            width=(tile.width - 1) * stride.across + kernel.across,
            height=(tile.height - 1) * stride.down + kernel.down,
            channels=tile.channels,
        )
        cycles = predict_depthwise(
            shape, plan.depth, sharers=self.pes, scratchpad_bytes=self.scratchpad_bytes
        )
        return replace(plan, cycles=plan.rounds(self.batch) * (cycles + _LAUNCH))

    def _element(self, plan: LayerPlan, layer: ElementWise) -> LayerPlan:
        tile = plan.cut.tile_size(plan.output, plan.out_depth)
        maps = len(layer.sources) + 1
        cycles = maps * tile.elements * ELEMENT_BYTES / _MEMORY_BYTES
        return replace(plan, cycles=plan.rounds(self.batch) * (cycles + _LAUNCH))

    def _rows(self, plan: LayerPlan, layer: Normalize | Product) -> LayerPlan:
        tile = plan.cut.tile_size(plan.output, plan.out_depth)
        machine = {"sharers": self.pes, "scratchpad_bytes": self.scratchpad_bytes}
        if isinstance(layer, Normalize):
            cycles = predict_rows(layer.shape(tile), **machine)
        else:
            other = self.network.sizes[self.network.sources[layer.name][1]]
            shape = replace(layer.shape(plan.input, other), groups=tile.width, rows=tile.height)
            cycles = plan_product(shape, **machine).cycles
            plan = replace(plan, second=other)
        return replace(plan, cycles=plan.rounds(self.batch) * (cycles + _LAUNCH))

    def moved(self, before: LayerPlan | None, plan: LayerPlan) -> float:
        """Predicted cycles of the moves of an input of a layer."""
        if before is None or _same_tiles(before, plan):
            return 0.0
        if isinstance(plan.layer, Dense):
            elements = plan.input.elements * self.batch
        elif isinstance(plan.layer, Rearrange):
            # The whole tile, from all sources together; single elements take as long as pieces.
            tile = plan.cut.tile_size(plan.output, plan.out_depth)
            pieces = _SCATTERED * tile.elements * plan.rounds(self.batch)
            elements = pieces // len(self.network.sources[plan.layer.name])
        else:
            tile = plan.cut.tile_size(plan.output, plan.out_depth)
            windows = plan.windows
            channels = tile.channels if windows.parted else plan.input.channels
            kernel, stride = windows.kernel, windows.stride
            width = (tile.width - 1) * stride.across + kernel.across
            height = (tile.height - 1) * stride.down + kernel.down
            elements = width * height * channels
            if _inside(before, plan, self.vaults):
                elements -= before.cut.tile_size(before.output, before.out_depth).elements
            elements *= plan.rounds(self.batch)
        return max(elements, 0) * ELEMENT_BYTES / _MOVED_BYTES + _LAUNCH


#: Options of a layer that are looked at together with its neighbours', and how often.
_OPTIONS = 24
_SWEEPS = 3


@CHECK.arguments
def plan_network(
    network: Network, *, batch: int = 1, engines: ChipEngines, reuse: bool = False
) -> NetworkPlan:
    """The fastest plan found, by predicted cycles.

    Parameters:
        batch: images, at least 1.
        engines: of the chip.
        reuse: of convolutions (:func:`microkernels.nn.conv_plan.plan_conv`).

    Raises:
        KernelError: a value outside its range, or a layer without a cut; the message names it.
    """
    CHECK.at_least("batch", batch, 1)
    planner = _Planner(network, batch, engines, reuse=reuse)
    options = {layer.name: planner.options(layer)[:_OPTIONS] for layer in network.layers}
    chosen = {name: plans[0] for name, plans in options.items()}

    def cost(name: str, plan: LayerPlan) -> float:
        sources = [chosen.get(source) for source in network.sources[name]]
        total = plan.cycles + sum(planner.moved(before, plan) for before in sources)
        return total + sum(planner.moved(plan, chosen[user.name]) for user in network.users(name))

    # Those whose neighbours have changed since they were chosen.
    stale = set(options)
    for _ in range(_SWEEPS):
        for name in options:
            if name not in stale:
                continue
            stale.remove(name)
            best = min(options[name], key=lambda plan: cost(name, plan))
            if best is not chosen[name]:
                chosen[name] = best
                stale.update(source for source in network.sources[name] if source != INPUT)
                stale.update(use.name for use in network.users(name))
    moved = sum(
        planner.moved(chosen.get(source), plan)
        for name, plan in chosen.items()
        for source in network.sources[name]
    )
    return NetworkPlan(network=network, batch=batch, engines=engines, layers=chosen, moved=moved)
