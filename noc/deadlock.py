"""Freedom from deadlock, checked on the graph of what waits for what (Dally and Seitz 1987)."""

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import networkx  # type: ignore[import-untyped]

from hdl.config import ConfigurationError

from .config import CLASSES, NetworkConfig
from .routing import Channel, way

__all__ = ["DeadlockError", "End", "check_deadlock_free", "waiting_graph"]

_REQUESTS, _RESPONSES = range(CLASSES)


class DeadlockError(ConfigurationError):
    """A network in which packets could wait for each other for ever; the message names a circle."""


class End(NamedTuple):
    """Where packets of a class enter (``sends``) or leave the network at ``vault``."""

    vault: int
    sends: bool
    message_class: int


def waiting_graph(config: NetworkConfig, lanes: int) -> "networkx.DiGraph[Channel | End]":
    """What can wait for what: an edge from each channel to those that its packets want next.

    A vault that takes requests must answer before it can take any number of them, so what it
    receives waits for what it sends. Who takes responses waits for nothing.

    Parameters:
        config: of the network.
        lanes: virtual channels a class; ``config.lanes`` is what is built.
    """
    graph: networkx.DiGraph[Channel | End] = networkx.DiGraph()
    for source in range(config.vaults):
        graph.add_edge(End(source, False, _REQUESTS), End(source, True, _RESPONSES))
        for target in range(config.vaults):
            for kind in range(CLASSES):
                if source != target:
                    taken = way(config, source, target, kind, lanes)
                    stations = [End(source, True, kind), *taken, End(target, False, kind)]
                    graph.add_edges_from(pairwise(stations))
    return graph


@cache
def check_deadlock_free(config: NetworkConfig) -> None:
    """Check that nothing in the network of ``config`` can wait in a circle.

    Raises:
        DeadlockError: something can.
    """
    graph = waiting_graph(config, config.lanes)
    if networkx.is_directed_acyclic_graph(graph):
        return
    circle = [edge[0] for edge in networkx.find_cycle(graph)]
    named = ", ".join(
        f"{step.direction} of vault {step.vault}"
        if isinstance(step, Channel)
        else f"vault {step.vault}"
        for step in circle
    )
    raise DeadlockError(
        f"packets of a torus of {config.columns} x {config.rows} vaults can wait for each other in "
        f"a circle: {named}"
    )
