"""The order of the requests of the host's data port."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component

__all__ = ["HostOrder"]


class HostOrder(Component):
    """Gives tags to pieces of bursts (:func:`soc.host.burst.burst_beat`).

    Pieces leave in the order of their entry, whatever the order of the memory's responses.

    Parameters:
        tag_bits: width of a tag; ``2 ** tag_bits`` pieces may be inside.

    Members:
        room (out, 1): a piece may enter.
        tag (out, tag_bits): its tag.
        enter (in, 1): it enters at the end of this cycle, only with ``room``.
        refused (in, 1): with ``enter``; the memory is not accessed, so the piece is complete at
            once.
        answered (in, 1): the memory has answered a piece.
        answered_tag (in, tag_bits): its tag.
        error (in, 1): its response is an error.
        complete (out, 1): the oldest piece has been answered.
        failed (out, 1): with ``complete``; with an error.
        oldest (out, tag_bits): tag of the oldest piece.
        leave (in, 1): it leaves at the end of this cycle, only with ``complete``.
    """

    def __init__(self, *, tag_bits: int) -> None:
        self.tag_bits = tag_bits
        super().__init__(
            {
                "room": Out(1),
                "tag": Out(tag_bits),
                "enter": In(1),
                "refused": In(1),
                "answered": In(1),
                "answered_tag": In(tag_bits),
                "error": In(1),
                "complete": Out(1),
                "failed": Out(1),
                "oldest": Out(tag_bits),
                "leave": In(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        tags = 1 << self.tag_bits
        inside = Signal(range(tags + 1))
        # Of the tags inside; a tag without a piece has neither.
        done, bad = Signal(tags), Signal(tags)
        m.d.comb += [
            self.room.eq(inside != tags),
            self.complete.eq(done.bit_select(self.oldest, 1)),
            self.failed.eq(bad.bit_select(self.oldest, 1)),
        ]
        m.d.sync += [
            inside.eq(inside + self.enter - self.leave),
            self.tag.eq(self.tag + self.enter),
            self.oldest.eq(self.oldest + self.leave),
        ]
        with m.If(self.answered):
            m.d.sync += [
                done.bit_select(self.answered_tag, 1).eq(1),
                bad.bit_select(self.answered_tag, 1).eq(self.error),
            ]
        with m.If(self.enter & self.refused):
            m.d.sync += done.bit_select(self.tag, 1).eq(1)
        with m.If(self.leave):
            m.d.sync += [
                done.bit_select(self.oldest, 1).eq(0),
                bad.bit_select(self.oldest, 1).eq(0),
            ]
        return m
