"""Merges the responses for part of a port's addresses into those for the rest."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal


def merge_responses(
    m: Module, response: Any, other: Any, valid: Signal, take: Signal, beat: Any
) -> None:
    """Give ``response`` the responses of both sides, in turn; the beats of one stay together.

    Parameters:
        m: module that the logic becomes part of, in domain ``sync``.
        response: stream towards the requesters. other: stream from the back end; both of
            :func:`hdl.ports.memory_response`.
        valid, take, beat: valid, ready and payload of the own side.
    """
    locked = Signal()
    owner = Signal()
    # The side not served last.
    turn = Signal()
    from_second = Signal()
    m.d.comb += [
        from_second.eq(Mux(locked, owner, valid & (turn | ~other.valid))),
        response.valid.eq(Mux(from_second, valid, other.valid)),
        response.payload.eq(Mux(from_second, beat, other.payload)),
        take.eq(from_second & response.ready),
        other.ready.eq(~from_second & response.ready),
    ]
    with m.If(response.valid):
        # An offer stays until it is accepted.
        m.d.sync += [locked.eq(~(response.ready & response.payload.last)), owner.eq(from_second)]
        with m.If(response.ready & response.payload.last):
            m.d.sync += turn.eq(~from_second)
