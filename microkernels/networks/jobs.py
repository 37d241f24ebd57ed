"""Networks as jobs of a chip: data in place, launches, and every activation as output."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements, check_elements
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.job import Golden, KernelJob

from .engines import ChipEngines
from .golden import activations, check_weights
from .layout import NetworkLayout
from .network import Network
from .parameters import Weights
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
        maps_of: dict[str, Elements] = {}
        first = 0
        for name, maps in self.layout.results.items():
            size = maps.size
            last = first + maps.batch * size.elements
            maps_of[name] = outputs[first:last].reshape(
                maps.batch, size.height, size.width, size.channels
            )
            first = last
        return maps_of

    def step_of(self, launch: str) -> tuple[str, bool]:
        """Layer of a launch, by the launch's name, and whether it moves the layer's input."""
        step = self._steps[launch]
        return step.layer_name, isinstance(step, MoveStep)

    @cached_property
    def _steps(self) -> Mapping[str, Step]:
        return self.layout.launch_steps


def _check_further(
    network: Network, further: Mapping[str, Elements], batch: int
) -> dict[str, Elements]:
    """``further`` as elements, those of all sources of the network."""
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
    inputs = _check_further(network, further or {}, batch)
    machine = engines or ChipEngines()
    plan = plan_network(network, batch=batch, engines=machine, reuse=reuse)
    layout = NetworkLayout(plan, keep=keep)

    def prepare(memory: Writable) -> None:
        layout.store(memory, weights)
        layout.store_images(memory, images, inputs)

    def outputs(memory: Readable) -> Elements:
        return np.concatenate([maps.load(memory).ravel() for maps in layout.results.values()])

    def model() -> Elements:
        maps = activations(layout.plan, weights, images, further=inputs)
        return np.concatenate([maps[name].ravel() for name in layout.results])

    job = KernelJob(
        name="network",
        launches=layout.launches,
        prepare=prepare,
        outputs=outputs,
        golden=Golden(model, lazy=True),
        end=layout.end,
        pes=machine.pes,
        ring=machine.ring,
        operations=sum(each.layer.operations(each) for each in plan.layers.values()) * batch,
    )
    return NetworkJob(layout=layout, job=job)
