"""Networks as jobs of a chip: data in place, launches, and every activation as output."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import Elements, check_elements
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.job import Golden, KernelJob
from microkernels.runtime.ring import VaultRing

from .golden import Weights, activations, check_weights
from .layout import NetworkLayout
from .network import Conv, Network, Pool
from .plan import NetworkPlan, plan_network

__all__ = ["NetworkJob", "network_job"]


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkJob:
    """A network with its data, ready to run.

    Attributes:
        layout: where everything is.
        job: its outputs are the activations of all layers, one after the other.
    """

    layout: NetworkLayout
    job: KernelJob

    @property
    def plan(self) -> NetworkPlan:
        """The plan of the network."""
        return self.layout.plan

    def of_layers(self, outputs: Elements) -> dict[str, Elements]:
        """Outputs of the job as batch x height x width x channels elements of each layer."""
        found: dict[str, Elements] = {}
        first = 0
        for name, maps in self.layout.outputs.items():
            size = maps.size
            last = first + maps.batch * size.elements
            found[name] = outputs[first:last].reshape(
                maps.batch, size.height, size.width, size.channels
            )
            first = last
        return found

    @cached_property
    def operations(self) -> int:
        """Multiplications and additions of weights, and comparisons and additions of pooling."""
        return sum(_operations(self.plan, name) for name in self.plan.layers) * self.plan.batch


def _operations(plan: NetworkPlan, name: str) -> int:
    own = plan.layers[name]
    if isinstance(own.layer, Conv):
        return 2 * own.layer.shape(own.input).macs
    if isinstance(own.layer, Pool):
        return own.output.elements * (own.layer.window**2 - 1)
    return 2 * own.input.elements * own.output.channels


@CHECK.arguments
def network_job(
    network: Network,
    weights: Mapping[str, Weights],
    images: Elements,
    *,
    ring: VaultRing | None = None,
    pes: int = 4,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> NetworkJob:
    """A network on all engines of a chip.

    Parameters:
        weights: of each layer that has some, by name.
        images: batch x height x width x channels elements, a batch of at least 1.
        ring: of the chip's vaults; None: there is one vault.
        pes: engines of a vault, at least 1.
        scratchpad_bytes: of an engine.

    Raises:
        KernelError: data that do not fit the network, a layer without a cut, or a network that
            does not fit the vaults.
    """
    weights = check_weights(network, weights)
    size = network.input
    batch = len(images) if np.ndim(images) else 0
    images = check_elements("images", images, (batch, size.height, size.width, size.channels))
    ring = ring or VaultRing()
    plan = plan_network(
        network, batch=batch, ring=ring, pes=pes, scratchpad_bytes=scratchpad_bytes
    )
    layout = NetworkLayout(plan)

    def prepare(memory: Writable) -> None:
        layout.store(memory, weights)
        layout.store_images(memory, images)

    def outputs(memory: Readable) -> Elements:
        return np.concatenate([maps.load(memory).ravel() for maps in layout.outputs.values()])

    def model() -> Elements:
        found = activations(plan, layout.dense_layers, weights, images)
        return np.concatenate([found[name].ravel() for name in layout.outputs])

    job = KernelJob(
        name="network",
        launches=layout.launches,
        prepare=prepare,
        outputs=outputs,
        golden=Golden(model, lazy=True),
        end=layout.end,
        pes=pes,
        ring=ring,
        operations=sum(_operations(plan, name) for name in plan.layers) * batch,
    )
    return NetworkJob(layout=layout, job=job)
