"""Plans of networks: how the vaults of a chip share each layer.

A tensor that convolutions read has the slices that suit them; the output of a fully connected layer
is one slice per vault. If layers that read a tensor need thinner slices, it has those. Pooling,
depthwise and element-wise layers leave slices unchanged. Layers that work on rows need a single
slice. A layer's maps thus always have the same slices as its sources, and are moved as they are in
memory.

The cuts are chosen by predicted cycles: of the layers, and of the moves between them. The plan also
gives the order of additions, so the golden model is that of a plan.
"""

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple

from isa.table import MAX_VL
from isa.timing import WORD_BYTES
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, round_up
from microkernels.common.fixed_point import ELEMENT_BYTES, Elements, count_saturation
from microkernels.runtime.ring import ChipEngines
from support.errors import counted

from .layer import CYCLE_BYTES, LAUNCH_CYCLES, ChipWork, LayerPlan
from .maps import MapCut
from .network import INPUT, Layer, LayerInput, MapSize, Network, named
from .parameters import Weights

#: Channels per slice with which the choice begins.
_DEPTH = 16
#: For estimates: bytes that a vault moves per cycle.
_MOVED_BYTES = 3.0
#: Cycles, relative to the fewest, that estimates do not tell apart.
_SIMILAR = 1.01
#: Number of a layer's options considered together with its neighbours', and of passes.
_OPTIONS = 24
_SWEEPS = 3


def _groups(network: Network) -> Mapping[str, str]:
    """Name of each tensor -> a name shared by all tensors with the same slices."""
    group = {INPUT: INPUT}
    for layer in network.layers:
        group[layer.name] = layer.name
        if layer.keeps_slices:
            same = {group[source] for source in network.sources[layer.name]}
            group = {name: layer.name if of in same else of for name, of in group.items()}
    return group


def _candidates(channels: int, step: int) -> list[int]:
    """Channels per slice worth considering, the thickest first: equal slices, and equal slices of
    whole words or columns of memory; multiples of ``step``."""
    equal = {-(-channels // slices) for slices in range(1, channels + 1)}
    units = (1, WORD_BYTES // ELEMENT_BYTES, COLUMN_BYTES // ELEMENT_BYTES)
    depths = {round_up(round_up(depth, unit), step) for depth in equal for unit in units}
    # No reader takes more than a vector's elements.
    limit = min(MAX_VL, round_up(channels, step))
    return sorted((depth for depth in depths if depth <= limit), reverse=True)


class _Slices:
    """Channels per slice of each group of tensors that have the same slices.

    Attributes:
        depths: of each group.
    """

    def __init__(self, network: Network, engines: ChipEngines) -> None:
        self.network = network
        self.engines = engines
        self.group = _groups(network)
        self.depths = {
            self.group[name]: min(_DEPTH, size.channels) for name, size in network.stored.items()
        }
        self.channels = {self.group[name]: size.channels for name, size in network.stored.items()}
        #: Estimated cycles of layers by name and depths, and overflows by group and depth.
        self._estimated: dict[tuple[str, int, int], float] = {}
        self._overflows: dict[tuple[str, int], str] = {}
        #: Layers that read or write each group, with the source and its size.
        self.readers: dict[str, list[tuple[Layer, MapSize]]] = {name: [] for name in self.depths}
        self.users: dict[str, dict[str, Layer]] = {name: {} for name in self.depths}
        for layer in network.layers:
            self.users[self.group[layer.name]][layer.name] = layer
            for source in network.sources[layer.name]:
                self.readers[self.group[source]].append((layer, network.stored[source]))
                self.users[self.group[source]][layer.name] = layer

    def cycles(self, layer: Layer) -> float:
        """Estimated cycles of a layer; infinite if its engines can't read its sources' slices."""
        sources = self.network.sources[layer.name]
        if not sources:
            return 0.0
        depths = (self.depths[self.group[sources[0]]], self.depths[self.group[layer.name]])
        if (layer.name, *depths) not in self._estimated:
            with named(layer.name):
                self._estimated[layer.name, *depths] = layer.slice_cycles(
                    self.network.stored[sources[0]],
                    *depths,
                    self.engines,
                    first=sources[0] == INPUT,
                )
        return self._estimated[layer.name, *depths]

    def least(self, layer: Layer) -> float:
        """A lower bound of :meth:`cycles`."""
        sources = self.network.sources[layer.name]
        if not sources:
            return 0.0
        depths = (self.depths[self.group[sources[0]]], self.depths[self.group[layer.name]])
        return layer.least_slice_cycles(self.network.stored[sources[0]], *depths, self.engines)

    def neighbours(self, name: str) -> set[str]:
        """Other groups that a group's readers and writers use."""
        layers = self.users[name]
        tensors = {source for layer in layers for source in self.network.sources[layer]}
        return {self.group[tensor] for tensor in tensors | layers.keys()} - {name}

    def overflow(self, name: str, depth: int) -> str:
        """The first layer that can't read a group's slices, and what does not fit; "": all can."""
        if (name, depth) not in self._overflows:
            self._overflows[name, depth] = self._overflow(name, depth)
        return self._overflows[name, depth]

    def _overflow(self, name: str, depth: int) -> str:
        for reader, size in self.readers[name]:
            with named(reader.name):
                large = reader.unreadable(size, depth, self.engines.scratchpad_bytes)
            if large:
                return f"{reader.name}: {large}"
        return ""

    def choose(self, name: str) -> bool:
        """Give a group the slices with which its readers and writers take the fewest cycles; among
        those that take hardly more preferably whole columns of memory, and the thinnest.

        Returns:
            Whether the slices have changed.
        """
        before, users = self.depths[name], self.users[name].values()
        cycles: dict[int, float] = {}
        least: dict[int, float] = {}
        for depth in _candidates(self.channels[name], 1):
            self.depths[name] = depth
            least[depth] = sum(map(self.least, users))
        for depth in sorted(least, key=least.__getitem__):
            if least[depth] > _SIMILAR * min(cycles.values(), default=inf):
                break
            self.depths[name] = depth
            if not self.overflow(name, depth):
                cycles[depth] = sum(map(self.cycles, users))
        limit = _SIMILAR * min(cycles.values(), default=inf)
        similar = (depth for depth, value in cycles.items() if value <= limit)
        whole = COLUMN_BYTES // ELEMENT_BYTES
        self.depths[name] = min(
            similar, key=lambda depth: (depth % whole > 0, depth), default=before
        )
        return self.depths[name] != before

    def readable(self, name: str, depth: int, step: int) -> int:
        """Channels per slice that all readers of a group support: ``depth``, or the thickest
        thinner slices.

        Raises:
            KernelError: there are none; the message names a reader.
        """
        thinner = (other for other in _candidates(self.channels[name], step) if other < depth)
        for candidate in (depth, *thinner):
            if not self.overflow(name, candidate):
                return candidate
        where = ", the minimum for a fully connected layer's output," if step > 1 else ""
        raise KernelError(
            f"{self.overflow(name, step)} of {counted(step, 'channel')}{where} does not fit an "
            f"engine with vectors of {MAX_VL} elements and a scratchpad of "
            f"{self.engines.scratchpad_bytes} bytes"
        )


def slice_depths(network: Network, engines: ChipEngines) -> Mapping[str, int]:
    """Channels per slice of each tensor, such that all its readers support them.

    Raises:
        KernelError: a layer that supports no slices; the message names it.
    """
    slices = _Slices(network, engines)
    group, depths = slices.group, slices.depths
    one_slice = [
        (layer.name, name, network.stored[name].channels)
        for layer in network.layers
        if layer.one_slice
        for name in (layer.name, *network.sources[layer.name])
    ]
    fixed = {group[name]: (channels, 1) for _, name, channels in one_slice}
    for layer in network.layers:
        shared = layer.output_depth(engines.vaults)
        if shared is not None:
            # A vault writes its outputs as one vector: one slice, or slices without gaps.
            fixed[group[layer.name]] = (shared, COLUMN_BYTES // ELEMENT_BYTES)
    for name, (depth, step) in fixed.items():
        depths[name] = slices.readable(name, depth, step)
    free = [name for name in depths if name not in fixed]
    for name in free:
        depths[name] = slices.readable(name, depths[name], 1)
    # Groups whose neighbours have changed since they were chosen.
    stale = set(free)
    for _ in range(_SWEEPS):
        for name in free:
            if name in stale:
                stale.remove(name)
                if slices.choose(name):
                    stale |= slices.neighbours(name)
    for layer_name, name, channels in one_slice:
        if depths[group[name]] != channels:
            raise KernelError(
                f"{layer_name}: {name} must be one slice of {channels} channels, but the "
                f"layer that writes or reads it needs slices of {depths[group[name]]}"
            )
    return {name: depths[group[name]] for name in network.stored}


@dataclass(frozen=True, kw_only=True)
class NetworkPlan:
    """A network's plan.

    Attributes:
        network: the planned network. batch: number of images.
        engines: of the chip.
        layers: by name.
        moves: predicted cycles of the moves of each layer's inputs.
    """

    network: Network
    batch: int
    engines: ChipEngines
    layers: Mapping[str, LayerPlan]
    moves: Mapping[str, float]

    @property
    def operations(self) -> int:
        """Additions, multiplications and comparisons per image."""
        return sum(part.layer.operations(part) for part in self.layers.values())

    @cached_property
    def inputs_in_place(self) -> frozenset[LayerInput]:
        """Inputs that layers read from where their sources wrote them."""
        return frozenset(
            use
            for name, plan in self.layers.items()
            for use in self.network.users(name)
            if self.layers[use.name].layer.reads_in_place(plan, self.layers[use.name])
        )

    @cached_property
    def outputs_written_in_place(self) -> Mapping[str, LayerInput]:
        """Name of each layer that writes its output into another layer's input -> that input, the
        largest that contains all that each vault writes."""
        into = {}
        for name, plan in self.layers.items():
            if plan.layer.step is None:
                continue
            users = {
                use: self.layers[use.name]
                for use in self.network.users(name)
                if use not in self.inputs_in_place
            }
            # A vector that is read where it is has no pixels of others between its own.
            if any(
                not self.layers[use.name].layer.reads_regions and use not in users
                for use in self.network.users(name)
            ):
                continue
            covering = [
                use
                for use, user in users.items()
                if user.layer.covers(plan, user, self.engines.vaults)
            ]
            if covering:
                into[name] = max(covering, key=lambda use: users[use].region.elements)
        return into


class _Planner:
    def __init__(self, network: Network, work: ChipWork) -> None:
        self.network = network
        self.work = work
        self.depths = slice_depths(network, work.engines)
        #: Cycles of :meth:`moved`, by identity: plans are options, which stay.
        self._moved: dict[tuple[int, int], float] = {}

    def options(self, layer: Layer) -> list[LayerPlan]:
        """Plans of a layer, that of least cost first."""
        # A map that the host writes has no sources.
        sources = self.network.sources[layer.name] or (layer.name,)
        uncut = LayerPlan(
            layer=layer,
            inputs=tuple(self.network.stored[source] for source in sources),
            depth=self.depths[sources[0]],
            cut=MapCut(size=self.network.stored[layer.name], depth=self.depths[layer.name]),
        )
        variants = layer.variants(uncut, self.work, first=sources[0] == INPUT)
        least = [layer.least_cycles(plan, self.work) for plan in variants]
        fastest: list[tuple[float, int, LayerPlan]] = []
        failed = ""
        for number in sorted(range(len(variants)), key=least.__getitem__):
            if len(fastest) >= _OPTIONS and least[number] > fastest[_OPTIONS - 1][0]:
                # This one and all later ones take longer than those considered.
                break
            try:
                plan = layer.planned(variants[number], self.work)
                insort(fastest, (plan.cost, number, plan))
            except KernelError as error:
                failed = str(error)
        if not fastest:
            vaults = self.work.engines.vaults
            raise KernelError(f"{layer.name}: no cut over {counted(vaults, 'vault')}: {failed}")
        return [plan for _, _, plan in fastest]

    def moved(self, before: LayerPlan | None, plan: LayerPlan) -> float:
        """Predicted cycles of the moves of a layer's input; both plans are :meth:`options`."""
        pair = (id(before), id(plan))
        if pair not in self._moved:
            self._moved[pair] = self._move_cycles(before, plan)
        return self._moved[pair]

    def _move_cycles(self, before: LayerPlan | None, plan: LayerPlan) -> float:
        if before is None or plan.layer.reads_in_place(before, plan):
            return 0.0
        inputs = len(self.network.sources[plan.layer.name])
        elements = plan.layer.moved_elements(before, plan, self.work, inputs)
        return elements * ELEMENT_BYTES / _MOVED_BYTES + LAUNCH_CYCLES if elements > 0 else 0.0


@CHECK.arguments
def plan_network(network: Network, *, batch: int = 1, engines: ChipEngines) -> NetworkPlan:
    """Find the fastest plan by predicted cycles.

    Parameters:
        batch: number of images, at least 1.
        engines: of the chip.

    Raises:
        KernelError: a value out of range, or a layer that can't be divided; the message names it.
    """
    CHECK.at_least("batch", batch, 1)
    planner = _Planner(network, ChipWork(batch, engines))
    options = {layer.name: planner.options(layer)[:_OPTIONS] for layer in network.layers}
    chosen = {name: plans[0] for name, plans in options.items()}

    # What is moved is read and written.
    price = 1 + (2 * _MOVED_BYTES / CYCLE_BYTES if engines.lines else 0)

    def cost(name: str, plan: LayerPlan) -> float:
        sources = [chosen.get(source) for source in network.sources[name]]
        moved = sum(planner.moved(before, plan) for before in sources)
        moved += sum(planner.moved(plan, chosen[user.name]) for user in network.users(name))
        return plan.cost + moved * price

    # Layers whose neighbours have changed since they were chosen.
    stale = set(options)
    for _ in range(_SWEEPS):
        for name in options:
            if name not in stale:
                continue
            stale.remove(name)
            least, best = inf, chosen[name]
            for plan in options[name]:
                if plan.cost > least:
                    # With moves this one and all later ones take longer.
                    break
                if (total := cost(name, plan)) < least:
                    least, best = total, plan
            if best is not chosen[name]:
                chosen[name] = best
                stale.update(source for source in network.sources[name] if source != INPUT)
                stale.update(use.name for use in network.users(name))
    moves = {
        name: sum(planner.moved(chosen.get(source), plan) for source in network.sources[name])
        for name, plan in chosen.items()
    }
    return NetworkPlan(network=network, batch=batch, engines=engines, layers=chosen, moves=moves)


class Activation(NamedTuple):
    """The output of a layer, bit-exact.

    Attributes:
        elements: batch x height x width x channels.
        saturated: number of values that were limited on the way.
        beyond: number of a curve's arguments outside its range.
    """

    elements: Elements
    saturated: int
    beyond: int


def activations(
    plan: NetworkPlan, weights: Mapping[str, Weights], inputs: Mapping[str, Elements]
) -> Iterator[tuple[Layer, Activation]]:
    """Outputs of the computed layers, in order, with sums in the order given by ``plan``. Maps that
    no later layer reads are dropped.

    Parameters:
        plan: of a layout (:attr:`microkernels.networks.jobs.NetworkLayout.plan`).
        weights: by layer.
        inputs: batch x height x width x channels elements of the network's input and of
            :class:`microkernels.networks.network.Source` layers, by name.

    Raises:
        KernelError: arrays of another shape, or values beyond 16 bits.
    """
    network, maps = plan.network, dict(inputs)
    for layer in network.layers:
        if layer.computed:
            sources = [maps[source] for source in network.sources[layer.name]]
            result = activation(plan, layer, weights.get(layer.name), sources)
            maps[layer.name] = result.elements
            yield layer, result
            for name in network.last_reads[layer.name]:
                del maps[name]


def activation(
    plan: NetworkPlan, layer: Layer, weights: Weights | None, sources: Sequence[Elements]
) -> Activation:
    """Output of one layer computed from those of its sources; parameters as for
    :func:`activations`.

    Parameters:
        layer: of the plan's network, but possibly with other fraction bits and constants.
        weights: of the layer; None: it has no weights.
    """
    size = plan.network.sizes[layer.name]
    with count_saturation() as count:
        outputs = layer.integer(plan.layers[layer.name], sources, weights)
    elements = outputs.reshape(-1, size.height, size.width, size.channels)
    return Activation(elements, count(), layer.beyond(sources[0]))
