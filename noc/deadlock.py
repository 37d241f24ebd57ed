"""Freedom from deadlock, checked on the graph of what waits for what (Dally and Seitz 1987)."""

from collections.abc import Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

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


def waiting_graph(config: NetworkConfig, lanes: int) -> Mapping[Channel | End, set[Channel | End]]:
    """What can wait for what: for each channel, those that its packets want next.

    A vault that takes requests must answer before it can take any number of them, so what it
    receives waits for what it sends. Who takes responses waits for nothing.

    Parameters:
        config: of the network.
        lanes: virtual channels a class; ``config.lanes`` is what is built.
    """
    graph: dict[Channel | End, set[Channel | End]] = {}
    for source in range(config.vaults):
        graph.setdefault(End(source, False, _REQUESTS), set()).add(End(source, True, _RESPONSES))
        for target in range(config.vaults):
            for kind in range(CLASSES):
                if source != target:
                    taken = way(config, source, target, kind, lanes)
                    stations: list[Channel | End] = [
                        End(source, True, kind),
                        *taken,
                        End(target, False, kind),
                    ]
                    for here, wanted in pairwise(stations):
                        graph.setdefault(here, set()).add(wanted)
    return graph


@cache
def check_deadlock_free(config: NetworkConfig) -> None:
    """Check that nothing in the network of ``config`` can wait in a circle.

    Raises:
        DeadlockError: something can.
    """
    try:
        TopologicalSorter(waiting_graph(config, config.lanes)).prepare()
    except CycleError as error:
        # The sorter has each node before the one that waits for it, and the last is the first.
        circle = error.args[1][:0:-1]
    else:
        return
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
