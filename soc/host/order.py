"""The order of the requests of the host's data port."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component

__all__ = ["HostOrder"]


class HostOrder(Component):
    """Gives tags to pieces of bursts (:func:`soc.host.burst.burst_beat`) and lets them leave in the
    order in which they entered, whatever the order of the memory's answers.

    Parameters:
        tag_bits: width of a tag; ``2 ** tag_bits`` pieces may be inside.

    Members:
        room: out; a piece may enter. tag: out; it has this tag then.
        enter: in; it enters at the end of this cycle, only with ``room``.
        refused: in, with ``enter``; the memory is not asked, so the piece is complete at once.
        answered: in; the memory has answered the piece with tag ``answered_tag``, with ``error``.
        complete: out; the oldest piece has been answered. failed: out, with ``complete``; with an
            error. oldest: out; its tag.
        leave: in; it leaves at the end of this cycle, only with ``complete``.
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
        # Of the tags inside; without a piece a tag is neither.
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
