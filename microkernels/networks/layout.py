"""Addresses of a network in the vaults of a chip: maps, weights, parameter blocks, and steps."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isa.declared import Declared
from isa.run import Launch
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, round_up
from microkernels.common.fixed_point import ELEMENT, LOWEST, Elements
from microkernels.common.memory import Writable
from microkernels.nn.dense_plan import DensePlan, plan_dense
from microkernels.nn.dense_shape import DenseShape

from .depthwise_step import DepthwiseStep
from .golden import Weights
from .moves import PIECE_ELEMENTS, Move, flat_moves, flat_order, map_moves
from .network import (
    INPUT,
    Conv,
    Dense,
    Depthwise,
    ElementWise,
    Layer,
    Normalize,
    Pool,
    Product,
    Rearrange,
    Source,
    Use,
    named,
)
from .places import ALWAYS, Places
from .plan import LayerPlan, NetworkPlan
from .rearrange import rearrange_moves
from .row_steps import row_step
from .steps import BareStep, ConvStep, DenseStep, ElementStep, MoveStep, PoolStep, Step, tile_shape
from .stored import InputMaps, OutputMaps

__all__ = ["NetworkLayout"]

_CONSTANT_BYTES = PIECE_ELEMENTS * ELEMENT.itemsize
_MIB = 1 << 20
#: From here on messages give sizes in MiB.
_LARGE = 8 * _MIB


def _amount(size: int) -> str:
    """Bytes for a message."""
    return f"{size} bytes" if size < _LARGE else f"{-(-size // _MIB)} MiB"


@dataclass(frozen=True)
class _Placed:
    """A step, and where its data are in each vault."""

    step: Step
    offset: int

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The step's launches."""
        with named(self.step.layer_name):
            return self.step.launches(self.offset)


class NetworkLayout:
    """Addresses of a network; see the module's text.

    Parameters:
        plan: of the network.
        keep: every map keeps its memory, so that all activations can be read at the end; else
            memory is used again when the last layer that needs it has ended.

    Attributes:
        plan: as given.
        inputs: maps that the layers read; there are none for fully connected layers, and for what
            is read where it was written.
        outputs: maps that the layers write, by name.
        end: first byte after the part of each vault that is used.

    Raises:
        KernelError: the network does not fit the vaults; the message names a grid that it fits, or
            a layer without a plan.
    """

    def __init__(self, plan: NetworkPlan, *, keep: bool = True) -> None:
        self.plan = plan
        self.inputs: dict[Use, InputMaps] = {}
        self.outputs: dict[str, OutputMaps] = {}
        self._keep = keep
        self._places = Places()
        self._constants = self._places.take(2 * _CONSTANT_BYTES)
        network = plan.network
        #: Time of each layer's work; its moves come just before.
        self._times = {layer.name: 2 * n + 1 for n, layer in enumerate(network.layers)}
        for layer in network.layers:
            if not isinstance(layer, Dense | Source | Rearrange):
                self._place_inputs(plan.layers[layer.name])
        for layer in network.layers:
            self._place_output(plan.layers[layer.name])
        self._orders = {
            layer.name: self._order(layer) for layer in network.layers if isinstance(layer, Dense)
        }
        for layer in network.layers:
            if isinstance(layer, Rearrange) and INPUT in network.sources[layer.name]:
                raise KernelError(
                    f"{layer.name}: elements of the network's input can't be rearranged; give it "
                    "a layer that copies them, or a source"
                )
        self._dense_steps = {name: self._dense_step(plan.layers[name]) for name in self._orders}
        self._dense_places = {name: self._take(step) for name, step in self._dense_steps.items()}
        self._steps = [
            _Placed(step, place if place >= 0 else self._take(step))
            for layer in network.layers
            for step, place in self._steps_of(layer)
        ]
        # A program may read a word past its part of a parameter block.
        self.end = self._places.end + COLUMN_BYTES
        self._check_room()

    # Places.

    def _take(self, step: Step) -> int:
        """Place for the data of a step."""
        with named(step.layer_name):
            return self._places.take(step.bytes)

    def _life(self, start: int, last: int) -> dict[str, int]:
        return {} if self._keep else {"start": start, "last": last}

    def _tiles(self, maps: InputMaps | OutputMaps, life: Mapping[str, int]) -> tuple[int, ...]:
        """Places for the tiles of all rounds."""
        step = round_up(maps.bytes, COLUMN_BYTES)
        first = self._places.take(maps.rounds * step, **life)
        return tuple(first + number * step for number in range(maps.rounds))

    def _last_use(self, name: str) -> int:
        """Time at which the output of a layer is read last."""
        plan = self.plan
        return max(
            (self._times[use.name] - (use not in plan.shared) for use in plan.network.users(name)),
            default=ALWAYS,
        )

    def _place_inputs(self, plan: LayerPlan) -> None:
        name = plan.layer.name
        for number, source in enumerate(self.plan.network.sources[name]):
            use = Use(name, number)
            if use in self.plan.shared:
                continue
            start, last = self._times[name] - 1, self._times[name]
            if source == INPUT:
                start = 0
            elif self.plan.within.get(source) == use:
                start, last = self._times[source], max(last, self._last_use(source))
            second = plan.second if number else None
            maps = InputMaps(
                ring=self.plan.ring,
                size=second or plan.input,
                batch=self.plan.batch,
                cut=plan.cut,
                cut_size=plan.output,
                cut_depth=plan.out_depth,
                depth=plan.depth,
                offsets=(0,),
                windows=plan.second_windows if second else plan.windows,
                strips=plan.strips,
            )
            self.inputs[use] = replace(maps, offsets=self._tiles(maps, self._life(start, last)))

    def _place_output(self, plan: LayerPlan) -> None:
        name = plan.layer.name
        within = self.plan.within.get(name)
        maps = OutputMaps(
            ring=self.plan.ring,
            size=plan.output,
            batch=self.plan.batch,
            cut=plan.cut,
            cut_size=plan.output,
            cut_depth=plan.out_depth,
            depth=plan.out_depth,
            offsets=(0,),
            inside=self.inputs[within] if within is not None else None,
        )
        if within is None:
            start = self._times[name] - isinstance(plan.layer, Rearrange)
            start = 0 if isinstance(plan.layer, Source) else start
            life = self._life(start, self._last_use(name))
            maps = replace(maps, offsets=self._tiles(maps, life))
        self.outputs[name] = maps

    def _check_room(self) -> None:
        room = 1 << self.plan.ring.address_bits
        if self.end <= room:
            return
        needed = self.plan.ring.vaults * self.end
        raise KernelError(
            f"the network needs {_amount(self.end)} in each of {self.plan.ring.vaults} vault(s), "
            f"{_amount(self.end - room)} more than they have; weights and maps of a vault shrink "
            f"with more vaults: {-(-needed // room)} or more may do"
        )

    # Steps.

    def _order(self, layer: Layer) -> NDArray[np.int64]:
        network = self.plan.network
        (source,) = network.sources[layer.name]
        if source == INPUT:
            raise KernelError(
                f"{layer.name}: a fully connected layer can't take the network's input; give it "
                f"a convolution of the size of the input"
            )
        return flat_order(self.outputs[source])

    def _dense_plan(self, name: str) -> DensePlan:
        """The plan of a vault's part of a fully connected layer."""
        plan = self.plan.layers[name]
        tile = plan.cut.tile_size(plan.output, plan.out_depth)
        shape = DenseShape(
            inputs=len(self._orders[name]), outputs=tile.channels, batch=self.plan.batch
        )
        with named(name):
            return plan_dense(
                shape,
                sharers=self.plan.engines.pes,
                scratchpad_bytes=self.plan.engines.scratchpad_bytes,
            )

    @property
    def dense_layers(self) -> Mapping[str, tuple[NDArray[np.int64], DensePlan]]:
        """Order of the inputs and plan of each fully connected layer."""
        return {name: (step.order, step.plan) for name, step in self._dense_steps.items()}

    def _dense_step(self, plan: LayerPlan) -> DenseStep:
        layer = plan.layer
        assert isinstance(layer, Dense)
        return DenseStep(
            layer_name=layer.name,
            engines=self.plan.engines,
            layer=layer,
            plan=self._dense_plan(layer.name),
            target=self.outputs[layer.name],
            order=self._orders[layer.name],
        )

    def _steps_of(self, layer: Layer) -> Iterator[tuple[Step, int]]:
        """Steps of a layer, with the places of those that have one; -1: none yet."""
        plan = self.plan.layers[layer.name]
        if isinstance(layer, Source):
            return
        moves = [self._moves(plan, vault) for vault in range(self.plan.ring.vaults)]
        engines = self.plan.engines
        if any(moves):
            yield MoveStep(layer_name=layer.name, engines=engines, moves=moves), -1
        if isinstance(layer, Rearrange):
            return
        if isinstance(layer, Dense):
            yield self._dense_steps[layer.name], self._dense_places[layer.name]
            return
        source_maps, target_maps = self._sources(layer), self.outputs[layer.name]
        if isinstance(layer, Normalize | Product):
            yield row_step(plan, engines, source_maps, target_maps), -1
            return
        if isinstance(layer, ElementWise):
            element = ElementStep(
                layer_name=layer.name,
                engines=engines,
                sources=source_maps,
                target=target_maps,
                shape=layer.shape(target_maps.whole_tile),
            )
            yield element, -1
            return
        (source,) = source_maps
        assert isinstance(source, InputMaps)
        names: Any = {"layer_name": layer.name, "engines": engines}
        step: Step
        if isinstance(layer, Conv):
            assert plan.conv is not None
            step = ConvStep(**names, source=source, target=target_maps, layer=layer, plan=plan.conv)
        elif isinstance(layer, Depthwise):
            shape = tile_shape(layer.shape(plan.input), source)
            step = DepthwiseStep(
                **names, source=source, target=target_maps, layer=layer, shape=shape
            )
        else:
            assert isinstance(layer, Pool)
            window = tile_shape(layer.shape(plan.input), source)
            step = PoolStep(**names, source=source, target=target_maps, shape=window)
        yield step, -1

    def _sources(self, layer: Layer) -> list[InputMaps | OutputMaps]:
        """Maps that a layer reads."""
        return [
            self.inputs.get(Use(layer.name, number)) or self.outputs[source]
            for number, source in enumerate(self.plan.network.sources[layer.name])
        ]

    def _moves(self, plan: LayerPlan, vault: int) -> list[Move]:
        name = plan.layer.name
        sources = self.plan.network.sources[name]
        if isinstance(plan.layer, Dense):
            if self.outputs[name].tile(vault) is None:
                return []
            step, place = self._dense_steps[name], self._dense_places[name]
            vectors = step.layout(vault, place).copied
            return flat_moves(self.outputs[sources[0]], vectors)
        if isinstance(plan.layer, Rearrange):
            return rearrange_moves(
                plan.layer.index,
                [self.outputs[source] for source in sources],
                self.outputs[name],
                vault,
                [
                    self.plan.ring.address(vault, self._constants + kind * _CONSTANT_BYTES)
                    for kind in (0, 1)
                ],
            )
        kind = int(plan.windows.around == LOWEST)
        constants = self.plan.ring.address(vault, self._constants + kind * _CONSTANT_BYTES)
        found = []
        for number, source in enumerate(sources):
            target = self.inputs.get(Use(name, number))
            if source != INPUT and target is not None:
                found += map_moves(self.outputs[source], target, vault, constants)
        return found

    def launches_of(self, layer: str) -> tuple[Launch, ...]:
        """The launches of a layer, by its name."""
        steps = (placed for placed in self._steps if placed.step.layer_name == layer)
        return tuple(launch for placed in steps for launch in placed.launches)

    @property
    def launch_steps(self) -> Mapping[str, Step]:
        """Name of each launch -> its step."""
        return {launch.name: placed.step for placed in self._steps for launch in placed.launches}

    @property
    def declared(self) -> Mapping[str, Declared]:
        """Name of each launch -> what is fixed with the network when it runs in the first vault;
        all else, weights included, is data."""
        return {
            launch.name: placed.step.declared(launch, placed.offset)
            for placed in self._steps
            for launch in placed.launches
        }

    @property
    def launches(self) -> tuple[Launch, ...]:
        """All launches, in order."""
        return tuple(launch for placed in self._steps for launch in placed.launches)

    @property
    def results(self) -> Mapping[str, OutputMaps]:
        """Maps that are there at the end, by the name of their layer: all outputs, or those that no
        layer uses; not those that the host puts into memory."""
        computed = {
            name: maps
            for name, maps in self.outputs.items()
            if not isinstance(self.plan.layers[name].layer, Source)
        }
        if self._keep:
            return computed
        users = self.plan.network.users
        return {name: maps for name, maps in computed.items() if not users(name)}

    # Contents.

    def store(self, memory: Writable, weights: Mapping[str, Weights]) -> None:
        """Put all but the images into ``memory``."""
        constants = np.full((2, PIECE_ELEMENTS), ((0,), (LOWEST,)), ELEMENT).tobytes()
        for vault in range(self.plan.ring.vaults):
            memory.write(self.plan.ring.address(vault, self._constants), constants)
        for placed in self._steps:
            step = placed.step
            if isinstance(step, ConvStep | DenseStep | DepthwiseStep):
                own = weights[step.layer.name]
                step.write(memory, placed.offset, own.weights, own.bias)
            elif isinstance(step, MoveStep | BareStep):
                step.write(memory, placed.offset)

    def store_images(
        self, memory: Writable, images: Elements, further: Mapping[str, Elements] | None = None
    ) -> None:
        """Put batch x height x width x channels elements into ``memory``, for all layers that read
        the network's input, and likewise those of :class:`microkernels.networks.network.Source`
        layers, by name."""
        for name, values in (further or {}).items():
            self.outputs[name].store(memory, values)
        for use in self.plan.network.users(INPUT):
            self.inputs[use].store(memory, images)
