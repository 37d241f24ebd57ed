"""Reorder buffer of the host's data port."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component


class ReorderBuffer(Component):
    """Gives tags to pieces of bursts (:func:`soc.host.burst.burst_beat`) and keeps their state.

    Pieces retire in the order of their allocation, whatever the order of the memory's responses.

    Parameters:
        tag_bits: width of a tag; ``2 ** tag_bits`` pieces may be in flight.

    Members:
        ready (out, 1): a piece may be allocated.
        tag (out, tag_bits): its tag.
        allocate (in, 1): a piece is allocated at the end of this cycle, only with ``ready``.
        refused (in, 1): with ``allocate``; the memory is not accessed, so the piece is complete at
            once.
        response_valid (in, 1): the memory has answered a piece.
        response_tag (in, tag_bits): its tag.
        response_error (in, 1): the response is an error.
        complete (out, 1): the oldest piece has been answered.
        failed (out, 1): with ``complete``; with an error.
        head (out, tag_bits): tag of the oldest piece.
        retire (in, 1): the oldest piece retires at the end of this cycle, only with ``complete``.
    """

    def __init__(self, *, tag_bits: int) -> None:
        self.tag_bits = tag_bits
        super().__init__(
            {
                "ready": Out(1),
                "tag": Out(tag_bits),
                "allocate": In(1),
                "refused": In(1),
                "response_valid": In(1),
                "response_tag": In(tag_bits),
                "response_error": In(1),
                "complete": Out(1),
                "failed": Out(1),
                "head": Out(tag_bits),
                "retire": In(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        tags = 1 << self.tag_bits
        occupied = Signal(range(tags + 1))
        # One bit per tag; both are 0 without a piece.
        done, errors = Signal(tags), Signal(tags)
        m.d.comb += [
            self.ready.eq(occupied != tags),
            self.complete.eq(done.bit_select(self.head, 1)),
            self.failed.eq(errors.bit_select(self.head, 1)),
        ]
        # One-hot tags: a write to a bit by its number becomes a multiplexer of all bits for each
        # place that writes, which takes Yosys minutes.
        answered, refused, retired = (
            Mux(happens, 1 << tag, 0)
            for happens, tag in (
                (self.response_valid, self.response_tag),
                (self.allocate & self.refused, self.tag),
                (self.retire, self.head),
            )
        )
        failed = Mux(self.response_error, answered, 0)
        m.d.sync += [
            occupied.eq(occupied + self.allocate - self.retire),
            self.tag.eq(self.tag + self.allocate),
            self.head.eq(self.head + self.retire),
            done.eq((done | answered | refused) & ~retired),
            errors.eq((errors | failed) & ~retired),
        ]
        return m
