"""Signatures of the network: flits and the links that carry them."""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.ports import WORD_BITS

from .config import NetworkConfig
from .topology import directions


def flit() -> data.StructLayout:
    """The payload of a link in a cycle.

    Members:
        data (64): part of a packet; the first flit of a packet is its header (:mod:`noc.packet`).
        last (1): the packet's last flit.
        error (1): with ``last`` in a response, the access failed. It is not in the header, because
            memory reports it only with the last word.
    """
    return data.StructLayout({"data": WORD_BITS, "last": 1, "error": 1})


class LinkPort(wiring.Signature):
    """A link with credits, seen from the sender.

    The receiver has a buffer of ``buffer_flits`` for each virtual channel and never refuses a flit.
    The sender starts with as many credits for each and sends on a channel only while it has one.
    The flits of a packet stay on one channel and are not mixed with those of others on it.

    Parameters:
        channels: virtual channels, at least 1.

    Members:
        valid (out, 1): a flit in this cycle.
        channel (out, 0..channels - 1): its virtual channel.
        flit (out, :func:`flit`): the flit.
        credit (in, channels): one bit for each channel: one more flit may be sent on it.
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
    """Members of every component in the torus, for its signature.

    Returns:
        ``x`` (in, x_bits) and ``y`` (in, y_bits): its column and row. For each of
        :func:`noc.topology.directions`, a :class:`LinkPort` of ``config.channels``: ``east_out``
        (out) to the neighbour in the east, and ``east_in`` (in) from it.
    """
    port = LinkPort(config.channels)
    members = {"x": In(config.x_bits), "y": In(config.y_bits)}
    for direction in directions(config):
        members[f"{direction}_out"] = Out(port)
        members[f"{direction}_in"] = In(port)
    return members
