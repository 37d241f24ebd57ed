"""Traffic counters of a node."""

from enum import IntEnum

__all__ = ["INDEX_BITS", "LAG_CYCLES", "NetworkCounter"]


class NetworkCounter(IntEnum):
    """Index of each counter. They run from reset on; a reader takes differences."""

    CYCLES = 0
    #: Flits sent to each neighbour; 0 where there is no link.
    EAST_FLITS = 1
    WEST_FLITS = 2
    NORTH_FLITS = 3
    SOUTH_FLITS = 4
    #: Flits that the node's own packets brought into the network and that were delivered to it.
    SENT_FLITS = 5
    RECEIVED_FLITS = 6
    #: Requests of the node's requesters to its own vault and to others.
    NEAR_REQUESTS = 7
    FAR_REQUESTS = 8
    #: Requests of other nodes to the node's vault.
    SERVED_REQUESTS = 9


_COUNT = 16
INDEX_BITS = (_COUNT - 1).bit_length()
#: Cycles after an event until its counter tells.
LAG_CYCLES = _COUNT + 2
