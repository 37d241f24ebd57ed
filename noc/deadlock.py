"""Freedom from deadlock, checked on the dependency graph of the channels (Dally and Seitz 1987)."""

from collections.abc import Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

from hdl.config import ConfigurationError

from .config import CLASSES, NetworkConfig
from .routing import Channel, route

_REQUESTS, _RESPONSES = range(CLASSES)


class DeadlockError(ConfigurationError):
    """A network in which packets could wait for each other forever; the message names a cycle."""


class End(NamedTuple):
    """The place where packets of a class enter (``sends``) or leave the network at ``vault``."""

    vault: int
    sends: bool
    message_class: int


def dependency_graph(
    config: NetworkConfig, virtual_channels: int
) -> Mapping[Channel | End, set[Channel | End]]:
    """The dependency graph: for each channel, the channels that its packets request next.

    A vault that accepts requests must answer before it can accept any number of them, so its
    received requests depend on its responses. Received responses depend on nothing.

    Parameters:
        config: of the network.
        virtual_channels: number for each class; ``config.virtual_channels`` in the built network.
    """
    graph: dict[Channel | End, set[Channel | End]] = {}
    for source in range(config.vaults):
        graph.setdefault(End(source, False, _REQUESTS), set()).add(End(source, True, _RESPONSES))
        for target in range(config.vaults):
            for kind in range(CLASSES):
                if source != target:
                    channels = route(config, source, target, kind, virtual_channels)
                    stations: list[Channel | End] = [
                        End(source, True, kind),
                        *channels,
                        End(target, False, kind),
                    ]
                    for channel, awaited in pairwise(stations):
                        graph.setdefault(channel, set()).add(awaited)
    return graph


@cache
def check_deadlock_free(config: NetworkConfig) -> None:
    """Check that the dependency graph of the network of ``config`` has no cycle.

    Raises:
        DeadlockError: it has one.
    """
    try:
        TopologicalSorter(dependency_graph(config, config.virtual_channels)).prepare()
    except CycleError as error:
        # The sorter lists each node before the one that waits for it; the last equals the first.
        cycle = error.args[1][:0:-1]
    else:
        return
    named = ", ".join(
        f"{step.direction} of vault {step.vault}"
        if isinstance(step, Channel)
        else f"vault {step.vault}"
        for step in cycle
    )
    raise DeadlockError(
        f"packets of a torus of {config.columns} x {config.rows} vaults can wait for each other in "
        f"a cycle: {named}"
    )
