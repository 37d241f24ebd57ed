"""Networks as jobs of a chip: addresses of all data in its vaults, launches, and all activations as
outputs."""

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from isa.program import Declared, Span
from isa.run import Launch
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, round_up
from microkernels.common.fixed_point import (
    ELEMENT,
    LOWEST,
    NUMBERS,
    Elements,
    check_elements,
    pack,
    unpack,
)
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.job import Golden, KernelJob
from microkernels.runtime.ring import ChipEngines
from support.checks import shown
from support.errors import counted

from .layer import ChipWork, LayerPlan, LayerStep
from .maps import StoredMaps
from .moves import PIECE_ELEMENTS, Move, move_block, move_block_bytes, move_program
from .network import INPUT, Layer, LayerInput, Network, named
from .parameters import Weights
from .plan import NetworkPlan, activations, plan_network

#: A time after all others.
ALWAYS = 1 << 30
StepT = TypeVar("StepT", bound=LayerStep)
_CONSTANT_BYTES = PIECE_ELEMENTS * ELEMENT.itemsize
_MIB = 1 << 20
#: From this size on, messages use MiB.
_LARGE = 8 * _MIB


def _amount(size: int) -> str:
    """Bytes for a message."""
    return f"{size} bytes" if size < _LARGE else f"{-(-size // _MIB)} MiB"


@dataclass(frozen=True, kw_only=True)
class MoveStep(LayerStep):
    """Moves of a layer's input.

    Attributes:
        moves: of each vault.
    """

    moves: Sequence[Sequence[Move]] = ()

    @property
    def name(self) -> str:
        return f"{self.layer_name} inputs"

    @property
    def bytes(self) -> int:
        size = max(move_block_bytes(moves, self.pes) for moves in self.moves)
        return round_up(size, COLUMN_BYTES)

    @property
    def launch(self) -> Launch:
        program = move_program(
            vault_bits=self.engines.address_bits, scratchpad_bytes=self.engines.scratchpad_bytes
        )
        return self._launch(program, self.offset)

    @property
    def declared(self) -> Declared:
        return Declared(constants=(Span(self.offset, self.bytes),), slots=self.pes)

    def write(self, memory: Writable, weights: Weights | None) -> None:
        for vault, moves in enumerate(self.moves):
            base = self.engines.address(vault, self.offset)
            memory.write(base, move_block(base, moves, self.pes))


def _launch(step: LayerStep) -> Launch:
    with named(step.layer_name):
        return step.launch


class Places:
    """Allocates offsets within a vault, each the lowest that is free throughout its lifetime.

    Parameters:
        alignment: of offsets, in bytes.

    Attributes:
        end: first byte after everything allocated.
    """

    def __init__(self, alignment: int) -> None:
        self._alignment = alignment
        #: First byte and end of each place, and the first and last time of its use.
        self._taken: list[tuple[int, int, int, int]] = []
        self.end = 0

    def take(self, size: int, *, start: int = 0, last: int = ALWAYS) -> int:
        """Allocate ``size`` bytes (0 or more) that are in use from time ``start`` to ``last``, both
        included. Returns the offset.

        Raises:
            KernelError: a value out of range.
        """
        CHECK.at_least("size", size, 0)
        CHECK.at_least("last", last, start)
        at = 0
        for first, end, since, until in self._taken:
            if since <= last and start <= until:
                if at + size <= first:
                    break
                at = max(at, round_up(end, self._alignment))
        insort(self._taken, (at, at + size, start, last))
        self.end = max(self.end, at + size)
        return at


class NetworkLayout:
    """Addresses of a network; see the module's text.

    Parameters:
        plan: of the network.
        keep: every map keeps its memory, so that all activations can be read at the end; otherwise
            memory is reused once the last layer that needs it has ended, but for maps that layers
            read with pixels around them.

    Attributes:
        plan: including what depends on places.
        inputs: maps that the layers read, except for fully connected layers and for what is read
            where it was written.
        outputs: maps that the layers write, by name.
        steps: of all layers, in order.
        end: first byte after the used part of each vault.

    Raises:
        KernelError: the network does not fit the vaults; the message names a grid that it fits, or
            a layer without a plan.
    """

    def __init__(self, plan: NetworkPlan, *, keep: bool = True) -> None:
        self.plan = plan
        self.inputs: dict[LayerInput, StoredMaps] = {}
        self.outputs: dict[str, StoredMaps] = {}
        self._keep = keep
        self._places = Places(plan.engines.alignment)
        self._constants = self._places.take(2 * _CONSTANT_BYTES)
        network = plan.network
        #: Time of each layer's work; its moves come just before.
        self._times = {layer.name: 2 * n + 1 for n, layer in enumerate(network.layers)}
        for layer in network.layers:
            if layer.reads_regions:
                self._place_inputs(plan.layers[layer.name])
        for layer in network.layers:
            self._place_output(plan.layers[layer.name])
        for layer in network.layers:
            if layer.input_refused and INPUT in network.sources[layer.name]:
                raise KernelError(f"{layer.name}: {layer.input_refused}")
        self.plan = replace(plan, layers={name: self._placed(name) for name in plan.layers})
        early = {
            layer.name: self._place(self._step(layer.step, layer))
            for layer in network.layers
            if layer.holds_inputs and layer.step is not None
        }
        self.steps = [
            step
            for layer in network.layers
            for step in self._steps_of(layer, early.get(layer.name))
        ]
        # A program may read one word past its part of a parameter block.
        self.end = self._places.end + COLUMN_BYTES
        self._check_room()

    # Places.

    def _place(self, step: LayerStep) -> LayerStep:
        """Assign a place for a step's data."""
        with named(step.layer_name):
            return replace(step, offset=self._places.take(step.bytes))

    def _life(self, start: int, last: int) -> dict[str, int]:
        return {} if self._keep else {"start": start, "last": last}

    def _tiles(self, maps: StoredMaps, life: Mapping[str, int]) -> tuple[int, ...]:
        """Places for the tiles of all rounds."""
        step = round_up(maps.bytes, COLUMN_BYTES)
        first = self._places.take(maps.rounds * step, **life)
        return tuple(first + number * step for number in range(maps.rounds))

    def _last_use(self, name: str) -> int:
        """Time of the last read of a layer's output."""
        plan = self.plan
        return max(
            (
                self._times[use.name] - (use not in plan.inputs_in_place)
                for use in plan.network.users(name)
            ),
            default=ALWAYS,
        )

    def _place_inputs(self, plan: LayerPlan) -> None:
        name = plan.layer.name
        for number, source in enumerate(self.plan.network.sources[name]):
            use = LayerInput(name, number)
            if use in self.plan.inputs_in_place:
                continue
            start, last = self._times[name] - 1, self._times[name]
            if source == INPUT:
                start = 0
            elif self.plan.outputs_written_in_place.get(source) == use:
                start, last = self._times[source], max(last, self._last_use(source))
            maps = StoredMaps(
                engines=self.plan.engines,
                size=plan.inputs[number],
                batch=self.plan.batch,
                cut=plan.cut,
                depth=plan.depth,
                offsets=(0,),
                windows=plan.windows[number],
                strips=plan.strips,
            )
            # Pixels around a map are written once, before the first launch.
            life = {} if maps.surrounded and source != INPUT else self._life(start, last)
            self.inputs[use] = replace(maps, offsets=self._tiles(maps, life))

    def _place_output(self, plan: LayerPlan) -> None:
        name = plan.layer.name
        reader = self.plan.outputs_written_in_place.get(name)
        maps = StoredMaps(
            engines=self.plan.engines,
            size=plan.output,
            batch=self.plan.batch,
            cut=plan.cut,
            depth=plan.out_depth,
            offsets=(0,),
            inside=self.inputs[reader] if reader is not None else None,
        )
        if reader is None:
            # Moves alone write the map of a layer without a step, and the host that of a source.
            start = self._times[name] - (plan.layer.step is None) if plan.layer.computed else 0
            life = self._life(start, self._last_use(name))
            maps = replace(maps, offsets=self._tiles(maps, life))
        self.outputs[name] = maps

    def _check_room(self) -> None:
        engines = self.plan.engines
        room = 1 << engines.address_bits
        if self.end <= room:
            return
        needed = engines.vaults * self.end
        raise KernelError(
            f"the network needs {_amount(self.end)} in each vault "
            f"({counted(engines.vaults, 'vault')}), {_amount(self.end - room)} more than it "
            "has; weights and maps of a vault shrink "
            f"with more vaults: {-(-needed // room)} or more may do"
        )

    # Steps.

    def _placed(self, name: str) -> LayerPlan:
        """A layer's plan, including what depends on places."""
        network, plan = self.plan.network, self.plan.layers[name]
        sources = [self.outputs.get(source) for source in network.sources[name]]
        with named(name):
            return plan.layer.placed(plan, sources, ChipWork(self.plan.batch, self.plan.engines))

    def _step(self, kind: type[StepT], layer: Layer) -> StepT:
        """A step of this kind with the maps of a layer, without a place."""
        sources = self.plan.network.sources[layer.name]
        return kind(
            plan=self.plan.layers[layer.name],
            engines=self.plan.engines,
            sources=[self.outputs.get(source) for source in sources],
            inputs=[
                self.inputs.get(LayerInput(layer.name, number)) for number in range(len(sources))
            ],
            target=self.outputs[layer.name],
            constants=(self._constants, self._constants + _CONSTANT_BYTES),
        )

    def _steps_of(self, layer: Layer, placed: LayerStep | None) -> Iterator[LayerStep]:
        """A layer's steps.

        Parameters:
            placed: its step, if it has a place.
        """
        step = placed or self._step(layer.step or MoveStep, layer)
        moves = [layer.moves(step, vault) for vault in range(self.plan.engines.vaults)]
        if any(moves):
            yield self._place(replace(self._step(MoveStep, layer), moves=moves))
        if placed is not None:
            yield placed
        elif layer.step is not None:
            yield self._place(step)

    def launches_of(self, layer: str) -> tuple[Launch, ...]:
        """A layer's launches, by the layer's name."""
        return tuple(_launch(step) for step in self.steps if step.layer_name == layer)

    @cached_property
    def launch_steps(self) -> Mapping[str, LayerStep]:
        """Name of each launch -> its step."""
        return {step.name: step for step in self.steps}

    @property
    def declared(self) -> Mapping[str, Declared]:
        """Name of each launch -> what is fixed by the network when it runs in the first vault;
        everything else, including weights, is data."""
        return {step.name: step.declared for step in self.steps}

    @property
    def launches(self) -> tuple[Launch, ...]:
        """All launches, in order."""
        return tuple(map(_launch, self.steps))

    def long_program(self, machine: str) -> str:
        """Which layer's program does not fit the instruction buffer of the engines of ``machine``;
        "": all fit.

        Programs grow with the window of a convolution and with the pieces of a curve, of which
        there are as many as there may be before calibration; those of small windows are not
        written.
        """
        room = self.plan.engines.instruction_words
        for layer in self.plan.network.layers:
            if layer.long_program is None or layer.long_program[1] <= room:
                continue
            words = max(len(launch.program.words) for launch in self.launches_of(layer.name))
            if words > room:
                return (
                    f"{layer.name}: {layer.long_program[0]} needs a program of {words} words, but "
                    f"the engines of {machine} have an instruction buffer of {room}"
                )
        return ""

    @property
    def results(self) -> Mapping[str, StoredMaps]:
        """Maps that remain at the end, by layer name: all outputs, or those that no layer uses; not
        those that the host writes."""
        network = self.plan.network
        return {
            layer.name: self.outputs[layer.name]
            for layer in network.layers
            if layer.computed and (self._keep or not network.users(layer.name))
        }

    # Contents.

    def store(self, memory: Writable, weights: Mapping[str, Weights]) -> None:
        """Write everything except the images to ``memory``."""
        constants = np.full((2, PIECE_ELEMENTS), ((0,), (LOWEST,)), ELEMENT).tobytes()
        for vault in range(self.plan.engines.vaults):
            memory.write(self.plan.engines.address(vault, self._constants), constants)
        for use, maps in self.inputs.items():
            source = self.plan.network.sources[use.name][use.number]
            if source != INPUT and maps.surrounded:
                maps.surround(memory)
        for step in self.steps:
            step.write(memory, weights.get(step.layer_name))

    def store_images(
        self, memory: Writable, images: Elements, further: Mapping[str, Elements] | None = None
    ) -> None:
        """Write batch x height x width x channels elements to ``memory``, for all layers that read
        the network's input, and likewise those of :class:`microkernels.networks.network.Source`
        layers, by name."""
        bits = self.plan.network.bits
        for name, values in (further or {}).items():
            self.outputs[name].store(memory, pack(values, bits[name]))
        elements = pack(images, bits[INPUT])
        for use in self.plan.network.users(INPUT):
            if use in self.inputs:
                self.inputs[use].store(memory, elements)
        for step in self.steps:
            layer = step.plan.layer
            if not layer.reads_regions and INPUT in self.plan.network.sources[layer.name]:
                layer.store_input(step, memory, elements)

    def load(self, memory: Readable, name: str) -> Elements:
        """The batch x height x width x channels numbers that a layer has written to ``memory``."""
        network = self.plan.network
        elements = self.outputs[name].load(memory)
        return unpack(elements, network.bits[name], network.sizes[name].channels)


def check_weights(network: Network, weights: Mapping[str, Weights]) -> dict[str, Weights]:
    """``weights`` as elements, for all layers that have weights.

    Raises:
        KernelError: not :class:`Weights`, or weights that are missing, superfluous, of another
            shape or beyond 16 bits; the message names the layer.
    """
    CHECK.kind("weights", weights, Mapping)
    shapes = network.weights
    layers = {layer.name: layer for layer in network.layers}
    if missing := [name for name in shapes if name not in weights]:
        raise KernelError(f"{missing[0]}: weights are missing")
    if extra := [name for name in weights if name not in shapes]:
        raise KernelError(f"weights: no layer with weights has the name {shown(extra[0])}")
    for name in shapes:
        CHECK.kind(f"{name}: weights", weights[name], Weights)
    return {
        name: Weights(
            weights=check_elements(
                f"{name}: weights", weights[name].weights, shape, NUMBERS[layers[name].bits]
            ),
            bias=check_elements(f"{name}: bias", weights[name].bias, shape[:1]),
        )
        for name, shape in shapes.items()
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkJob(KernelJob):
    """A network with its data, ready to run. Its outputs are the activations of all layers, or of
    those that no layer uses, one after the other.

    Attributes:
        layout: the addresses of all data.
    """

    layout: NetworkLayout

    @property
    def plan(self) -> NetworkPlan:
        """The plan of the network."""
        return self.layout.plan

    @property
    def declarations(self) -> Mapping[str, Declared]:
        return self.layout.declared

    def of_layers(self, outputs: Elements) -> dict[str, Elements]:
        """Split the job's outputs into batch x height x width x channels elements per layer."""
        maps_of: dict[str, Elements] = {}
        first = 0
        for name, maps in self.layout.results.items():
            size = self.plan.network.sizes[name]
            last = first + maps.batch * size.elements
            maps_of[name] = outputs[first:last].reshape(
                maps.batch, size.height, size.width, size.channels
            )
            first = last
        return maps_of

    def step_of(self, launch: str) -> tuple[str, bool]:
        """The layer of a launch, by the launch's name, and whether the launch moves the layer's
        input."""
        step = self.layout.launch_steps[launch]
        return step.layer_name, isinstance(step, MoveStep)


def _check_further(
    network: Network, further: Mapping[str, Elements], batch: int
) -> dict[str, Elements]:
    """``further`` as elements, for all sources of the network."""
    maps = {}
    for layer in network.layers:
        if not layer.computed:
            if layer.name not in further:
                raise KernelError(f"{layer.name}: its map is missing")
            size = network.sizes[layer.name]
            shape = (batch, size.height, size.width, size.channels)
            maps[layer.name] = check_elements(layer.name, further[layer.name], shape)
    return maps


@CHECK.arguments
def network_job(
    network: Network,
    weights: Mapping[str, Weights],
    images: Elements,
    *,
    engines: ChipEngines | None = None,
    keep: bool = True,
    further: Mapping[str, Elements] | None = None,
    again: bool = False,
) -> NetworkJob:
    """Run a network on all engines of a chip.

    Parameters:
        weights: by layer name, for each layer that has weights.
        images: batch x height x width x channels elements, with a batch of at least 1.
        engines: of the chip; None: four of one vault.
        keep: the job outputs the activations of all layers; otherwise memory is reused, and the
            outputs are those of the layers that no layer uses.
        further: batch x height x width x channels elements of each
            :class:`microkernels.networks.network.Source` layer, by name.
        again: the job runs after another one of the same network, and writes only the images.

    Raises:
        KernelError: data that do not fit the network, a layer that can't be divided, or a network
            that does not fit the vaults.
    """
    weights = check_weights(network, weights)
    size = network.input
    shape = ("batch", size.height, size.width, size.channels)
    images = check_elements("images", images, shape, NUMBERS[network.input_bits])
    batch = len(images)
    inputs = _check_further(network, further or {}, batch)
    machine = engines or ChipEngines()
    plan = plan_network(network, batch=batch, engines=machine)
    layout = NetworkLayout(plan, keep=keep)
    results = layout.results

    def prepare(memory: Writable) -> None:
        if not again:
            layout.store(memory, weights)
        layout.store_images(memory, images, inputs)

    def outputs(memory: Readable) -> Elements:
        return np.concatenate([layout.load(memory, name).ravel() for name in results])

    def model() -> Elements:
        maps = {
            layer.name: result.elements.ravel()
            for layer, result in activations(layout.plan, weights, {INPUT: images, **inputs})
            if layer.name in results
        }
        return np.concatenate([maps[name] for name in results])

    return NetworkJob(
        name="network",
        layout=layout,
        launches=layout.launches,
        prepare=prepare,
        outputs=outputs,
        golden=Golden(model, lazy=True),
        end=layout.end,
        pes=machine.pes,
        ring=machine,
        operations=plan.operations * batch,
    )
