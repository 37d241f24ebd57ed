"""Networks as jobs of a chip: data in memory, launches, all activations as outputs, and the golden
model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isa.declared import Declared
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import NUMBERS, Elements, check_elements
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.job import Golden, KernelJob
from microkernels.runtime.ring import ChipEngines
from support.checks import shown

from .layer import LayerStep
from .layout import MoveStep, NetworkLayout
from .network import INPUT, Layer, Network
from .parameters import Weights
from .plan import NetworkPlan, plan_network


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


def activations(
    plan: NetworkPlan,
    weights: Mapping[str, Weights],
    images: Elements,
    progress: Callable[[str], None] | None = None,
    further: Mapping[str, Elements] | None = None,
) -> dict[str, Elements]:
    """Outputs of all layers, bit-exact, with sums in the order given by ``plan``.

    Parameters:
        plan: of a layout (:attr:`microkernels.networks.layout.NetworkLayout.plan`).
        weights: by layer.
        images: batch x height x width x channels elements.
        progress: called with the name of each layer before it is computed.
        further: values of :class:`microkernels.networks.network.Source` layers, by name.

    Returns:
        batch x height x width x channels elements of each computed layer.

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
    """Output of one layer computed from those of its sources; parameters and result as for
    :func:`activations`.

    Parameters:
        layer: of the plan's network, but possibly with other fraction bits and constants.
        weights: of the layer; None: it has no weights.
    """
    size = plan.network.sizes[layer.name]
    outputs = layer.integer(plan.layers[layer.name], sources, weights)
    return outputs.reshape(-1, size.height, size.width, size.channels)


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
        step = self._steps[launch]
        return step.layer_name, isinstance(step, MoveStep)

    @cached_property
    def _steps(self) -> Mapping[str, LayerStep]:
        return self.layout.launch_steps


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

    def prepare(memory: Writable) -> None:
        if not again:
            layout.store(memory, weights)
        layout.store_images(memory, images, inputs)

    def outputs(memory: Readable) -> Elements:
        return np.concatenate([layout.load(memory, name).ravel() for name in layout.results])

    def model() -> Elements:
        maps = activations(layout.plan, weights, images, further=inputs)
        return np.concatenate([maps[name].ravel() for name in layout.results])

    return NetworkJob(
        name="network",
        layout=layout,
        launches=layout.launches,
        prepare=prepare,
        outputs=outputs,
        golden=Golden(model, lazy=True),
        end=layout.end,
        pes=machine.pes,
        ring=machine.ring,
        operations=plan.operations * batch,
    )
