"""Networks as jobs of a chip: data in place, launches, and every activation as output."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements, check_elements
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.job import Golden, KernelJob

from .engines import ChipEngines
from .golden import Weights, activations, check_weights
from .layout import NetworkLayout
from .network import (
    Conv,
    Depthwise,
    ElementWise,
    Network,
    Normalize,
    Pool,
    Product,
    Rearrange,
    Source,
)
from .pairs import pair
from .plan import NetworkPlan, plan_network
from .steps import MoveStep, Step

__all__ = ["NetworkJob", "network_job"]


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkJob:
    """A network with its data, ready to run.

    Attributes:
        layout: where everything is.
        job: its outputs are the activations of all layers, or of those that no layer uses, one
            after the other.
    """

    layout: NetworkLayout
    job: KernelJob

    @property
    def plan(self) -> NetworkPlan:
        """The plan of the network."""
        return self.layout.plan

    def of_layers(self, outputs: Elements) -> dict[str, Elements]:
        """Outputs of the job as batch x height x width x channels elements of each of these
        layers."""
        found: dict[str, Elements] = {}
        first = 0
        for name, maps in self.layout.results.items():
            size = maps.size
            last = first + maps.batch * size.elements
            found[name] = outputs[first:last].reshape(
                maps.batch, size.height, size.width, size.channels
            )
            first = last
        return found

    def step_of(self, launch: str) -> tuple[str, bool]:
        """Layer of a launch, by the launch's name, and whether it moves the layer's input."""
        step = self._steps[launch]
        return step.layer_name, isinstance(step, MoveStep)

    @cached_property
    def _steps(self) -> Mapping[str, Step]:
        return self.layout.launch_steps


def _operations(plan: NetworkPlan, name: str) -> int:
    own = plan.layers[name]
    if isinstance(own.layer, Source | Rearrange):
        return 0
    if isinstance(own.layer, Conv):
        return 2 * own.layer.shape(own.input).macs
    if isinstance(own.layer, Depthwise):
        return 2 * own.output.elements * own.layer.shape(own.input).taps
    if isinstance(own.layer, Pool):
        return own.output.elements * (prod(pair(own.layer.window)) - 1)
    if isinstance(own.layer, Product):
        assert own.second is not None
        return own.layer.shape(own.input, own.second).operations
    if isinstance(own.layer, ElementWise | Normalize):
        return own.output.elements * own.layer.shape(own.input).operations
    return 2 * own.input.elements * own.output.channels


def _check_further(
    network: Network, further: Mapping[str, Elements], batch: int
) -> dict[str, Elements]:
    """``further`` as elements, those of all sources of the network."""
    found = {}
    for layer in network.layers:
        if isinstance(layer, Source):
            if layer.name not in further:
                raise KernelError(f"{layer.name}: its map is missing")
            size = layer.size
            wanted = (batch, size.height, size.width, size.channels)
            found[layer.name] = check_elements(layer.name, further[layer.name], wanted)
    return found


@CHECK.arguments
def network_job(
    network: Network,
    weights: Mapping[str, Weights],
    images: Elements,
    *,
    engines: ChipEngines | None = None,
    keep: bool = True,
    reuse: bool = False,
    further: Mapping[str, Elements] | None = None,
) -> NetworkJob:
    """A network on all engines of a chip.

    Parameters:
        weights: of each layer that has some, by name.
        images: batch x height x width x channels elements, a batch of at least 1.
        engines: of the chip; None: four of one vault.
        keep: the outputs of the job are those of all layers; else memory is used again, and they
            are the outputs of the layers that no layer uses.
        reuse: of convolutions (:func:`microkernels.nn.conv_plan.plan_conv`).
        further: batch x height x width x channels elements of each
            :class:`microkernels.networks.network.Source` layer, by name.

    Raises:
        KernelError: data that do not fit the network, a layer without a cut, or a network that
            does not fit the vaults.
    """
    weights = check_weights(network, weights)
    size = network.input
    images = check_elements("images", images, ("batch", size.height, size.width, size.channels))
    batch = len(images)
    more = _check_further(network, further or {}, batch)
    machine = engines or ChipEngines()
    plan = plan_network(network, batch=batch, engines=machine, reuse=reuse)
    layout = NetworkLayout(plan, keep=keep)

    def prepare(memory: Writable) -> None:
        layout.store(memory, weights)
        layout.store_images(memory, images, more)

    def outputs(memory: Readable) -> Elements:
        return np.concatenate([maps.load(memory).ravel() for maps in layout.results.values()])

    def model() -> Elements:
        found = activations(plan, layout.dense_layers, weights, images, further=more)
        return np.concatenate([found[name].ravel() for name in layout.results])

    job = KernelJob(
        name="network",
        launches=layout.launches,
        prepare=prepare,
        outputs=outputs,
        golden=Golden(model, lazy=True),
        end=layout.end,
        pes=machine.pes,
        ring=machine.ring,
        operations=sum(_operations(plan, name) for name in plan.layers) * batch,
    )
    return NetworkJob(layout=layout, job=job)
