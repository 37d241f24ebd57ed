"""Transmission of response frames."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component

from .crc import CRC_BITS, CRC_START, crc_step
from .frame import CRC_BYTES, MAX_WORDS, RESPONSE, RESPONSE_HEADER_BYTES, WORD_BYTES

_INDEX_BITS = (MAX_WORDS - 1).bit_length()


class FrameSender(Component):
    """Sends a response (:mod:`soc.board.frame`) as bytes.

    Members:
        header (in, 24): its bytes after the first one. reads (in, 1): words follow; both stay
            until the end.
        start (in, 1): begin; only if it does not send.
        ends (out, 1): the last byte is taken at the end of this cycle.
        index (out, 8): number of the word to send next. word (in, 32): it, from two cycles after a
            change of ``index`` on, and two after ``start``.
        sent (out, stream of bytes): the frame.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "header": In(8 * RESPONSE_HEADER_BYTES),
                "reads": In(1),
                "start": In(1),
                "ends": Out(1),
                "index": Out(_INDEX_BITS),
                "word": In(8 * WORD_BYTES),
                "sent": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        # The bytes to send, the lowest first, and how many besides it.
        rest, left, crc = Signal(8 * WORD_BYTES), Signal(range(WORD_BYTES)), Signal(CRC_BITS)
        last = self.header[-_INDEX_BITS:]
        taken, over = Signal(), Signal()
        m.d.comb += [
            self.sent.payload.eq(rest[:8]),
            taken.eq(self.sent.valid & self.sent.ready),
            over.eq(taken & (left == 0)),
        ]
        with m.If(taken):
            m.d.sync += [
                rest.eq(rest[8:]),
                left.eq(left - 1),
                crc.eq(crc_step(crc, self.sent.payload)),
            ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [
                    rest.eq(Cat(Const(RESPONSE, 8), self.header)),
                    left.eq(RESPONSE_HEADER_BYTES),
                    self.index.eq(0),
                ]
                with m.If(self.start):
                    m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += self.sent.valid.eq(1)
                with m.If(taken & (left == RESPONSE_HEADER_BYTES)):
                    m.d.sync += crc.eq(CRC_START)
                with m.If(over):
                    m.next = "CRC"
                    with m.If(self.reads):
                        m.next = "WORD"
            with m.State("WORD"):
                m.d.sync += [rest.eq(self.word), left.eq(WORD_BYTES - 1)]
                m.next = "BYTES"
            with m.State("BYTES"):
                m.d.comb += self.sent.valid.eq(1)
                with m.If(over):
                    m.d.sync += self.index.eq(self.index + 1)
                    m.next = "NEXT"
                    with m.If(self.index == last):
                        m.next = "CRC"
            with m.State("NEXT"):
                # The memory reads the word.
                m.next = "WORD"
            with m.State("CRC"):
                m.d.sync += [rest.eq(~crc), left.eq(CRC_BYTES - 1)]
                m.next = "END"
            with m.State("END"):
                m.d.comb += [self.sent.valid.eq(1), self.ends.eq(over)]
                with m.If(over):
                    m.next = "IDLE"
        return m
