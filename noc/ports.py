"""Signatures of the network: flits and the links that carry them."""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.ports import WORD_BITS

from .config import NetworkConfig
from .topology import directions

__all__ = ["LinkPort", "flit", "link_members"]


def flit() -> data.StructLayout:
    """What a link carries in a cycle.

    Members:
        data: 64 bits of a packet; the first flit of a packet is its header (:mod:`noc.packet`).
        last: the packet's last flit.
        error: with ``last`` in a response, the access failed. It stands here and not in the header
            as memory tells it with the last word only.
    """
    return data.StructLayout({"data": WORD_BITS, "last": 1, "error": 1})


class LinkPort(wiring.Signature):
    """A link with credits, seen from the sender.

    The receiver has a buffer of ``buffer_flits`` for each virtual channel and never refuses a flit.
    The sender starts with as many credits for each and sends on a channel only while it has one.
    The flits of a packet keep to one channel and are not mixed with those of others on it.

    Parameters:
        channels: virtual channels, at least 1.

    Members:
        valid: out; a flit in this cycle.
        channel: out; its virtual channel.
        flit: out; :func:`flit`.
        credit: in; a bit for each channel: one more flit may be sent on it.
    """

    def __init__(self, channels: int) -> None:
        self.channels = channels
        super().__init__(
            {
                "valid": Out(1),
                "channel": Out(range(channels)),
                "flit": Out(flit()),
                "credit": In(channels),
            }
        )


def link_members(config: NetworkConfig) -> dict[str, wiring.Member]:
    """Members of anything that stands in the torus, for its signature.

    Returns:
        ``x``, ``y``: in; its column and row. For each of :func:`noc.topology.directions`, a
        :class:`LinkPort` of ``config.channels``: ``east_out`` to the neighbour in the east, out,
        and ``east_in`` from it, in.
    """
    port = LinkPort(config.channels)
    members = {"x": In(config.x_bits), "y": In(config.y_bits)}
    for direction in directions(config):
        members[f"{direction}_out"] = Out(port)
        members[f"{direction}_in"] = In(port)
    return members
