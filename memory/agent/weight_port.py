"""The port through which an agent's weights are read and written."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .config import ACTIONS, SLOTS


class WeightPort(wiring.Signature):
    """One weight at a time, seen from the requester.

    Parameters:
        theta_bits: of a weight.

    Members:
        request (out, 1): held until ``done``, with the same index, write and data.
        index (out): feature, and action times SLOTS.
        write (out, 1): 1 to write.
        data (out, signed theta_bits): to write.
        done (in, 1): the access is performed, two epochs after its request at most; ``request``
            is 0 in the next cycle.
        value (in, signed theta_bits): what was read, from ``done`` until the next request. Weights
            that don't exist read 0.
    """

    def __init__(self, theta_bits: int) -> None:
        self.theta_bits = theta_bits
        super().__init__(
            {
                "request": Out(1),
                "index": Out((ACTIONS * SLOTS - 1).bit_length()),
                "write": Out(1),
                "data": Out(theta_bits),
                "done": In(1),
                "value": In(theta_bits),
            }
        )
